//! Wisps in running gateways: rights of keys, the audit trail, working memory, and a restart in the middle.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use toolyard_core::{Call, Caller, Json};
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TestUpstream, UpstreamEra,
};

use crate::audit::records;
use crate::gateway::{manifest, started_on};
use crate::keyed_gateway::{KeyedGateway, memory};

const PROCESS: &str = "builtins: {scripts: {enabled: false}, wisps: {}}";

fn mcp(id: &str, server: &str, tool: &str, params: Value) -> Value {
    json!({"id": id, "mode": "Direct", "gateway": "Mcp", "server": server, "tool": tool, "params": params})
}

/// Spawns a wisp with these steps, and returns the result's text.
async fn spawn(gateway: &KeyedGateway, key: &str, steps: &[Value]) -> String {
    let definitions = json!({"description": "test", "steps": steps});
    call(gateway, key, "spawn_wisps", json!({"definitions": definitions})).await
}

async fn call(gateway: &KeyedGateway, key: &str, tool: &str, arguments: Value) -> String {
    let body = json!({"arguments": arguments}).to_string();
    let response = gateway.ask(key, &format!("POST /api/v1/tools/{tool}/call"), &body).await;
    let body: Value = serde_json::from_str(&response.body).expect("JSON");
    body["content"][0]["text"].as_str().map_or(response.body, str::to_owned)
}

/// Returns the text between the first backticks after `before`.
fn quoted<'a>(text: &'a str, before: &str) -> &'a str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("{before} is not in {text}")).1;
    rest.split('`').next().unwrap_or_default()
}

#[tokio::test]
async fn steps_have_the_rights_of_the_key() {
    let gateway = KeyedGateway::start(PROCESS).await;
    let all = gateway.key_for("tools:* rest").await;
    let few = gateway.key_for("tools:builtins/* tools:web/* rest").await;
    let steps = [mcp("find", "web", "search", json!({})), mcp("add", "math", "add", json!({"a": 1}))];
    let text = spawn(&gateway, &all, &steps).await;
    assert!(text.contains("[ok]") && text.contains("  Output: 2"), "{text}");
    let text = spawn(&gateway, &few, &steps).await;
    assert!(text.contains("Error: Structural: ") && text.contains("Output: found"), "{text}");
    let text = spawn(&gateway, &all, &[mcp("delete", "web", "delete", json!({}))]).await;
    assert!(text.contains("Error: External: no"), "{text}");
}

#[tokio::test]
async fn steps_without_the_management_tools_call_published_tools() {
    let process = "builtins: {scripts: {enabled: false}, mcp: {enabled: false}, wisps: {}}";
    let gateway = KeyedGateway::start(process).await;
    let key = gateway.key_for("tools:* rest").await;
    let text = spawn(&gateway, &key, &[mcp("find", "web", "search", json!({}))]).await;
    assert!(text.contains("[ok]") && text.contains("  Output: found"), "{text}");
    let text = spawn(&gateway, &key, &[mcp("find", "web", "gone", json!({}))]).await;
    assert!(text.contains("Error: Structural: no tool `gone` of a server `web` is available"), "{text}");
}

