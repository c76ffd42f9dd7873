//! MCP Apps: two servers with a page at the same URI, and a host on the Python SDK that opens the widget of each tool.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::support::gateway::TestGateway;

/// Returns what a host with this key sees.
#[track_caller]
fn seen(gateway: &TestGateway, mode: &str, key: &str) -> Value {
    let home = TempDir::new().unwrap();
    let mut host = peers::command(peers::peer("python/bin/python"), home.path());
    host.arg(script("widget_client.py")).args([&gateway.url(), mode]);
    if !key.is_empty() {
        host.arg(key);
    }
    let ended = run(&mut host);
    assert_eq!(ended.code, 0, "{ended}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn each_tool_opens_its_own_widget() {
    let python = peers::peer("python/bin/python");
    let server = |name: &str| {
        let script = script("widget_server.py");
        stdio_handler(name, python.to_str().unwrap(), &[script.to_str().unwrap(), name])
    };
    let gateway = TestGateway::with_handlers(&[server("alpha"), server("beta")]);
    let page =
        |name: &str| json!({"schemes": ["ui", "ui", "ui"], "texts": vec![format!("<p>{name}</p>"); 3]});
    let both = json!({"show_alpha": page("alpha"), "show_beta": page("beta")});
    for mode in ["legacy", "2026-07-28"] {
        assert_eq!(seen(&gateway, mode, ""), both, "{mode}");
    }
    let key = gateway.new_key("", json!({"name": "beta", "scopes": ["tools:beta/*"]}));
    for mode in ["legacy", "2026-07-28"] {
        assert_eq!(seen(&gateway, mode, &key), json!({"show_beta": page("beta")}), "{mode}");
    }
}
