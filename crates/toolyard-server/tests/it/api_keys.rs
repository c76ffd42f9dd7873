//! API keys: authentication, scopes, rates and quotas.

use insta::assert_snapshot;
use serde_json::Value;
use toolyard_server::keys::key_cache::KeyVerdict;
use toolyard_server::keys::{KeyCache, KeyPolicy, record};
use toolyard_server::{GatewayOptions, StartError};
use toolyard_testing::wire_client::WireConnection;

use crate::gateway::manifest;
use crate::keyed_gateway::{KeyedGateway, memory, short};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

fn call(name: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{{"a":1}}}}}}"#
    )
}

/// Every route of the gateway that needs a key.
const ROUTES: [(&str, &str); 12] = [
    ("POST /mcp", LIST),
    ("GET /mcp", ""),
    ("GET /sse", ""),
    ("POST /message?sessionId=x", LIST),
    ("GET /api/v1/status", ""),
    ("GET /api/v1/tools", ""),
    ("POST /api/v1/tools/add/call", r#"{"arguments":{"a":1}}"#),
    ("GET /api/v1/handlers", ""),
    ("GET /api/v1/keys", ""),
    ("POST /api/v1/keys", r#"{"name":"x","scopes":["admin"]}"#),
    ("GET /api/v1/audit", ""),
    ("GET /nothing/here", ""),
];

#[tokio::test]
async fn loopback_gateway_without_keys_needs_no_key() {
    let gateway = KeyedGateway::start("").await;
    assert_eq!(gateway.short("", "GET /api/v1/status", "", "/phase").await, "200 \"Ready\"");
    assert_eq!(gateway.short("", "POST /mcp", LIST, "/result/tools/2/name").await, "200 \"delete\"");
    // A proxy in front of the gateway may forward its own credentials, but an invalid Toolyard key is an error.
    assert_eq!(gateway.short("eyJhbGciOi", "GET /api/v1/status", "", "/phase").await, "200 \"Ready\"");
    assert_eq!(gateway.short("ty_none", "GET /api/v1/status", "", "").await, "401 unauthenticated");
}

#[tokio::test]
async fn every_route_requires_a_key_once_one_exists() {
    let gateway = KeyedGateway::start("timeouts: {keyCheck: 10ms}").await;
    let key = gateway.key_for("tools:* rest admin").await;
    // A new key is valid at once, and after the next check of the store every caller needs one.
    assert_eq!(gateway.short(&key, "GET /api/v1/status", "", "/phase").await, "200 \"Ready\"");
    let other = key.replace(&key[key.len() - 4..], "0000");
    for (line, body) in ROUTES {
        for shown in ["", "ty_none", &other, "Basic x"] {
            let response = gateway.ask(shown, line, body).await;
            assert_eq!(short(&response, ""), "401 unauthenticated", "{line} {shown:?}");
            assert_eq!(response.head.header("www-authenticate"), Some("Bearer realm=\"toolyard\""), "{line}");
        }
    }
    assert_eq!(gateway.short("", "GET /health", "", "/status").await, "200 \"ok\"");
}

#[tokio::test]
async fn openapi_document_requires_no_key() {
    let gateway = KeyedGateway::start("timeouts: {keyCheck: 10ms}").await;
    let key = gateway.key_for("tools:*").await;
    assert_eq!(gateway.short(&key, "GET /api/v1/tools", "", "").await, "403 denied");
    // From here on keys are required.
    assert_eq!(gateway.short("", "GET /api/v1/tools", "", "").await, "401 unauthenticated");
    let document = include_str!("../../../../schema/openapi.json");
    for shown in ["", "ty_none", "Basic x", &key] {
        let response = gateway.ask(shown, "GET /api/v1/openapi.json", "").await;
        assert_eq!((response.head.status(), &*response.body), (200, document), "{shown:?}");
    }
    let check = async |line: &str, headers: &str, expected: &str| {
        let response = gateway.ask_with("", line, headers, "").await;
        assert_eq!(short(&response, "/none"), expected, "{line} {headers}");
    };
    // Pages of other origins are refused as everywhere, and the route has no other method.
    check("GET /api/v1/openapi.json", "origin: http://evil.example\r\n", "403 denied").await;
    check("OPTIONS /api/v1/openapi.json", "origin: http://localhost\r\n", "204 null").await;
    check("POST /api/v1/openapi.json", "", "405 method_not_allowed").await;
}

#[tokio::test]
async fn tools_outside_the_scope_do_not_exist() {
    let gateway = KeyedGateway::start("").await;
    let key = gateway.key_for("tools:web/s* rest").await;
    assert_eq!(
        gateway.short(&key, "POST /mcp", LIST, "/result/tools").await,
        r#"200 [{"name":"search","description":"Searches.","inputSchema":{"type":"object"}}]"#
    );
    let unknown = r#"200 {"code":-32602,"message":"Unknown tool: add","data":{"code":"tool_not_found","reason":"no tool of this name","retryable":false}}"#;
    assert_eq!(gateway.short(&key, "POST /mcp", &call("add"), "/error").await, unknown);
    assert_eq!(
        gateway.short(&key, "POST /mcp", &call("add2"), "/error").await,
        unknown.replace("add", "add2")
    );
    assert_eq!(
        gateway.short(&key, "POST /mcp", &call("search"), "/result/content/0/text").await,
        "200 \"found\""
    );
    assert_eq!(gateway.short(&key, "GET /api/v1/tools", "", "/tools/1").await, "200 null");
    assert_eq!(gateway.short(&key, "GET /api/v1/tools/add", "", "").await, "404 tool_not_found");
    assert_eq!(gateway.short(&key, "POST /api/v1/tools/delete/call", "{}", "").await, "404 tool_not_found");
    let status = gateway.ask(&key, "GET /api/v1/status", "").await.body;
    for hidden in ["math", "add", "delete"] {
        assert!(!status.contains(hidden), "{hidden} shows in {status}");
    }
    // The server behind the gateway has received no call either.
    let [math, _] = &gateway.upstreams;
    assert_eq!(math.now(|log| log.count("tools/call")), 0);
}

#[tokio::test]
async fn each_route_requires_its_scope() {
    let gateway = KeyedGateway::start("").await;
    let mut lines = Vec::new();
    for scopes in ["tools:*", "rest", "admin", "functions metrics", "tools:* rest"] {
        let key = gateway.key_for(scopes).await;
        lines.push(format!("{scopes}:"));
        for (line, body) in
            ROUTES.into_iter().filter(|(line, _)| line.starts_with("POST /mcp") || line.contains("/api/"))
        {
            let answer = gateway.short(&key, line, body, "/none").await;
            lines.push(format!("  {line}: {answer}"));
        }
    }
    assert_snapshot!(lines.join("\n"), @"
    tools:*:
      POST /mcp: 200 null
      GET /api/v1/status: 403 denied
      GET /api/v1/tools: 403 denied
      POST /api/v1/tools/add/call: 403 denied
      GET /api/v1/handlers: 403 denied
      GET /api/v1/keys: 403 denied
      POST /api/v1/keys: 403 denied
      GET /api/v1/audit: 403 denied
    rest:
      POST /mcp: 200 null
      GET /api/v1/status: 200 null
      GET /api/v1/tools: 200 null
      POST /api/v1/tools/add/call: 404 tool_not_found
      GET /api/v1/handlers: 200 null
      GET /api/v1/keys: 403 denied
      POST /api/v1/keys: 403 denied
      GET /api/v1/audit: 403 denied
    admin:
      POST /mcp: 200 null
      GET /api/v1/status: 200 null
      GET /api/v1/tools: 403 denied
      POST /api/v1/tools/add/call: 403 denied
      GET /api/v1/handlers: 200 null
      GET /api/v1/keys: 200 null
      POST /api/v1/keys: 201 null
      GET /api/v1/audit: 200 null
    functions metrics:
      POST /mcp: 200 null
      GET /api/v1/status: 403 denied
      GET /api/v1/tools: 403 denied
      POST /api/v1/tools/add/call: 403 denied
      GET /api/v1/handlers: 403 denied
      GET /api/v1/keys: 403 denied
      POST /api/v1/keys: 403 denied
      GET /api/v1/audit: 403 denied
    tools:* rest:
      POST /mcp: 200 null
      GET /api/v1/status: 200 null
      GET /api/v1/tools: 200 null
      POST /api/v1/tools/add/call: 200 null
      GET /api/v1/handlers: 200 null
      GET /api/v1/keys: 403 denied
      POST /api/v1/keys: 403 denied
      GET /api/v1/audit: 403 denied
    ");
}

/// Scopes that give no right to any REST route.
const SCOPES_WITHOUT_REST: [&str; 2] = ["tools:*", "metrics"];

/// The routes that require no key.
const PUBLIC_ROUTES: [&str; 5] = ["/openapi.json", "/sessions", "/health", "/live", "/ready"];

fn answer_without_key(path: &str) -> &'static str {
    match path {
        // The request has no body.
        "/sessions" => "415 unsupported_media_type",
        path if PUBLIC_ROUTES.contains(&path) => "200 null",
        _ => "401 unauthenticated",
    }
}

/// Checks each route of the API's description, and returns the scopes that it admits.
async fn scopes_of_documented_routes() -> Vec<String> {
    let gateway = KeyedGateway::start("").await;
    let mut keys = Vec::new();
    for scope in
        SCOPES_WITHOUT_REST.into_iter().chain(["rest", "functions", "publish:x", "publish:y", "admin"])
    {
        keys.push((scope, gateway.key_for(scope).await));
    }
    let document: Value = serde_json::from_str(include_str!("../../../../schema/openapi.json")).unwrap();
    let mut lines = Vec::new();
    // The stream of events does not end; `console` has its scopes.
    let paths = document["paths"].as_object().unwrap().iter().filter(|(path, _)| *path != "/events");
    for (path, operations) in paths {
        let url =
            ["{id}", "{name}", "{version}"].iter().fold(path.clone(), |url, part| url.replace(part, "x"));
        // The health checks have servers of their own, which are the root.
        let base = if operations.get("servers").is_some() { "" } else { "/api/v1" };
        for method in operations.as_object().unwrap().keys().filter(|member| *member != "servers") {
            let line = format!("{} {base}{url}", method.to_uppercase());
            let mut admitted = Vec::new();
            for (scope, key) in &keys {
                if gateway.short(key, &line, "", "").await != "403 denied" {
                    admitted.push(*scope);
                }
            }
            // A new route that checks nothing fails here.
            let is_open = SCOPES_WITHOUT_REST.iter().any(|scope| admitted.contains(scope));
            assert_eq!(is_open, PUBLIC_ROUTES.contains(&&**path), "{line} admits {admitted:?}");
            let without_key = gateway.short("", &line, "", "/none").await;
            assert_eq!(without_key, answer_without_key(path), "{line} without a key");
            let security = &operations[method]["security"];
            assert_eq!(*security == serde_json::json!([]), is_open, "{line} is documented with {security}");
            lines.push(format!("{} {path}: {}", method.to_uppercase(), admitted.join(" ")));
        }
    }
    lines
}

#[tokio::test]
async fn each_documented_route_requires_one_of_its_scopes() {
    assert_snapshot!(scopes_of_documented_routes().await.join("\n"), @"
    GET /tools: rest
    GET /tools/{name}: rest
    POST /tools/{name}/call: rest
    GET /status: rest admin
    GET /health: tools:* metrics rest functions publish:x publish:y admin
    GET /live: tools:* metrics rest functions publish:x publish:y admin
    GET /ready: tools:* metrics rest functions publish:x publish:y admin
    GET /openapi.json: tools:* metrics rest functions publish:x publish:y admin
    GET /handlers: rest admin
    POST /handlers/{name}/test: admin
    POST /handlers/{name}/refresh: admin
    POST /handlers/{name}/restart: admin
    POST /handlers/{name}/disable: admin
    POST /handlers/{name}/accept: admin
    GET /functions: functions publish:x publish:y admin
    GET /functions/{id}: functions publish:x admin
    DELETE /functions/{id}: publish:x admin
    GET /functions/{id}/draft: functions publish:x admin
    PUT /functions/{id}/draft: publish:x admin
    DELETE /functions/{id}/draft: publish:x admin
    POST /functions/{id}/publish: publish:x admin
    GET /functions/{id}/logs: publish:x admin
    GET /functions/{id}/{version}: functions publish:x admin
    DELETE /functions/{id}/{version}: publish:x admin
    GET /functions/{id}/{version}/file: publish:x admin
    POST /functions/{id}/{version}/test: publish:x admin
    POST /functions/{id}/{version}/invoke: functions admin
    GET /keys: admin
    POST /keys: admin
    POST /keys/tools: admin
    DELETE /keys/{id}: admin
    POST /hints: rest
    GET /search: rest
    GET /caller: rest functions publish:x publish:y admin
    POST /session-codes: rest functions publish:x publish:y admin
    POST /sessions: tools:* metrics rest functions publish:x publish:y admin
    DELETE /sessions/current: rest functions publish:x publish:y admin
    GET /series: admin
    GET /tokens: rest admin
    GET /schedules: admin
    DELETE /schedules/{id}: admin
    GET /schedules/{id}/runs: admin
    GET /sandbox: admin
    GET /memory: admin
    GET /memory/entries: admin
    GET /agents: admin
    GET /bus: admin
    GET /bus/dead-letters: admin
    GET /manifest: admin
    POST /manifest/check: admin
    POST /manifest/import: admin
    PUT /log: admin
    GET /audit: admin
    ");
}

#[tokio::test]
async fn revoked_key_is_refused_at_once_here_and_soon_elsewhere() {
    let store = memory().await;
    let here = KeyedGateway::with(store.clone(), "").await;
    let there = KeyedGateway::with(store.clone(), "timeouts: {keyCheck: 10ms}").await;
    let admin = here.key_for("admin rest").await;
    let key = here.key_for("tools:* rest").await;
    for gateway in [&here, &there] {
        assert_eq!(gateway.short(&key, "GET /api/v1/status", "", "/phase").await, "200 \"Ready\"");
    }
    let id = key.split('_').nth(1).unwrap();
    let revoked = here.short(&admin, &format!("DELETE /api/v1/keys/{id}"), "", "/valid").await;
    assert_eq!(revoked, "200 false");
    assert_eq!(here.short(&key, "GET /api/v1/status", "", "").await, "401 unauthenticated");
    while there.short(&key, "GET /api/v1/status", "", "").await != "401 unauthenticated" {
        tokio::task::yield_now().await;
    }
    // Revoking all keys does not disable authentication.
    let id = admin.split('_').nth(1).unwrap();
    record::revoke(&*store, id).await.unwrap();
    while there.short(&admin, "GET /api/v1/status", "", "").await != "401 unauthenticated" {
        tokio::task::yield_now().await;
    }
    assert_eq!(there.short("", "GET /api/v1/status", "", "").await, "401 unauthenticated");
}

#[tokio::test]
async fn public_listener_requires_a_key() {
    let store = memory().await;
    let start = async |process: &str| {
        let mut manifest = manifest(&[("x", "127.0.0.1:9".parse().unwrap(), "")], process);
        manifest.process.listen = vec!["0.0.0.0:0".parse().unwrap()];
        let options = GatewayOptions { store: Some(store.clone()), ..GatewayOptions::default() };
        toolyard_server::start(&manifest, &options).await.map(drop)
    };
    let refused = start("").await;
    assert!(matches!(refused, Err(StartError::Unauthenticated(_))), "{refused:?}");
    start("allowUnauthenticated: true").await.unwrap();
    let gateway = KeyedGateway::with(store.clone(), "").await;
    gateway.key_for("rest").await;
    start("").await.unwrap();
}

#[tokio::test]
async fn optional_key_limits_the_caller_to_its_scopes() {
    let gateway = KeyedGateway::start("allowUnauthenticated: true").await;
    let key = gateway.key_for("tools:search").await;
    assert_eq!(gateway.short("", "POST /mcp", LIST, "/result/tools/2/name").await, "200 \"delete\"");
    assert_eq!(gateway.short(&key, "POST /mcp", LIST, "/result/tools/1/name").await, "200 null");
    assert_eq!(gateway.short(&key, "GET /api/v1/status", "", "").await, "403 denied");
}

#[tokio::test]
async fn request_without_a_key_administers_nothing_if_it_may_not() {
    let gateway = KeyedGateway::start("allowUnauthenticated: true, unauthenticatedAdmin: false").await;
    assert_eq!(gateway.short("", "POST /mcp", LIST, "/result/tools/2/name").await, "200 \"delete\"");
    assert_eq!(gateway.short("", "GET /api/v1/status", "", "/phase").await, "200 \"Ready\"");
    for request in ["GET /api/v1/keys", "GET /api/v1/audit", "GET /api/v1/sandbox", "GET /api/v1/functions"] {
        assert_eq!(gateway.short("", request, "", "").await, "403 denied", "{request}");
    }
}

#[tokio::test]
async fn quota_is_shared_by_gateways_on_one_store() {
    let store = memory().await;
    let one = KeyedGateway::with(store.clone(), "").await;
    let other = KeyedGateway::with(store, "").await;
    let key = one.key(r#"{"name":"q","scopes":["tools:*","rest"],"calls":"7"}"#).await;
    let mut ran = 0;
    for number in 0..10 {
        let gateway = if number % 2 == 0 { &one } else { &other };
        let answer = gateway.short(&key, "POST /api/v1/tools/search/call", "{}", "/content/0/text").await;
        match &*answer {
            "200 \"found\"" => ran += 1,
            answer => assert_eq!((answer, ran), ("402 quota_exhausted", 7)),
        }
    }
    assert_eq!(ran, 7);
    let admin = other.key_for("admin").await;
    assert_eq!(one.short(&admin, "GET /api/v1/keys", "", "/keys/0/used/calls").await, "200 7.0");
    let answer = one.ask(&key, "POST /mcp", &call("search")).await.body;
    assert_snapshot!(answer, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"quota of 7 exhausted","data":{"code":"quota_exhausted","reason":"the quota is used up","retryable":false}}}"#);
}

#[tokio::test]
async fn calls_that_do_not_run_are_not_charged() {
    let gateway = KeyedGateway::start("").await;
    let key = gateway.key(r#"{"name":"q","scopes":["tools:*","rest"],"calls":"3","cost":"1"}"#).await;
    let call = async |line: &str, body: &str| gateway.short(&key, line, body, "/content/0/text").await;
    // Calls of unknown tools and calls with invalid arguments are not charged.
    assert_eq!(call("POST /api/v1/tools/none/call", "{}").await, "404 tool_not_found");
    assert_eq!(call("POST /api/v1/tools/add/call", "{}").await, "400 invalid_arguments");
    assert_eq!(call("POST /api/v1/tools/add/call", r#"{"arguments":[]}"#).await, "400 invalid_arguments");
    // A tool that reports an error did run.
    assert_eq!(call("POST /api/v1/tools/delete/call", "{}").await, "200 \"no\"");
    // `add` costs 0.5.
    assert_eq!(call("POST /api/v1/tools/add/call", r#"{"arguments":{"a":1}}"#).await, "200 \"2\"");
    assert_eq!(call("POST /api/v1/tools/add/call", r#"{"arguments":{"a":1}}"#).await, "200 \"2\"");
    assert_eq!(call("POST /api/v1/tools/search/call", "{}").await, "402 quota_exhausted");
}

#[tokio::test]
async fn tool_price_is_charged() {
    let gateway = KeyedGateway::start("").await;
    let key = gateway.key(r#"{"name":"q","scopes":["tools:*","rest"],"cost":"1.2/week"}"#).await;
    let call = async |name: &str| {
        let line = format!("POST /api/v1/tools/{name}/call");
        gateway.short(&key, &line, r#"{"arguments":{"a":1}}"#, "/content/0/text").await
    };
    assert_eq!(call("add").await, "200 \"2\"");
    assert_eq!(call("add").await, "200 \"2\"");
    assert_eq!(call("add").await, "402 quota_exhausted");
    // Free tools remain available.
    assert_eq!(call("search").await, "200 \"found\"");
    let admin = gateway.key_for("admin").await;
    assert_eq!(gateway.short(&admin, "GET /api/v1/keys", "", "/keys/0/used").await, r#"200 {"cost":1.0}"#);
}

#[tokio::test]
async fn rate_limited_caller_gets_retry_after() {
    let gateway = KeyedGateway::start("").await;
    let key = gateway.key(r#"{"name":"q","scopes":["tools:*","rest"],"rate":"2/week"}"#).await;
    let call = async || gateway.ask(&key, "POST /api/v1/tools/search/call", "{}").await;
    for _ in 0..2 {
        assert_eq!(short(&call().await, "/content/0/text"), "200 \"found\"");
    }
    let refused = call().await;
    assert_eq!(short(&refused, ""), "429 rate_limited");
    let wait: u64 = refused.head.header("retry-after").unwrap().parse().unwrap();
    assert!((302_000..=302_400).contains(&wait), "{wait}");
}

#[tokio::test]
async fn streams_end_with_their_key() {
    let gateway = KeyedGateway::start("allowUnauthenticated: true").await;
    let admin = gateway.key_for("admin").await;
    let listen = async |key: &str| {
        let mut connection = WireConnection::open(gateway.running.address()).await;
        let request = format!("GET /sse HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n");
        connection.send(request.as_bytes()).await;
        connection
    };
    let key = gateway.key_for("tools:*").await;
    let short = gateway.key(r#"{"name":"short","scopes":["tools:*"],"expiresIn":1}"#).await;
    // The body ends with the revoked or expired key, and not earlier.
    let (mut of_key, mut of_short) = (listen(&key).await, listen(&short).await);
    let expired = of_short.response().await.expect("a response");
    assert!(expired.body.starts_with("event: endpoint"), "{}", expired.body);
    let id = key.split('_').nth(1).unwrap();
    assert_eq!(gateway.short(&admin, &format!("DELETE /api/v1/keys/{id}"), "", "/valid").await, "200 false");
    let revoked = of_key.response().await.expect("a response");
    assert!(revoked.body.starts_with("event: endpoint"), "{}", revoked.body);
}

#[tokio::test]
async fn removing_all_keys_does_not_disable_authentication() {
    let store = memory().await;
    let gateway = KeyedGateway::with(store.clone(), "timeouts: {keyCheck: 10ms}").await;
    let key = gateway.key_for("rest tools:*").await;
    assert_eq!(gateway.short(&key, "GET /api/v1/status", "", "/phase").await, "200 \"Ready\"");
    // Simulates a database that is restored from a backup.
    assert!(store.delete(record::KEYS, key.split('_').nth(1).unwrap()).await.unwrap());
    while gateway.short(&key, "GET /api/v1/status", "", "").await != "401 unauthenticated" {
        tokio::task::yield_now().await;
    }
    assert_eq!(gateway.short("", "GET /api/v1/status", "", "").await, "401 unauthenticated");
}

#[tokio::test]
async fn empty_store_refuses_public_callers() {
    let cache = KeyCache::new(memory().await, KeyPolicy::Always);
    assert!(!cache.read().await.unwrap());
    assert!(matches!(cache.lookup(None).await, KeyVerdict::Denied));
    let cache = KeyCache::new(memory().await, KeyPolicy::OnceCreated);
    assert!(matches!(cache.lookup(None).await, KeyVerdict::Granted(_)));
}

#[tokio::test]
async fn anonymous_streams_end_with_the_first_key() {
    let gateway = KeyedGateway::start("timeouts: {keyCheck: 10ms}").await;
    let mut connection = WireConnection::open(gateway.running.address()).await;
    connection.send(b"GET /sse HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let stream = connection.stream().await;
    gateway.key_for("rest").await;
    // The stream ends with the first key, and not earlier.
    assert!(stream.rest().await.starts_with("event: endpoint"));
}

#[tokio::test]
async fn allowed_origin_can_read_a_refusal() {
    let gateway = KeyedGateway::start("allowedOrigins: ['https://app.example']").await;
    gateway.key_for("rest").await;
    let check = async |origin: &str, expected: Option<&str>| {
        let headers = format!("origin: {origin}\r\n");
        let refused = gateway.ask_with("ty_none", "GET /api/v1/status", &headers, "").await;
        assert_eq!(short(&refused, ""), "401 unauthenticated", "{origin}");
        assert_eq!(refused.head.header("access-control-allow-origin"), expected, "{origin}");
    };
    check("https://app.example", Some("https://app.example")).await;
    check("https://evil.example", None).await;
}

#[tokio::test]
async fn interrupted_call_is_charged() {
    let gateway = KeyedGateway::start("").await;
    let key = gateway.key(r#"{"name":"q","scopes":["tools:*","rest"],"calls":"2"}"#).await;
    let call = async || {
        let body = r#"{"arguments":{"q":"break"}}"#;
        gateway.short(&key, "POST /api/v1/tools/search/call", body, "").await
    };
    assert_eq!(call().await, "503 unavailable");
    assert_eq!(call().await, "503 unavailable");
    assert_eq!(call().await, "402 quota_exhausted");
}

/// Routes are compared as text: neither the authentication layer nor the router normalizes paths.
#[tokio::test]
async fn unnormalized_paths_do_not_bypass_authentication() {
    let gateway = KeyedGateway::start("timeouts: {keyCheck: 10ms}").await;
    let key = gateway.key_for("tools:* rest admin").await;
    assert_eq!(gateway.short(&key, "GET /api/v1/status", "", "/phase").await, "200 \"Ready\"");
    let paths = [
        "/health/../mcp",
        "/health/%2e%2e/mcp",
        "/health/..;/mcp",
        "/health%2f..%2fmcp",
        "/health/",
        "//health",
        "//mcp",
        "/./mcp",
        "/%6dcp",
        "/MCP",
        "/mcp/../api/v1/keys",
        "/api/v1/tools/../keys",
        "/api/v1/tools/..%2fkeys",
        "/api/v1/handlers/..%2f..%2fkeys/test",
        "/api/v1/functions/..%2f..%2fetc%2fpasswd",
        "/api/v1/functions/../keys",
        "/api/v1/keys/..",
        "/api/v1/openapi.json/",
        "/api/v1/openapi.json/../keys",
        "/api/v1/openapi%2ejson",
        "//api/v1/openapi.json",
    ];
    for path in paths {
        let line = format!("GET {path}");
        assert_eq!(gateway.short("", &line, "", "").await, "401 unauthenticated", "{path}");
        let status = gateway.ask(&key, &line, "").await.head.status();
        assert!([400, 404, 405].contains(&status), "{path} {status}");
    }
}
