//! The REST API matches its OpenAPI document: schemathesis generates valid and invalid requests from it and finds no
//! violations.

use serde_json::{Value, json};
use toolyard_testing::peers::{peer, root};
use toolyard_testing::{http, peers};

use crate::support::gateway::TestGateway;

#[test]
fn rest_api_matches_its_document() {
    let demo = json!({
        "name": "demo",
        "type": "mcp",
        "mcpConfig": {"transport": "stdio", "command": env!("CARGO_BIN_EXE_toolyard"), "args": ["demo-server"]},
    });
    let gateway = TestGateway::with_settings(&[demo], json!({"sandbox": {"isolation": "best-effort"}}));
    let url = format!("http://{}/api/v1", gateway.address);
    let key_settings = r#"{"name":"tester","scopes":["tools:*","rest","admin","functions"]}"#;
    let made = http::send(
        gateway.address,
        "POST /api/v1/keys",
        &[("Content-Type", "application/json")],
        key_settings,
    );
    let made: Value = serde_json::from_str(&made.body).unwrap();
    let key = made["key"].as_str().unwrap();
    publish_example(&gateway, key);
    let mut command = peers::command(peer("python/bin/schemathesis"), gateway.folder.path());
    command.current_dir(gateway.folder.path());
    command.arg("--no-color").arg("--config-file").arg(root().join("fixtures/schemathesis.toml"));
    command.args(["run", &format!("{url}/openapi.json"), "--url", &url, "--workers", "2"]);
    command.args(["--header", &format!("Authorization: Bearer {key}"), "--max-examples", "40"]);
    let output = command.output().unwrap();
    let summary = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{summary}{}", String::from_utf8_lossy(&output.stderr));
    // All operations were tested with successful authentication.
    assert!(summary.contains("Tested: 28") && summary.contains("✅ Fuzzing"), "{summary}");
}

/// Publishes the function of the examples in the document, so that some requests succeed.
#[track_caller]
fn publish_example(gateway: &TestGateway, key: &str) {
    let source = "function cortexone_handler(event) return {statusCode = 200, body = {event = event}} end";
    let mut project = json!({
        "kind": "function",
        "language": "lua",
        "files": [{"path": "cortexone_function.lua", "text": source}],
        "tests": [{"name": "any", "event": 1, "expect": {"statusCode": 200}}],
    });
    let send = |line: &str, body: Value| {
        let response = http::send_with_key(gateway.address, key, line, &body.to_string());
        assert!(matches!(response.status, 200 | 201), "{response:?}");
    };
    send("PUT /api/v1/functions/echo/draft", project.clone());
    send("POST /api/v1/functions/echo/publish", json!({"bump": "patch"}));
    // An equal draft would be no further version.
    project["tests"][0]["name"] = json!("other");
    send("PUT /api/v1/functions/echo/draft", project);
    send("POST /api/v1/functions/echo/publish", json!({"bump": "patch"}));
}
