//! Tool search: the advertised tools, calls of the other tools, and hints.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::gateway::{manifest, started};
use crate::keyed_gateway::KeyedGateway;

/// Settings of `builtins` with the search tools alone.
fn builtins(search: &str) -> String {
    let off =
        ["scripts", "memory", "guides", "skills", "mcp"].map(|kind| format!("{kind}: {{enabled: false}}"));
    format!("builtins: {{{}, search: {{{search}}}}}", off.join(", "))
}

/// The response to an MCP request with this key.
async fn ask(gateway: &KeyedGateway, key: &str, method: &str, params: &Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let headers = "accept: application/json, text/event-stream\r\n";
    let response = gateway.ask_with(key, "POST /mcp", headers, &message.to_string()).await;
    serde_json::from_str(&response.body).unwrap_or_else(|_| panic!("{}", response.body))
}

async fn tool_names(gateway: &KeyedGateway, key: &str) -> String {
    let answer = ask(gateway, key, "tools/list", &json!({})).await;
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect::<Vec<_>>().join(" ")
}

async fn call(gateway: &KeyedGateway, key: &str, tool: &str, arguments: Value) -> String {
    let answer = ask(gateway, key, "tools/call", &json!({"name": tool, "arguments": arguments})).await;
    let text = answer["result"]["content"][0]["text"].as_str();
    text.map_or_else(|| answer["error"].to_string(), str::to_owned)
}

const SEARCH_TOOLS: &str = "search_tools call_tool search_known_services";

#[tokio::test]
async fn advertised_tools_follow_the_disclosure_setting() {
    let all = format!("{SEARCH_TOOLS} add search delete");
    let check = async |settings: &str, scopes: &str, expected: &str| {
        let gateway = KeyedGateway::start(&builtins(settings)).await;
        let key = if scopes.is_empty() { String::new() } else { gateway.key_for(scopes).await };
        assert_eq!(tool_names(&gateway, &key).await, expected, "{settings} {scopes}");
    };
    check("", "", &all).await;
    check("disclosure: all, budget: 1", "", &all).await;
    check("disclosure: search", "", SEARCH_TOOLS).await;
    check("disclosure: search, pinned: ['web/se*', add]", "", &format!("{SEARCH_TOOLS} add search")).await;
    check("disclosure: auto, budget: 10", "", SEARCH_TOOLS).await;
    check("enabled: false, disclosure: search", "", "add search delete").await;
    // A key without the scope for search sees all its tools.
    check("disclosure: search", "tools:web/* tools:builtins/*", SEARCH_TOOLS).await;
    check("disclosure: search", "tools:web/*", "search delete").await;
    check("disclosure: search", "tools:web/* tools:search_tools", "search_tools search delete").await;
}

#[tokio::test]
async fn unadvertised_tool_is_found_and_called() {
    let gateway = KeyedGateway::start(&builtins("disclosure: search")).await;
    let everything = gateway.key_for("tools:*").await;
    let web = gateway.key_for("tools:web/* tools:builtins/*").await;
    assert_eq!(call(&gateway, &everything, "add", json!({"a": 1})).await, "2");
    let mut lines = Vec::new();
    for (key, tool, arguments) in [
        (&everything, "search_tools", json!({"query": "add"})),
        (&everything, "call_tool", json!({"name": "add", "arguments": {"a": 1}})),
        (&everything, "call_tool", json!({"name": "add", "arguments": "{\"a\": 1}"})),
        // The schema of the target tool applies.
        (&everything, "call_tool", json!({"name": "add", "arguments": {"a": "x"}})),
        (&everything, "call_tool", json!({"name": "add"})),
        (&everything, "call_tool", json!({"name": "ad"})),
        (&everything, "call_tool", json!({"name": "call_tool", "arguments": {"name": "add"}})),
        (&everything, "call_tool", json!({})),
        // The scope of the key applies as well.
        (&web, "search_tools", json!({"query": "add"})),
        (&web, "call_tool", json!({"name": "add", "arguments": {"a": 1}})),
        (&web, "add", json!({"a": 1})),
        (&web, "search_known_services", json!({"query": "math web add search"})),
        (&web, "call_tool", json!({"name": "search", "arguments": {}})),
    ] {
        let who = if key == &web { "web" } else { "all" };
        let text = call(&gateway, key, tool, arguments.clone()).await;
        lines.push(format!("{who} {tool} {arguments}\n  {text}"));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    all search_tools {"query":"add"}
      {"tools":[{"name":"add","server":"math","description":"Adds.","inputSchema":{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]}}]}
    all call_tool {"name":"add","arguments":{"a":1}}
      2
    all call_tool {"name":"add","arguments":"{\"a\": 1}"}
      2
    all call_tool {"name":"add","arguments":{"a":"x"}}
      Invalid arguments: /a: value is not of type "number"
    all call_tool {"name":"add"}
      Invalid arguments: "a" is a required property
    all call_tool {"name":"ad"}
      There is no tool `ad`. Did you mean `add`? Take a name exactly as search_tools shows it.
    all call_tool {"name":"call_tool","arguments":{"name":"add"}}
      name: is call_tool itself. Give the name of the tool that you want.
    all call_tool {}
      `name` is required. Give the name of a tool as search_tools shows it, and its parameters in `arguments`.
    web search_tools {"query":"add"}
      {"tools":[],"note":"No tool matches. Describe it in English, in other words: the usual name of the thing, or what is done to it."}
    web call_tool {"name":"add","arguments":{"a":1}}
      There is no tool `add`. Take a name exactly as search_tools shows it.
    web add {"a":1}
      {"code":-32602,"message":"Unknown tool: add","data":{"code":"tool_not_found","reason":"no tool of this name","retryable":false}}
    web search_known_services {"query":"math web add search"}
      {
      "results": [
        {
          "id": "web",
          "type": "mcp",
          "summary": "Provides 2 tool(s): search, delete.",
          "relevance_score": 1.0,
          "top_tools": [
            "search"
          ]
        }
      ]
    }
    web call_tool {"name":"search","arguments":{}}
      found
    "#);
}

