//! A thousand concurrent callers: each gets its own answer, whatever the concurrency limit of the gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use toolyard_server::RunningGateway;
use toolyard_testing::json;
use toolyard_testing::upstream::{
    ReceivedRequest, ReplyScript, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::gateway::gateway;

const CALLERS: usize = 1000;

/// Answers with the arguments.
fn echo(request: &ReceivedRequest) -> ScriptedReply {
    let arguments = request.params().get("arguments").text();
    ScriptedReply::result(request, &format!(r#"{{"structuredContent":{arguments}}}"#))
}

async fn start(call: impl ReplyScript, limits: &str) -> (TestUpstream, RunningGateway) {
    let upstream = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], call));
    let running = gateway(&[("h", upstream.address, "")], &format!("limits: {{{limits}}}")).await;
    (upstream, running)
}

/// The answer to one of many callers, each with a connection of its own.
async fn call(running: &RunningGateway, number: usize) -> String {
    let mode = if number.is_multiple_of(2) { ClientMode::Bare } else { ClientMode::Modern };
    let mut client = WireClient::new(running.address(), mode).await;
    client.call("t", &format!(r#"{{"n":{number}}}"#)).await.body
}

#[track_caller]
fn check(number: usize, body: &str) {
    let result = json::read(body).get("result").clone();
    assert_eq!(result.get("structuredContent").get("n").text(), number.to_string());
}

#[tokio::test]
async fn each_caller_gets_its_own_answer() {
    let (upstream, running) = start(echo, "").await;
    let answers = join_all((0..CALLERS).map(|number| call(&running, number))).await;
    answers.iter().enumerate().for_each(|(number, body)| check(number, body));
    assert_eq!(upstream.now(|log| log.count("tools/call")), CALLERS);
    assert_eq!(running.counts().succeeded, CALLERS as u64);
}

#[tokio::test]
async fn concurrency_limit_is_never_exceeded() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counting = {
        let (now, most) = (now.clone(), most.clone());
        move |request: &ReceivedRequest| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let now = now.clone();
            // Yields some times, so that a further call would arrive if the gateway let it through.
            echo(request).after(async move {
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
            })
        }
    };
    let (_upstream, running) = start(counting, "concurrentCalls: 8, queuedCalls: 2000").await;
    let answers = join_all((0..CALLERS).map(|number| call(&running, number))).await;
    answers.iter().enumerate().for_each(|(number, body)| check(number, body));
    assert_eq!(most.load(Ordering::SeqCst), 8);
}

#[tokio::test]
async fn full_queue_refuses_calls_at_once() {
    let (release, released) = watch::channel(false);
    let waiting = move |request: &ReceivedRequest| {
        let mut released = released.clone();
        echo(request).after(async move {
            released.wait_for(|released| *released).await.unwrap();
        })
    };
    let (_upstream, running) = start(waiting, "concurrentCalls: 8, queuedCalls: 1").await;
    let numbered = async |number| (number, call(&running, number).await);
    let mut calls: FuturesUnordered<_> = (0..CALLERS).map(numbered).collect();
    // Eight calls run and one waits for them; every other caller gets an error meanwhile.
    for _ in 0..CALLERS - 9 {
        let (_, body) = calls.next().await.unwrap();
        let error = json::read(&body).get("error").clone();
        assert_eq!(error.get("data").get("code").plain(), "overloaded");
        assert_eq!(error.get("data").get("retryable").text(), "true");
    }
    release.send_replace(true);
    while let Some((number, body)) = calls.next().await {
        check(number, &body);
    }
    assert_eq!((running.counts().succeeded, running.counts().refused), (9, CALLERS as u64 - 9));
}
