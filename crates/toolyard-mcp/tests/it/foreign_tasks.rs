//! Tasks that a server behind the frontend has begun (SEP-2663).

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;
use toolyard_core::{Call, Code, Json, Outcome, Target, TaskAction, ToolError};
use toolyard_mcp::server::{FrontendLimits, Offers, TaskOffer};

use crate::client::{ABLE, Client, ELICIT, LEGACY, MODERN};
use crate::script::{object, text};
use crate::yard::{EVERYTHING, Ended, Setup, Yard};

/// The server of one tool, which works as a task only.
#[derive(Debug, Default)]
struct Server {
    /// What is wanted of the task, and with what.
    wanted: Mutex<Vec<String>>,
}

impl Server {
    fn run(&self, call: &Call) -> Ended {
        let Target::Task(task) = &call.target else { return begin(call) };
        let mut wanted = self.wanted.lock().unwrap();
        let answers = call
            .params
            .get("inputResponses")
            .map_or(String::new(), |answers| format!(" {}", answers.as_text()));
        wanted.push(format!("{:?} {}{answers}", task.action, task.id));
        let updates = wanted.iter().filter(|wanted| wanted.starts_with("Update")).count();
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
        return Err(ToolError::new(Code::ExecutionFailed, "no").from_peer(Json::from_value(&error)));
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

fn yard(tasks: TaskOffer) -> (Yard, Arc<Server>) {
    let server = Arc::<Server>::default();
    let setup = Setup { offers: Offers { tasks, ..EVERYTHING }, ..Setup::default() };
    let run = server.clone();
    let yard = Yard::build(setup, move |call| {
        let came = run.run(&call);
        async move { came }
    });
    (yard, server)
}

/// A client that takes tasks looks after it by itself; only the id is another one, of which no other server has one.
#[tokio::test]
async fn a_client_that_takes_tasks() {
    let (yard, server) = yard(TaskOffer::Any);
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let mut lines = vec![client.call("echo", "").await];
    let id = client.last("taskId");
    let task = format!(r#""taskId":"{id}""#);
    lines.push(client.ask("tasks/get", &task).await);
    lines.push(
        client.ask("tasks/update", &format!(r#"{task},"inputResponses":{{"one":{{"a":1.10}}}}"#)).await,
    );
    lines.push(client.ask("tasks/get", &task).await);
    lines.push(client.ask("tasks/cancel", &task).await);
    lines.push(client.ask("tasks/get", r#""taskId":"7""#).await);
    // Somebody else's task does not exist.
    let mut other = Client::piped(&yard, MODERN, ABLE).await;
    lines.push(other.ask("tasks/get", &task).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"<0>","status":"working","pollIntervalMs":0,"x":1}}
    {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","taskId":"<0>","status":"input_required","pollIntervalMs":0,"x":1,"inputRequests":{"one":{"method":"elicitation/create","params":{"message":"who?"}}}}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"complete"}}
    {"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","taskId":"<0>","status":"completed","pollIntervalMs":0,"x":1,"result":{"content":[],"structuredContent":1}}}
    {"jsonrpc":"2.0","id":5,"result":{"resultType":"complete"}}
    {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    "#);
    assert_snapshot!(server.wanted.lock().unwrap().join("\n"), @r#"
    Get 7
    Update 7 {"one":{"a":1.10}}
    Get 7
    Cancel 7
    "#);
}

/// For others it is looked after here: what it asks is asked of the client, and its result is the call's.
#[tokio::test(start_paused = true)]
async fn a_client_that_knows_no_tasks() {
    let (yard, server) = yard(TaskOffer::Any);
    let mut client = Client::piped(&yard, LEGACY[3], ELICIT_ABLE).await;
    client.request("tools/call", r#""name":"echo""#).await;
    let asked = client.hear().await;
    assert!(asked.contains("elicitation/create"), "{asked}");
    client.answer(0, r#"{"action":"accept"}"#).await;
    assert_snapshot!(client.hear().await, @r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":1}}"#);
    assert_snapshot!(server.wanted.lock().unwrap().join("\n"), @r#"
    Get 7
    Update 7 {"one":{"action":"accept"}}
    Get 7
    "#);
}

/// Who wants to be told of it is, as of the tasks of the gateway itself.
#[tokio::test(start_paused = true)]
async fn a_client_that_follows_it() {
    let (yard, _server) = yard(TaskOffer::Any);
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    client.call("echo", "").await;
    let task = client.last("taskId");
    client.request("subscriptions/listen", &format!(r#""notifications":{{"taskIds":["{task}","7"]}}"#)).await;
    let mut lines = vec![client.hear_all(2).await];
    let answers = r#""inputResponses":{"one":{}}"#;
    lines.push(client.ask("tasks/update", &format!(r#""taskId":"{task}",{answers}"#)).await);
    lines.push(client.hear().await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"notifications":{"taskIds":["<0>"]}}}
    {"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"<0>","status":"input_required","pollIntervalMs":0,"x":1,"inputRequests":{"one":{"method":"elicitation/create","params":{"message":"who?"}}},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"complete"}}
    {"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"<0>","status":"completed","pollIntervalMs":0,"x":1,"result":{"content":[],"structuredContent":1},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
    "#);
}

const ELICIT_ABLE: &str = r#"{"elicitation":{}}"#;

/// Who leaves lets go of the task.
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves() {
    let (yard, server) = yard(TaskOffer::Any);
    let mut client = Client::piped(&yard, LEGACY[3], ELICIT_ABLE).await;
    let id = client.request("tools/call", r#""name":"echo""#).await;
    client.hear().await;
    client.withdraw(id).await;
    yard.ended(4).await;
    let wanted = server.wanted.lock().unwrap().clone();
    assert!(wanted.last().is_some_and(|wanted| wanted.starts_with("Cancel 7")), "{wanted:?}");
}

/// A call that takes long becomes a task of ours, whatever its tool says; one that asks does not.
#[tokio::test(start_paused = true)]
async fn a_call_that_takes_long() {
    let offers = Offers { tasks: TaskOffer::Any, ..EVERYTHING };
    let yard = Yard::build(Setup { offers, ..Setup::default() }, |call| async move {
        match &call.target {
            Target::Tool(name) if &**name == "wait" => std::future::pending().await,
            Target::Tool(name) if &**name == "ask" => crate::script::run(call).await,
            _ => Ok(text("quick")),
        }
    });
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let mut lines = vec![client.call("echo", "").await, client.call("wait", "").await];
    lines.push(client.call("ask", &crate::client::asking(&[ELICIT])).await);
    let mut plain = Client::piped(&yard, MODERN, "{}").await;
    plain.request("tools/call", r#""name":"wait""#).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    lines.push(plain.heard_already());
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"quick"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"<0>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<1>"}}
    "#);
}

/// A task of the server that goes on for ever, or asks the same twice.
fn looping(asks: bool) -> Yard {
    let offers = Offers { tasks: TaskOffer::Any, ..EVERYTHING };
    let setup = Setup { offers, timeout: Duration::from_secs(20), ..Setup::default() };
    let polls = AtomicUsize::new(0);
    Yard::build(setup, move |call| {
        let poll = match &call.target {
            Target::Task(task) if task.action == TaskAction::Get => polls.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        let Target::Task(_) = &call.target else { return ready(begin(&call)) };
        let ask =
            json!({"inputRequests": {"q": {"method": "elicitation/create", "params": {"message": poll}}}});
        ready(Ok(object(match (asks, poll) {
            (true, 0 | 2) => described("input_required", ask),
            (true, 4) => described("completed", json!({"result": {"content": []}})),
            _ => described("working", json!({})),
        })))
    })
}

/// A call has one budget, whatever its server makes of it.
#[tokio::test(start_paused = true)]
async fn a_task_that_never_ends() {
    let yard = looping(false);
    let mut client = Client::piped(&yard, LEGACY[3], ELICIT_ABLE).await;
    assert_snapshot!(client.call("echo", "").await, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool did not answer in time","data":{"code":"timeout","reason":"The tool did not answer in time","retryable":true}}}"#);
}

/// Questions of the same name that are asked after each other are two.
#[tokio::test(start_paused = true)]
async fn a_task_that_asks_again() {
    let yard = looping(true);
    let mut client = Client::piped(&yard, LEGACY[3], ELICIT_ABLE).await;
    client.request("tools/call", r#""name":"echo""#).await;
    let mut lines = Vec::new();
    for id in 0..2 {
        lines.push(client.hear().await);
        client.answer(id, "{}").await;
    }
    lines.push(client.hear().await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":0}}
    {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":2}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
    "#);
}

/// Where no other task can be remembered a call goes on as what it is.
#[tokio::test(start_paused = true)]
async fn no_room_for_a_task() {
    let offers = Offers { tasks: TaskOffer::Any, ..EVERYTHING };
    let limits = FrontendLimits { tasks: 1, task_after: Duration::from_secs(1), ..FrontendLimits::default() };
    let yard = Yard::build(Setup { offers, limits, ..Setup::default() }, |_| async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(text("done"))
    });
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let lines = [client.call("echo", "").await, client.call("echo", "").await, client.call("echo", "").await];
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"<0>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"task","taskId":"<1>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    "#);
}
