//! Working memory of callers without session and key: the Python SDK as a client of 2026-07-28, with a server on it.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::support::gateway::TestGateway;

const MODERN: &str = "2026-07-28";

fn gateway(process: Value) -> TestGateway {
    let (python, server) = (peers::peer("python/bin/python"), script("archive_server.py"));
    let handler = stdio_handler("archive", python.to_str().unwrap(), &[server.to_str().unwrap()]);
    let mut process = process;
    process["builtins"] = json!({"scripts": {"enabled": false}});
    TestGateway::with_settings(&[handler], process)
}

/// Returns what a new client prints for these calls, each a tool and its arguments.
#[track_caller]
fn call(gateway: &TestGateway, calls: &[(&str, Value)]) -> String {
    let steps: Value = calls.iter().map(|(tool, arguments)| json!(["call", tool, arguments])).collect();
    let home = TempDir::new().unwrap();
    let mut client = peers::command(peers::peer("python/bin/python"), home.path());
    let ended = run(client.arg(script("walk.py")).args([&gateway.url(), MODERN, &steps.to_string()]));
    assert_eq!(ended.code, 0, "{ended}");
    ended.stdout
}

/// Returns the common prefix of the keys in the text of a large result.
#[track_caller]
fn base(text: &str) -> String {
    let base = text.split('`').find_map(|word| word.strip_suffix("-index"));
    let base = base.unwrap_or_else(|| panic!("no keys: {text:.2000}")).to_owned();
    assert!(base.starts_with("session/tyid_"), "{base}");
    base
}

#[test]
fn large_json_is_queried_with_the_second_call() {
    let gateway = gateway(json!({}));
    let cut = call(&gateway, &[("catalog", json!({}))]);
    assert!(cut.len() < 3_000, "{} bytes", cut.len());
    let key = format!("{}-index", base(&cut));
    let query = json!({"key": key, "expression": "data[?context > `119970`].id"});
    let answer = call(&gateway, &[("query_working_memory", query)]);
    assert!(answer.ends_with("=> [\"vendor/model-11998\",\"vendor/model-11999\"]\n"), "{answer}");
}

#[test]
fn line_of_a_large_log_is_read() {
    let gateway = gateway(json!({}));
    let base = base(&call(&gateway, &[("log", json!({}))]));
    // Line 7,777 of 10,000 lies in the last quarter.
    let chunks: Vec<_> =
        (5..8).map(|n| ("get_from_working_memory", json!({"key": format!("{base}-chunk{n}")}))).collect();
    let read = call(&gateway, &chunks);
    assert!(read.contains("ERROR request 7777 failed: disk full"), "{read:.300}");
}

#[test]
fn planted_and_forged_ids_open_nothing() {
    let gateway = gateway(json!({}));
    let cut = call(&gateway, &[("log", json!({}))]);
    let base = base(&cut);
    let forged = base.replacen("tyid_A", "tyid_B", 1);
    assert_ne!(forged, base);
    for key in ["session/tyid_AAAAAAAAAAAAAAAAAAAAAAAA/tool-log-a1b2c3-index", &format!("{forged}-index")] {
        let answer = call(&gateway, &[("get_from_working_memory", json!({"key": key}))]);
        assert!(answer.contains("not found or has expired."), "{answer:.300}");
    }
    let saved =
        call(&gateway, &[("save_to_working_memory", json!({"key": format!("{base}-index"), "data": "x"}))]);
    assert!(saved.contains("=> failed This call has no namespace in working memory"), "{saved:.300}");
}

#[test]
fn ids_outlive_a_gateway_with_a_store() {
    let folder = TempDir::new().unwrap();
    let process = json!({"store": {"path": folder.path().join("store.db")}});
    let first = gateway(process.clone());
    let base = base(&call(&first, &[("log", json!({}))]));
    drop(first);
    let read = |gateway: &TestGateway| {
        call(gateway, &[("get_from_working_memory", json!({"key": format!("{base}-chunk0")}))])
    };
    assert!(read(&gateway(process)).contains("INFO request 1 took 1 ms"));
    let answer = read(&gateway(json!({})));
    assert!(answer.contains("not found or has expired."), "{answer:.300}");
}