/// Prices, quotas and audit records are those of the target tool.
#[tokio::test]
async fn call_tool_counts_as_its_target_tool() {
    let gateway = KeyedGateway::start(&builtins("disclosure: search")).await;
    let new_key = json!({"name": "a key", "scopes": ["tools:*", "admin"], "cost": "1"});
    let key = gateway.key(&new_key.to_string()).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(call(&gateway, &key, "call_tool", json!({"name": "add", "arguments": {"a": 1}})).await);
    }
    assert_snapshot!(answers.join("\n"), @r#"
    2
    2
    {"code":-32603,"message":"quota of 1 exhausted","data":{"code":"quota_exhausted","reason":"the quota is used up","retryable":false}}
    "#);
}

/// Clients get no notification of tools that they have to search for. They get one when the advertised tools change,
/// and settings change while the gateway runs.
#[tokio::test]
async fn only_changes_of_advertised_tools_are_announced() {
    let tool = |name: &str| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
    let server = |name: &str| {
        let definition = tool(name);
        TestUpstream::start(ScriptedUpstream::new(
            UpstreamEra::Modern,
            &[&definition],
            |r: &ReceivedRequest| ScriptedReply::result(r, "{}"),
        ))
    };
    let [one, two, three] = ["one", "two", "pinned"].map(server);
    let handlers = [("one", one.address, ""), ("two", two.address, ""), ("three", three.address, "")];
    let process = builtins("disclosure: search, pinned: [pinned]");
    let running = started(&manifest(&handlers[..1], &process)).await;
    let mut changes = WireClient::new(running.address(), ClientMode::Modern).await.changes().await;
    let mut messages = vec![changes.message().await.expect("an acknowledgement")];
    let registry = running.gateway().watch();
    let is_there = |name: &'static str| {
        let mut registry = registry.clone();
        async move { drop(registry.wait_for(|now| now.tool(name).is_ok()).await.expect("a registry")) }
    };
    running.apply(&manifest(&handlers[..2], &process)).await.expect("a valid manifest");
    is_there("two").await;
    running.apply(&manifest(&handlers, &process)).await.expect("a valid manifest");
    is_there("pinned").await;
    messages.push(changes.message().await.expect("a change"));
    running.apply(&manifest(&handlers, &builtins("disclosure: all"))).await.expect("a valid manifest");
    messages.push(changes.message().await.expect("a change"));
    let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
    assert_eq!(client.tools().await.len(), 6);
    // A notification about the unadvertised tool would arrive before the end of the stream.
    let (_, last) = tokio::join!(running.stop(), changes.message());
    messages.extend(last);
    assert_snapshot!(messages.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7},"notifications":{"toolsListChanged":true}}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    "#);
}

