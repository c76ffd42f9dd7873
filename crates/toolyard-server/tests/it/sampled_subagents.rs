//! Subagents whose model is that of their caller's client: in the session of a legacy client, or by the input of a task.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use toolyard_testing::json;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, WireClient, WireEventStream};

use crate::gateway::{manifest, started_on};
use crate::keyed_gateway::{KeyedGateway, memory};
use crate::task_client::TaskClient;

/// Content of the `Toolyard` document of a gateway without a language model of its own.
const PROCESS: &str = "builtins: {scripts: {enabled: false}, subagents: {concurrent: 2, replyTokens: 500}}";

const INITIALIZE: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"sampling":{"tools":{}}},"clientInfo":{"name":"c","version":"1"}}"#;

/// Meta data of a modern client that takes tasks and lends its model.
const LENDING: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{"tools":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// Runs a client on the Python SDK, and returns its output.
async fn python_client(mode: &'static str) -> String {
    let gateway = KeyedGateway::start(PROCESS).await;
    // The SDK refuses a list with `delete`, which has no schema.
    let key = gateway.key_for("tools:builtins/* tools:add tools:search memory:*").await;
    let url = format!("http://{}/mcp", gateway.running.address());
    let run = move || {
        let home = TempDir::new().unwrap();
        let mut python = peers::command(peers::peer("python/bin/python"), home.path());
        run(python.arg(script("sampling_client.py")).args([&*url, &*key, mode]))
    };
    let ended = spawn_blocking(run).await.unwrap();
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended}");
    ended.stdout
}

