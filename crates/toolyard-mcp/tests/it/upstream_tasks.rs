//! Tasks of upstream servers (SEP-2663).

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;
use toolyard_core::{Call, CallTarget, ErrorCode, Json, Outcome, TaskAction, ToolError};
use toolyard_mcp::server::{FrontendLimits, OfferedFeatures, TaskOffer};

use crate::client::{ABLE, Client, ELICIT, LEGACY, MODERN};
use crate::script::{object, text};
use crate::test_gateway::{EVERYTHING, Ended, Setup, TestGateway};

/// A server with one tool that runs only as a task.
#[derive(Debug, Default)]
struct Server {
    /// The requests for the task, with their input.
    actions: Mutex<Vec<String>>,
}

impl Server {
    fn run(&self, call: &Call) -> Ended {
        let CallTarget::Task(task) = &call.target else { return begin(call) };
        let mut actions = self.actions.lock().unwrap();
        let answers = call
            .params
            .get("inputResponses")
            .map_or(String::new(), |answers| format!(" {}", answers.as_text()));
        actions.push(format!("{:?} {}{answers}", task.action, task.id));
        let updates = actions.iter().filter(|actions| actions.starts_with("Update")).count();
        match (task.action, call.arguments(), updates) {
            (TaskAction::Update | TaskAction::Cancel, ..) => Ok(object(json!({"resultType": "complete"}))),
            (TaskAction::Get, _, 0) => {
                let ask = json!({"method": "elicitation/create", "params": {"message": "who?"}});
                Ok(object(described("input_required", json!({"inputRequests": {"one": ask}}))))
            }
            (TaskAction::Get, ..) => {
                let result = json!({"content": [], "structuredContent": 1});
                Ok(object(described("completed", json!({"result": result}))))
            }
        }
    }
}

fn begin(call: &Call) -> Ended {
    let declared = call.client.capabilities().map_or("", Json::as_text);
    if !declared.contains("io.modelcontextprotocol/tasks") {
        let required = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let error = json!({"code": -32021, "message": "no", "data": {"requiredCapabilities": required}});
        return Err(ToolError::new(ErrorCode::ExecutionFailed, "no").from_peer(Json::from_value(&error)));
    }
    match object(described("working", json!({"resultType": "task"}))) {
        Outcome::Done(output) => Ok(Outcome::Task(output.body.into())),
        other => Ok(other),
    }
}

fn described(status: &str, more: serde_json::Value) -> serde_json::Value {
    let mut all =
        json!({"resultType": "complete", "taskId": "7", "status": status, "pollIntervalMs": 0, "x": 1});
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}

fn gateway(tasks: TaskOffer) -> (TestGateway, Arc<Server>) {
    let server = Arc::<Server>::default();
    let setup = Setup { offers: OfferedFeatures { tasks, ..EVERYTHING }, ..Setup::default() };
    let run = server.clone();
    let gateway = TestGateway::build(setup, move |call| {
        let result = run.run(&call);
        async move { result }
    });
    (gateway, server)
}

