//! Prompts, resources, templates, completion and subscriptions of npm's `server-everything` through the gateway, over
//! all transports, with the Python SDK in both eras and the MCP Inspector.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::{http_handler, stdio_handler, with_transport};
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::support::gateway::TestGateway;

/// Modes of the Python client for both eras.
const ERAS: [&str; 2] = ["legacy", "2026-07-28"];

#[track_caller]
fn check_python(handler: &Value) {
    let home = TempDir::new().unwrap();
    for era in ERAS {
        let gateway = TestGateway::with_handlers(std::slice::from_ref(handler));
        let mut command = peers::command(peers::peer("python/bin/python"), home.path());
        let ended = run(command.arg(script("passing.py")).arg(gateway.url()).arg(era));
        assert_eq!(ended.code, 0, "{era} {ended}");
        let seen: Value = serde_json::from_str(&ended.stdout).unwrap();
        let templates = ["text", "blob"].map(|kind| format!("demo://resource/dynamic/{kind}/{{resourceId}}"));
        let expected = json!({
            "prompts": ["simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"],
            "resources": 7,
            "templates": templates,
            "prompt": "What's weather in Berlin?",
            "read": "# Everything Server - Features",
            "dynamic": "Resource 1",
            "completed": [["Engineering"], ["7"]],
            "updated": "demo://resource/dynamic/text/1",
        });
        assert_eq!(seen, expected, "{era}");
    }
}

#[test]
fn seen_by_python_over_http() {
    let home = TempDir::new().unwrap();
    let server = peers::everything(home.path());
    check_python(&http_handler("everything", &server.url));
}

#[test]
fn seen_by_python_over_sse() {
    let home = TempDir::new().unwrap();
    let server = peers::everything_over_sse(home.path());
    check_python(&with_transport("everything", "sse", &server.url));
}

#[test]
fn seen_by_python_on_stdio() {
    check_python(&stdio_handler("everything", "mcp-server-everything", &[]));
}

#[test]
fn seen_by_the_inspector() {
    let home = TempDir::new().unwrap();
    let gateway = TestGateway::with_handlers(&[stdio_handler("everything", "mcp-server-everything", &[])]);
    for era in ["legacy", "modern"] {
        let ask = |args: &[&str]| -> Value {
            let mut inspector = peers::command("mcp-inspector", home.path());
            inspector.args(["--cli", "-q", "--format", "json", "--transport", "http"]);
            inspector.args(["--server-url", &gateway.url(), "--protocol-era", era]).args(args);
            let ended = run(&mut inspector);
            assert_eq!(ended.code, 0, "{ended}");
            serde_json::from_str::<Value>(&ended.stdout).unwrap()["result"].take()
        };
        let prompts = ask(&["--method", "prompts/list"]);
        assert_eq!(prompts["prompts"][1]["name"], "args-prompt", "{prompts}");
        let prompt =
            ask(&["--method", "prompts/get", "--prompt-name", "args-prompt", "--prompt-args", "city=Rome"]);
        assert_eq!(prompt["messages"][0]["content"]["text"], "What's weather in Rome?", "{prompt}");
        let templates = ask(&["--method", "resources/templates/list"]);
        assert_eq!(templates["resourceTemplates"].as_array().map(Vec::len), Some(2), "{templates}");
        let read = ask(&["--method", "resources/read", "--uri", "demo://resource/dynamic/text/3"]);
        let text = read["contents"][0]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("Resource 3"), "{read}");
    }
}
