//! Tool search with a third-party client, and with hundreds of third-party servers.

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::{ScriptedServer, script};

use crate::corpus::{SERVERS, recorded_servers};
use crate::support::gateway::TestGateway;

/// Returns process settings with only the search tools.
fn builtins(search: Value) -> Value {
    let off = json!({"enabled": false});
    json!({"builtins": {"scripts": off, "memory": off, "guides": off, "skills": off, "mcp": off, "search": search}})
}

/// Returns the transcript of the Python SDK: the list of tools and the text of each call.
#[track_caller]
fn seen_by_python(gateway: &TestGateway, mode: &str, calls: &Value) -> String {
    let home = TempDir::new().unwrap();
    let mut python = peers::command(peers::peer("python/bin/python"), home.path());
    python.arg(script("client.py")).args([&gateway.url(), mode, &calls.to_string()]);
    let ended = run(&mut python);
    let seen: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended}"));
    let texts = calls.as_array().unwrap().iter().zip(seen["texts"].as_array().unwrap());
    let texts = texts.map(|(call, text)| format!("{} {}\n  {}", call[0], call[1], without_pid(text)));
    format!("{}\n{}", seen["tools"], texts.collect::<Vec<_>>().join("\n"))
}

/// Removes the process id, which differs between runs.
fn without_pid(text: &Value) -> &str {
    let text = text.as_str().unwrap();
    if text.parse::<u32>().is_ok() { "NUMBER" } else { text }
}

#[test]
fn search_tools_seen_by_python() {
    let there = ScriptedServer::new("there");
    let gateway = TestGateway::with_settings(&[there.handler()], builtins(json!({"disclosure": "search"})));
    let calls = json!([
        ["search_tools", {"query": "process id", "limit": 1}],
        ["search_tools", {"query": ""}],
        ["search_tools", {}],
        ["search_known_services", {"query": "pid of a process"}],
        ["search_known_services", {}],
        ["call_tool", {"name": "pid", "arguments": {}}],
        ["call_tool", {"name": "pid", "arguments": "{}"}],
        ["call_tool", {"name": "pd", "arguments": {}}],
        ["call_tool", {"name": "call_tool", "arguments": {}}],
        ["call_tool", {"arguments": {}}],
        ["pid", {}],
    ]);
    let [legacy, modern] = ["legacy", "2026-07-28"].map(|mode| seen_by_python(&gateway, mode, &calls));
    assert_eq!(legacy, modern);
    assert_snapshot!(modern, @r#"
    ["search_tools","call_tool","search_known_services"]
    "search_tools" {"query":"process id","limit":1}
      {"tools":[{"name":"pid","server":"there","description":"Tells its process id.","inputSchema":{"type":"object"}}]}
    "search_tools" {"query":""}
      query: is empty, where a few keywords are expected
    "search_tools" {}
      Invalid arguments: "query" is a required property
    "search_known_services" {"query":"pid of a process"}
      {
      "results": [
        {
          "id": "there",
          "type": "mcp",
          "summary": "Provides 2 tool(s): pid, wait.",
          "relevance_score": 1.0,
          "top_tools": [
            "pid",
            "wait"
          ]
        }
      ]
    }
    "search_known_services" {}
      Invalid arguments: "query" is a required property
    "call_tool" {"name":"pid","arguments":{}}
      NUMBER
    "call_tool" {"name":"pid","arguments":"{}"}
      NUMBER
    "call_tool" {"name":"pd","arguments":{}}
      There is no tool `pd`. Take a name exactly as search_tools shows it.
    "call_tool" {"name":"call_tool","arguments":{}}
      name: is call_tool itself. Give the name of the tool that you want.
    "call_tool" {"arguments":{}}
      `name` is required. Give the name of a tool as search_tools shows it, and its parameters in `arguments`.
    "pid" {}
      NUMBER
    "#);
}

/// Token budget of the search tools and the service tools.
const MOST_TOKENS: u64 = 2_000;

#[test]
fn hundreds_of_servers_behind_three_tools() {
    let Some(recorded) = recorded_servers(SERVERS) else { return };
    let handlers: Vec<Value> = (0..SERVERS).map(|number| recorded.handler(number)).collect();
    let limit = format!("{}s", toolyard_testing::wait::LIMIT.as_secs());
    let mut process = builtins(json!({}));
    process["timeouts"] = json!({"firstList": limit, "connect": limit});
    let gateway = TestGateway::with_settings(&handlers, process);
    let pair = ["search_tools", "call_tool", "search_known_services"];
    assert_eq!(gateway.tools(), pair);
    let tokens: Value = serde_json::from_str(&gateway.get("/api/v1/tokens").body).unwrap();
    println!("{}", json!({"estimator": tokens["estimator"], "lists": tokens["lists"]}));
    let [all, search, auto] = [0, 1, 2].map(|at| tokens["lists"][at].clone());
    assert!(all["tools"].as_u64().unwrap() > 2_500 && all["tokens"].as_u64().unwrap() > 100_000, "{all}");
    assert!(search["tokens"].as_u64().unwrap() < MOST_TOKENS, "{search}");
    assert_eq!((&auto["tools"], &auto["tokens"]), (&search["tools"], &search["tokens"]));
    assert_eq!(tokens["handlers"].as_array().unwrap().len(), SERVERS + 1);

    // Each tool that is found can be called.
    let matches = gateway.text("search_tools", json!({"query": "search the web", "limit": 5}));
    let matches: Value = serde_json::from_str(&matches).unwrap();
    for tool in matches["tools"].as_array().unwrap() {
        let response = gateway.call("call_tool", json!({"name": tool["name"], "arguments": {}})).body;
        assert!(response.contains("tool") || response.contains("Invalid arguments"), "{response}");
    }
    assert_eq!(matches["tools"].as_array().unwrap().len(), 5);
    let asking = std::time::Instant::now();
    let services = gateway.text("search_known_services", json!({"query": "search the web"}));
    println!("services among {SERVERS}: {:.1?}", asking.elapsed());
    let asking = std::time::Instant::now();
    gateway.text("search_known_services", json!({"query": "weather"}));
    println!("again: {:.1?}", asking.elapsed());
    let services: Value = serde_json::from_str(&services).unwrap();
    assert_eq!(services["results"].as_array().unwrap().len(), 5);
}
