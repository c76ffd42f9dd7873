//! What handlers may look like, and what becomes of what they return.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_sdk::{
    Content, Context, Json, JsonSchema, Reply, Result, Server, Tool, ToolCall, ToolFailure, schema_of,
};

use crate::support::{Peer, told};

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// Summand
    a: i32,
    /// Summand; 1 where there is none
    b: Option<i32>,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i32,
}

fn sum(args: &Add) -> i32 {
    args.a + args.b.unwrap_or(1)
}

async fn asynchronous(args: Add) -> Result<String, ToolFailure> {
    tokio::task::yield_now().await;
    Ok(sum(&args).to_string())
}

fn blocking(args: Add) -> std::result::Result<String, std::num::TryFromIntError> {
    Ok(u8::try_from(sum(&args))?.to_string())
}

async fn with_context(ctx: Context, args: Add) -> Json<Sum> {
    ctx.progress(0.5, Some(1.0), "half");
    Json(Sum { sum: sum(&args) })
}

fn only_context(ctx: Context) -> Cow<'static, str> {
    Cow::Owned(format!("{} in a session: {}", ctx.request_name(), ctx.session().is_some()))
}

async fn raw(call: ToolCall) -> Result<Vec<Content>, ToolFailure> {
    let args = call.arguments::<Add>()?;
    Ok(vec![Content::text(call.name.as_str()), Content::text(sum(&args).to_string())])
}

fn raw_with_context(_: Context, call: ToolCall) -> Reply {
    Reply::new().text(call.arguments.to_json().as_text())
}

fn server() -> Result<Server> {
    let count = Arc::new(AtomicUsize::new(0));
    let server = Server::new("test", "1.0.0")
        .tool("asynchronous", "Adds.", asynchronous)?
        .tool("blocking", "Adds.", blocking)?
        .tool("with_context", "Adds.", with_context)?
        .tool("only_context", "Says what it knows.", only_context)?
        .tool("raw", "Adds.", raw)?
        .tool("raw_with_context", "Repeats.", raw_with_context)?
        .tool("nothing", "Does nothing.", || ())?
        .tool("unit", "Does nothing.", async |(): ()| "unit")?
        .tool("counter", "Counts.", move || count.fetch_add(1, Ordering::Relaxed).to_string())?
        .tool("captured", "Owns something.", {
            let text = "mine".to_owned();
            move || async move { text }
        })?;
    Ok(server)
}

