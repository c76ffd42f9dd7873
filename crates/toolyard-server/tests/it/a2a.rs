//! The A2A protocol between the gateway and agents: those of the Python SDK, and wrong ones.

use std::path::Path;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use toolyard_core::store::KeySpace;
use toolyard_testing::peers;
use toolyard_testing::process::{self, RunningProgram};
use toolyard_testing::scripted_server::script;
use toolyard_testing::upstream::{
    ReceivedRequest, RequestLog, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wait::{eventually, until_async};
use toolyard_testing::wire_client::{ClientMode, MODERN_META, WireClient};

use crate::gateway::{call, manifest, started, started_on};
use crate::keyed_gateway::{KeyedGateway, memory};
use crate::task_client::{TAKING_TASKS, TaskClient};

/// An agent of the Python SDK.
struct PythonAgent {
    program: RunningProgram,
    url: String,
    _home: TempDir,
}

impl PythonAgent {
    /// Starts an agent whose card says `streaming` or `polled`, or one of version 0.3.
    async fn start(manner: &'static str) -> Self {
        let start = move || {
            let home = TempDir::new().unwrap();
            let mut python = peers::command(peers::peer("a2a/bin/python"), home.path());
            let program = RunningProgram::start(python.arg(script("a2a_agent.py")).arg(manner));
            let url = eventually("the URL of the agent", || {
                program
                    .stdout
                    .text()
                    .lines()
                    .next()
                    .filter(|line| line.starts_with("http"))
                    .map(str::to_owned)
            });
            Self { program, url, _home: home }
        };
        spawn_blocking(start).await.unwrap()
    }
}

/// Content of the `Toolyard` document with agents of these cards.
fn process(cards: &str) -> String {
    format!("builtins: {{scripts: {{enabled: false}}, agents: {{poll: 20ms, cards: [{cards}]}}}}")
}

/// A card of the manifest, with the key of the Python agent.
fn keyed(url: &str) -> String {
    format!("{{url: '{url}', headers: {{Authorization: 'Bearer agent-key'}}}}")
}

/// Calls a tool, and returns the text that a model reads.
pub(crate) async fn tool(gateway: &KeyedGateway, key: &str, tool: &str, arguments: Value) -> String {
    let body = json!({ "arguments": arguments }).to_string();
    let response = gateway.ask(key, &format!("POST /api/v1/tools/{tool}/call"), &body).await;
    let body: Value = serde_json::from_str(&response.body).expect("JSON");
    body["content"][0]["text"].as_str().unwrap_or(&response.body).to_owned()
}

/// Waits until an agent is known.
pub(crate) async fn known(gateway: &KeyedGateway, key: &str, name: &str) {
    let waiting = async {
        while !tool(gateway, key, "list_known_agents", json!({})).await.contains(name) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), waiting).await.expect("the agent is known");
}

