//! Tool search with a third-party client, and with hundreds of third-party servers.

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::corpora::corpus;
use toolyard_testing::messages::stateless_request;
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
            "pid"
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

/// Number of queries of each shared set.
const QUERIES: usize = 20;

/// Returns the first queries of each shared set.
fn shared_queries() -> Vec<String> {
    let folder = corpus("retrieval", "queries").unwrap();
    let mut sets: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    sets.sort();
    let files = sets.iter().map(|set| set.join("queries.jsonl")).filter(|file| file.exists());
    let text = |line: &str| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned();
    let of_file = |file: std::path::PathBuf| -> Vec<String> {
        std::fs::read_to_string(file).unwrap().lines().take(QUERIES).map(text).collect()
    };
    files.flat_map(of_file).collect()
}

/// Lists and results fit a model by default, with hundreds of servers and all built-in tools.
#[test]
fn texts_for_models_are_short_by_default() {
    let Some(recorded) = recorded_servers(350) else { return };
    let handlers: Vec<Value> = (0..350).map(|number| recorded.handler(number)).collect();
    let limit = format!("{}s", toolyard_testing::wait::LIMIT.as_secs());
    let process = json!({
        "builtins": {},
        "sandbox": {"isolation": "best-effort"},
        "timeouts": {"firstList": limit, "connect": limit},
    });
    let gateway = TestGateway::with_settings(&handlers, process);
    let estimate = |text: &str| toolyard_core::tokens::estimate(text.len());

    let tokens: Value = serde_json::from_str(&gateway.get("/api/v1/tokens").body).unwrap();
    let auto = &tokens["lists"][2];
    println!("list: {auto}");
    assert!(auto["disclosure"] == "auto" && auto["tokens"].as_u64().unwrap() < 2_000, "{auto}");

    let queries = shared_queries();
    let found = queries.iter().map(|query| gateway.text("search_tools", json!({"query": query})));
    let sizes: Vec<_> = found.map(|text| estimate(&text)).collect();
    let average = sizes.iter().sum::<usize>() / sizes.len();
    println!("search_tools: {average} tokens on average of {} queries", sizes.len());
    assert!(sizes.len() >= QUERIES && average < 800, "{average}");

    // Every server is on a page of the list.
    let (mut servers, mut cursor) = (0, Value::Null);
    loop {
        let page = gateway.call("mcp_list_services", json!({"cursor": cursor})).result()["content"].clone();
        let [array, note] = [0, 1].map(|at| page[at]["text"].as_str().unwrap().to_owned());
        assert!(estimate(&array) + estimate(&note) <= 2_000, "{note}");
        servers += serde_json::from_str::<Vec<Value>>(&array).unwrap().len();
        let Some((_, next)) = note.split_once("cursor \"") else { break };
        cursor = next.trim_end_matches("\".").into();
    }
    assert_eq!(servers, 350);
    let filtered = gateway.text("mcp_list_services", json!({"filter": "weather"}));
    assert!(estimate(&filtered) <= 2_000 && filtered.contains("toolNames"), "{filtered}");
}

#[test]
fn direct_call_of_unknown_tool_suggests_names() {
    let there = ScriptedServer::new("there");
    let gateway = TestGateway::with_settings(&[there.handler()], builtins(json!({})));
    let body = gateway.call("there_wait", json!({})).body;
    assert!(body.contains("Unknown tool: there_wait. Did you mean `wait` or `pid`?"), "{body}");
}

#[test]
fn instructions_tell_how_to_find_tools() {
    let there = ScriptedServer::new("there");
    let gateway = TestGateway::with_settings(&[there.handler()], builtins(json!({})));
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let answer =
        toolyard_testing::http::send(gateway.address, "POST /mcp", &headers, &initialize.to_string());
    let answer: Value = serde_json::from_str(&answer.body).unwrap();
    assert_snapshot!(answer["result"]["instructions"].as_str().unwrap(), @"Call the tools on your list directly. There may be many more: search_tools finds them by a few keywords, with their parameters, and call_tool calls them. Search before you say that something cannot be done.");
    // The client of 2026-07-28 has the same, from `server/discover`.
    let (modern, discover) = stateless_request("server/discover", json!({}));
    let discovered = gateway.post(&modern, &discover).result();
    assert_eq!(discovered["instructions"], answer["result"]["instructions"]);
    let all = TestGateway::with_settings(&[there.handler()], json!({"builtins": {}}));
    let all = all.post(&modern, &discover).result();
    let all = all["instructions"].as_str().unwrap();
    assert!(toolyard_core::tokens::estimate(all.len()) < 120 && all.contains("working memory"), "{all}");
    let without = TestGateway::with_settings(&[there.handler()], json!({}));
    let discovered = without.post(&modern, &discover).result();
    assert!(
        discovered["instructions"].is_null() && discovered["supportedVersions"].is_array(),
        "{discovered}"
    );
    let answer =
        toolyard_testing::http::send(without.address, "POST /mcp", &headers, &initialize.to_string());
    assert!(answer.body.contains("serverInfo") && !answer.body.contains("instructions"), "{}", answer.body);
}
