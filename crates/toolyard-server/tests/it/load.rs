//! A thousand callers at once: each gets its own answer, whatever the gateway lets through at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use toolyard_server::Running;

use crate::client::{Client, Speech};
use crate::gateway;
use crate::json;
use crate::upstream::{Era, Received, Reply, Script, Server, TOOL, Upstream};

const CALLERS: usize = 1000;

/// Answers with the arguments.
fn echo(request: &Received) -> Reply {
    let arguments = request.params().get("arguments").text();
    Reply::result(request, &format!(r#"{{"structuredContent":{arguments}}}"#))
}

async fn start(call: impl Script, limits: &str) -> (Upstream, Running) {
    let upstream = Upstream::start(Server::new(Era::Modern, &[TOOL], call));
    let running = gateway(&[("h", upstream.address, "")], &format!("limits: {{{limits}}}")).await;
    (upstream, running)
}

/// What one of many callers gets, who has a connection of its own.
async fn call(running: &Running, number: usize) -> String {
    let speech = if number.is_multiple_of(2) { Speech::Bare } else { Speech::Modern };
    let mut client = Client::new(running.address(), speech).await;
    client.call("t", &format!(r#"{{"n":{number}}}"#)).await.body
}

#[track_caller]
fn check(number: usize, body: &str) {
    let result = json::read(body).get("result").clone();
    assert_eq!(result.get("structuredContent").get("n").text(), number.to_string());
}

#[tokio::test]
async fn everybody_is_answered() {
    let (upstream, running) = start(echo, "").await;
    let said = join_all((0..CALLERS).map(|number| call(&running, number))).await;
    said.iter().enumerate().for_each(|(number, body)| check(number, body));
    assert_eq!(upstream.now(|log| log.count("tools/call")), CALLERS);
    assert_eq!(running.counts().succeeded, CALLERS as u64);
}

#[tokio::test]
async fn no_more_run_than_are_let_through() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counting = {
        let (now, most) = (now.clone(), most.clone());
        move |request: &Received| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let now = now.clone();
            // Some turns later, so that others come in the meantime if they are let.
            echo(request).after(async move {
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
            })
        }
    };
    let (_upstream, running) = start(counting, "concurrentCalls: 8, queuedCalls: 2000").await;
    let said = join_all((0..CALLERS).map(|number| call(&running, number))).await;
    said.iter().enumerate().for_each(|(number, body)| check(number, body));
    assert_eq!(most.load(Ordering::SeqCst), 8);
}

#[tokio::test]
async fn who_finds_the_queue_full_is_told_so_at_once() {
    let (release, released) = watch::channel(false);
    let waiting = move |request: &Received| {
        let mut released = released.clone();
        echo(request).after(async move {
            released.wait_for(|released| *released).await.unwrap();
        })
    };
    let (_upstream, running) = start(waiting, "concurrentCalls: 8, queuedCalls: 1").await;
    let numbered = async |number| (number, call(&running, number).await);
    let mut calls: FuturesUnordered<_> = (0..CALLERS).map(numbered).collect();
    // Eight run and one waits until they are released: everybody else has an answer before.
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
