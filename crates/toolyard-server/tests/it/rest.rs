//! The REST API: requests and responses.

use insta::assert_snapshot;
use serde_json::Value;
use tokio::sync::watch;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::WireConnection;

use crate::keyed_gateway::{KeyedGateway, short};

async fn body(gateway: &KeyedGateway, line: &str) -> String {
    let response = gateway.ask("", line, "").await;
    format!("{} {}", response.head.status(), response.body)
}

#[tokio::test]
async fn tools_in_each_form() {
    let gateway = KeyedGateway::start("").await;
    let mut lines = Vec::new();
    for query in [
        "",
        "?format=mcp",
        "?format=openai",
        "?format=anthropic",
        "?handler=web&format=anthropic",
        "?handler=x",
    ] {
        lines.push(format!("{query}\n  {}", body(&gateway, &format!("GET /api/v1/tools{query}")).await));
    }
    for query in [
        "search",
        "delete?format=openai",
        "delete?format=anthropic",
        "none",
        "add?format=x",
        "add?form=mcp",
        "add?format=mcp&format=mcp",
    ] {
        lines.push(format!("{query}\n  {}", body(&gateway, &format!("GET /api/v1/tools/{query}")).await));
    }
    assert_snapshot!(lines.join("\n"), @r#"

      200 {"tools":[{"name":"add","description":"Adds.","inputSchema":{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]},"outputSchema":{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}},{"name":"search","description":"Searches.","inputSchema":{"type":"object"}},{"name":"delete","inputSchema":{"type":"object"}}]}
    ?format=mcp
      200 {"tools":[{"name":"add","description":"Adds.","inputSchema":{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]},"outputSchema":{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}},{"name":"search","description":"Searches.","inputSchema":{"type":"object"}},{"name":"delete","inputSchema":{"type":"object"}}]}
    ?format=openai
      200 {"tools":[{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]}}},{"type":"function","function":{"name":"search","description":"Searches.","parameters":{"type":"object"}}},{"type":"function","function":{"name":"delete","parameters":{"type":"object"}}}]}
    ?format=anthropic
      200 {"tools":[{"name":"add","description":"Adds.","input_schema":{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]}},{"name":"search","description":"Searches.","input_schema":{"type":"object"}},{"name":"delete","input_schema":{"type":"object"}}]}
    ?handler=web&format=anthropic
      200 {"tools":[{"name":"search","description":"Searches.","input_schema":{"type":"object"}},{"name":"delete","input_schema":{"type":"object"}}]}
    ?handler=x
      200 {"tools":[]}
    search
      200 {"name":"search","description":"Searches.","inputSchema":{"type":"object"}}
    delete?format=openai
      200 {"type":"function","function":{"name":"delete","parameters":{"type":"object"}}}
    delete?format=anthropic
      200 {"name":"delete","input_schema":{"type":"object"}}
    none
      404 {"type":"urn:toolyard:problem:tool_not_found","title":"Not Found","status":404,"detail":"Unknown tool: none","reason":"no tool of this name","code":"tool_not_found","retryable":false}
    add?format=x
      400 {"type":"urn:toolyard:problem:bad_request","title":"Bad Request","status":400,"detail":"invalid `format`: expected `mcp`, `openai` or `anthropic`","code":"bad_request","retryable":false}
    add?form=mcp
      400 {"type":"urn:toolyard:problem:bad_request","title":"Bad Request","status":400,"detail":"unknown query parameter `form`; known parameters: format","code":"bad_request","retryable":false}
    add?format=mcp&format=mcp
      400 {"type":"urn:toolyard:problem:bad_request","title":"Bad Request","status":400,"detail":"duplicate query parameter `format`","code":"bad_request","retryable":false}
    "#);
}

