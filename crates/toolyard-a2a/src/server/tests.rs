use std::time::Duration;

use serde_json::json;
use tokio::sync::{Notify, watch};
use toolyard_core::access::{AccessGrant, AccessScope, ScopePattern};
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::layers::{AccessPolicy, ArgumentValidation, DeadlineLayer};
use toolyard_core::names::NameRegistry;
use toolyard_core::registry::{CallLimits, HandlerEntry};
use toolyard_core::{Backend, Registry};
use toolyard_manifest::{A2aSkill, PushSettings};
use toolyard_net::client::HttpClient;
use toolyard_sdk::{Context, Server, ToolFailure};

use super::*;

mod notifications;

/// An agent whose tool `hold` waits until it is released.
struct Harness {
    server: A2aServer,
    release: Arc<Notify>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct AskArgs {
    prompt: String,
}

impl Harness {
    fn new(tasks: usize) -> Self {
        let release = Arc::<Notify>::default();
        let held = release.clone();
        let server = Server::new("tools", "1.0.0")
            .tool("ask", "Asks.", async |args: AskArgs| format!("You said {}.", args.prompt))
            .and_then(|server| {
                server.tool("fail", "Fails.", async || Err::<String, _>(ToolFailure::new("It broke.")))
            })
            .and_then(|server| {
                server.tool("hold", "Waits.", async move |context: Context| {
                    context.progress(1.0, None, "half way");
                    held.notified().await;
                    "released"
                })
            })
            .expect("tools");
        let skill = |tool: &str, text_argument: Option<&str>| A2aSkill {
            tool: tool.to_owned(),
            id: None,
            name: None,
            description: format!("The tool {tool}."),
            tags: vec!["t".to_owned()],
            examples: Vec::new(),
            text_argument: text_argument.map(str::to_owned),
        };
        let ignored = Some("ignored");
        let settings = A2aSettings {
            name: "Gateway".to_owned(),
            description: "Tools.".to_owned(),
            url: None,
            skills: vec![
                skill("ask", Some("prompt")),
                skill("fail", ignored),
                skill("hold", ignored),
                skill("gone", ignored),
            ],
            bus: true,
            push: Some(PushSettings {
                private: true,
                attempts: 2,
                retry_delay: Duration::from_millis(1),
                per_task: 2,
                ..PushSettings::default()
            }),
            tasks,
            tasks_per_key: Some(tasks),
            task_ttl: Duration::from_secs(60),
            artifact_bytes: 1 << 10,
        };
        Self {
            server: A2aServer::new(
                gateway(server.into_backend()),
                settings,
                AgentClient::new(HttpClient::without_roots),
            ),
            release,
        }
    }

    async fn reply(&self, key: &str, body: &Value) -> A2aReply {
        let caller = caller(key, "*");
        self.server.answer(request(caller, None, body.to_string().as_bytes())).await
    }

    /// Returns the result or the error of a request.
    async fn call(&self, key: &str, method: &str, params: Value) -> Value {
        match self.reply(key, &rpc_request(method, params)).await {
            A2aReply::Response(text) => outcome(&text),
            A2aReply::Events(_) => panic!("a stream"),
        }
    }

    async fn send(&self, key: &str, skill: &str, text: &str, configuration: Value) -> Value {
        let params = json!({"message": message(skill, text), "configuration": configuration});
        self.call(key, "SendMessage", params).await
    }
}

fn gateway(backend: Arc<dyn Backend>) -> Arc<Gateway> {
    let catalog = backend.catalog().borrow().clone();
    let gate = CallGate::new(GateSize { running: 10, waiting: 10 });
    let handler = HandlerEntry::new("tools", backend, CallLimits { timeout: Duration::from_secs(60), gate });
    let registry = Registry::assemble(&[(handler, catalog)], &mut NameRegistry::default());
    Arc::new(Gateway::new(
        watch::Sender::new(Arc::new(registry)).subscribe(),
        vec![Box::new(AccessPolicy), Box::new(ArgumentValidation::new(None)), Box::new(DeadlineLayer)],
    ))
}

fn caller(key: &str, scope: &str) -> Caller {
    let grant = AccessGrant {
        scope: [scope.parse::<ScopePattern>().expect("a pattern")].into_iter().collect(),
        allowance: None,
        memory: AccessScope::default(),
        model: None,
        chunk_threshold: None,
    };
    Caller { principal: Some(key.into()), grant: Some(Arc::new(grant)), ..Caller::default() }
}

fn request<'a>(caller: Caller, version: Option<&'a str>, body: &'a [u8]) -> A2aRequest<'a> {
    A2aRequest { caller, origin: None, version, body }
}

fn rpc_request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

fn message(skill: &str, text: &str) -> Value {
    json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], "metadata": {"skill": skill}})
}