/// A client with the tasks extension polls the task itself; only its id is replaced by a unique one.
#[tokio::test]
async fn task_client_polls_upstream_task() {
    let (gateway, server) = gateway(TaskOffer::Any);
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let mut lines = vec![client.call("echo", "").await];
    let id = client.last("taskId");
    let task = format!(r#""taskId":"{id}""#);
    lines.push(client.request("tasks/get", &task).await);
    lines.push(
        client.request("tasks/update", &format!(r#"{task},"inputResponses":{{"one":{{"a":1.10}}}}"#)).await,
    );
    lines.push(client.request("tasks/get", &task).await);
    lines.push(client.request("tasks/cancel", &task).await);
    lines.push(client.request("tasks/get", r#""taskId":"7""#).await);
    // A task of another client does not exist.
    let mut other = Client::on_pipe(&gateway, MODERN, ABLE).await;
    lines.push(other.request("tasks/get", &task).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"<0>","status":"working","pollIntervalMs":0,"x":1}}
    {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","taskId":"<0>","status":"input_required","pollIntervalMs":0,"x":1,"inputRequests":{"one":{"method":"elicitation/create","params":{"message":"who?"}}}}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"complete"}}
    {"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","taskId":"<0>","status":"completed","pollIntervalMs":0,"x":1,"result":{"content":[],"structuredContent":1}}}
    {"jsonrpc":"2.0","id":5,"result":{"resultType":"complete"}}
    {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"unknown `params.taskId`"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown `params.taskId`"}}
    "#);
    assert_snapshot!(server.actions.lock().unwrap().join("\n"), @r#"
    Get 7
    Update 7 {"one":{"a":1.10}}
    Get 7
    Cancel 7
    "#);
}

/// For other clients the gateway awaits the task: its requests go to the client, and its result is the call's.
#[tokio::test(start_paused = true)]
async fn gateway_awaits_task_for_legacy_client() {
    let (gateway, server) = gateway(TaskOffer::Any);
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ELICIT_ABLE).await;
    client.send_request("tools/call", r#""name":"echo""#).await;
    let question = client.receive().await;
    assert!(question.contains("elicitation/create"), "{question}");
    client.answer(0, r#"{"action":"accept"}"#).await;
    assert_snapshot!(client.receive().await, @r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":1}}"#);
    assert_snapshot!(server.actions.lock().unwrap().join("\n"), @r#"
    Get 7
    Update 7 {"one":{"action":"accept"}}
    Get 7
    "#);
}

/// A subscriber gets the changes, as of the gateway's own tasks.
#[tokio::test(start_paused = true)]
async fn task_changes_are_forwarded() {
    let (gateway, _server) = gateway(TaskOffer::Any);
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    client.call("echo", "").await;
    let task = client.last("taskId");
    client
        .send_request("subscriptions/listen", &format!(r#""notifications":{{"taskIds":["{task}","7"]}}"#))
        .await;
    let mut lines = vec![client.receive_many(2).await];
    let answers = r#""inputResponses":{"one":{}}"#;
    lines.push(client.request("tasks/update", &format!(r#""taskId":"{task}",{answers}"#)).await);
    lines.push(client.receive().await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"notifications":{"taskIds":["<0>"]}}}
    {"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"<0>","status":"input_required","pollIntervalMs":0,"x":1,"inputRequests":{"one":{"method":"elicitation/create","params":{"message":"who?"}}},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"complete"}}
    {"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"<0>","status":"completed","pollIntervalMs":0,"x":1,"result":{"content":[],"structuredContent":1},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
    "#);
}

const ELICIT_ABLE: &str = r#"{"elicitation":{}}"#;

/// Cancelling the call cancels the task.
#[tokio::test(start_paused = true)]
async fn cancelled_call_cancels_upstream_task() {
    let (gateway, server) = gateway(TaskOffer::Any);
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ELICIT_ABLE).await;
    let id = client.send_request("tools/call", r#""name":"echo""#).await;
    client.receive().await;
    client.cancel(id).await;
    gateway.ended(4).await;
    let actions = server.actions.lock().unwrap().clone();
    assert!(actions.last().is_some_and(|actions| actions.starts_with("Cancel 7")), "{actions:?}");
}

/// A long call becomes a task of the gateway, whatever its tool declares; one that asks for input does not.
#[tokio::test(start_paused = true)]
async fn long_call_becomes_task() {
    let offers = OfferedFeatures { tasks: TaskOffer::Any, ..EVERYTHING };
    let gateway = TestGateway::build(Setup { offers, ..Setup::default() }, |call| async move {
        match &call.target {
            CallTarget::Tool(name) if &**name == "wait" => std::future::pending().await,
            CallTarget::Tool(name) if &**name == "ask" => crate::script::run(call).await,
            _ => Ok(text("quick")),
        }
    });
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let mut lines = vec![client.call("echo", "").await, client.call("wait", "").await];
    lines.push(client.call("ask", &crate::client::asking(&[ELICIT])).await);
    let mut plain = Client::on_pipe(&gateway, MODERN, "{}").await;
    plain.send_request("tools/call", r#""name":"wait""#).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    lines.push(plain.received_so_far());
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"quick"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"<0>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<1>"}}
    "#);
}

/// An upstream task that never ends, or that asks the same question twice.
fn looping(asks: bool) -> TestGateway {
    let offers = OfferedFeatures { tasks: TaskOffer::Any, ..EVERYTHING };
    let setup = Setup { offers, timeout: Duration::from_secs(20), ..Setup::default() };
    let polls = AtomicUsize::new(0);
    TestGateway::build(setup, move |call| {
        let poll = match &call.target {
            CallTarget::Task(task) if task.action == TaskAction::Get => polls.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        let CallTarget::Task(_) = &call.target else { return ready(begin(&call)) };
        let ask =
            json!({"inputRequests": {"q": {"method": "elicitation/create", "params": {"message": poll}}}});
        ready(Ok(object(match (asks, poll) {
            (true, 0 | 2) => described("input_required", ask),
            (true, 4) => described("completed", json!({"result": {"content": []}})),
            _ => described("working", json!({})),
        })))
    })
}

/// The timeout of a call includes its task.
#[tokio::test(start_paused = true)]
async fn endless_upstream_task_times_out() {
    let gateway = looping(false);
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ELICIT_ABLE).await;
    assert_snapshot!(client.call("echo", "").await, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool did not answer in time","data":{"code":"timeout","reason":"timed out","retryable":true}}}"#);
}

/// Successive questions with the same key are two.
#[tokio::test(start_paused = true)]
async fn repeated_key_is_a_new_request() {
    let gateway = looping(true);
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ELICIT_ABLE).await;
    client.send_request("tools/call", r#""name":"echo""#).await;
    let mut lines = Vec::new();
    for id in 0..2 {
        lines.push(client.receive().await);
        client.answer(id, "{}").await;
    }
    lines.push(client.receive().await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":0}}
    {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":2}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
    "#);
}

/// Without room for another task, a call stays a request.
#[tokio::test(start_paused = true)]
async fn call_stays_a_request_without_room() {
    let offers = OfferedFeatures { tasks: TaskOffer::Any, ..EVERYTHING };
    let limits = FrontendLimits { tasks: 1, task_after: Duration::from_secs(1), ..FrontendLimits::default() };
    let gateway = TestGateway::build(Setup { offers, limits, ..Setup::default() }, |_| async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(text("done"))
    });
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let lines = [client.call("echo", "").await, client.call("echo", "").await, client.call("echo", "").await];
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"<0>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"task","taskId":"<1>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    "#);
}
