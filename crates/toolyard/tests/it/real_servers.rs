//! `examples/real-servers.yaml`, with clients of other people: servers on npm and PyPI behind the gateway, over
//! both transports, seen by the MCP Inspector and by the Python SDK, in both eras.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::gateway::{self, Gateway, toolyard};
use crate::support::peers::{self, HttpServer};
use crate::support::process::run;
use crate::support::scripted::script;

/// One call of each server, and what its answer contains.
fn calls() -> [(&'static str, Value, &'static str); 3] {
    let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    [
        ("echo", json!({"message": "over HTTP"}), "Echo: over HTTP"),
        ("everything-stdio_echo", json!({"message": "over stdio"}), "Echo: over stdio"),
        ("convert_time", noon, "+9.0h"),
    ]
}

/// The example, as it is. Here nobody is too slow for the first list: a busy machine must not decide who comes
/// first and gets the names.
fn real_servers(home: &Path) -> (HttpServer, Gateway) {
    let everything = peers::everything(home);
    let folder = TempDir::new().unwrap();
    let mut serve = toolyard(folder.path());
    serve.env("EVERYTHING_URL", &everything.url);
    serve.args(["serve", "-f"]).arg(peers::root().join("examples/real-servers.yaml"));
    serve.arg("-f").arg(gateway::process_document(folder.path(), json!({"timeouts": {"firstList": "30s"}})));
    (everything, Gateway::start(folder, &mut serve))
}

#[test]
fn tools_keep_their_names_as_long_as_they_are_free() {
    let home = TempDir::new().unwrap();
    let (_everything, gateway) = real_servers(home.path());
    assert_snapshot!(gateway.tools().join("\n"), @"
    echo
    get-annotated-message
    get-env
    get-resource-links
    get-resource-reference
    get-structured-content
    get-sum
    get-tiny-image
    gzip-file-as-resource
    toggle-simulated-logging
    toggle-subscriber-updates
    trigger-long-running-operation
    simulate-research-query
    everything-stdio_echo
    everything-stdio_get-annotated-message
    everything-stdio_get-env
    everything-stdio_get-resource-links
    everything-stdio_get-resource-reference
    everything-stdio_get-structured-content
    everything-stdio_get-sum
    everything-stdio_get-tiny-image
    everything-stdio_gzip-file-as-resource
    everything-stdio_toggle-simulated-logging
    everything-stdio_toggle-subscriber-updates
    everything-stdio_trigger-long-running-operation
    everything-stdio_simulate-research-query
    get_current_time
    convert_time
    ");
}

/// `get-env` tells the environment of the server that was called: it is the one behind the name, and of the
/// gateway's own environment the child has seen nothing that is none of its business.
#[test]
fn a_name_leads_to_its_server() {
    let home = TempDir::new().unwrap();
    let (_everything, gateway) = real_servers(home.path());
    let environment = |tool| -> Value { serde_json::from_str(&gateway.text(tool, json!({}))).unwrap() };
    let over_http = environment("get-env");
    assert!(over_http["PORT"].is_string(), "{over_http}");
    let on_stdio = environment("everything-stdio_get-env");
    let names: Vec<_> = on_stdio.as_object().unwrap().keys().collect();
    assert_eq!(names, ["HOME", "PATH"]);
}

#[track_caller]
fn check_inspector(era: &str) {
    let home = TempDir::new().unwrap();
    let (_everything, gateway) = real_servers(home.path());
    let ask = |args: &[&str]| -> Value {
        let mut inspector = peers::command("mcp-inspector", home.path());
        inspector.args(["--cli", "-q", "--format", "json", "--transport", "http"]);
        inspector.args(["--server-url", &gateway.url(), "--protocol-era", era]).args(args);
        let ended = run(&mut inspector);
        assert_eq!(ended.code, 0, "{ended}");
        let mut answer: Value = serde_json::from_str(&ended.stdout).unwrap();
        answer["result"].take()
    };
    let tools = ask(&["--method", "tools/list"])["tools"].take();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, gateway.tools());
    for (tool, arguments, expected) in calls() {
        let arguments = arguments.to_string();
        let result = ask(&["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments]);
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(expected), "{tool}: {result}");
    }
}

#[test]
fn seen_by_the_inspector_in_the_stateless_era() {
    check_inspector("modern");
}

#[test]
fn seen_by_the_inspector_in_a_session() {
    check_inspector("legacy");
}

#[track_caller]
fn check_python(mode: &str) {
    let home = TempDir::new().unwrap();
    let (_everything, gateway) = real_servers(home.path());
    let mut client = peers::command(peers::peer("python/bin/python"), home.path());
    let calls = calls();
    let asked: Vec<_> = calls.iter().map(|(tool, arguments, _)| json!([tool, arguments])).collect();
    client.arg(script("client.py")).args([&gateway.url(), mode, &json!(asked).to_string()]);
    let ended = run(&mut client);
    assert_eq!(ended.code, 0, "{ended}");
    let seen: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(seen["tools"], json!(gateway.tools()));
    for ((tool, _, expected), text) in calls.iter().zip(seen["texts"].as_array().unwrap()) {
        assert!(text.as_str().unwrap().contains(expected), "{tool}: {text}");
    }
}

#[test]
fn seen_by_python_in_the_stateless_era() {
    check_python("2026-07-28");
}

#[test]
fn seen_by_python_in_a_session() {
    check_python("legacy");
}
