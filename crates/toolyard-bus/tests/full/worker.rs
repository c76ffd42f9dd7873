//! The worker: calls that arrive on a bus run at a gateway.

use std::sync::Arc;
use std::time::Duration;

use toolyard_bus::caller::{RemoteCall, ToolCaller};
use toolyard_bus::envelope::TraceContext;
use toolyard_bus::record::{ToolInvokeError, ToolInvokeRequest, ToolInvokeResponse};
use toolyard_bus::request::Requester;
use toolyard_bus::worker::BusWorker;
use toolyard_bus::{DeadLetter, Envelope, MessageBus, Subscription};
use toolyard_core::{Client, ErrorCode, ToolError};
use toolyard_manifest::Acknowledgement;

use crate::support::{
    BusBody, CountingBackend, ListeningClient, TestBroker, TestPrincipal, gateway, on_every_body, pattern,
    request, topic, within,
};

/// A worker on a bus, and a caller on another connection.
struct WorkerCase {
    case: TestBroker,
    backend: Arc<CountingBackend>,
    worker: Option<BusWorker>,
    bus: Arc<dyn MessageBus>,
    caller: ToolCaller,
}

impl WorkerCase {
    async fn start(case: TestBroker, tools: &'static str) -> Self {
        let backend = CountingBackend::new();
        let principal = Arc::new(TestPrincipal(tools));
        let worker =
            BusWorker::start(case.bus(), gateway(backend.clone()), principal, &case.settings).unwrap();
        assert!(within("the worker", worker.subscribed()).await);
        let bus = case.bus();
        let caller = ToolCaller::start(bus.clone(), "agent", 1000).await.unwrap();
        Self { case, backend, worker: Some(worker), bus, caller }
    }