fn outcome(text: &str) -> Value {
    let response: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(response["jsonrpc"], "2.0");
    response.get("result").or_else(|| response.get("error")).cloned().expect("a result or an error")
}

/// Returns the state and the texts of a task.
fn told(task: &Value) -> String {
    let state = task["status"]["state"].as_str().unwrap_or_default().trim_start_matches("TASK_STATE_");
    let message = task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
    let artifact = task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default();
    format!("{state} {message}{artifact}").trim_end().to_owned()
}

#[tokio::test]
async fn messages_become_tasks_with_the_result_of_a_tool() {
    let harness = Harness::new(10);
    for (skill, expected) in [("ask", "COMPLETED You said hi."), ("fail", "REJECTED"), ("gone", "REJECTED")] {
        let result = harness.send("k", skill, "hi", json!({})).await;
        let found = told(&result["task"]);
        assert!(found.starts_with(expected), "{skill}: {found}");
    }
    let large = harness.send("k", "ask", &"x".repeat(2_000), json!({})).await;
    assert_eq!(told(&large["task"]), "FAILED The result is larger than 1024 bytes.");
    let data =
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": "fail"}}]}});
    let failed = harness.call("k", "SendMessage", data).await;
    assert_eq!(told(&failed["task"]), "FAILED It broke.");
}

#[tokio::test]
async fn tasks_are_read_and_cancelled_by_their_key() {
    let harness = Harness::new(10);
    let held = json!({"message": {"messageId": "m", "parts": [{"data": {"skill": "hold"}}]},
        "configuration": {"returnImmediately": true}});
    let started = harness.call("k", "SendMessage", held).await;
    let id = &started["task"]["id"];
    assert!(["SUBMITTED", "WORKING"].contains(&&*told(&started["task"])), "{started}");
    let about = || json!({ "id": id });
    let unknown = json!({"code": -32001, "message": "there is no such task"});
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        assert_eq!(harness.call("other", method, about()).await, unknown, "{method}");
        assert_eq!(harness.call("k", method, json!({"id": "x"})).await, unknown, "{method}");
    }
    let history = |task: &Value| task["history"].as_array().map_or(0, Vec::len);
    assert_eq!(history(&harness.call("k", "GetTask", about()).await), 1);
    assert_eq!(history(&harness.call("k", "GetTask", json!({"id": id, "historyLength": 0})).await), 0);
    assert_eq!(told(&harness.call("k", "CancelTask", about()).await), "CANCELED");
    assert_eq!(told(&harness.call("k", "GetTask", about()).await), "CANCELED");
    let ended = harness.call("k", "CancelTask", about()).await;
    assert_eq!(ended, json!({"code": -32002, "message": "the task has ended"}));
    let ended = harness.call("k", "SubscribeToTask", about()).await;
    assert_eq!(ended, json!({"code": -32004, "message": "the task has ended: use GetTask"}));
    let more = json!({"message": {"messageId": "m", "taskId": id, "parts": []}});
    assert_eq!(harness.call("k", "SendMessage", more).await["code"], -32004);
}

#[tokio::test]
async fn tasks_of_the_own_key_are_listed() {
    let harness = Harness::new(10);
    let first = harness.send("k", "ask", "one", json!({})).await;
    let second = harness.send("k", "ask", "two", json!({})).await;
    harness.send("other", "ask", "three", json!({})).await;
    let list = async |key: &str, params: Value| harness.call(key, "ListTasks", params).await;
    let page = list("k", json!({"pageSize": 1, "includeArtifacts": true, "historyLength": 0})).await;
    assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(2), &json!(1)));
    let mut newest = second["task"].clone();
    newest.as_object_mut().expect("a task").remove("history");
    assert_eq!(page["tasks"], json!([newest]));
    let rest = list("k", json!({"pageSize": 1, "pageToken": page["nextPageToken"]})).await;
    assert_eq!((&rest["tasks"][0]["id"], &rest["nextPageToken"]), (&first["task"]["id"], &json!("")));
    assert_eq!(rest["tasks"][0].get("artifacts"), None);
    assert_eq!(list("nobody", json!({})).await["tasks"], json!([]));
    assert_eq!(list("k", Value::Null).await["totalSize"], 2, "the parameters may be left out");
}

