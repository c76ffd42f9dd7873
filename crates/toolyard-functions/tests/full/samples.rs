//! The samples of the platform's documentation run unchanged.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_functions::code::SourceLanguage;

use crate::setup::{answer, code, run, runtimes};

const PYTHON: &str = include_str!("../../../../fixtures/functions/echo/py/cortexone_function.py");
const JAVASCRIPT: &str = include_str!("../../../../fixtures/functions/echo/js/cortexone_function.js");
const LUA: &str = include_str!("../../../../fixtures/functions/echo/lua/cortexone_function.lua");

pub(crate) fn sample(language: SourceLanguage) -> &'static str {
    match language {
        SourceLanguage::Python => PYTHON,
        SourceLanguage::JavaScript => JAVASCRIPT,
        SourceLanguage::Lua => LUA,
    }
}

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn result(result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": result })
}

fn error(code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": message } })
}

/// Sends each request as an object and as a JSON string.
async fn check(language: SourceLanguage, cases: &[(Value, Value)]) {
    let runtimes = runtimes().await;
    let code = Arc::new(code(language, sample(language)));
    for (request, expected) in cases {
        for event in [request.to_string(), Value::String(request.to_string()).to_string()] {
            let answer = answer(run(&runtimes, &code, &event).await);
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer, *expected, "{event}");
        }
    }
}

fn cases() -> Vec<(Value, Value)> {
    let initialize = json!({
        "protocolVersion": "2024-11-05",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "my-mcp-server", "version": "1.0.0" },
    });
    let tools = json!({ "tools": [{
        "name": "echo",
        "description": "Echo back the input string.",
        "inputSchema": {
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
        },
    }] });
    let echoed = json!({ "content": [{ "type": "text", "text": "Grüße\n\"\u{1F600}\"" }] });
    let call = |name: &str| json!({ "name": name, "arguments": { "text": "Grüße\n\"\u{1F600}\"" } });
    vec![
        (request("initialize", json!({})), result(initialize)),
        (request("tools/list", json!({})), result(tools)),
        (request("tools/call", call("echo")), result(echoed)),
        (request("tools/call", call("other")), error(-32602, "Unknown tool: other")),
        (request("ping", json!({})), error(-32601, "Method not found: ping")),
    ]
}

#[tokio::test]
async fn javascript_sample_answers() {
    check(SourceLanguage::JavaScript, &cases()).await;
}

#[tokio::test]
async fn lua_sample_answers() {
    check(SourceLanguage::Lua, &cases()).await;
}

#[tokio::test]
async fn python_sample_answers() {
    let mut cases = cases();
    cases.push((json!({ "jsonrpc": "1.0", "id": 1, "method": "ping" }), error(-32600, "Invalid Request")));
    check(SourceLanguage::Python, &cases).await;
}