/// Invokes an agent, and returns the result that is in working memory once the task has ended.
pub(crate) async fn invoked(gateway: &KeyedGateway, key: &str, arguments: Value) -> String {
    let text = tool(gateway, key, "invoke_agent", arguments).await;
    let memory_key = text.split('`').nth(1).unwrap_or_else(|| panic!("{text}")).to_owned();
    let waiting = async {
        loop {
            let text = tool(gateway, key, "get_from_working_memory", json!({ "key": memory_key })).await;
            if !text.ends_with("not found or has expired.") {
                return text;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), waiting).await.expect("a result")
}

/// Invokes the agent `Worker`, and returns its result.
async fn worked(gateway: &KeyedGateway, key: &str, message: &str, minutes: f64) -> String {
    let arguments =
        json!({"agent_name": "Worker", "skill": "work", "message": message, "timeout_minutes": minutes});
    invoked(gateway, key, arguments).await
}

#[tokio::test]
async fn agents_of_the_python_sdk_are_invoked() {
    for manner in ["streaming", "polled", "legacy"] {
        let agent = PythonAgent::start(manner).await;
        let gateway = KeyedGateway::start(&process(&keyed(&agent.url))).await;
        let key = gateway.key_for("tools:* rest").await;
        known(&gateway, &key, "Worker").await;
        let mut results = Vec::new();
        for message in ["answer me", "work hard", "ask me", "fail now"] {
            results.push(worked(&gateway, &key, message, 1.0).await);
        }
        assert_eq!(
            results,
            [
                "You said: answer me",
                "work: work hard",
                "The agent waits for input (input-required), which a new task has to give.\n\nWhich one?",
                "I cannot."
            ],
            "{manner}"
        );
        let slow = worked(&gateway, &key, "wait for me", 0.03).await;
        assert!(slow.starts_with("The agent did not finish within 1.8 seconds."), "{manner}: {slow}");
        let cancelled = async {
            while !agent.program.stdout.text().contains("cancelled") {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(60), cancelled).await.expect("the task is cancelled at the agent");
    }
}

#[tokio::test]
async fn task_of_an_agent_is_the_task_of_its_client() {
    let agent = PythonAgent::start("polled").await;
    let gateway = KeyedGateway::start(&process(&keyed(&agent.url))).await;
    known(&gateway, "", "Worker").await;
    let start = async |message: &str| {
        let arguments = json!({"agent_name": "Worker", "skill": "work", "message": message});
        TaskClient::start(&gateway, "invoke_agent", &arguments, TAKING_TASKS).await
    };
    let mut answered = start("answer me").await;
    let result = answered.status("completed").await["result"].take();
    assert_eq!(result["content"][0]["text"], "You said: answer me");
    assert_eq!(result["isError"], Value::Null);
    let failed = start("fail now").await.status("completed").await["result"].take();
    assert_eq!((&failed["content"][0]["text"], &failed["isError"]), (&json!("I cannot."), &json!(true)));

    let mut slow = start("wait for me").await;
    // The agent has it once its state is known.
    let mut task = slow.status("working").await;
    while task["statusMessage"] != "working" {
        task = slow.status("working").await;
    }
    assert_eq!(slow.ask("tasks/cancel", "").await["result"]["resultType"], "complete");
    slow.status("cancelled").await;
    let output = &agent.program.stdout;
    until_async("the task is cancelled at the agent", || output.text().contains("cancelled")).await;

    // Without the extension the call is answered at once, as before.
    let arguments = json!({"agent_name": "Worker", "skill": "work", "message": "answer me"});
    let text = tool(&gateway, "", "invoke_agent", arguments).await;
    assert!(text.starts_with("Task dispatched to agent 'Worker'"), "{text}");
}

#[tokio::test]
async fn running_task_fails_when_the_gateway_stops() {
    let agent = PythonAgent::start("polled").await;
    let gateway = KeyedGateway::start(&process(&keyed(&agent.url))).await;
    known(&gateway, "", "Worker").await;
    let arguments = json!({"agent_name": "Worker", "skill": "work", "message": "wait for me"});
    tool(&gateway, "", "invoke_agent", arguments).await;
    let KeyedGateway { running, store, .. } = gateway;
    running.stop().await;
    let stored = store.list(KeySpace("agent-tasks"), "", None, 10).await.expect("a store");
    let stored = String::from_utf8_lossy(&stored[0].1.bytes).into_owned();
    assert!(stored.contains("The gateway was stopped before the agent had answered."), "{stored}");
}

#[tokio::test]
async fn agent_of_the_python_sdk_notifies_the_gateway() {
    let agent = PythonAgent::start("pushing").await;
    // It gets the notifications, which are then passed to the gateway.
    let relay = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::http(200, "", ""));
    let agents = format!(
        "agents: {{poll: 1h, pushURL: 'http://{}/a2a/notifications', cards: [{}]}}",
        relay.address,
        keyed(&agent.url)
    );
    let gateway = KeyedGateway::start(&format!("builtins: {{scripts: {{enabled: false}}, {agents}}}")).await;
    let key = gateway.key_for("tools:* rest").await;
    known(&gateway, &key, "Worker").await;
    let passing = async {
        let is_end = |request: &ReceivedRequest| request.body.contains("TASK_STATE_COMPLETED");
        let read = |log: &RequestLog| log.requests.iter().rfind(|request| is_end(request)).cloned();
        let sent = relay.saw(|log| log.requests.iter().any(is_end), read).await.expect("a notification");
        assert!(sent.head.text().starts_with("POST /a2a/notifications "), "{}", sent.head.text());
        let token = sent.head.header("x-a2a-notification-token").expect("a token").to_owned();
        assert_eq!(sent.head.header("authorization"), Some(&*format!("Bearer {token}")));
        let pass = async |name: &str, token: &str, body: &str| {
            let headers = format!("{name}: {token}\r\n");
            gateway.ask_with("", "POST /a2a/notifications", &headers, body).await.head.status()
        };
        let header = "x-a2a-notification-token";
        assert_eq!(pass(header, "forged", &sent.body).await, 401);
        assert_eq!(pass("x-other", &token, &sent.body).await, 401);
        assert_eq!(pass(header, &token, "{}").await, 400);
        assert_eq!(pass("authorization", &format!("Bearer {token}"), &sent.body).await, 204);
    };
    let (result, ()) = tokio::join!(worked(&gateway, &key, "work hard", 5.0), passing);
    assert_eq!(result, "work: work hard");
}

#[tokio::test]
async fn signature_of_the_python_sdk_is_checked() {
    let (agent, other) = (PythonAgent::start("signed").await, PythonAgent::start("signed").await);
    let card = |keys_of: &str| {
        format!(
            "{{url: '{}', headers: {{Authorization: 'Bearer agent-key'}}, signature: {{url: '{keys_of}/jwks.json'}}}}",
            agent.url
        )
    };
    let gateway = KeyedGateway::start(&process(&card(&agent.url))).await;
    let key = gateway.key_for("tools:* rest").await;
    known(&gateway, &key, "Worker").await;
    assert_eq!(worked(&gateway, &key, "work hard", 1.0).await, "work: work hard");

    let gateway = KeyedGateway::start(&process(&card(&other.url))).await;
    let key = gateway.key_for("tools:* rest").await;
    known(&gateway, &key, "Worker").await;
    let arguments = json!({"agent_name": "Worker", "skill": "work", "message": "work hard"});
    assert_eq!(
        tool(&gateway, &key, "invoke_agent", arguments).await,
        "The agent 'Worker' is not available: the agent card has no valid signature: it does not match the card. Its \
         operator, or that of the gateway, has to mend this."
    );
    let found = tool(&gateway, &key, "search_known_services", json!({"query": "work for others"})).await;
    assert_eq!(found, r#"{"results": []}"#);
}

#[tokio::test]
async fn agents_are_found_by_search_and_hints() {
    let agent = PythonAgent::start("polled").await;
    let gateway = KeyedGateway::start(&process(&keyed(&agent.url))).await;
    let key = gateway.key_for("tools:* rest").await;
    known(&gateway, &key, "Worker").await;
    let found = tool(&gateway, &key, "search_known_services", json!({"query": "work for others"})).await;
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let worker =
        found["results"].as_array().and_then(|results| results.iter().find(|it| it["id"] == "Worker"));
    let worker = worker.unwrap_or_else(|| panic!("{found}"));
    assert_eq!((&worker["type"], &worker["top_skills"]), (&json!("a2a"), &json!(["work"])));
    let message = r#"{"message": "let the worker work hard for others"}"#;
    let hint = gateway.ask(&key, "POST /api/v1/hints", message).await.body;
    assert!(hint.contains(r"\n- Worker (a2a): Works for others, top skills: work"), "{hint}");
    // A key that may not invoke agents does not find them.
    let other = gateway.key_for("tools:builtins/search_* rest").await;
    let found = tool(&gateway, &other, "search_known_services", json!({"query": "work for others"})).await;
    assert_eq!(found, r#"{"results": []}"#);
}

/// Returns the reply of an agent to a request for its card.
fn card(interface: &str) -> String {
    let interface = json!({"url": interface, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    json!({"name": "Liar", "skills": [{"id": "work"}], "supportedInterfaces": [interface]}).to_string()
}

#[tokio::test]
async fn credentials_and_private_addresses_are_safe_from_a_lying_card() {
    let target = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::json("{}"));
    let interface = format!("http://{}/rpc", target.address);
    let liar = TestUpstream::start(move |_: &ReceivedRequest| ScriptedReply::json(&card(&interface)));
    let gateway = KeyedGateway::start(&process(&keyed(&format!("http://{}", liar.address)))).await;
    let key = gateway.key_for("tools:* rest").await;
    known(&gateway, &key, "Liar").await;
    let arguments = json!({"agent_name": "Liar", "skill": "work", "message": "hi"});
    let text = tool(&gateway, &key, "invoke_agent", arguments).await;
    let memory_key = text.split('`').nth(1).unwrap_or_else(|| panic!("{text}")).to_owned();
    let waiting = async {
        loop {
            let text = tool(&gateway, &key, "get_from_working_memory", json!({ "key": memory_key })).await;
            if !text.ends_with("not found or has expired.") {
                return text;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let text = timeout(Duration::from_secs(60), waiting).await.expect("a result");
    assert_eq!(text, "The task failed: cannot reach the agent: not a public address.");
    assert_eq!(target.now(|log| log.requests.len()), 0);
}

#[tokio::test]
async fn broken_cards_are_left_out() {
    let replies = ["<html>", "{}", r#"{"name": "A", "skills": [{"id": ""}]}"#];
    let broken =
        replies.map(|reply| TestUpstream::start(move |_: &ReceivedRequest| ScriptedReply::json(reply)));
    let large = "x".repeat(300 << 10);
    let large = TestUpstream::start(move |_: &ReceivedRequest| ScriptedReply::json(&large));
    let refusing =
        TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::http(302, "location: /x\r\n", ""));
    let good = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::json(&card("http://agent.example/")));
    let all = broken.iter().chain([&large, &refusing, &good]);
    let cards: Vec<_> = all.map(|agent| format!("{{url: 'http://{}'}}", agent.address)).collect();
    let gateway = KeyedGateway::start(&process(&cards.join(", "))).await;
    let key = gateway.key_for("tools:* rest").await;
    known(&gateway, &key, "Liar").await;
    for agent in broken.iter().chain([&large, &refusing]) {
        agent.saw(|log| !log.requests.is_empty(), |_| ()).await;
    }
    let list = tool(&gateway, &key, "list_known_agents", json!({})).await;
    assert_eq!(list.matches("agentName").count(), 1, "{list}");
}

/// Subscribers of both eras are notified when a task ends.
#[tokio::test]
async fn end_of_a_task_is_notified_in_both_eras() {
    let agent = TestUpstream::start(|request: &ReceivedRequest| match request.body.is_empty() {
        true => {
            let host = request.head.header("host").unwrap_or_default();
            ScriptedReply::json(&card(&format!("http://{host}/rpc")))
        }
        false => ScriptedReply::result(request, r#"{"message":{"parts":[{"text":"done"}]}}"#),
    });
    let process = process(&format!("{{url: 'http://{}'}}", agent.address));
    let answer = |request: &ReceivedRequest| ScriptedReply::result(request, r#"{"content":[]}"#);
    let server = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], answer));
    let running = started(&manifest(&[("web", server.address, "")], &process)).await;
    agent.saw(|log| !log.requests.is_empty(), |_| ()).await;
    let uri = "toolyard://agents/tasks";
    let address = running.address();
    let mut legacy = WireClient::in_session(address).await;
    let mut of_legacy = WireClient::new(address, legacy.mode.clone()).await.changes().await;
    let answer = legacy.ask("resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#)).await.body;
    assert!(answer.contains(r#""result":{}"#), "{answer}");
    let filter = format!(r#""notifications":{{"resourceSubscriptions":["{uri}"]}}"#);
    let modern = WireClient::new(address, ClientMode::Modern).await;
    let params = format!(r#"{{{filter},"_meta":{{{MODERN_META}}}}}"#);
    let mut of_modern = modern.open("subscriptions/listen", &params).await;
    assert!(of_modern.message().await.unwrap().contains(uri));
    let invoke = r#"{"agent_name": "Liar", "skill": "work", "message": "hi"}"#;
    let invoked = async {
        while !call(&running, "invoke_agent", invoke).await.unwrap().contains("dispatched") {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), invoked).await.expect("the agent is known");
    // A task may end before a subscription that is acknowledged is followed, so further ones are started.
    let more = async {
        for _ in 0..600 {
            call(&running, "invoke_agent", invoke).await.unwrap();
            sleep(Duration::from_millis(100)).await;
        }
    };
    let updated = async {
        for events in [&mut of_legacy, &mut of_modern] {
            let updated = events.message().await.unwrap();
            assert!(
                updated.contains("notifications/resources/updated") && updated.contains(uri),
                "{updated}"
            );
        }
    };
    tokio::select! {
        () = more => panic!("no notification"),
        () = updated => {}
    }
    let list = legacy.ask("resources/read", &format!(r#"{{"uri":"{uri}"}}"#)).await.body;
    assert!(list.contains("Liar (work), completed"), "{list}");
}

/// Content of the `Toolyard` document of a gateway that is an agent.
pub(crate) const AGENT: &str = "a2a: {name: orders, description: Orders., push: {private: true}, skills: [\
                     {tool: search, id: find, description: Finds., textArgument: q}, \
                     {tool: delete, description: Deletes.}, \
                     {tool: hold, description: Holds., textArgument: q}]}";

#[tokio::test]
async fn client_of_the_python_sdk_uses_the_gateway() {
    let held = TestUpstream::start(ScriptedUpstream::new(
        UpstreamEra::Modern,
        &[r#"{"name":"hold","inputSchema":{"type":"object"}}"#],
        |_: &ReceivedRequest| ScriptedReply::never(),
    ));
    let found = |request: &ReceivedRequest| match &*request.params().get("name").plain() {
        "delete" => {
            ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#)
        }
        _ => ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"found"}]}"#),
    };
    let tools = [
        r#"{"name":"search","inputSchema":{"type":"object"}}"#,
        r#"{"name":"delete","inputSchema":{"type":"object"}}"#,
    ];
    let web = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &tools, found));
    let store = memory().await;
    let handlers = [("held", held.address, ""), ("web", web.address, "")];
    let running = started_on(&store, &manifest(&handlers, AGENT)).await;
    let gateway = KeyedGateway { running, store, upstreams: [held, web] };
    let key = gateway.key_for("tools:* rest").await;
    // The card names the key once the gateway has read it.
    assert_eq!(gateway.ask(&key, "GET /api/v1/tools", "").await.head.status(), 200);
    let url = format!("http://{}", gateway.running.address());
    let hook = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::http(200, "", ""));
    let hook_url = format!("http://{}/hook", hook.address);
    let run = move || {
        let home = TempDir::new().unwrap();
        let mut python = peers::command(peers::peer("a2a/bin/python"), Path::new(home.path()));
        process::run(python.arg(script("a2a_client.py")).arg(url).arg(key).arg(hook_url))
    };
    let result = spawn_blocking(run).await.unwrap();
    assert_eq!((result.code, &*result.stderr), (0, ""), "{result}");
    assert_snapshot!(result.stdout, @"
    card orders ['find', 'delete', 'hold'] ['key']
    send task completed ['found']
    failure task failed []
    refused InvalidParamsError
    stream task True
    get True
    cancel canceled
    cancel again TaskNotCancelableError
    list ['canceled', 'completed', 'failed'] 1 4 ''
    create c1
    config True
    configs 1
    configs 0
    notified 1
    ");
    let is_end = |request: &ReceivedRequest| {
        request.body.contains("TASK_STATE_COMPLETED")
            && request.head.header("x-a2a-notification-token") == Some("token")
    };
    hook.saw(|log| log.requests.iter().any(is_end), |_| ()).await;
    let [held, _] = &gateway.upstreams;
    held.saw(|log| log.dropped.iter().any(|method| method == "tools/call"), |_| ()).await;
}

#[tokio::test]
async fn keys_and_scopes_hold_for_other_agents() {
    let gateway = KeyedGateway::start(AGENT).await;
    let [all, other] = [gateway.key_for("tools:* rest").await, gateway.key_for("tools:* rest").await];
    let no_rest = gateway.key_for("tools:*").await;
    let no_tool = gateway.key_for("tools:math/* rest").await;
    let message = |skill: &str| json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}], "metadata": {"skill": skill}});
    let request = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let send = request("SendMessage", json!({"message": message("find")}));
    let card = gateway.ask("", "GET /.well-known/agent-card.json", "").await;
    assert_eq!(card.head.status(), 200);
    let card: Value = serde_json::from_str(&card.body).expect("JSON");
    assert_eq!(card["supportedInterfaces"][0]["url"], "http://localhost/a2a");
    let state = |body: &str| {
        let body: Value = serde_json::from_str(body).expect("JSON");
        body["result"]["task"]["status"]["state"].as_str().map(str::to_owned)
    };
    for (key, status, expected) in [
        (&*all, 200, Some("TASK_STATE_COMPLETED")),
        (&*no_tool, 200, Some("TASK_STATE_REJECTED")),
        (&*no_rest, 403, None),
        ("", 401, None),
    ] {
        let response = gateway.ask(key, "POST /a2a", &send).await;
        assert_eq!(response.head.status(), status, "{}", response.body);
        if let Some(expected) = expected {
            assert_eq!(state(&response.body).as_deref(), Some(expected), "{}", response.body);
        }
    }
    let response = gateway.ask(&all, "POST /a2a", &send).await;
    let body: Value = serde_json::from_str(&response.body).expect("JSON");
    let get = request("GetTask", json!({"id": body["result"]["task"]["id"]}));
    assert!(gateway.ask(&all, "POST /a2a", &get).await.body.contains("TASK_STATE_COMPLETED"));
    assert!(gateway.ask(&other, "POST /a2a", &get).await.body.contains("-32001"));
}

#[tokio::test]
async fn gateway_is_no_agent_unless_configured() {
    let gateway = KeyedGateway::start("").await;
    let key = gateway.key_for("tools:* rest").await;
    for line in ["GET /.well-known/agent-card.json", "POST /a2a"] {
        assert_eq!(gateway.ask(&key, line, "").await.head.status(), 404, "{line}");
    }
}