#[tokio::test]
async fn events_of_a_task_are_streamed() {
    let harness = Harness::new(10);
    let params = json!({"message": {"messageId": "m", "parts": [{"data": {"skill": "hold"}}]}});
    let A2aReply::Events(mut events) = harness.reply("k", &rpc_request("SendStreamingMessage", params)).await
    else {
        panic!("no stream")
    };
    let mut next = async || Some(outcome(&events.next().await?));
    let first: Value = next().await.expect("an event");
    let id = first["task"]["id"].clone();
    let working: Value = next().await.expect("an event");
    assert_eq!(working["statusUpdate"]["taskId"], id);
    // A second client of the same task, which reads late: it gets the task as it is then.
    let A2aReply::Events(second) =
        harness.reply("k", &rpc_request("SubscribeToTask", json!({"id": id}))).await
    else {
        panic!("no stream")
    };
    harness.release.notify_one();
    let mut kinds = Vec::new();
    while let Some(event) = next().await {
        let event: Value = event;
        kinds.push(event.as_object().and_then(|event| event.keys().next().cloned()).unwrap_or_default());
    }
    assert!(kinds.ends_with(&["artifactUpdate".to_owned(), "statusUpdate".to_owned()]), "{kinds:?}");
    let last = second.map(|event| outcome(&event)).collect::<Vec<_>>().await.pop().expect("an event");
    assert_eq!(told(&last["task"]), "COMPLETED released");
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let harness = Harness::new(10);
    let valid = rpc_request("GetTask", json!({"id": "x"})).to_string();
    let cases: [(&str, Option<&str>, i64); 13] = [
        ("{", None, -32700),
        ("[]", None, -32600),
        (r#"{"jsonrpc": "2.0", "method": "GetTask"}"#, None, -32600),
        (r#"{"jsonrpc": "1.0", "id": 1, "method": "GetTask"}"#, None, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "Fly"}"#, None, -32601),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {}}"#, None, -32602),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {}}}"#, None, -32602),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}"#, None, -32009),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"pageSize": 0}}"#, None, -32602),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": {}}"#, None, -32004),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "CreateTaskPushNotificationConfig", "params": {}}"#,
            None,
            -32602,
        ),
        (&valid, Some("0.3"), -32009),
        (&valid, Some("1.0"), -32001),
    ];
    for (body, version, code) in cases {
        let reply = harness.server.answer(request(caller("k", "*"), version, body.as_bytes())).await;
        let A2aReply::Response(text) = reply else { panic!("a stream") };
        assert_eq!(outcome(&text)["code"], code, "{body}");
    }
}

#[tokio::test]
async fn scopes_of_the_key_hold() {
    let harness = Harness::new(10);
    let body = rpc_request("SendMessage", json!({"message": message("ask", "hi")})).to_string();
    let reply = harness.server.answer(request(caller("k", "tools/fail"), None, body.as_bytes())).await;
    let A2aReply::Response(text) = reply else { panic!("a stream") };
    let task = &outcome(&text)["task"];
    assert!(told(task).starts_with("REJECTED"), "{task}");
}

#[tokio::test]
async fn number_of_tasks_is_limited() {
    let harness = Harness::new(2);
    let held = || {
        json!({"message": {"messageId": "m", "parts": [{"data": {"skill": "hold"}}]},
        "configuration": {"returnImmediately": true}})
    };
    harness.call("k", "SendMessage", held()).await;
    let ended = harness.send("k", "ask", "hi", json!({})).await;
    // The task that has ended makes room.
    harness.call("k", "SendMessage", held()).await;
    assert_eq!(harness.call("k", "GetTask", json!({"id": ended["task"]["id"]})).await["code"], -32001);
    let refused = harness.call("k", "SendMessage", held()).await;
    assert_eq!(
        refused["message"],
        "this key has 2 running tasks, and may have no more: wait until one has ended"
    );
    harness.server.stop().await;
}

#[test]
fn card_names_the_skills() {
    let harness = Harness::new(1);
    let card = harness.server.card("http://a/a2a", "1.2.3", true);
    let card: Value = serde_json::from_str(&card).expect("JSON");
    assert_eq!(card["supportedInterfaces"][0]["url"], "http://a/a2a");
    assert_eq!(card["securityRequirements"], json!([{"schemes": {"key": {"list": []}}}]));
    let skill = json!({"id": "ask", "name": "ask", "description": "The tool ask.", "tags": ["t"]});
    assert_eq!(card["skills"][0], skill);
    let open: Value = serde_json::from_str(&harness.server.card("http://a", "1", false)).expect("JSON");
    assert_eq!(open.get("securitySchemes"), None);
}