#[tokio::test]
async fn calls() {
    let gateway = KeyedGateway::start("limits: {requestBodyBytes: 1KiB}").await;
    let mut lines = Vec::new();
    let cases = [
        ("search", "{}"),
        ("search", r#"{"arguments":{"q":1.10}}"#),
        ("delete", r#"{"arguments":null}"#),
        ("add", r#"{"arguments":{"a":"x"}}"#),
        ("none", "{}"),
        ("delete", "{}"),
        ("search", "[]"),
        ("search", "{"),
        ("search", r#"{"args":{}}"#),
        ("search", r#"{"arguments":{},"arguments":{}}"#),
        ("search", r#"{"arguments":7}"#),
    ];
    for (name, body) in cases {
        let response = gateway.ask("", &format!("POST /api/v1/tools/{name}/call"), body).await;
        lines.push(format!("{name} {body}\n  {} {}", response.head.status(), response.body));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    search {}
      200 {"content":[{"type":"text","text":"found"}]}
    search {"arguments":{"q":1.10}}
      200 {"content":[{"type":"text","text":"found"}]}
    delete {"arguments":null}
      200 {"content":[{"type":"text","text":"no"}],"isError":true}
    add {"arguments":{"a":"x"}}
      400 {"type":"urn:toolyard:problem:invalid_arguments","title":"Bad Request","status":400,"detail":"Invalid arguments: /a: value is not of type \"number\"","reason":"the arguments do not match the input schema","code":"invalid_arguments","retryable":false}
    none {}
      404 {"type":"urn:toolyard:problem:tool_not_found","title":"Not Found","status":404,"detail":"Unknown tool: none","reason":"no tool of this name","code":"tool_not_found","retryable":false}
    search []
      400 {"type":"urn:toolyard:problem:bad_request","title":"Bad Request","status":400,"detail":"the body is not a JSON object: expected an object at byte 0","code":"bad_request","retryable":false}
    search {
      400 {"type":"urn:toolyard:problem:bad_request","title":"Bad Request","status":400,"detail":"the body is not a JSON object: expected a string at byte 1","code":"bad_request","retryable":false}
    search {"args":{}}
      400 {"type":"urn:toolyard:problem:bad_request","title":"Bad Request","status":400,"detail":"unknown member \"args\": expected `arguments` only","code":"bad_request","retryable":false}
    search {"arguments":{},"arguments":{}}
      400 {"type":"urn:toolyard:problem:bad_request","title":"Bad Request","status":400,"detail":"the body is not a JSON object: a member is named twice in the object at byte 0","code":"bad_request","retryable":false}
    search {"arguments":7}
      400 {"type":"urn:toolyard:problem:invalid_arguments","title":"Bad Request","status":400,"detail":"Invalid arguments: expected an object","reason":"the arguments do not match the input schema","code":"invalid_arguments","retryable":false}
    "#);
    let long = format!(r#"{{"arguments":{{"a":"{}"}}}}"#, "x".repeat(2000));
    assert_eq!(gateway.short("", "POST /api/v1/tools/search/call", &long, "").await, "413 too_large");
    assert_eq!(
        gateway.short("", "POST /api/v1/tools/search/call", "", "").await,
        "415 unsupported_media_type"
    );
    // Numbers keep their notation.
    let [_, web] = &gateway.upstreams;
    assert!(web.now(|log| log.requests.iter().any(|request| request.body.contains(r#""q":1.10"#))));
}

#[tokio::test]
async fn same_idempotency_key_runs_once() {
    let gateway = KeyedGateway::start("").await;
    let call = async |key: &str, id: &str, name: &str, body: &str| {
        let line = format!("POST /api/v1/tools/{name}/call");
        short(
            &gateway.ask_with(key, &line, &format!("idempotency-key: {id}\r\n"), body).await,
            "/content/0/text",
        )
    };
    let [math, web] = &gateway.upstreams;
    for _ in 0..3 {
        assert_eq!(call("", "a", "search", "{}").await, "200 \"found\"");
    }
    assert_eq!(web.now(|log| log.count("tools/call")), 1);
    assert_eq!(call("", "a", "search", r#"{"arguments":{}}"#).await, "422 idempotency_key_reused");
    assert_eq!(call("", "a", "delete", "{}").await, "422 idempotency_key_reused");
    assert_eq!(call("", "\"a\"", "search", "{}").await, "200 \"found\"");
    // A call that did not run may be repeated with the same key.
    assert_eq!(call("", "b", "add", "{}").await, "400 invalid_arguments");
    assert_eq!(call("", "b", "add", r#"{"arguments":{"a":1}}"#).await, "200 \"2\"");
    assert_eq!(math.now(|log| log.count("tools/call")), 1);
    // The same idempotency key of another caller is a different one.
    let other = gateway.key_for("tools:* rest").await;
    assert_eq!(call(&other, "a", "search", "{}").await, "200 \"found\"");
    assert_eq!(web.now(|log| log.count("tools/call")), 2);
    assert_eq!(call(&other, &"x".repeat(256), "search", "{}").await, "400 bad_request");
    assert_eq!(call(&other, "", "search", "{}").await, "400 bad_request");
}

#[tokio::test]
async fn handler_tests() {
    let gateway = KeyedGateway::start("").await;
    let mut lines = Vec::new();
    let cases = [
        ("math", r#"{"arguments":{"a":1}}"#),
        ("math", r#"{"toolName":"add","arguments":{"a":13}}"#),
        ("math", r#"{"arguments":{"a":"x"}}"#),
        ("math", r#"{"toolName":"search"}"#),
        ("web", "{}"),
        ("web", r#"{"toolName":"search"}"#),
        ("web", r#"{"toolName":"delete"}"#),
        ("none", "{}"),
        ("delete", "{}"),
        ("web", r#"{"tool":"x"}"#),
    ];
    for (name, body) in cases {
        let response = gateway.ask("", &format!("POST /api/v1/handlers/{name}/test"), body).await;
        let mut report: Value = serde_json::from_str(&response.body).unwrap();
        if let Some(took) = report.get_mut("durationMs") {
            assert!(took.as_f64().is_some_and(|took| took >= 0.0), "{took}");
            *took = Value::from("(ms)");
        }
        lines.push(format!("{name} {body}\n  {} {report}", response.head.status()));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    math {"arguments":{"a":1}}
      200 {"success":true,"toolName":"add","result":{"content":[{"type":"text","text":"2"}],"structuredContent":{"sum":2}},"durationMs":"(ms)","handlerType":"mcp","validation":{"request":{"valid":true},"response":{"valid":true}}}
    math {"toolName":"add","arguments":{"a":13}}
      422 {"success":false,"toolName":"add","result":{"content":[],"structuredContent":{"sum":"?"}},"durationMs":"(ms)","handlerType":"mcp","validation":{"request":{"valid":true},"response":{"valid":false,"error":"The result does not fit the output schema: /sum: value is not of type \"number\""}}}
    math {"arguments":{"a":"x"}}
      422 {"success":false,"toolName":"add","error":"Invalid arguments: /a: value is not of type \"number\"","code":"invalid_arguments","durationMs":"(ms)","handlerType":"mcp","validation":{"request":{"valid":false,"error":"Invalid arguments: /a: value is not of type \"number\""}}}
    math {"toolName":"search"}
      404 {"type":"urn:toolyard:problem:tool_not_found","title":"Not Found","status":404,"detail":"Unknown tool: search","reason":"no tool of this name","code":"tool_not_found","retryable":false}
    web {}
      400 {"type":"urn:toolyard:problem:bad_request","title":"Bad Request","status":400,"detail":"the handler has several tools, name one: search, delete","code":"bad_request","retryable":false}
    web {"toolName":"search"}
      200 {"success":true,"toolName":"search","result":{"content":[{"type":"text","text":"found"}]},"durationMs":"(ms)","handlerType":"mcp","warning":"the tool has no output schema: the result was not validated","validation":{"request":{"valid":true}}}
    web {"toolName":"delete"}
      422 {"success":false,"toolName":"delete","result":{"content":[{"type":"text","text":"no"}],"isError":true},"error":"the tool reported an error","durationMs":"(ms)","handlerType":"mcp","validation":{"request":{"valid":true}}}
    none {}
      404 {"type":"urn:toolyard:problem:not_found","title":"Not Found","status":404,"detail":"unknown handler \"none\"","code":"not_found","retryable":false}
    delete {}
      404 {"type":"urn:toolyard:problem:not_found","title":"Not Found","status":404,"detail":"\"delete\" is a tool of the handler \"web\"","code":"not_found","retryable":false}
    web {"tool":"x"}
      400 {"type":"urn:toolyard:problem:bad_request","title":"Bad Request","status":400,"detail":"invalid body: tool: unknown field `tool`, expected `toolName` or `arguments` at line 1 column 7","code":"bad_request","retryable":false}
    "#);
    // The gateway did not forward the invalid arguments.
    let [math, _] = &gateway.upstreams;
    assert_eq!(math.now(|log| log.count("tools/call")), 2);
}

#[tokio::test]
async fn operator_can_test_any_tool() {
    let gateway = KeyedGateway::start("").await;
    let test = async |scopes: &str, calls: &str| {
        let scopes: Vec<_> = scopes.split(' ').collect();
        let mut new_key = serde_json::json!({"name": "a key", "scopes": scopes});
        if !calls.is_empty() {
            new_key["calls"] = calls.into();
        }
        let key = gateway.key(&new_key.to_string()).await;
        let mut answers = Vec::new();
        for _ in 0..2 {
            let line = "POST /api/v1/handlers/web/test";
            answers.push(short(&gateway.ask(&key, line, r#"{"toolName":"search"}"#).await, "/success"));
        }
        answers.join(", ")
    };
    assert_eq!(test("admin", "").await, "200 true, 200 true");
    assert_eq!(test("admin tools:math/*", "").await, "200 true, 200 true");
    assert_eq!(test("rest tools:*", "").await, "403 denied, 403 denied");
    // Tests count against a quota, too.
    assert_eq!(test("admin", "1").await, "200 true, 422 quota_exhausted");
}

#[tokio::test]
async fn refresh_requests_the_list_again() {
    let gateway = KeyedGateway::start("").await;
    let [_, web] = &gateway.upstreams;
    let before = web.now(|log| log.count("tools/list"));
    assert_eq!(gateway.short("", "POST /api/v1/handlers/web/refresh", "", "/refreshing").await, "202 true");
    web.saw(|log| log.count("tools/list") > before, |_| ()).await;
    assert_eq!(gateway.short("", "POST /api/v1/handlers/none/refresh", "", "").await, "404 not_found");
}

#[tokio::test]
async fn keys_by_rest() {
    let gateway = KeyedGateway::start("").await;
    let new_key = r#"{"name":"ci","scopes":["tools:web/*","rest"],"expiresIn":60,"rate":"10/s","calls":"100/day","cost":"2.5"}"#;
    let made = gateway.ask("", "POST /api/v1/keys", new_key).await;
    assert_eq!(made.head.status(), 201);
    let made: Value = serde_json::from_str(&made.body).unwrap();
    let text = made["key"].as_str().unwrap();
    assert_eq!(gateway.short(text, "GET /api/v1/tools", "", "/tools/0/name").await, "200 \"search\"");
    let admin = gateway.key_for("admin").await;
    let list = gateway.ask(&admin, "GET /api/v1/keys", "").await.body;
    let mut list: Value = serde_json::from_str(&list).unwrap();
    let first = &mut list["keys"][0];
    assert_eq!(first["id"], made["id"]);
    for time in ["id", "created", "expires"] {
        first[time] = Value::from("(..)");
    }
    assert_snapshot!(first, @r#"
    {"id":"(..)","name":"ci","scopes":["tools:web/*","rest"],"created":"(..)","expires":"(..)","rate":"10/s","calls":"100/day","cost":"2.5","used":{"calls":0.0,"cost":0.0},"valid":true}
    "#);
    let own = admin.split('_').nth(1).unwrap();
    assert_eq!(gateway.short(&admin, &format!("DELETE /api/v1/keys/{own}"), "", "").await, "409 own_key");
    let bad = [
        "{}",
        r#"{"name":"x"}"#,
        r#"{"name":"x","scopes":[]}"#,
        r#"{"name":"","scopes":["rest"]}"#,
        r#"{"name":"x","scopes":["root"]}"#,
        r#"{"name":"x","scopes":["rest"],"rate":"10"}"#,
        r#"{"name":"x","scopes":["rest"],"calls":"many"}"#,
        r#"{"name":"x","scopes":["rest"],"owner":"y"}"#,
        r#"{"name":"x","scopes":["rest"]} {}"#,
    ];
    let mut lines = Vec::new();
    for body in bad {
        let problem: Value =
            serde_json::from_str(&gateway.ask(&admin, "POST /api/v1/keys", body).await.body).unwrap();
        lines.push(format!(
            "{body}\n  {} {}",
            problem["status"],
            problem["detail"].as_str().unwrap_or_default()
        ));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {}
      400 invalid body: .: missing field `name` at line 1 column 2
    {"name":"x"}
      400 invalid body: .: missing field `scopes` at line 1 column 12
    {"name":"x","scopes":[]}
      400 a key needs between 1 and 100 scopes
    {"name":"","scopes":["rest"]}
      400 a key needs a name of at most 100 characters without control characters
    {"name":"x","scopes":["root"]}
      400 invalid body: scopes[0]: a scope is `tools:PATTERN` (such as `tools:*` or `tools:github/get_*`), `rest`, `admin`, `functions`, `metrics`, `memory:PATTERN` (such as `memory:session/*`) or `publish:PATTERN` (such as `publish:geo-*`) at line 1 column 29
    {"name":"x","scopes":["rest"],"rate":"10"}
      400 a rate needs a period: `10/s`
    {"name":"x","scopes":["rest"],"calls":"many"}
      400 invalid body: calls: an amount is a number of at most 6 decimals, optionally per period: `NUMBER/s`, `/min`, `/h`, `/day` or `/week` at line 1 column 45
    {"name":"x","scopes":["rest"],"owner":"y"}
      400 invalid body: owner: unknown field `owner`, expected one of `name`, `scopes`, `expiresIn`, `rate`, `calls`, `cost`, `model`, `chunkThreshold` at line 1 column 37
    {"name":"x","scopes":["rest"]} {}
      400 trailing data after the JSON body: trailing characters at line 1 column 32
    "#);
}

#[tokio::test]
async fn unknown_routes_are_not_found() {
    let gateway = KeyedGateway::start("").await;
    for (line, expected) in [
        ("GET /api/v1/none", "404 not_found"),
        ("GET /api/v1", "404 not_found"),
        ("PUT /api/v1/tools", "405 method_not_allowed"),
        ("GET /api/v1/tools/add/call", "405 method_not_allowed"),
        ("GET /api/v1/tools/%ff", "400 bad_request"),
        ("GET /api/v1/status?x=1", "400 bad_request"),
        ("GET /nothing", "404 not_found"),
    ] {
        assert_eq!(gateway.short("", line, "", "/none").await, expected, "{line}");
    }
}

#[tokio::test]
async fn call_that_may_have_run_is_not_repeated() {
    let gateway = KeyedGateway::start("").await;
    let [_, web] = &gateway.upstreams;
    for _ in 0..3 {
        let (line, body) = ("POST /api/v1/tools/search/call", r#"{"arguments":{"q":"break"}}"#);
        let broken = gateway.ask_with("", line, "idempotency-key: k\r\n", body).await;
        assert_eq!(short(&broken, ""), "503 unavailable");
        assert_eq!(broken.head.header("content-type"), Some("application/problem+json"));
        assert_eq!(web.now(|log| log.count("tools/call")), 1);
    }
}

#[tokio::test]
async fn call_continues_after_its_client_disconnects() {
    let (release, released) = watch::channel(false);
    let server = ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], move |request: &ReceivedRequest| {
        let mut released = released.clone();
        let ready = async move { drop(released.wait_for(|released| *released).await) };
        ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"done"}]}"#).after(ready)
    });
    let upstream = TestUpstream::start(server);
    let running = crate::gateway::gateway(&[("slow", upstream.address, "")], "").await;
    let request = "POST /api/v1/tools/t/call HTTP/1.1\r\nhost: localhost\r\nidempotency-key: k\r\n\
        content-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    let ask = async || {
        let mut connection = WireConnection::open(running.address()).await;
        connection.send(request.as_bytes()).await;
        connection
    };
    let first = ask().await;
    upstream.saw(|log| log.count("tools/call") == 1, |_| ()).await;
    drop(first);
    let meanwhile = ask().await.response().await.unwrap();
    assert_eq!(short(&meanwhile, ""), "409 idempotent_call_runs");
    release.send_replace(true);
    loop {
        let then = ask().await.response().await.unwrap();
        match &*short(&then, "/content/0/text") {
            "409 idempotent_call_runs" => tokio::task::yield_now().await,
            answer => break assert_eq!(answer, "200 \"done\""),
        }
    }
    assert_eq!(upstream.now(|log| log.count("tools/call")), 1);
}

#[tokio::test]
async fn calls_are_refused_while_the_gateway_drains() {
    let (release, released) = watch::channel(false);
    let upstream = TestUpstream::start(ScriptedUpstream::new(
        UpstreamEra::Modern,
        &[TOOL],
        move |request: &ReceivedRequest| {
            let mut released = released.clone();
            let is_slow = request.params().text().contains("slow");
            ScriptedReply::result(request, r#"{"content":[]}"#).after(async move {
                if is_slow {
                    drop(released.wait_for(|released| *released).await);
                }
            })
        },
    ));
    let running = crate::gateway::gateway(&[("h", upstream.address, "")], "").await;
    let request = |arguments: &str| {
        let head = "POST /api/v1/tools/t/call HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
        format!("{head}\r\ncontent-length: {}\r\n\r\n{arguments}", arguments.len()).into_bytes()
    };
    let address = running.address();
    let [mut begun, mut idle, mut used] = [
        WireConnection::open(address).await,
        WireConnection::open(address).await,
        WireConnection::open(address).await,
    ];
    used.send(&request("{}")).await;
    assert_eq!(used.response().await.unwrap().head.status(), 200);
    begun.send(&request(r#"{"arguments":{"a":"slow"}}"#)).await;
    while upstream.now(|log| log.count("tools/call")) < 2 {
        tokio::task::yield_now().await;
    }
    let stopped = tokio::spawn(running.stop());
    let draining = async {
        let mut health = WireConnection::open(address).await;
        health.send(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        health.response().await.unwrap().head.status() == 503
    };
    assert!(draining.await);
    for connection in [&mut idle, &mut used] {
        connection.send(&request("{}")).await;
        let refused = connection.response().await.unwrap();
        let header = |name| refused.head.header(name);
        assert_eq!(
            (refused.head.status(), header("retry-after"), header("connection")),
            (503, Some("1"), Some("close")),
            "{}",
            refused.body
        );
        assert!(connection.response().await.is_none());
    }
    release.send_replace(true);
    assert_eq!(begun.response().await.unwrap().head.status(), 200);
    stopped.await.unwrap();
    assert_eq!(upstream.now(|log| log.count("tools/call")), 2);
}
