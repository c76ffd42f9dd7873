//! Progress reaches the one who asked for it, under the name that it gave it.

use insta::assert_snapshot;
use serde_json::json;
use tempfile::TempDir;

use crate::support::gateway::{Gateway, over_http};
use crate::support::http::Response;
use crate::support::message;
use crate::support::peers;
use crate::support::process::run;
use crate::support::scripted::script;

fn gateway(home: &TempDir) -> (peers::HttpServer, Gateway) {
    let server = peers::fixture(home.path());
    let gateway = Gateway::of(&[over_http("fixture", &server.url)]);
    (server, gateway)
}

#[track_caller]
fn check_python(mode: &str) {
    let home = TempDir::new().unwrap();
    let (_server, gateway) = gateway(&home);
    let mut client = peers::command(peers::peer("python/bin/python"), home.path());
    let calls = json!([["test_tool_with_progress", {}]]);
    client.arg(script("client.py")).args([&gateway.url(), mode, &calls.to_string()]);
    let ended = run(&mut client);
    assert_eq!(ended.code, 0, "{ended}");
    let seen: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(seen["progress"], json!([[0.0, 100.0], [50.0, 100.0], [100.0, 100.0]]));
    assert_eq!(seen["texts"], json!(["Three steps were reported."]));
}

#[test]
fn of_a_client_with_a_session() {
    check_python("legacy");
}

#[test]
fn of_a_stateless_client() {
    check_python("2026-07-28");
}

fn events(response: &Response) -> String {
    response.messages().iter().map(|message| format!("{message}\n")).collect()
}

#[test]
fn has_the_callers_token() {
    let home = TempDir::new().unwrap();
    let (_server, gateway) = gateway(&home);
    let mut call = message::call(1, "test_tool_with_progress");
    call["params"]["_meta"] = json!({"progressToken": "mine"});
    assert_snapshot!(events(&gateway.post(&[message::STREAMS], &call)), @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.0,"progressToken":"mine","total":100.0}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":50.0,"progressToken":"mine","total":100.0}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":100.0,"progressToken":"mine","total":100.0}}
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"Three steps were reported."}],"isError":false}}
    "#);
    let params = json!({"name": "test_tool_with_progress", "_meta": {"progressToken": 7}});
    let (mut headers, call) = message::modern("tools/call", params);
    headers.push(("Mcp-Name", "test_tool_with_progress"));
    assert_snapshot!(events(&gateway.post(&headers, &call)), @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.0,"progressToken":7,"total":100.0}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":50.0,"progressToken":7,"total":100.0}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":100.0,"progressToken":7,"total":100.0}}
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"Three steps were reported."}],"isError":false}}
    "#);
}

#[test]
fn is_not_told_to_one_who_did_not_ask() {
    let home = TempDir::new().unwrap();
    let (_server, gateway) = gateway(&home);
    let answer = gateway.call("test_tool_with_progress", json!({}));
    assert_eq!(answer.messages().len(), 1);
    assert_eq!(answer.result()["content"][0]["text"], "Three steps were reported.");
}