    async fn call(&self, tool: &str, text: &str) -> Result<ToolInvokeResponse, ToolError> {
        let request = request(tool, &format!(r#"{{"text": "{text}"}}"#));
        self.caller.call(&request, RemoteCall::within(Duration::from_secs(20))).await
    }

    /// Sends a message without any help of the caller's.
    async fn send(&self, envelope: Envelope) {
        self.bus.publish(&topic("tool.invoke"), envelope).await.unwrap();
    }

    fn runs(&self, text: &str) -> usize {
        self.backend.runs.lock().unwrap().get(text).copied().unwrap_or_default()
    }

    async fn dead(&self, number: usize) -> Vec<DeadLetter> {
        let group = &self.case.settings.worker.group;
        within("dead letters", async {
            loop {
                let dead = self.bus.dead_letters(group, &pattern("tool.invoke"), 100).await.unwrap();
                if dead.len() >= number {
                    return dead;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
    }
}

#[tokio::test]
async fn calls_are_answered_or_classified() {
    on_every_body("classified", async |case| {
        let worker = WorkerCase::start(case, "read write fail large").await;
        let check = async |tool: &str, expected: &str| {
            let answer = worker.call(tool, "x").await;
            let shown = answer.map_or_else(
                |error| format!("{:?} {}", error.code(), error.message()),
                |response| {
                    format!("{} {}", response.is_error, response.content.unwrap_or_default().trim_end())
                },
            );
            assert!(shown.starts_with(expected), "{tool}: {shown}");
        };
        check("read", "false read x by bus").await;
        check("write", "false write x by bus").await;
        check("fail", "true no such city").await;
        check("large", "ExecutionFailed The result is too large for the bus").await;
        check("unknown", "ToolNotFound Tool 'unknown' is not registered.").await;
        // The tool exists, and not for the bus.
        check("slow", "ToolNotFound Tool 'slow' is not registered.").await;
        for arguments in [r#"{"text": 1}"#, "[]", "{"] {
            let remote = RemoteCall::within(Duration::from_secs(20));
            let refused = worker.caller.call(&request("read", arguments), remote).await;
            assert_eq!(refused.unwrap_err().code(), ErrorCode::InvalidArguments, "{arguments}");
        }
    })
    .await;
}

#[tokio::test]
async fn deadlines_and_cancellations_reach_the_worker() {
    on_every_body("cancelled", async |case| {
        let worker = WorkerCase::start(case, "*").await;
        let mut dropped = worker.backend.dropped.subscribe();
        // The time limit of the caller is that of the call.
        let limit = RemoteCall::within(Duration::from_millis(400));
        let late = worker.caller.call(&request("slow", "{}"), limit).await.unwrap_err();
        assert_eq!(late.code(), ErrorCode::Timeout);
        within("the end of the call", dropped.wait_for(|dropped| *dropped == 1)).await.unwrap();
        // A call that is dropped ends long before its limit.
        let abandoned = worker.call("slow", "abandoned");
        tokio::select! {
            _ = abandoned => panic!("it has no answer"),
            () = async { while worker.runs("abandoned") == 0 { tokio::time::sleep(Duration::from_millis(5)).await } } => {}
        }
        within("the cancellation", dropped.wait_for(|dropped| *dropped == 2)).await.unwrap();
        // A call whose time is over is not run.
        let mut stale = Envelope::of(&request("write", r#"{"text": "stale"}"#), "agent").unwrap();
        stale.timestamp -= 10_000;
        let requester = Requester::start(worker.bus.clone(), 10).await.unwrap();
        let stale = stale.header("rb-timeout-ms", "1000");
        let answer = requester.request(&topic("tool.invoke"), stale, Duration::from_secs(20)).await.unwrap();
        let error: ToolInvokeError = answer.read().unwrap();
        assert_eq!((&*error.code, error.is_retryable, worker.runs("stale")), ("timeout", true, 0));
    })
    .await;
}

#[tokio::test]
async fn forged_messages_reach_no_tool() {
    on_every_body("forged", async |case| {
        let worker = WorkerCase::start(case, "read").await;
        let call = |tool: &str| Envelope::of(&request(tool, r#"{"text": "forged"}"#), "agent").unwrap();
        let body = |text: &str| Envelope { body: text.to_owned().into(), ..call("read") };
        let other_type = Envelope { message_type: "RockBot.Tools.Other".into(), ..call("read") };
        let reply_to = |topic: &str| Envelope { reply_to: Some(topic.into()), ..call("read") };
        let messages = [
            body("{"),
            body(""),
            body(r#"{"toolCallId": "1"}"#),
            body(r#"{"toolCallId": "1", "toolName": "read", "arguments": {"text": "forged"}}"#),
            body(&"[".repeat(10_000)),
            other_type,
            reply_to("$JS.API.STREAM.DELETE.forged"),
            reply_to("tool.*"),
            reply_to("tool.invoke"),
            reply_to("tool.invoke.mcp"),
            reply_to("tool.cancel"),
        ];
        let number = messages.len();
        for message in messages {
            worker.send(message).await;
        }
        let dead = worker.dead(number).await;
        assert_eq!(dead.len(), number, "{dead:?}");
        assert!(dead.iter().all(|letter| letter.attempts == Some(1)), "{dead:?}");
        assert_eq!(worker.runs("forged"), 0);
        // Whatever a message says of its sender, it runs as the worker's caller.
        let mut requests = Vec::new();
        for source in ["admin", "toolyard", ""] {
            let envelope = Envelope { source: source.into(), ..call("write") };
            let envelope = envelope
                .header("rb-principal", "admin")
                .header("rb-content-trust", "system")
                .header("authorization", "Bearer forged");
            requests.push(envelope);
        }
        let requester = Requester::start(worker.bus.clone(), 10).await.unwrap();
        for envelope in requests {
            let answer =
                requester.request(&topic("tool.invoke"), envelope, Duration::from_secs(20)).await.unwrap();
            assert_eq!(answer.read::<ToolInvokeError>().unwrap().code, "tool_not_found");
        }
        assert_eq!(worker.runs("forged"), 0);
    })
    .await;
}

#[tokio::test]
async fn calls_with_effects_run_at_most_once() {
    on_every_body("at-most-once", async |case| {
        let worker = WorkerCase::start(case, "*").await;
        // A message that is sent twice.
        let twice = Envelope::of(&request("write", r#"{"text": "twice"}"#), "agent").unwrap();
        worker.send(twice.clone()).await;
        worker.send(twice).await;
        worker.call("write", "after").await.unwrap();
        assert_eq!((worker.runs("twice"), worker.runs("after")), (1, 1));
        // A tool that panics: its call is acknowledged, fails and does not come back.
        let panicked = worker.call("panic", "panic").await;
        assert_eq!(panicked.unwrap_err().code(), ErrorCode::ExecutionFailed);
        assert_eq!(worker.runs("panic"), 1);
    })
    .await;
}

#[tokio::test]
async fn redelivered_calls_run_again_only_without_effects() {
    on_every_body("redelivered", async |case| {
        let group = case.settings.worker.group.clone();
        let bus = case.bus();
        // Another member of the group returns the calls.
        let subscription = Subscription::of_group(&group, topic("tool.invoke"));
        let mut first = bus.subscribe(subscription).await.unwrap();
        let requester = Requester::start(bus.clone(), 10).await.unwrap();
        let mut pending = Vec::new();
        for tool in ["read", "write"] {
            let call = request(tool, &format!(r#"{{"text": "{tool}"}}"#));
            let envelope = Envelope::of(&call, "agent").unwrap();
            pending.push(requester.send(&topic("tool.invoke"), envelope).await.unwrap());
        }
        let held =
            [within("a call", first.next()).await.unwrap(), within("a call", first.next()).await.unwrap()];
        drop(first);
        let worker = WorkerCase::start(case, "*").await;
        for delivery in held {
            delivery.retry().await.unwrap();
        }
        let mut answers = Vec::new();
        for request in &mut pending {
            let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
            answers.push(request.reply_before(deadline).await.unwrap());
        }
        let read: ToolInvokeResponse = answers[0].read().unwrap();
        assert_eq!((read.is_error, worker.runs("read")), (false, 1));
        let write: ToolInvokeError = answers[1].read().unwrap();
        assert_eq!((&*write.code, write.is_retryable, worker.runs("write")), ("execution_failed", false, 0));
    })
    .await;
}

#[tokio::test]
async fn acknowledgement_is_a_setting() {
    let broker = TestBroker::start(BusBody::InProcess);
    for (acknowledge, expected) in [(Acknowledgement::Before, "read"), (Acknowledgement::After, "write")] {
        let case = broker.case("setting", |settings| settings.worker.acknowledge = acknowledge);
        let worker = WorkerCase::start(case, "*").await;
        let twice = Envelope::of(&request(expected, r#"{"text": "twice"}"#), "agent").unwrap();
        worker.send(twice.clone()).await;
        worker.send(twice).await;
        worker.call("read", "after").await.unwrap();
        let runs = if acknowledge == Acknowledgement::After { 2 } else { 1 };
        within("the runs", async {
            while worker.runs("twice") < runs {
                tokio::task::yield_now().await
            }
        })
        .await;
        assert_eq!(worker.runs("twice"), runs, "{acknowledge:?}");
    }
}

#[tokio::test]
async fn progress_and_traces_cross_the_bus() {
    on_every_body("progress", async |case| {
        let worker = WorkerCase::start(case, "*").await;
        let client = Arc::new(ListeningClient::default());
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let call = |tool: &str, client: Arc<dyn Client>| {
            let trace = TraceContext::parse(parent, None);
            let remote = RemoteCall { client, trace, ..RemoteCall::within(Duration::from_secs(20)) };
            (request(tool, "{}"), remote)
        };
        let (request, remote) = call("progress", client.clone());
        let answer = worker.caller.call(&request, remote).await.unwrap();
        assert_eq!(answer.content.as_deref(), Some("done"));
        assert_eq!(*client.0.lock().unwrap(), [r#"{"progress":1}"#, r#"{"progress":2}"#]);
        let (request, remote) = call("read", client);
        let answer = worker.caller.call(&request, remote).await.unwrap();
        assert_eq!(answer.content.unwrap(), format!("read  by bus {parent}"));
    })
    .await;
}

#[tokio::test]
async fn stopped_worker_finishes_its_calls() {
    let broker = TestBroker::start(BusBody::InProcess);
    let mut worker = WorkerCase::start(broker.case("stop", |_| {}), "*").await;
    let mut dropped = worker.backend.dropped.subscribe();
    let running = worker.worker.take().unwrap();
    let stop = async {
        within("the call", async {
            while worker.runs("running") == 0 {
                tokio::task::yield_now().await
            }
        })
        .await;
        running.stop(Duration::from_millis(50)).await;
    };
    tokio::select! {
        _ = worker.call("slow", "running") => panic!("it has no answer"),
        () = stop => {}
    }
    within("the end of the call", dropped.wait_for(|dropped| *dropped == 1)).await.unwrap();
    // The next call waits for another worker.
    let remote = RemoteCall::within(Duration::from_millis(100));
    let later = worker.caller.call(&request("read", "{}"), remote).await;
    assert_eq!(later.unwrap_err().code(), ErrorCode::Timeout);
}

/// Reads a request as a client that knows only the documented forms does.
#[test]
fn request_of_the_document_is_read() {
    let text = r#"{"ToolCallId":"c1","ToolName":"read","Arguments":"{}","SessionId":null}"#;
    let request: ToolInvokeRequest = serde_json::from_str(text).unwrap();
    assert_eq!(request.tool_name, "read");
}
