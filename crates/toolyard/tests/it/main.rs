//! A smoke of the built binary: a call of each kind of handler, through each door, with servers of this repository.
//! `tests/full` has the rest.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

#[expect(dead_code, reason = "the tests of `tests/full` use the rest")]
#[path = "../support/gateway.rs"]
mod gateway;

use std::fs;
use std::io::Write;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::http;
use toolyard_testing::manifest::{http_handler, stdio_handler};
use toolyard_testing::peers;
use toolyard_testing::process::{run, run_with};
use toolyard_testing::scripted_server::script;
use toolyard_testing::upstream::{BackgroundUpstream, ReceivedRequest, ScriptedReply};

use self::gateway::{TestGateway, toolyard};

/// Returns a handler with one HTTP tool.
fn http_tool(name: &str, url: &str) -> Value {
    json!({
        "name": name,
        "type": "http",
        "tool": {"name": name, "description": "Fetches.", "inputSchema": {"type": "object"}},
        "httpConfig": {"endpoint": url, "method": "GET"},
    })
}

#[test]
fn each_kind_of_handler_is_called_through_each_door() {
    let web = BackgroundUpstream::start(|request: &ReceivedRequest| {
        ScriptedReply::json(&json!({"start": request.head.start}).to_string())
    });
    let files = TempDir::new().unwrap();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();

    // A gateway is an MCP server and a gRPC server for another one.
    let grpc = format!("127.0.0.1:{}", peers::free_port());
    let (folder, mut command) = TestGateway::command(&[http_tool("inner", &web.url("/inner"))], json!({}));
    let inner = TestGateway::start(folder, command.args(["--grpc", &grpc]));

    let function = files.path().join("echo");
    fs::create_dir(&function).unwrap();
    let source = peers::root().join("fixtures/functions/echo/lua/cortexone_function.lua");
    fs::copy(source, function.join("cortexone_function.lua")).unwrap();
    fs::write(function.join("function.json"), r#"{"id": "echo"}"#).unwrap();

    let description = json!({
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": web.url("")}],
        "paths": {"/pets/{id}": {"get": {
            "operationId": "getPet",
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
        }}},
    });
    let server = path(&script("server.py"));
    let handlers = [
        stdio_handler("stdio", "python3", &[&server, &path(files.path()), "good"]),
        http_handler("remote", &inner.url()),
        json!({"name": "grpc", "type": "grpc", "grpcConfig": {"endpoint": grpc}}),
        http_tool("fetch", &web.url("/outer")),
        json!({"name": "openapi", "type": "openapi", "openAPIConfig": {"spec": description}}),
        json!({"name": "function", "type": "function", "functionConfig": {"path": path(&function)}}),
    ];
    let settings = json!({"sandbox": {"isolation": "best-effort"}});
    let (folder, mut command) = TestGateway::command(&handlers, settings);
    let gateway = TestGateway::start(folder, &mut command);

    // MCP.
    let check = |tool: &str, arguments: Value, expected: &str| {
        let text = gateway.text(tool, arguments);
        assert!(text.contains(expected), "{tool}: {text}");
    };
    check("inner", json!({}), "GET /inner");
    check("grpc_inner", json!({}), "GET /inner");
    check("fetch", json!({}), "GET /outer");
    check("getPet", json!({"id": 7}), "GET /pets/7");
    check("echo", json!({"text": "hello"}), "hello");
    assert!(gateway.text("pid", json!({})).parse::<u32>().is_ok());

    // REST.
    let called = http::send(
        gateway.address,
        "POST /api/v1/tools/getPet/call",
        &[("Content-Type", "application/json")],
        r#"{"arguments": {"id": 8}}"#,
    );
    assert!(called.status == 200 && called.body.contains("GET /pets/8"), "{called:?}");

    // The command line.
    let mut command = toolyard(files.path());
    let called = run(command.env("TOOLYARD_URL", gateway.url()).args(["call", "getPet", "id=9"]));
    assert!(called.code == 0 && called.stdout.contains("GET /pets/9"), "{called}");

    // Standard input and output.
    let (reader, mut writer) = std::io::pipe().unwrap();
    writeln!(
        writer,
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"smoke","version":"1"}}}}}}"#
    )
    .unwrap();
    writeln!(writer, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
    writeln!(
        writer,
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"inner","arguments":{{}}}}}}"#
    )
    .unwrap();
    drop(writer);
    let manifest = path(&inner.folder.path().join("registry.json"));
    let answered = run_with(toolyard(files.path()).args(["stdio", "-f", &manifest]), reader);
    assert!(answered.stdout.contains("GET /inner"), "{answered}");
}

#[test]
fn invalid_manifest_is_reported_whole() {
    let folder = TempDir::new().unwrap();
    let manifest = folder.path().join("tools.yaml");
    fs::write(&manifest, "kind: ToolRegistry\nspec: {handlers: [{name: A, typ: mcp}]}\n").unwrap();
    let checked = run(toolyard(folder.path()).arg("check").arg(&manifest));
    assert_eq!(checked.code, 2, "{checked}");
    for fault in ["apiVersion", "spec.handlers[0].name", "spec.handlers[0].typ"] {
        assert!(checked.stdout.contains(fault), "{fault} in {checked}");
    }
}
