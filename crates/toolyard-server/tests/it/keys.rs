//! Who gets in, what exists for them, and how much of it they may use.

use insta::assert_snapshot;
use toolyard_server::keys::ring::Verdict;
use toolyard_server::keys::{KeyRing, Policy, record};
use toolyard_server::{Options, StartError};

use crate::client::Connection;
use crate::door::{Yard, memory, short};
use crate::manifest;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

fn call(name: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{{"a":1}}}}}}"#
    )
}

/// Every door there is.
const DOORS: [(&str, &str); 13] = [
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
    ("GET /api/v1/openapi.json", ""),
    ("GET /nothing/here", ""),
];

#[tokio::test]
async fn who_is_alone_on_a_machine_needs_no_key() {
    let yard = Yard::start("").await;
    assert_eq!(yard.short("", "GET /api/v1/status", "", "/phase").await, "200 \"Ready\"");
    assert_eq!(yard.short("", "POST /mcp", LIST, "/result/tools/2/name").await, "200 \"delete\"");
    // Whoever stands in front may pass on what it asks for itself. Who shows a key of ours that opens nothing has made a mistake.
    assert_eq!(yard.short("eyJhbGciOi", "GET /api/v1/status", "", "/phase").await, "200 \"Ready\"");
    assert_eq!(yard.short("ty_none", "GET /api/v1/status", "", "").await, "401 unauthenticated");
}

#[tokio::test]
async fn once_there_is_a_key_every_door_asks_for_one() {
    let yard = Yard::start("timeouts: {keyCheck: 10ms}").await;
    let key = yard.key_for("tools:* rest admin").await;
    // It is known as soon as it is shown, and at the next look at the store nobody gets in without one.
    assert_eq!(yard.short(&key, "GET /api/v1/status", "", "/phase").await, "200 \"Ready\"");
    let other = key.replace(&key[key.len() - 4..], "0000");
    for (line, body) in DOORS {
        for shown in ["", "ty_none", &other, "Basic x"] {
            let response = yard.ask(shown, line, body).await;
            assert_eq!(short(&response, ""), "401 unauthenticated", "{line} {shown:?}");
            assert_eq!(response.head.header("www-authenticate"), Some("Bearer realm=\"toolyard\""), "{line}");
        }
    }
    assert_eq!(yard.short("", "GET /health", "", "/status").await, "200 \"ok\"");
}

#[tokio::test]
async fn what_a_key_may_not_use_does_not_exist_for_it() {
    let yard = Yard::start("").await;
    let key = yard.key_for("tools:web/s* rest").await;
    assert_eq!(
        yard.short(&key, "POST /mcp", LIST, "/result/tools").await,
        r#"200 [{"name":"search","description":"Searches.","inputSchema":{"type":"object"}}]"#
    );
    let unknown = r#"200 {"code":-32602,"message":"Unknown tool: add","data":{"code":"tool_not_found","reason":"Unknown tool: add","retryable":false}}"#;
    assert_eq!(yard.short(&key, "POST /mcp", &call("add"), "/error").await, unknown);
    assert_eq!(yard.short(&key, "POST /mcp", &call("add2"), "/error").await, unknown.replace("add", "add2"));
    assert_eq!(
        yard.short(&key, "POST /mcp", &call("search"), "/result/content/0/text").await,
        "200 \"found\""
    );
    assert_eq!(yard.short(&key, "GET /api/v1/tools", "", "/tools/1").await, "200 null");
    assert_eq!(yard.short(&key, "GET /api/v1/tools/add", "", "").await, "404 tool_not_found");
    assert_eq!(yard.short(&key, "POST /api/v1/tools/delete/call", "{}", "").await, "404 tool_not_found");
    let status = yard.ask(&key, "GET /api/v1/status", "").await.body;
    for hidden in ["math", "add", "delete"] {
        assert!(!status.contains(hidden), "{hidden} shows in {status}");
    }
    // Nobody behind the gateway has heard of it either.
    let [math, _] = &yard.upstreams;
    assert_eq!(math.now(|log| log.count("tools/call")), 0);
}

