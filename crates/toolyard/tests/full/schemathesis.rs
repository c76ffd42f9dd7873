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
    // `--url` would replace the servers of these paths. The next test asks them.
    // The stream of events does not end, and a disabled handler would fail the other requests.
    command.args(["--exclude-path-regex", "^/(health|live|ready|events|handlers/.*/disable)$"]);
    let output = command.output().unwrap();
    let summary = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{summary}{}", String::from_utf8_lossy(&output.stderr));
    // All operations were tested with successful authentication.
    assert!(summary.contains("Tested: 48") && summary.contains("✅ Fuzzing"), "{summary}");
}

/// Each path is served below the server that the document names for it, and answers with a described status.
#[test]
fn every_described_path_is_served() {
    let gateway = TestGateway::with_handlers(&[]);
    let document: Value = gateway.get("/api/v1/openapi.json").body.parse().unwrap();
    let mut answers = Vec::new();
    // The stream of events does not end.
    let paths = document["paths"].as_object().unwrap().iter().filter(|(path, _)| *path != "/events");
    for (path, operations) in paths {
        let Some(responses) = operations["get"]["responses"].as_object() else { continue };
        let servers = operations.get("servers").unwrap_or(&document["servers"]);
        let base = servers[0]["url"].as_str().unwrap().trim_end_matches('/');
        let names = [("{name}", "x"), ("{id}", "x"), ("{version}", "1.0.0")];
        let path =
            names.iter().fold(format!("{base}{path}"), |path, (name, value)| path.replace(name, value));
        let answer = gateway.get(&path);
        assert!(responses.contains_key(&answer.status.to_string()), "{path}: {answer:?}");
        assert!(!answer.body.contains("no such endpoint"), "{path}: {answer:?}");
        answers.push(format!("{} {path}", answer.status));
    }
    for health in ["200 /health", "200 /live", "200 /ready"] {
        assert!(answers.iter().any(|answer| answer == health), "{answers:?}");
    }
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