#[tokio::test]
async fn python_client_is_asked_in_its_session() {
    assert_snapshot!(python_client("legacy").await, @"
    listed without a model False
    listed for a model without tools False
    listed True
    Started subagent
    asked with ['report_progress', 'add'] auto 500 You are a subagent
      user: Add and search.
      assistant: add({'a': 1}) | search({'q': 'x'})
      user: c00: 2 | c01: found
      assistant: report_progress({'message': 'half'}) | whiteboard_write({'key': 'sum', 'value': 2})
      user: c10: Reported. | c11: Wrote `sum`.
      assistant: delete({}) | spawn_subagent({'description': 'More.'})
      user: c20: Error: Unknown tool: delete. Did you mean `delete_skill` or `delete_from_working_memory`? | c21: Error: Unknown tool: spawn_subagent
    board 2
    output True
    ");
}

#[tokio::test]
async fn python_client_is_asked_by_a_task() {
    assert_snapshot!(python_client("2026-07-28").await, @"
    listed without a model False
    listed for a model without tools False
    listed without tasks False
    listed True
    task working
    asked with ['report_progress', 'add'] auto 500 You are a subagent
      user: Add and search.
      assistant: add({'a': 1}) | search({'q': 'x'})
      user: c00: 2 | c01: found
      assistant: report_progress({'message': 'half'}) | whiteboard_write({'key': 'sum', 'value': 2})
      user: c10: Reported. | c11: Wrote `sum`.
      assistant: delete({}) | spawn_subagent({'description': 'More.'})
      user: c20: Error: Unknown tool: delete. Did you mean `delete_skill` or `delete_from_working_memory`? | c21: Error: Unknown tool: spawn_subagent
    states ['completed', 'input_required']
    The sum is 2.
    board 2
    output True
    ");
}

/// A legacy client that lends its model, and the stream of its session.
struct LendingClient {
    gateway: KeyedGateway,
    client: WireClient,
    stream: WireEventStream,
}

/// Opens a session that lends a model.
async fn lending_session(gateway: &KeyedGateway) -> WireClient {
    let mut client = WireClient::new(gateway.running.address(), ClientMode::Bare).await;
    let response = client.ask("initialize", INITIALIZE).await;
    client.mode = ClientMode::Session(response.head.header("mcp-session-id").unwrap().to_owned());
    client
}

impl LendingClient {
    async fn start() -> Self {
        Self::of(KeyedGateway::start(PROCESS).await).await
    }

    async fn of(gateway: KeyedGateway) -> Self {
        let client = lending_session(&gateway).await;
        let listener = WireClient::new(gateway.running.address(), client.mode.clone()).await;
        Self { gateway, client, stream: listener.changes().await }
    }

    /// Ends the session.
    async fn end(&self) {
        let headers = self.client.headers("", "");
        let ended = self.gateway.ask_with("", "DELETE /mcp", &headers, "").await;
        assert_eq!(ended.head.status(), 204);
    }

    /// Starts a subagent, and returns its id once the model is asked, with the id of that request.
    async fn spawn(&mut self) -> (String, Value) {
        let text = self.call("spawn_subagent", r#"{"description":"Wait."}"#).await;
        let id = text.strip_prefix("Started subagent ").and_then(|rest| rest.get(..12)).map(str::to_owned);
        let asked = self.next_message().await;
        assert_eq!(asked["method"], "sampling/createMessage");
        (id.unwrap_or_else(|| panic!("{text}")), asked["id"].clone())
    }

    async fn call(&mut self, tool: &str, arguments: &str) -> String {
        let body = self.client.call(tool, arguments).await.body;
        json::read(&body).get("result").get("content").items()[0].get("text").plain()
    }

    async fn next_message(&mut self) -> Value {
        serde_json::from_str(&self.stream.message().await.expect("a message")).expect("JSON")
    }

    async fn answer(&mut self, request: &Value, member: &str, answer: Value) {
        let response = json!({"jsonrpc": "2.0", "id": request, member: answer});
        assert_eq!(self.client.respond(&response.to_string()).await.head.status(), 202);
    }
}

/// Waits until the list of the subagents of a client has a text.
async fn wait_for(client: &mut WireClient, expected: &str) {
    let mut list = String::new();
    let waiting = async {
        while !list.contains(expected) {
            sleep(Duration::from_millis(10)).await;
            list = client.call("list_subagents", "{}").await.body;
        }
    };
    let is_seen = timeout(Duration::from_secs(60), waiting).await.is_ok();
    assert!(is_seen, "{expected:?} is not in {list}");
}

#[tokio::test]
async fn subagent_ends_with_the_session_that_lends_the_model() {
    let mut lending = LendingClient::start().await;
    lending.spawn().await;
    let mut other = lending_session(&lending.gateway).await;
    wait_for(&mut other, "is running").await;
    lending.end().await;
    wait_for(&mut other, "Reason: the session of the client has ended, and with it the use of its model")
        .await;
}

#[tokio::test]
async fn running_call_of_a_subagent_ends_with_the_session() {
    let held = TestUpstream::start(ScriptedUpstream::new(
        UpstreamEra::Modern,
        &[r#"{"name":"hold","inputSchema":{"type":"object"}}"#],
        |_: &ReceivedRequest| ScriptedReply::never(),
    ));
    let unused =
        TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[], |_: &ReceivedRequest| {
            ScriptedReply::never()
        }));
    let store = memory().await;
    let running = started_on(&store, &manifest(&[("held", held.address, "")], PROCESS)).await;
    let gateway = KeyedGateway { running, store, upstreams: [held, unused] };
    let mut lending = LendingClient::of(gateway).await;
    let (_, asked) = lending.spawn().await;
    let call = json!({"type": "tool_use", "id": "1", "name": "hold", "input": {}});
    lending.answer(&asked, "result", json!({"role": "assistant", "model": "m", "content": [call]})).await;
    let held = &lending.gateway.upstreams[0];
    held.saw(|log| log.count("tools/call") > 0, |_| ()).await;
    lending.end().await;
    held.saw(|log| log.dropped.iter().any(|method| method == "tools/call"), |_| ()).await;
    let mut other = lending_session(&lending.gateway).await;
    wait_for(&mut other, "Reason: the session of the client has ended").await;
}

#[tokio::test]
async fn cancelled_subagent_withdraws_its_request() {
    let mut lending = LendingClient::start().await;
    let (id, asked) = lending.spawn().await;
    let cancelled = lending.call("cancel_subagent", &json!({"task_id": id}).to_string()).await;
    assert_eq!(cancelled, format!("Cancelled subagent {id}."));
    let message = lending.next_message().await;
    assert_eq!(
        (&message["method"], &message["params"]["requestId"]),
        (&json!("notifications/cancelled"), &asked)
    );
    wait_for(&mut lending.client, "was cancelled").await;
}

#[tokio::test]
async fn refusal_of_the_user_is_the_reason() {
    let mut lending = LendingClient::start().await;
    let (_, asked) = lending.spawn().await;
    lending.answer(&asked, "error", json!({"code": -1, "message": "User rejected sampling request"})).await;
    wait_for(&mut lending.client, "the client refused: User rejected sampling request").await;
    let (_, asked) = lending.spawn().await;
    lending.answer(&asked, "result", json!({"role": "assistant", "content": "?"})).await;
    wait_for(&mut lending.client, "the reply of the client's model is malformed").await;
}

#[tokio::test]
async fn request_waits_for_the_stream_of_the_session() {
    let gateway = KeyedGateway::start(PROCESS).await;
    let mut client = lending_session(&gateway).await;
    client.call("spawn_subagent", r#"{"description":"Wait."}"#).await;
    let listener = WireClient::new(gateway.running.address(), client.mode.clone()).await;
    let message = listener.changes().await.message().await.expect("a message");
    assert!(message.contains("sampling/createMessage"), "{message}");
}

#[tokio::test]
async fn tools_are_those_of_clients_that_lend_their_model() {
    let gateway = KeyedGateway::start(&format!("{PROCESS}, allowUnauthenticated: true")).await;
    let key = gateway.key_for("tools:* rest").await;
    let body = r#"{"arguments":{"description":"More."}}"#;
    let status = gateway.short(&key, "POST /api/v1/tools/spawn_subagent/call", body, "").await;
    assert_eq!(status, "404 tool_not_found");
    let body = r#"{"arguments":{"name":"spawn_subagent","arguments":{"description":"More."}}}"#;
    let answer = gateway.short(&key, "POST /api/v1/tools/call_tool/call", body, "/content/0/text").await;
    assert!(answer.starts_with("200 \"There is no tool `spawn_subagent`."), "{answer}");
    let list = gateway.ask(&key, "GET /api/v1/tools", "").await.body;
    assert!(list.contains("\"search\"") && !list.contains("subagent"), "{list}");

    // Lists of modern clients differ, and are not cached for others.
    let mut modern = WireClient::new(gateway.running.address(), ClientMode::Modern).await;
    let plain = LENDING.replace(r#""tools":{}"#, "");
    for (meta, is_listed) in [(LENDING, true), (&*plain, false)] {
        let list = modern.ask("tools/list", &format!("{{{meta}}}")).await.body;
        assert_eq!(list.contains(r#""name":"spawn_subagent""#), is_listed, "{list}");
        assert!(list.contains(r#""cacheScope":"private""#), "{list}");
    }
}

/// Starts a subagent as the task of a modern client that lends its model.
async fn start_task(gateway: &KeyedGateway) -> TaskClient {
    TaskClient::start(gateway, "spawn_subagent", &json!({"description": "Wait."}), LENDING).await
}

#[tokio::test]
async fn task_requests_the_model_until_it_has_a_result() {
    let gateway = KeyedGateway::start(PROCESS).await;
    let mut task = start_task(&gateway).await;
    let asked = task.status("input_required").await;
    let request = &asked["inputRequests"]["sampling-1"];
    assert_eq!(
        (
            &request["method"],
            &request["params"]["maxTokens"],
            &request["params"]["messages"][0]["content"]["text"]
        ),
        (&json!("sampling/createMessage"), &json!(500), &json!("Wait."))
    );
    assert_eq!(task.ask("tasks/update", "").await["error"]["code"], -32602);
    // Unknown keys are ignored, and what is missing is requested again.
    task.ask("tasks/update", r#","inputResponses":{"other":{}}"#).await;
    assert_eq!(task.status("input_required").await["inputRequests"], asked["inputRequests"]);
    let reply = r#"{"role":"assistant","model":"m","content":{"type":"text","text":"Done."}}"#;
    let acknowledged =
        task.ask("tasks/update", &format!(r#","inputResponses":{{"sampling-1":{reply}}}"#)).await;
    assert_eq!(acknowledged["result"]["resultType"], "complete");
    assert_eq!(task.status("completed").await["result"]["content"][0]["text"], "Done.");
}

#[tokio::test]
async fn task_that_fails_or_is_cancelled_leaves_nothing_running() {
    let gateway = KeyedGateway::start(PROCESS).await;
    let mut failing = start_task(&gateway).await;
    failing.status("input_required").await;
    failing.ask("tasks/update", r#","inputResponses":{"sampling-1":{"content":1}}"#).await;
    let result = failing.status("completed").await["result"].take();
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert!(text.ends_with("ended without a result: the reply of the client's model is malformed"), "{text}");

    let [mut one, mut other] = [start_task(&gateway).await, start_task(&gateway).await];
    // The maximum is reached.
    let params = format!(r#"{{"name":"spawn_subagent","arguments":{{"description":"Wait."}},{LENDING}}}"#);
    let refused = one.client.ask("tools/call", &params).await.body;
    assert!(refused.contains("The subagent was not started: 2 are running"), "{refused}");
    one.status("input_required").await;
    assert_eq!(one.ask("tasks/cancel", "").await["result"]["resultType"], "complete");
    one.status("cancelled").await;
    start_task(&gateway).await;
    other.status("input_required").await;

    // A task of another key does not exist.
    let key = gateway.key_for("tools:*").await;
    let headers = format!(
        "authorization: Bearer {key}\r\nmcp-name: {0}\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tasks/get\r\n",
        other.task.as_str().expect("an id")
    );
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{{"taskId":{},{LENDING}}}}}"#,
        other.task
    );
    let response = gateway.ask_with("", "POST /mcp", &headers, &body).await.body;
    assert!(response.contains("unknown `params.taskId`"), "{response}");
}
