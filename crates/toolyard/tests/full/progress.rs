//! Progress notifications reach the caller with its own token.

use insta::assert_snapshot;
use serde_json::json;
use tempfile::TempDir;
use toolyard_testing::http::HttpResponse;
use toolyard_testing::manifest::http_handler;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;
use toolyard_testing::{messages, peers};

use crate::support::gateway::TestGateway;

fn gateway(home: &TempDir) -> (peers::PeerServer, TestGateway) {
    let server = peers::fixture(home.path());
    let gateway = TestGateway::with_handlers(&[http_handler("fixture", &server.url)]);
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
fn progress_for_session_client() {
    check_python("legacy");
}

#[test]
fn progress_for_stateless_client() {
    check_python("2026-07-28");
}

fn events(response: &HttpResponse) -> String {
    response.messages().iter().map(|message| format!("{message}\n")).collect()
}

#[test]
fn progress_has_the_callers_token() {
    let home = TempDir::new().unwrap();
    let (_server, gateway) = gateway(&home);
    let mut call = messages::tool_call(1, "test_tool_with_progress");
    call["params"]["_meta"] = json!({"progressToken": "mine"});
    assert_snapshot!(events(&gateway.post(&[messages::ACCEPT_STREAMS], &call)), @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.0,"progressToken":"mine","total":100.0}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":50.0,"progressToken":"mine","total":100.0}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":100.0,"progressToken":"mine","total":100.0}}
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"Three steps were reported."}],"isError":false}}
    "#);
    let params = json!({"name": "test_tool_with_progress", "_meta": {"progressToken": 7}});
    let (mut headers, call) = messages::stateless_request("tools/call", params);
    headers.push(("Mcp-Name", "test_tool_with_progress"));
    assert_snapshot!(events(&gateway.post(&headers, &call)), @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.0,"progressToken":7,"total":100.0}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":50.0,"progressToken":7,"total":100.0}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":100.0,"progressToken":7,"total":100.0}}
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"Three steps were reported."}],"isError":false}}
    "#);
}

#[test]
fn progress_is_sent_only_on_request() {
    let home = TempDir::new().unwrap();
    let (_server, gateway) = gateway(&home);
    let answer = gateway.call("test_tool_with_progress", json!({}));
    assert_eq!(answer.messages().len(), 1);
    assert_eq!(answer.result()["content"][0]["text"], "Three steps were reported.");
}
