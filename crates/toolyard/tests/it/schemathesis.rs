//! REST is what its document says: schemathesis, which makes requests of the document, right and wrong ones, finds nothing.

use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::http;
use crate::support::peers::{self, peer, root};

#[test]
fn rest_is_what_its_document_says() {
    let demo = json!({
        "name": "demo",
        "type": "mcp",
        "mcpConfig": {"transport": "stdio", "command": env!("CARGO_BIN_EXE_toolyard"), "args": ["demo-server"]},
    });
    let gateway = Gateway::of(&[demo]);
    let url = format!("http://{}/api/v1", gateway.address);
    let wanted = r#"{"name":"tester","scopes":["tools:*","rest","admin"]}"#;
    let made =
        http::send(gateway.address, "POST /api/v1/keys", &[("Content-Type", "application/json")], wanted);
    let made: Value = serde_json::from_str(&made.body).unwrap();
    let key = made["key"].as_str().unwrap();
    let mut command = peers::command(peer("python/bin/schemathesis"), gateway.folder.path());
    command.current_dir(gateway.folder.path());
    command.arg("--no-color").arg("--config-file").arg(root().join("fixtures/schemathesis.toml"));
    command.args(["run", &format!("{url}/openapi.json"), "--url", &url, "--workers", "2"]);
    command.args(["--header", &format!("Authorization: Bearer {key}"), "--max-examples", "40"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // All operations were tried, and not turned away.
    assert!(said.contains("Tested: 12") && said.contains("✅ Fuzzing"), "{said}");
}
