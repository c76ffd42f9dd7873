//! The forms of handlers and the results of their return values.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_sdk::client::Client;
use toolyard_sdk::{
    Content, Context, Json, JsonSchema, Result, Server, Tool, ToolCall, ToolFailure, ToolReply, schema_of,
};

use crate::support::{Peer, result_line};

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// Summand
    a: i32,
    /// Summand; 1 by default
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

fn raw_with_context(_: Context, call: ToolCall) -> ToolReply {
    ToolReply::new().text(call.arguments.to_json().as_text())
}

fn server() -> Result<Server> {
    let count = Arc::new(AtomicUsize::new(0));
    let server = Server::new("test", "1.0.0")
        .tool("asynchronous", "Adds.", asynchronous)?
        .tool("blocking", "Adds.", blocking)?
        .tool("with_context", "Adds.", with_context)?
        .tool("only_context", "Describes its call.", only_context)?
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
async fn handler_forms_are_supported() {
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
    assert!(peer.close().await.is_ok());
}

#[tokio::test]
async fn invalid_arguments_are_reported_to_the_model() {
    let mut peer = Peer::initialized(server().unwrap()).await;
    let cases = [
        (json!({}), r#"failed: Invalid arguments: "a" is a required property"#),
        (json!({"a": "one"}), r#"failed: Invalid arguments: /a: value is not of type "integer""#),
        (
            json!({"a": 1, "b": "two"}),
            r#"failed: Invalid arguments: /b: value is not of types "null", "integer""#,
        ),
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
    assert_eq!(result_line(&none), r#"failed: Invalid arguments: "a" is a required property"#);
}

#[tokio::test]
async fn list_has_the_derived_schemas() {
    let mut peer = Peer::initialized(server().unwrap()).await;
    let list = peer.request("tools/list", json!({})).await;
    let tool = |name: &str| -> &Value {
        list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()
    };
    insta::assert_snapshot!(tool("with_context"), @r#"{"name":"with_context","description":"Adds.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"integer","description":"Summand"},"b":{"type":"integer","description":"Summand; 1 by default"}},"required":["a"]},"outputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}}"#);
    insta::assert_snapshot!(tool("nothing"), @r#"{"name":"nothing","description":"Does nothing.","inputSchema":{"type":"object","properties":{},"additionalProperties":false}}"#);
    assert_eq!(tool("unit")["inputSchema"], tool("nothing")["inputSchema"]);
    assert_eq!(tool("raw")["inputSchema"], json!({"type": "object"}));
}

#[tokio::test]
async fn structured_content_is_repeated_as_text() {
    let mut peer = Peer::initialized(server().unwrap()).await;
    let result = peer.call("with_context", json!({"a": 1})).await;
    assert_eq!(
        result,
        json!({"content": [{"type": "text", "text": "{\"sum\":2}"}], "structuredContent": {"sum": 2}})
    );
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Level {
    Low,
    High,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct LineMatch {
    line: u32,
}

/// Tools with results of many types.
fn server_of_results() -> Result<Server> {
    let by_hand = json!({"type": "object", "properties": {"line": {"type": "integer"}}});
    let server = Server::new("test", "1.0.0")
        .tool("list", "", || Json(vec![1, 2]))?
        .tool("integer", "", || Json(3))?
        .tool("text", "", || Json("a"))?
        .tool("level", "", || Json(Level::High))?
        .tool("some", "", || Json(Some(LineMatch { line: 1 })))?
        .tool("none", "", || Json(None::<LineMatch>))?
        .tool("any_list", "", || Json(json!([1])))?
        .tool("any_object", "", || Json(json!({"line": 1})))?
        .tool("reply", "", || ToolReply::new().structured(&7))?
        .tool("plain", "", || 1.5)?
        .register_tool(Tool::new("by_hand", "").output_schema(by_hand), || {
            Json(Some(LineMatch { line: 1 }))
        })?;
    Ok(server)
}

#[tokio::test]
async fn result_that_is_not_an_object_is_wrapped() {
    let mut peer = Peer::initialized(server_of_results().unwrap()).await;
    let cases = [
        ("list", "[1,2]", json!({"result": [1, 2]})),
        ("integer", "3", json!({"result": 3})),
        ("text", r#""a""#, json!({"result": "a"})),
        ("level", r#""high""#, json!({"result": "high"})),
        ("some", r#"{"line":1}"#, json!({"result": {"line": 1}})),
        ("none", "null", json!({"result": null})),
        ("any_list", "[1]", json!({"result": [1]})),
        ("any_object", r#"{"line":1}"#, json!({"line": 1})),
        ("reply", "7", json!({"result": 7})),
        ("plain", "1.5", Value::Null),
        ("by_hand", r#"{"line":1}"#, json!({"line": 1})),
    ];
    let list = peer.request("tools/list", json!({})).await;
    for ((name, text, structured), tool) in cases.into_iter().zip(list["tools"].as_array().unwrap()) {
        let result = peer.call(name, json!({})).await;
        assert_eq!(
            (&result["content"][0]["text"], &result["structuredContent"]),
            (&json!(text), &structured)
        );
        assert_eq!(tool["name"], name);
        let schema = &tool["outputSchema"];
        let has_schema = !["any_list", "any_object", "reply", "plain"].contains(&name);
        assert_eq!(schema.is_object(), has_schema, "{name}: {schema}");
        if has_schema {
            assert!(jsonschema::is_valid(schema, &structured), "{name}: {schema}");
        }
    }
}

#[tokio::test]
async fn typed_client_unwraps_results() {
    let running = server_of_results().unwrap().listen("127.0.0.1:0").await.unwrap();
    let client = Client::connect(&running.url()).await.unwrap();
    let nothing = json!({});
    assert_eq!(client.call::<_, Vec<i32>>("list", &nothing).await.unwrap(), [1, 2]);
    assert_eq!(client.call::<_, String>("text", &nothing).await.unwrap(), "a");
    assert_eq!(client.call::<_, Level>("level", &nothing).await.unwrap(), Level::High);
    assert_eq!(
        client.call::<_, Option<LineMatch>>("some", &nothing).await.unwrap(),
        Some(LineMatch { line: 1 })
    );
    assert_eq!(client.call::<_, Option<LineMatch>>("none", &nothing).await.unwrap(), None);
    assert_eq!(client.call::<_, LineMatch>("any_object", &nothing).await.unwrap(), LineMatch { line: 1 });
    assert_eq!(client.call::<_, Value>("list", &nothing).await.unwrap(), json!({"result": [1, 2]}));
    assert_eq!(client.call::<_, f64>("plain", &nothing).await.unwrap(), 1.5);
    let misfit = client.call::<_, Vec<String>>("list", &nothing).await.unwrap_err();
    assert_eq!(misfit.to_string(), "the result does not have the expected type");
    running.stop().await;
}

#[derive(Deserialize, JsonSchema)]
struct Numbers {
    small: u8,
    large: Option<i64>,
    any: Option<Value>,
}

#[tokio::test]
async fn whole_float_is_accepted_as_integer() {
    let show = |args: Numbers| format!("{} {:?} {:?}", args.small, args.large, args.any);
    let server = Server::new("test", "1.0.0").tool("typed", "", show).unwrap();
    let raw = move |call: ToolCall| call.arguments::<Numbers>().map(show);
    let mut peer = Peer::initialized(server.tool("raw", "", raw).unwrap()).await;
    let cases = [
        (r#"{"small": 5.0}"#, "5 None None"),
        (r#"{"small": 5e1, "large": -5.0, "any": [1.5]}"#, "50 Some(-5) Some(Array [Number(1.5)])"),
        (
            r#"{"small": 300.0}"#,
            "failed: Invalid arguments: /small: invalid type: floating point `300.0`, expected u8",
        ),
        (
            r#"{"small": 1, "large": 9007199254740993.0}"#,
            "failed: Invalid arguments: /large: invalid type: floating point `9007199254740992.0`, expected i64",
        ),
    ];
    for (arguments, expect) in cases {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        assert_eq!(peer.text("raw", arguments.clone()).await, expect);
        assert!(peer.text("typed", arguments).await.starts_with(&expect[..8]));
    }
}

#[tokio::test]
async fn panic_fails_only_its_own_call() {
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
async fn failure_reaches_the_model_or_the_client() {
    let server = Server::new("test", "1.0.0")
        .tool("failure", "Fails.", async || Err::<String, _>("no such city"))
        .unwrap()
        .tool("protocol", "Fails.", || Err::<String, _>(ToolFailure::protocol(-32002, "not now")))
        .unwrap()
        .tool("partly", "Fails.", || ToolReply::new().text("three of four").error())
        .unwrap();
    let mut peer = Peer::initialized(server).await;
    assert_eq!(peer.text("failure", json!({})).await, "failed: no such city");
    assert_eq!(peer.text("protocol", json!({})).await, "error -32002: not now");
    assert_eq!(peer.text("partly", json!({})).await, "failed: three of four");
}

#[tokio::test]
async fn explicit_output_schema_is_enforced() {
    let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
    let answer = |call: ToolCall| ToolReply::new().structured(&call.arguments::<Value>()?);
    let silent = || Ok::<_, ToolFailure>(ToolReply::new().text("no structure"));
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

#[tokio::test]
async fn accepted_schema_may_be_wider_than_the_published() {
    let published =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let tool = Tool::new("greet", "Greets.").input_schema(published.clone());
    let tool = tool.accepted_schema(json!({"type": "object", "properties": {"who": {"type": "string"}}}));
    let server = Server::new("test", "1.0.0").register_tool(tool, raw_with_context).unwrap();
    let mut peer = Peer::initialized(server).await;
    let list = peer.request("tools/list", json!({})).await;
    assert_eq!(list["tools"][0]["inputSchema"], published);
    assert_eq!(peer.text("greet", json!({"who": "Ada"})).await, r#"{"who":"Ada"}"#);
    let refused = peer.text("greet", json!({"name": "Ada", "who": 1})).await;
    assert_eq!(refused, "failed: Invalid arguments: /who: value is not of type \"string\"");
}