#[tokio::test]
async fn each_door_wants_its_scope() {
    let yard = Yard::start("").await;
    let mut lines = Vec::new();
    for scopes in ["tools:*", "rest", "admin", "functions metrics", "tools:* rest"] {
        let key = yard.key_for(scopes).await;
        lines.push(format!("{scopes}:"));
        for (line, body) in
            DOORS.into_iter().filter(|(line, _)| line.starts_with("POST /mcp") || line.contains("/api/"))
        {
            let said = yard.short(&key, line, body, "/none").await;
            lines.push(format!("  {line}: {said}"));
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
      GET /api/v1/openapi.json: 200 null
    rest:
      POST /mcp: 200 null
      GET /api/v1/status: 200 null
      GET /api/v1/tools: 200 null
      POST /api/v1/tools/add/call: 404 tool_not_found
      GET /api/v1/handlers: 200 null
      GET /api/v1/keys: 403 denied
      POST /api/v1/keys: 403 denied
      GET /api/v1/audit: 403 denied
      GET /api/v1/openapi.json: 200 null
    admin:
      POST /mcp: 200 null
      GET /api/v1/status: 200 null
      GET /api/v1/tools: 403 denied
      POST /api/v1/tools/add/call: 403 denied
      GET /api/v1/handlers: 200 null
      GET /api/v1/keys: 200 null
      POST /api/v1/keys: 201 null
      GET /api/v1/audit: 200 null
      GET /api/v1/openapi.json: 200 null
    functions metrics:
      POST /mcp: 200 null
      GET /api/v1/status: 403 denied
      GET /api/v1/tools: 403 denied
      POST /api/v1/tools/add/call: 403 denied
      GET /api/v1/handlers: 403 denied
      GET /api/v1/keys: 403 denied
      POST /api/v1/keys: 403 denied
      GET /api/v1/audit: 403 denied
      GET /api/v1/openapi.json: 200 null
    tools:* rest:
      POST /mcp: 200 null
      GET /api/v1/status: 200 null
      GET /api/v1/tools: 200 null
      POST /api/v1/tools/add/call: 200 null
      GET /api/v1/handlers: 200 null
      GET /api/v1/keys: 403 denied
      POST /api/v1/keys: 403 denied
      GET /api/v1/audit: 403 denied
      GET /api/v1/openapi.json: 200 null
    ");
}

#[tokio::test]
async fn a_key_that_is_revoked_opens_nothing_at_once_here_and_soon_elsewhere() {
    let store = memory().await;
    let here = Yard::with(store.clone(), "").await;
    let there = Yard::with(store.clone(), "timeouts: {keyCheck: 10ms}").await;
    let admin = here.key_for("admin rest").await;
    let key = here.key_for("tools:* rest").await;
    for yard in [&here, &there] {
        assert_eq!(yard.short(&key, "GET /api/v1/status", "", "/phase").await, "200 \"Ready\"");
    }
    let id = key.split('_').nth(1).unwrap();
    let revoked = here.short(&admin, &format!("DELETE /api/v1/keys/{id}"), "", "/valid").await;
    assert_eq!(revoked, "200 false");
    assert_eq!(here.short(&key, "GET /api/v1/status", "", "").await, "401 unauthenticated");
    while there.short(&key, "GET /api/v1/status", "", "").await != "401 unauthenticated" {
        tokio::task::yield_now().await;
    }
    // That all keys are revoked does not open the doors.
    let id = admin.split('_').nth(1).unwrap();
    record::revoke(&*store, id).await.unwrap();
    while there.short(&admin, "GET /api/v1/status", "", "").await != "401 unauthenticated" {
        tokio::task::yield_now().await;
    }
    assert_eq!(there.short("", "GET /api/v1/status", "", "").await, "401 unauthenticated");
}

#[tokio::test]
async fn beyond_this_machine_a_key_is_needed() {
    let store = memory().await;
    let start = async |process: &str| {
        let mut manifest = manifest(&[("x", "127.0.0.1:9".parse().unwrap(), "")], process);
        manifest.process.listen = vec!["0.0.0.0:0".parse().unwrap()];
        let options = Options { store: Some(store.clone()), ..Options::default() };
        toolyard_server::start(&manifest, &options).await.map(drop)
    };
    let refused = start("").await;
    assert!(matches!(refused, Err(StartError::Unauthenticated(_))), "{refused:?}");
    start("allowUnauthenticated: true").await.unwrap();
    let yard = Yard::with(store.clone(), "").await;
    yard.key_for("rest").await;
    start("").await.unwrap();
}

#[tokio::test]
async fn who_shows_a_key_where_none_is_needed_has_what_it_opens() {
    let yard = Yard::start("allowUnauthenticated: true").await;
    let key = yard.key_for("tools:search").await;
    assert_eq!(yard.short("", "POST /mcp", LIST, "/result/tools/2/name").await, "200 \"delete\"");
    assert_eq!(yard.short(&key, "POST /mcp", LIST, "/result/tools/1/name").await, "200 null");
    assert_eq!(yard.short(&key, "GET /api/v1/status", "", "").await, "403 denied");
}

#[tokio::test]
async fn a_quota_is_for_all_gateways_of_a_store() {
    let store = memory().await;
    let one = Yard::with(store.clone(), "").await;
    let other = Yard::with(store, "").await;
    let key = one.key(r#"{"name":"q","scopes":["tools:*","rest"],"calls":"7"}"#).await;
    let mut ran = 0;
    for number in 0..10 {
        let yard = if number % 2 == 0 { &one } else { &other };
        let said = yard.short(&key, "POST /api/v1/tools/search/call", "{}", "/content/0/text").await;
        match &*said {
            "200 \"found\"" => ran += 1,
            said => assert_eq!((said, ran), ("402 quota_exhausted", 7)),
        }
    }
    assert_eq!(ran, 7);
    let said = one.ask(&key, "POST /mcp", &call("search")).await.body;
    assert_snapshot!(said, @r#"
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The quota of 7 is used up","data":{"code":"quota_exhausted","reason":"The quota of 7 is used up","retryable":false}}}
    "#);
}

#[tokio::test]
async fn what_is_not_run_is_not_paid_for() {
    let yard = Yard::start("").await;
    let key = yard.key(r#"{"name":"q","scopes":["tools:*","rest"],"calls":"3","cost":"1"}"#).await;
    let call = async |line: &str, body: &str| yard.short(&key, line, body, "/content/0/text").await;
    // Nobody has it, it is not the tool's, the arguments do not fit.
    assert_eq!(call("POST /api/v1/tools/none/call", "{}").await, "404 tool_not_found");
    assert_eq!(call("POST /api/v1/tools/add/call", "{}").await, "400 invalid_arguments");
    assert_eq!(call("POST /api/v1/tools/add/call", r#"{"arguments":[]}"#).await, "400 invalid_arguments");
    // A tool that says that it failed was run.
    assert_eq!(call("POST /api/v1/tools/delete/call", "{}").await, "200 \"no\"");
    // `add` costs 0.5.
    assert_eq!(call("POST /api/v1/tools/add/call", r#"{"arguments":{"a":1}}"#).await, "200 \"2\"");
    assert_eq!(call("POST /api/v1/tools/add/call", r#"{"arguments":{"a":1}}"#).await, "200 \"2\"");
    assert_eq!(call("POST /api/v1/tools/search/call", "{}").await, "402 quota_exhausted");
}

#[tokio::test]
async fn what_a_tool_costs_is_taken_off() {
    let yard = Yard::start("").await;
    let key = yard.key(r#"{"name":"q","scopes":["tools:*","rest"],"cost":"1.2/week"}"#).await;
    let call = async |name: &str| {
        let line = format!("POST /api/v1/tools/{name}/call");
        yard.short(&key, &line, r#"{"arguments":{"a":1}}"#, "/content/0/text").await
    };
    assert_eq!(call("add").await, "200 \"2\"");
    assert_eq!(call("add").await, "200 \"2\"");
    assert_eq!(call("add").await, "402 quota_exhausted");
    // What costs nothing goes on.
    assert_eq!(call("search").await, "200 \"found\"");
}

#[tokio::test]
async fn who_calls_too_often_is_told_to_wait() {
    let yard = Yard::start("").await;
    let key = yard.key(r#"{"name":"q","scopes":["tools:*","rest"],"rate":"2/week"}"#).await;
    let call = async || yard.ask(&key, "POST /api/v1/tools/search/call", "{}").await;
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
    let yard = Yard::start("allowUnauthenticated: true").await;
    let admin = yard.key_for("admin").await;
    let listen = async |key: &str| {
        let mut connection = Connection::open(yard.running.address()).await;
        let request = format!("GET /sse HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n");
        connection.send(request.as_bytes()).await;
        connection
    };
    let key = yard.key_for("tools:*").await;
    let short = yard.key(r#"{"name":"short","scopes":["tools:*"],"expiresIn":1}"#).await;
    // The body ends, which it does not before.
    let (mut of_key, mut of_short) = (listen(&key).await, listen(&short).await);
    let expired = of_short.response().await.expect("a response");
    assert!(expired.body.starts_with("event: endpoint"), "{}", expired.body);
    let id = key.split('_').nth(1).unwrap();
    assert_eq!(yard.short(&admin, &format!("DELETE /api/v1/keys/{id}"), "", "/valid").await, "200 false");
    let revoked = of_key.response().await.expect("a response");
    assert!(revoked.body.starts_with("event: endpoint"), "{}", revoked.body);
}

#[tokio::test]
async fn doors_that_were_shut_do_not_open_when_the_keys_are_gone() {
    let store = memory().await;
    let yard = Yard::with(store.clone(), "timeouts: {keyCheck: 10ms}").await;
    let key = yard.key_for("rest tools:*").await;
    assert_eq!(yard.short(&key, "GET /api/v1/status", "", "/phase").await, "200 \"Ready\"");
    // As when a database is brought back from a copy.
    assert!(store.delete(record::KEYS, key.split('_').nth(1).unwrap()).await.unwrap());
    while yard.short(&key, "GET /api/v1/status", "", "").await != "401 unauthenticated" {
        tokio::task::yield_now().await;
    }
    assert_eq!(yard.short("", "GET /api/v1/status", "", "").await, "401 unauthenticated");
}

#[tokio::test]
async fn beyond_this_machine_an_empty_store_opens_nothing() {
    let ring = KeyRing::new(memory().await, Policy::Always);
    assert!(!ring.read().await.unwrap());
    assert!(matches!(ring.ask(None).await, Verdict::Closed));
    let ring = KeyRing::new(memory().await, Policy::OnceThereIsOne);
    assert!(matches!(ring.ask(None).await, Verdict::Open(_)));
}

#[tokio::test]
async fn streams_of_anybody_end_when_a_key_is_asked_for() {
    let yard = Yard::start("timeouts: {keyCheck: 10ms}").await;
    let mut connection = Connection::open(yard.running.address()).await;
    connection.send(b"GET /sse HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let stream = connection.stream().await;
    yard.key_for("rest").await;
    // It ends, which it does not before.
    assert!(stream.rest().await.starts_with("event: endpoint"));
}

#[tokio::test]
async fn a_page_that_may_call_may_read_why_it_is_refused() {
    let yard = Yard::start("allowedOrigins: ['https://app.example']").await;
    yard.key_for("rest").await;
    let check = async |origin: &str, expected: Option<&str>| {
        let headers = format!("origin: {origin}\r\n");
        let refused = yard.ask_with("ty_none", "GET /api/v1/status", &headers, "").await;
        assert_eq!(short(&refused, ""), "401 unauthenticated", "{origin}");
        assert_eq!(refused.head.header("access-control-allow-origin"), expected, "{origin}");
    };
    check("https://app.example", Some("https://app.example")).await;
    check("https://evil.example", None).await;
}

#[tokio::test]
async fn what_broke_off_is_paid_for() {
    let yard = Yard::start("").await;
    let key = yard.key(r#"{"name":"q","scopes":["tools:*","rest"],"calls":"2"}"#).await;
    let call = async || {
        let body = r#"{"arguments":{"q":"break"}}"#;
        yard.short(&key, "POST /api/v1/tools/search/call", body, "").await
    };
    assert_eq!(call().await, "503 unavailable");
    assert_eq!(call().await, "503 unavailable");
    assert_eq!(call().await, "402 quota_exhausted");
}