#[tokio::test]
async fn calls_of_steps_are_audited_with_their_parent() {
    let gateway = KeyedGateway::start(PROCESS).await;
    let text = spawn(&gateway, "", &[mcp("find", "web", "search", json!({}))]).await;
    let wisp = quoted(&text, "- `");
    let records = records(&gateway, "", 2).await;
    let of_step = records.iter().find(|record| record.contains(r#""search""#)).expect("a record");
    assert!(of_step.contains(&format!(r#""parent":"wisp-{wisp}-find""#)), "{of_step}");
}

#[tokio::test]
async fn outputs_are_read_by_the_caller_and_with_a_scope() {
    let gateway = KeyedGateway::start(PROCESS).await;
    let read = async |key: &str, text: &str| {
        let (output, summary) =
            (format!("wisp/{}/find/output", quoted(text, "- `")), quoted(text, "at key `"));
        let found = call(&gateway, key, "get_from_working_memory", json!({"key": output})).await;
        let summary = call(&gateway, key, "get_from_working_memory", json!({"key": summary})).await;
        (found == "found", summary.contains(r#""state":"completed""#))
    };
    let [plain, one, other] = [
        gateway.key_for("tools:* rest").await,
        gateway.key_for("tools:* rest memory:wisp/*").await,
        gateway.key_for("tools:* rest memory:wisp/*").await,
    ];
    let steps = [mcp("find", "web", "search", json!({}))];
    let of_plain = spawn(&gateway, &plain, &steps).await;
    let of_one = spawn(&gateway, &one, &steps).await;
    assert_eq!(read(&plain, &of_plain).await, (true, true));
    assert_eq!(read(&one, &of_one).await, (true, true));
    assert_eq!(read(&other, &of_one).await, (true, true));
    assert_eq!(read(&plain, &of_one).await, (false, false));
    assert_eq!(read(&other, &of_plain).await, (false, false));
}

/// Calls a tool as the key `k1`, past the frontends.
async fn call_past_frontends(running: &RunningGateway, tool: &str, arguments: Value) -> String {
    let caller = Caller { principal: Some("k1".into()), ..Caller::default() };
    let call = Call { caller, ..Call::tool(tool, Json::from_value(&arguments)) };
    let output = running.gateway().invoke_to_end(call).await.expect("a result");
    let body = output.body.to_json().to_value();
    body["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Returns the summary of the only batch, once `is_it`.
async fn summary(running: &RunningGateway, is_it: impl Fn(&Value) -> bool) -> Value {
    let waiting = async {
        loop {
            let found =
                call_past_frontends(running, "search_working_memory", json!({"category": "wisp"})).await;
            if let Some(at) = found.find("wisp/batch-batch-") {
                let key = found[at..].split('`').next().unwrap_or_default();
                let text = call_past_frontends(running, "get_from_working_memory", json!({"key": key})).await;
                if let Some(summary) = serde_json::from_str(&text).ok().filter(&is_it) {
                    return summary;
                }
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(60), waiting).await.expect("a summary")
}

#[tokio::test]
async fn summary_is_true_after_a_restart_in_the_middle() {
    let answer = |request: &ReceivedRequest| match &*request.params().get("name").plain() {
        "slow" => ScriptedReply::never(),
        _ => ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"done"}]}"#),
    };
    let tools = [
        r#"{"name":"quick","inputSchema":{"type":"object"}}"#,
        r#"{"name":"slow","inputSchema":{"type":"object"}}"#,
    ];
    let upstream = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &tools, answer));
    let (store, manifest) = (memory().await, manifest(&[("work", upstream.address, "")], PROCESS));
    let states = |summary: &Value| {
        let steps = summary["wisps"][0]["steps"].as_array().cloned().unwrap_or_default();
        steps.iter().map(|step| step["state"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let in_the_middle = ["succeeded", "running", "waiting"];
    let running = started_on(&store, &manifest).await;
    let steps = [
        mcp("first", "work", "quick", json!({})),
        mcp("second", "work", "slow", json!({})),
        mcp("third", "work", "quick", json!({})),
    ];
    let definitions = json!({"definitions": {"description": "test", "steps": steps}});
    tokio::select! {
        text = call_past_frontends(&running, "spawn_wisps", definitions) => panic!("{text}"),
        _ = summary(&running, |summary| states(summary) == in_the_middle) => {}
    }
    running.stop().await;

    let running = started_on(&store, &manifest).await;
    let summary = summary(&running, |_| true).await;
    assert_eq!(
        (&summary["state"], states(&summary)),
        (&json!("running"), in_the_middle.map(str::to_owned).to_vec())
    );
    assert!(summary["note"].as_str().is_some_and(|note| note.contains("`endsBy`")), "{summary}");
    assert!(summary["endsBy"].is_string());
    let output = summary["wisps"][0]["steps"][0]["outputKey"].clone();
    assert_eq!(
        call_past_frontends(&running, "get_from_working_memory", json!({"key": output})).await,
        "done"
    );
}
