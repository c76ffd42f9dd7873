//! Requests without a handshake, as an operator sends them to list and call tools (the tool contract of `LanguageTool`:
//! tool listing, tool invocation, health check, error responses).

use insta::assert_snapshot;
use serde_json::json;
use toolyard_testing::http;
use toolyard_testing::scripted_server::ScriptedServer;

use crate::support::gateway::TestGateway;

/// Sends a body with only the headers of the contract and returns the complete response.
#[track_caller]
fn answer(gateway: &TestGateway, body: &str) -> String {
    let response = http::send(gateway.address, "POST /mcp", &[("Content-Type", "application/json")], body);
    let kind = response.header("content-type").unwrap();
    assert_eq!(response.header("mcp-session-id"), None);
    format!("{} {kind}\n{}", response.status, response.body)
}

#[test]
fn tools_are_listed_and_called() {
    let server = ScriptedServer::new("memory");
    server.open_gate();
    let gateway = TestGateway::with_handlers(&[server.handler()]);
    assert_snapshot!(answer(&gateway, r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}"#), @r#"
    200 application/json
    {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"pid","description":"Tells its process id.","inputSchema":{"type": "object"}},{"name":"wait","description":"Waits for the gate.","inputSchema":{"type": "object"}}]}}
    "#);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "wait", "arguments": {}}});
    assert_snapshot!(answer(&gateway, &call.to_string()), @r#"
    200 application/json
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type": "text", "text": "The gate is open."}]}}
    "#);
}

#[test]
fn errors_are_json() {
    let server = ScriptedServer::new("memory");
    let gateway = TestGateway::with_handlers(&[server.handler()]);
    let call = r#"{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "forget"}}"#;
    assert_snapshot!(answer(&gateway, call), @r#"
    200 application/json
    {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Unknown tool: forget","data":{"code":"tool_not_found","reason":"no tool of this name","retryable":false}}}
    "#);
    assert_snapshot!(answer(&gateway, r#"{"jsonrpc": "2.0", "id": 3, "method": "memory/list"}"#), @r#"
    200 application/json
    {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found: memory/list"}}
    "#);
    assert_snapshot!(answer(&gateway, "remember this"), @r#"
    200 application/json
    {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: expected a value at byte 0"}}
    "#);
    assert_snapshot!(answer(&gateway, "[]"), @r#"
    200 application/json
    {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    "#);
}