#[tokio::test]
async fn every_form_answers() {
    let mut peer = Peer::initialized(server().unwrap()).await;
    let cases = [
        ("asynchronous", json!({"a": 1, "b": 2}), "3"),
        ("blocking", json!({"a": 1}), "2"),
        ("blocking", json!({"a": 300}), "failed: out of range integral type conversion attempted"),
        ("with_context", json!({"a": 1, "b": 2}), r#"{"sum":3}"#),
        ("only_context", json!({}), "only_context in a session: true"),
        ("raw", json!({"a": 1}), "raw | 2"),
        (
            "raw",
            json!({"a": "1"}),
            r#"failed: Invalid arguments: /a: invalid type: string "1", expected i32"#,
        ),
        ("raw_with_context", json!({"x": 1.5}), r#"{"x":1.5}"#),
        ("nothing", json!({}), ""),
        ("unit", json!({}), "unit"),
        ("counter", json!({}), "0"),
        ("counter", json!({}), "1"),
        ("captured", json!({}), "mine"),
        ("captured", json!({}), "mine"),
        ("absent", json!({}), "error -32602: Unknown tool: absent"),
    ];
    for (tool, arguments, expect) in cases {
        assert_eq!(peer.text(tool, arguments).await, expect, "{tool}");
    }
    assert!(peer.hang_up().await.is_ok());
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_told_to_the_model() {
    let mut peer = Peer::initialized(server().unwrap()).await;
    let cases = [
        (json!({}), r#"failed: Invalid arguments: "a" is a required property"#),
        (json!({"a": "one"}), r#"failed: Invalid arguments: /a: value is not of type "integer""#),
        (json!({"a": 1, "b": "two"}), r#"failed: Invalid arguments: /b: value is not of types "null", "integer""#),
        (json!([]), "failed: Invalid arguments: expected an object"),
        (
            json!({"a": 3_000_000_000_u64}),
            "failed: Invalid arguments: /a: invalid value: integer `3000000000`, expected i32",
        ),
    ];
    for (arguments, expect) in cases {
        assert_eq!(peer.text("asynchronous", arguments).await, expect);
    }
    let unexpected = peer.call("nothing", json!({"a": 1})).await;
    assert_eq!(unexpected["isError"], true);
    let text = "Invalid arguments: Additional properties are not allowed ('a' was unexpected)";
    assert_eq!(unexpected["content"][0]["text"], text);
    let none = peer.request("tools/call", json!({"name": "asynchronous"})).await;
    assert_eq!(told(&none), r#"failed: Invalid arguments: "a" is a required property"#);
}

#[tokio::test]
async fn what_is_listed() {
    let mut peer = Peer::initialized(server().unwrap()).await;
    let list = peer.request("tools/list", json!({})).await;
    let tool = |name: &str| -> &Value {
        list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()
    };
    insta::assert_snapshot!(tool("with_context"), @r#"{"name":"with_context","description":"Adds.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"integer","description":"Summand"},"b":{"type":"integer","description":"Summand; 1 where there is none"}},"required":["a"]},"outputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}}"#);
    insta::assert_snapshot!(tool("nothing"), @r#"{"name":"nothing","description":"Does nothing.","inputSchema":{"type":"object","properties":{},"additionalProperties":false}}"#);
    assert_eq!(tool("unit")["inputSchema"], tool("nothing")["inputSchema"]);
    assert_eq!(tool("raw")["inputSchema"], json!({"type": "object"}));
}

#[tokio::test]
async fn structured_content_comes_with_its_text() {
    let mut peer = Peer::initialized(server().unwrap()).await;
    let result = peer.call("with_context", json!({"a": 1})).await;
    assert_eq!(
        result,
        json!({"content": [{"type": "text", "text": "{\"sum\":2}"}], "structuredContent": {"sum": 2}})
    );
}

#[tokio::test]
async fn a_panic_fails_its_own_call() {
    let server = Server::new("test", "1.0.0")
        .tool("blocking", "Panics.", || -> String { panic!("on purpose") })
        .unwrap()
        .tool("asynchronous", "Panics.", async || -> String { panic!("on purpose") })
        .unwrap()
        .tool("fine", "Does not.", || "fine")
        .unwrap();
    let mut peer = Peer::initialized(server).await;
    for tool in ["blocking", "asynchronous"] {
        let answer = peer.text(tool, json!({})).await;
        assert!(answer.starts_with("error -32603"), "{answer}");
    }
    assert_eq!(peer.text("fine", json!({})).await, "fine");
}

#[tokio::test]
async fn failures_reach_those_who_can_act() {
    let server = Server::new("test", "1.0.0")
        .tool("told", "Fails.", async || Err::<String, _>("no such city"))
        .unwrap()
        .tool("protocol", "Fails.", || Err::<String, _>(ToolFailure::protocol(-32002, "not now")))
        .unwrap()
        .tool("partly", "Fails.", || Reply::new().text("three of four").error())
        .unwrap();
    let mut peer = Peer::initialized(server).await;
    assert_eq!(peer.text("told", json!({})).await, "failed: no such city");
    assert_eq!(peer.text("protocol", json!({})).await, "error -32002: not now");
    assert_eq!(peer.text("partly", json!({})).await, "failed: three of four");
}

#[tokio::test]
async fn schemas_by_hand_hold_the_handler() {
    let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
    let answer = |call: ToolCall| Reply::new().structured(&call.arguments::<Value>()?);
    let silent = || Ok::<_, ToolFailure>(Reply::new().text("no structure"));
    let tool = |name: &str| Tool::new(name, "").input_schema(schema_of::<serde_json::Map<String, Value>>());
    let server = Server::new("test", "1.0.0")
        .register_tool(tool("answer").output_schema(schema.clone()), answer)
        .unwrap()
        .register_tool(Tool::new("silent", "").output_schema(schema), silent)
        .unwrap();
    let mut peer = Peer::initialized(server).await;
    assert_eq!(peer.text("answer", json!({"sum": 1})).await, r#"{"sum":1}"#);
    let misfit = "error -32603: The tool's result does not fit its output schema";
    assert_eq!(peer.text("answer", json!({"sum": "1"})).await, misfit);
    assert_eq!(peer.text("silent", json!({})).await, misfit);
}