#[tokio::test]
async fn hints_and_tokens_over_rest() {
    let gateway = KeyedGateway::start(&builtins("disclosure: auto, budget: 300, pinned: [add]")).await;
    let rest = gateway.key_for("tools:* rest").await;
    let web = gateway.key_for("tools:web/* rest").await;
    let blind = gateway.key_for("tools:*").await;
    let mut lines = Vec::new();
    let cases = [
        (&rest, "POST /api/v1/hints", r#"{"message":"please do the math, and add two numbers"}"#),
        (&web, "POST /api/v1/hints", r#"{"message":"please do the math, and search the web"}"#),
        (&web, "POST /api/v1/hints", r#"{"message":"please do the math, and add two numbers"}"#),
        (&rest, "POST /api/v1/hints", r#"{"message":"thanks, that is all for today"}"#),
        (&rest, "POST /api/v1/hints", r#"{"message":""}"#),
        (&rest, "POST /api/v1/hints", r#"{"message":7}"#),
        (&rest, "POST /api/v1/hints", "{}"),
        (&blind, "POST /api/v1/hints", r#"{"message":"please do the math"}"#),
        (&rest, "GET /api/v1/tokens", ""),
        (&web, "GET /api/v1/tokens", ""),
        (&blind, "GET /api/v1/tokens", ""),
    ];
    for (key, line, body) in cases {
        let response = gateway.ask(key, line, body).await;
        lines.push(format!("{line} {body}\n  {} {}", response.head.status(), response.body));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    POST /api/v1/hints {"message":"please do the math, and add two numbers"}
      200 {"hint":"Potentially relevant services for this request (call search_known_services for full search):\n- math (mcp): Provides 1 tool(s): add, top tools: add","services":[{"id":"math","type":"mcp","summary":"Provides 1 tool(s): add.","relevance_score":1.0,"top_tools":["add"]}]}
    POST /api/v1/hints {"message":"please do the math, and search the web"}
      200 {"hint":"Potentially relevant services for this request:\n- web (mcp): Provides 2 tool(s): search, delete, top tools: search","services":[{"id":"web","type":"mcp","summary":"Provides 2 tool(s): search, delete.","relevance_score":1.0,"top_tools":["search"]}]}
    POST /api/v1/hints {"message":"please do the math, and add two numbers"}
      200 {"hint":null,"services":[]}
    POST /api/v1/hints {"message":"thanks, that is all for today"}
      200 {"hint":null,"services":[]}
    POST /api/v1/hints {"message":""}
      200 {"hint":null,"services":[]}
    POST /api/v1/hints {"message":7}
      400 {"type":"urn:toolyard:problem:bad_request","title":"Bad Request","status":400,"detail":"invalid body: message: invalid type: integer `7`, expected a string at line 1 column 12","code":"bad_request","retryable":false}
    POST /api/v1/hints {}
      400 {"type":"urn:toolyard:problem:bad_request","title":"Bad Request","status":400,"detail":"invalid body: .: missing field `message` at line 1 column 2","code":"bad_request","retryable":false}
    POST /api/v1/hints {"message":"please do the math"}
      403 {"type":"urn:toolyard:problem:denied","title":"Forbidden","status":403,"detail":"the key lacks the required scope","code":"denied","retryable":false}
    GET /api/v1/tokens 
      200 {"estimator":"bytes/4.4","disclosure":"auto","budget":300,"lists":[{"disclosure":"all","tools":6,"tokens":465},{"disclosure":"search","tools":4,"tokens":437},{"disclosure":"auto","tools":4,"tokens":437}],"handlers":[{"name":"builtins","tools":3,"tokens":281,"groups":[{"name":"search","tools":3,"tokens":281}]},{"name":"math","tools":1,"tokens":156},{"name":"web","tools":2,"tokens":29}]}
    GET /api/v1/tokens 
      200 {"estimator":"bytes/4.4","disclosure":"all","lists":[{"disclosure":"all","tools":2,"tokens":29}],"handlers":[{"name":"web","tools":2,"tokens":29}]}
    GET /api/v1/tokens 
      403 {"type":"urn:toolyard:problem:denied","title":"Forbidden","status":403,"detail":"the key lacks the required scope","code":"denied","retryable":false}
    "#);
}

#[tokio::test]
async fn prompt_carries_a_hint() {
    let gateway = KeyedGateway::start(&builtins("")).await;
    let mut lines = Vec::new();
    for message in ["please do the math, and add two numbers", "thanks, that is all for today"] {
        let params = json!({"name": "service_hints", "arguments": {"message": message}});
        let answer = ask(&gateway, "", "prompts/get", &params).await;
        lines.push(answer["result"]["messages"].to_string());
    }
    let list = ask(&gateway, "", "prompts/list", &json!({})).await;
    lines.push(list["result"]["prompts"].to_string());
    assert_snapshot!(lines.join("\n"), @r#"
    [{"role":"user","content":{"type":"text","text":"Potentially relevant services for this request (call search_known_services for full search):\n- math (mcp): Provides 1 tool(s): add, top tools: add"}}]
    [{"role":"user","content":{"type":"text","text":"No service stands out for this request."}}]
    [{"name":"service_hints","title":"Service hints","description":"Names the services that a message seems to be about, for a host that tells its model so.","arguments":[{"name":"message","description":"The user's message","required":true}]}]
    "#);
}
