//! Subagents in a running gateway, with a scripted model: their tools, limits, rights and results.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use toolyard_core::store::KeySpace;
use toolyard_server::keys::record;
use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream};

use crate::gateway::manifest;
use crate::keyed_gateway::KeyedGateway;

/// A gateway whose subagents have this model.
struct SubagentGateway {
    gateway: KeyedGateway,
    model: TestUpstream,
}

/// A message of the model: a text, or the calls that it requests.
enum ModelMessage {
    Text(&'static str),
    Calls(&'static [(&'static str, &'static str)]),
    Never,
}

impl ModelMessage {
    /// The streamed reply, in small parts.
    fn reply(&self, usage: u64) -> ScriptedReply {
        let part = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
        let mut parts = match self {
            Self::Never => return ScriptedReply::never(),
            Self::Text(text) => {
                let (first, second) = text.split_at(text.len() / 2);
                vec![part(json!({"role": "assistant", "content": first})), part(json!({"content": second}))]
            }
            Self::Calls(calls) => calls
                .iter()
                .enumerate()
                .flat_map(|(index, (name, arguments))| {
                    let (first, second) = arguments.split_at(arguments.len() / 2);
                    let begin = json!({"name": name, "arguments": first});
                    let begin = json!({"index": index, "id": format!("c{index}"), "type": "function", "function": begin});
                    let rest = json!({"index": index, "function": {"arguments": second}});
                    [begin, rest].map(|call| part(json!({"tool_calls": [call]})))
                })
                .collect(),
        };
        parts.push(json!({"choices": [], "usage": {"prompt_tokens": usage, "completion_tokens": 1}}));
        let events: String = parts.iter().map(|part| format!("data: {part}\n\n")).collect();
        ScriptedReply::http(200, "content-type: text/event-stream\r\n", &format!("{events}data: [DONE]\n\n"))
    }
}

/// The model: the task of a subagent chooses its messages.
fn model(request: &ReceivedRequest) -> ScriptedReply {
    let body: Value = serde_json::from_str(&request.body).expect("JSON");
    let messages = body["messages"].as_array().expect("messages");
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    let task = messages[1]["content"].as_str().expect("a task").lines().next().expect("a line");
    let said: &[ModelMessage] = match task {
        "Add and search." => &[
            ModelMessage::Calls(&[("add", r#"{"a":1}"#), ("search", r#"{"q":"x"}"#)]),
            ModelMessage::Calls(&[
                ("report_progress", r#"{"message":"half"}"#),
                ("whiteboard_write", r#"{"key":"sum","value":2}"#),
            ]),
            ModelMessage::Calls(&[("delete", "{}"), ("add", "{1"), ("nothing", "{}")]),
            ModelMessage::Text("The sum is 2."),
        ],
        "Break out." => &[
            ModelMessage::Calls(&[
                ("spawn_subagent", r#"{"description":"More."}"#),
                ("call_tool", r#"{"name":"spawn_subagent","arguments":{"description":"More."}}"#),
                ("schedule_task", r#"{"name":"a","cron":"* * * * *","description":"d"}"#),
                ("add", r#"{"a":1}"#),
            ]),
            ModelMessage::Text("Tried."),
        ],
        "Search until revoked." => &[ModelMessage::Calls(&[("search", "{}")])],
        "Wait." => &[ModelMessage::Never],
        "Say nothing." => &[ModelMessage::Text("")],
        _ => &[ModelMessage::Calls(&[("search", "{}")])],
    };
    let usage = if task == "Be expensive." { 1_000 } else { 10 };
    said.get(turn).or(said.last()).map_or_else(ScriptedReply::never, |message| message.reply(usage))
}

/// Content of the `Toolyard` document with these limits of subagents.
fn process(model: &TestUpstream, limits: &str) -> String {
    let llm = format!("llm: {{baseURL: 'http://{}/v1', model: small, apiKey: hunter2}}", model.address);
    let schedules = "schedules: {timeZone: UTC}, scripts: {enabled: false}";
    format!("{llm}, builtins: {{{schedules}, subagents: {{{limits}}}}}")
}

impl SubagentGateway {
    async fn start(limits: &str) -> Self {
        let model = TestUpstream::start(model);
        Self { gateway: KeyedGateway::start(&process(&model, limits)).await, model }
    }

    /// Applies a manifest with other limits.
    async fn edit(&self, limits: &str) {
        let [math, web] = &self.gateway.upstreams;
        let handlers = [("math", math.address, "price: '0.5',"), ("web", web.address, "")];
        let edited = manifest(&handlers, &process(&self.model, limits));
        self.gateway.running.apply(&edited).await.expect("a valid manifest");
    }

    /// Waits until the model has a request.
    async fn asked(&self) {
        self.model.saw(|log| !log.requests.is_empty(), |_| ()).await;
    }

    /// Calls a tool, and returns the text of its result, with a mark for a failure.
    async fn call(&self, key: &str, tool: &str, arguments: Value) -> String {
        let body = json!({ "arguments": arguments }).to_string();
        let response = self.gateway.ask(key, &format!("POST /api/v1/tools/{tool}/call"), &body).await;
        let result: Value = serde_json::from_str(&response.body).expect("JSON");
        let text = result["content"][0]["text"].as_str().unwrap_or(&response.body);
        if result["isError"] == true { format!("failed: {text}") } else { text.to_owned() }
    }

    /// Starts a subagent, and returns its id.
    async fn spawn(&self, key: &str, description: &str) -> String {
        let started = self.call(key, "spawn_subagent", json!({ "description": description })).await;
        let id = started.strip_prefix("Started subagent ").and_then(|rest| rest.get(..12));
        id.unwrap_or_else(|| panic!("{started}")).to_owned()
    }

    /// Waits until the list has this text, and returns it without ids and times.
    async fn listed(&self, key: &str, expected: &str) -> String {
        let mut list = String::new();
        let waiting = async {
            while !list.contains(expected) {
                sleep(Duration::from_millis(10)).await;
                list = self.call(key, "list_subagents", json!({})).await;
            }
        };
        let is_seen = timeout(Duration::from_secs(60), waiting).await.is_ok();
        assert!(is_seen, "{expected:?} is not in {list}");
        masked(&list)
    }

    /// The conversation that the model saw last.
    fn transcript(&self) -> String {
        let body = self.model.now(|log| log.requests.last().expect("a request").body.clone());
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let messages = body["messages"].as_array().expect("messages");
        let line = |message: &Value| {
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            let calls = calls.map(|call| {
                let function = &call["function"];
                format!(
                    " {}({})",
                    function["name"].as_str().unwrap(),
                    function["arguments"].as_str().unwrap()
                )
            });
            let text = message["content"].as_str().unwrap_or_default();
            format!("{}: {text}{}\n", message["role"].as_str().unwrap(), calls.collect::<String>())
        };
        // The instructions have a test of their own.
        messages.iter().skip(1).map(line).collect()
    }

    /// The names of the tools that the model saw last.
    fn tools(&self) -> String {
        let body = self.model.now(|log| log.requests.last().expect("a request").body.clone());
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let names = body["tools"].as_array().into_iter().flatten();
        names.map(|tool| tool["function"]["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
    }
}

/// Replaces ids and times.
fn masked(text: &str) -> String {
    let is_id = |word: &str| word.len() == 12 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let is_time = |word: &str| word.len() > 19 && word.as_bytes()[10] == b'T' && word.starts_with("20");
    let mask = |word: &str| {
        let bare = word.trim_end_matches([':', '.', ',', '"']);
        let (prefix, last) = bare
            .rsplit_once(['/', '"'])
            .map_or(("", bare), |(_, last)| (&bare[..bare.len() - last.len()], last));
        match (is_id(last), is_time(last)) {
            (true, _) => format!("{prefix}ID{}", &word[bare.len()..]),
            (_, true) => format!("{prefix}TIME{}", &word[bare.len()..]),
            _ => word.to_owned(),
        }
    };
    text.lines().map(|line| line.split(' ').map(mask).collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[tokio::test]
async fn subagent_works_with_the_tools_of_its_caller() {
    let gateway = SubagentGateway::start("").await;
    let key = gateway.gateway.key_for("tools:* memory:* rest").await;
    let id = gateway.spawn(&key, "Add and search.").await;
    assert_snapshot!(gateway.listed(&key, "has succeeded").await, @"
    - ID has succeeded, started since TIME: Add and search.
      Result: toolyard://subagents/ID
    ");
    assert_snapshot!(gateway.transcript(), @r#"
    user: Add and search.
    assistant:  add({"a":1}) search({"q":"x"})
    tool: 2
    tool: found
    assistant:  report_progress({"message":"half"}) whiteboard_write({"key":"sum","value":2})
    tool: Reported.
    tool: Wrote `sum`.
    assistant:  delete({}) add({1) nothing({})
    tool: Error: no
    tool: Error: the arguments are not JSON: expected a string at byte 1
    tool: Error: Unknown tool: nothing
    "#);
    let memory = json!({"key": format!("subagent/{id}/result")});
    let result: Value =
        serde_json::from_str(&gateway.call(&key, "get_from_working_memory", memory).await).expect("JSON");
    assert_eq!(
        (&result["taskId"], &result["isSuccess"], &result["output"]),
        (&json!(id), &json!(true), &json!("The sum is 2."))
    );
    assert_eq!(result["subagentSessionId"], json!(format!("subagent/{id}")));
    let board = gateway.call(&key, "whiteboard_read", json!({"board_id": id, "key": "sum"})).await;
    assert_eq!(board, "2");
    // Another key has other subagents and boards.
    let other = gateway.gateway.key_for("tools:* rest").await;
    assert_eq!(gateway.call(&other, "list_subagents", json!({})).await, "There are no subagents.");
    let board = gateway.call(&other, "whiteboard_list", json!({"board_id": id})).await;
    assert_eq!(board, "The whiteboard is empty.");
    let admin = gateway.gateway.key_for("admin").await;
    let audit = gateway.gateway.ask(&admin, "GET /api/v1/audit?name=add", "").await.body;
    assert!(audit.contains(&format!(r#""parent":"subagent/{id}""#)), "{audit}");
}

#[tokio::test]
async fn subagent_ends_at_its_limits() {
    let gateway = SubagentGateway::start("turns: 3, tokens: 500, concurrent: 1").await;
    let check = async |task: &str, expected: &str| {
        gateway.spawn("", task).await;
        gateway.listed("", expected).await;
    };
    check("Loop.", "the agent was stopped after 3 messages without a result").await;
    check("Be expensive.", "the agent was stopped: its budget of 500 tokens is used up").await;
    check("Say nothing.", "the agent ended without a result").await;
}

#[tokio::test]
async fn subagents_are_bounded_and_cancelled() {
    let gateway = SubagentGateway::start("totalConcurrent: 4").await;
    let [key, other] =
        [gateway.gateway.key_for("tools:* rest").await, gateway.gateway.key_for("tools:* rest").await];
    let first = gateway.spawn(&key, "Wait.").await;
    gateway.spawn(&key, "Wait.").await;
    gateway.spawn(&key, "Wait.").await;
    let spawn = async |key: &str, arguments: Value| gateway.call(key, "spawn_subagent", arguments).await;
    let wait = json!({"description": "Wait."});
    assert_snapshot!(spawn(&key, wait.clone()).await, @"failed: The subagent was not started: 3 are running, which is the limit. Wait for one to end, or cancel one with cancel_subagent.");
    gateway.spawn(&other, "Wait.").await;
    assert_snapshot!(spawn(&other, wait).await, @"failed: The subagent was not started: the gateway runs as many subagents as it may. Try again later.");
    assert_snapshot!(spawn(&other, json!({"description": " "})).await, @"failed: description: is empty; expected detailed instructions for the subagent");
    assert_snapshot!(spawn(&other, json!({"description": "Wait.", "timeout_minutes": 61})).await, @"failed: timeout_minutes: expected more than 0, and at most 60");
    assert_snapshot!(spawn(&other, json!({"description": "Wait.", "timeout_minutes": -1})).await, @"failed: timeout_minutes: expected more than 0, and at most 60");

    // Only the owner cancels it, and the request to the model ends.
    let cancel =
        async |key: &str| masked(&gateway.call(key, "cancel_subagent", json!({"task_id": first})).await);
    assert_snapshot!(cancel(&other).await, @"There is no running subagent ID. list_subagents shows all.");
    assert_snapshot!(cancel(&key).await, @"Cancelled subagent ID.");
    assert_snapshot!(cancel(&key).await, @"There is no running subagent ID. list_subagents shows all.");
    gateway.listed(&key, "was cancelled").await;
    gateway.spawn(&key, "Wait.").await;
}

#[tokio::test]
async fn records_of_ended_subagents_are_limited() {
    let gateway = SubagentGateway::start("").await;
    let list = async || gateway.call("", "list_subagents", json!({})).await;
    for _ in 0..102 {
        gateway.spawn("", "Say nothing.").await;
        let has_ended = async {
            while list().await.contains("is running") {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(60), has_ended).await.expect("the end of the subagent");
    }
    assert_eq!(list().await.matches("has failed").count(), 100);
}

#[tokio::test]
async fn subagent_cannot_outgrow_its_caller() {
    let gateway = SubagentGateway::start("listedTools: 100").await;
    let key = gateway
        .gateway
        .key_for(
            "tools:spawn_subagent tools:list_subagents tools:call_tool tools:schedule_task tools:search rest",
        )
        .await;
    gateway.spawn(&key, "Break out.").await;
    gateway.listed(&key, "has succeeded").await;
    assert_snapshot!(gateway.transcript(), @r#"
    user: Break out.
    assistant:  spawn_subagent({"description":"More."}) call_tool({"name":"spawn_subagent","arguments":{"description":"More."}}) schedule_task({"name":"a","cron":"* * * * *","description":"d"}) add({"a":1})
    tool: Error: Unknown tool: spawn_subagent
    tool: Error: There is no tool `spawn_subagent`. Take a name exactly as search_tools shows it.
    tool: Error: Unknown tool: schedule_task
    tool: Error: Unknown tool: add
    "#);
    assert_snapshot!(gateway.tools(), @"report_progress whiteboard_write whiteboard_read whiteboard_list whiteboard_delete call_tool search");
}

#[tokio::test]
async fn subagent_survives_an_edit_of_its_settings() {
    let gateway = SubagentGateway::start("turns: 8").await;
    let id = gateway.spawn("", "Wait.").await;
    gateway.asked().await;
    gateway.edit("turns: 9").await;
    gateway.listed("", "is running").await;
    let cancelled = gateway.call("", "cancel_subagent", json!({ "task_id": id })).await;
    assert_eq!(masked(&cancelled).trim_end(), "Cancelled subagent ID.");
}

#[tokio::test]
async fn subagent_of_a_revoked_key_ends() {
    check_end_of_revoked("Search until revoked.").await;
}

#[tokio::test]
async fn subagent_of_a_revoked_key_ends_while_its_model_thinks() {
    check_end_of_revoked("Wait.").await;
}

async fn check_end_of_revoked(description: &str) {
    let gateway = SubagentGateway::start("turns: 1000000, tokens: 1000000000").await;
    let key = gateway.gateway.key_for("tools:* rest").await;
    gateway.spawn(&key, description).await;
    gateway.asked().await;
    let id = key.split('_').nth(1).expect("the id of a key");
    record::revoke(&*gateway.gateway.store, id).await.expect("a store");
    let stored = async || {
        let stored = gateway.gateway.store.list(KeySpace("subagents"), "", None, 1).await.expect("a store");
        stored
            .into_iter()
            .map(|(_, value)| String::from_utf8_lossy(&value.bytes).into_owned())
            .collect::<String>()
    };
    let has_ended = async {
        while !stored().await.contains(r#""error":"the key was revoked""#) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), has_ended).await.expect("the end of the subagent");
}
