//! Upstreams over HTTP: detection of the transport, credentials of requests, filters of tools, and retries of calls.

use std::sync::atomic::{AtomicUsize, Ordering};

use insta::assert_snapshot;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, ReplyScript, RequestLog, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream,
    UpstreamEra, but,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::gateway::{entry, gateway_of};
use crate::sse_upstream::{self, SseServer, SseSessions};

fn good(request: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::result(request, r#"{"good":1}"#)
}

const GOOD: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"good":1}}"#;

async fn call(running: &RunningGateway) -> String {
    WireClient::new(running.address(), ClientMode::Bare).await.call("t", "{}").await.body
}

async fn names(running: &RunningGateway) -> String {
    let tools = WireClient::new(running.address(), ClientMode::Bare).await.tools().await;
    tools.iter().map(|tool| tool.get("name").plain()).collect::<Vec<_>>().join(" ")
}

/// The path of a request.
fn path(request: &ReceivedRequest) -> &str {
    request.head.start.split(' ').nth(1).unwrap_or_default()
}

/// A server at a single path.
fn only_at(at: &'static str, server: impl ReplyScript) -> impl ReplyScript {
    move |request: &ReceivedRequest| match path(request) {
        path if path == at || path.starts_with("/messages") => server.reply(request),
        _ => ScriptedReply::http(404, "", "not found"),
    }
}

/// Starts a gateway in front of a server and makes a call; returns the requests before `tools/list`.
async fn requests_before_list(transport: &str, path: &str, script: impl ReplyScript) -> String {
    let upstream = TestUpstream::start(script);
    let config = format!("transport: {transport}, endpoint: 'http://{}{path}'", upstream.address);
    let running = gateway_of(&entry("h", "", &config), "timeouts: {eraProbe: 300ms}").await;
    assert_eq!(call(&running).await, GOOD, "{transport} {path}");
    let line = |request: &ReceivedRequest| {
        let start: Vec<_> = request.head.start.split(' ').take(2).collect();
        format!("{} {}", start.join(" "), request.method())
    };
    upstream.now(|log| {
        let requests = log.requests.iter().take_while(|request| request.method() != "tools/list");
        requests
            .filter(|request| request.method() != "subscriptions/listen")
            .map(line)
            .collect::<Vec<_>>()
            .join("\n")
    })
}

fn sse() -> SseServer {
    SseServer::new(&SseSessions::default(), sse_upstream::good)
}

fn streamable(era: UpstreamEra) -> ScriptedUpstream {
    ScriptedUpstream::new(era, &[TOOL], good)
}

#[tokio::test]
async fn other_transport_is_tried() {
    assert_snapshot!(requests_before_list("streamable-http", "/x", only_at("/x", sse())).await, @"
    POST /x server/discover
    POST /x initialize
    GET /x GET
    POST /messages?session=1 initialize
    POST /messages?session=1 notifications/initialized
    ");
    assert_snapshot!(requests_before_list("sse", "/x", streamable(UpstreamEra::Modern)).await, @"
    GET /x GET
    POST /x server/discover
    ");
    let with_streams = only_at(
        "/x",
        but(streamable(UpstreamEra::Legacy), |request| {
            // Some servers open an empty stream for any GET request.
            let is_first = request.method() == "GET" && request.head.header("mcp-session-id").is_none();
            is_first.then(|| ScriptedReply::live("text/event-stream", futures_util::stream::empty()))
        }),
    );
    assert_snapshot!(requests_before_list("sse", "/x", with_streams).await, @"
    GET /x GET
    POST /x server/discover
    POST /x initialize
    POST /x notifications/initialized
    ");
}

#[tokio::test]
async fn url_without_a_path_uses_the_default_path() {
    assert_snapshot!(requests_before_list("streamable-http", "", only_at("/mcp", streamable(UpstreamEra::Modern))).await, @"POST /mcp server/discover");
    assert_snapshot!(requests_before_list("streamable-http", "/", only_at("/", streamable(UpstreamEra::Legacy))).await, @"
    POST /mcp server/discover
    POST /mcp initialize
    POST / server/discover
    POST / initialize
    POST / notifications/initialized
    ");
    assert_snapshot!(requests_before_list("sse", "", only_at("/sse", sse())).await, @"
    GET /sse GET
    POST /messages?session=1 initialize
    POST /messages?session=1 notifications/initialized
    ");
    assert_snapshot!(requests_before_list("sse", "", only_at("/mcp", streamable(UpstreamEra::Modern))).await, @"
    GET /sse GET
    GET / GET
    POST /mcp server/discover
    ");
}

#[tokio::test]
async fn detected_path_is_remembered() {
    let sessions = SseSessions::default();
    let upstream = TestUpstream::start(only_at("/", SseServer::new(&sessions, sse_upstream::good)));
    let config = format!("transport: streamable-http, endpoint: 'http://{}'", upstream.address);
    let running = gateway_of(&entry("h", "", &config), "").await;
    let before = upstream.now(|log| log.requests.len());
    sessions.end();
    upstream.saw(|log| log.count("tools/list") == 2, |_| ()).await;
    let next = upstream.now(|log| log.requests[before].head.start.clone());
    assert_eq!((next.as_str(), call(&running).await.as_str()), ("GET / HTTP/1.1", GOOD));
}

#[tokio::test]
async fn refusing_server_is_not_tried_at_other_paths() {
    for status in [401, 403, 500, 302] {
        let upstream = TestUpstream::start(move |_: &ReceivedRequest| {
            ScriptedReply::http(status, "location: /other\r\n", "")
        });
        let config = format!("transport: streamable-http, endpoint: 'http://{}'", upstream.address);
        let _running = gateway_of(&entry("h", "", &config), "timeouts: {firstList: 100ms}").await;
        let paths = upstream.saw(
            |log| log.count("initialize") > 0,
            |log| log.requests.iter().map(|request| path(request).to_owned()).collect::<Vec<_>>(),
        );
        assert!(paths.await.iter().all(|path| path == "/mcp"));
    }
}

/// The credentials in each request of a handler.
fn carried(log: &RequestLog) -> Vec<String> {
    let line = |request: &ReceivedRequest| {
        let header = |name| request.head.header(name).unwrap_or("-").to_owned();
        format!("{}: {} {}", request.method(), header("authorization"), header("x-key"))
    };
    let mut lines: Vec<_> = log.requests.iter().map(line).collect();
    lines.sort();
    lines.dedup();
    lines
}

#[tokio::test]
async fn credentials_go_with_every_request() {
    let secrets = tempfile::TempDir::new().unwrap();
    let file = secrets.path().join("token");
    std::fs::write(&file, "old\n").unwrap();
    let auth = format!("auth: {{type: bearer, token: 'file:{}'}},", file.display());
    let headers = "headers: {X-Key: k, Authorization: mine}";
    let upstream = TestUpstream::start(but(streamable(UpstreamEra::Legacy), |request| {
        (request.method() == "DELETE").then(|| ScriptedReply::http(204, "", ""))
    }));
    let config =
        format!("transport: streamable-http, endpoint: 'http://{}/mcp', {headers}", upstream.address);
    let running = gateway_of(&entry("h", &auth, &config), "").await;
    assert_eq!(call(&running).await, GOOD);
    upstream.saw(|log| log.count("GET") == 1, |_| ()).await;
    std::fs::write(&file, "new\n").unwrap();
    assert_eq!(call(&running).await, GOOD);
    running.stop().await;
    let carried = upstream.saw(|log| log.count("DELETE") == 1, carried).await;
    assert_snapshot!(carried.join("\n"), @"
    DELETE: Bearer new k
    GET: Bearer old k
    initialize: Bearer old k
    notifications/initialized: Bearer old k
    server/discover: Bearer old k
    tools/call: Bearer new k
    tools/call: Bearer old k
    tools/list: Bearer old k
    ");
}

#[tokio::test]
async fn credentials_go_with_every_message_of_the_other_transport() {
    let upstream = TestUpstream::start(sse());
    let auth = "auth: {type: basic, token: 'me:secret'},";
    let config =
        format!("transport: sse, endpoint: 'http://{}/sse', headers: {{X-Key: k}}", upstream.address);
    let running = gateway_of(&entry("h", auth, &config), "").await;
    assert_eq!(call(&running).await, GOOD);
    assert_snapshot!(upstream.now(carried).join("\n"), @"
    GET: Basic bWU6c2VjcmV0 k
    initialize: Basic bWU6c2VjcmV0 k
    notifications/initialized: Basic bWU6c2VjcmV0 k
    tools/call: Basic bWU6c2VjcmV0 k
    tools/list: Basic bWU6c2VjcmV0 k
    ");
}

#[tokio::test]
async fn redirect_gets_no_credentials() {
    let other = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::http(200, "", "{}"));
    let location = format!("location: http://{}/mcp\r\n", other.address);
    let upstream = TestUpstream::start(move |_: &ReceivedRequest| ScriptedReply::http(307, &location, ""));
    let auth = "auth: {type: bearer, token: secret},";
    let config = format!("transport: streamable-http, endpoint: 'http://{}/mcp'", upstream.address);
    let running = gateway_of(&entry("h", auth, &config), "timeouts: {firstList: 100ms}").await;
    upstream.saw(|log| log.count("initialize") == 1, |_| ()).await;
    assert_eq!((names(&running).await.as_str(), other.now(|log| log.requests.len())), ("", 0));
}

#[tokio::test]
async fn tool_filter_is_applied() {
    let tools = ["a", "A", "b", "c"].map(|name| format!(r#"{{"name":"{name}"}}"#));
    let tools: Vec<_> = tools.iter().map(String::as_str).collect();
    let upstream = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &tools, good));
    for (filter, expect) in [
        ("{}", "a A b c"),
        ("{allowlist: [a, c, d]}", "a c"),
        ("{blocklist: [a, c, d]}", "A b"),
        ("{allowlist: [b], blocklist: [b, a]}", "b"),
    ] {
        let endpoint = format!("endpoint: 'http://{}/mcp'", upstream.address);
        let config = format!("transport: streamable-http, {endpoint}, toolFilter: {filter}");
        let running = gateway_of(&entry("h", "", &config), "").await;
        assert_eq!(names(&running).await, expect, "{filter}");
        let hidden = WireClient::new(running.address(), ClientMode::Bare).await.call("d", "{}").await.body;
        assert!(hidden.contains("Unknown tool"), "{hidden}");
    }
}

/// A server whose connection breaks for the first `times` calls. Returns the number of calls, and the caller's answer.
async fn call_broken_server(
    times: usize,
    handler: &str,
    how: fn(&ReceivedRequest) -> ScriptedReply,
) -> (usize, String) {
    let call_broken_server = AtomicUsize::new(0);
    let upstream = TestUpstream::start(ScriptedUpstream::new(
        UpstreamEra::Modern,
        &[TOOL],
        move |request: &ReceivedRequest| {
            if call_broken_server.fetch_add(1, Ordering::SeqCst) < times {
                how(request)
            } else {
                good(request)
            }
        },
    ));
    let config = format!("transport: streamable-http, endpoint: 'http://{}/mcp'", upstream.address);
    let running = gateway_of(&entry("h", handler, &config), "").await;
    let answer = call(&running).await;
    (upstream.now(|log| log.count("tools/call")), answer)
}

#[tokio::test]
async fn calls_are_retried_per_the_manifest() {
    let reset: fn(&ReceivedRequest) -> ScriptedReply = |_| ScriptedReply::raw("");
    let truncated: fn(&ReceivedRequest) -> ScriptedReply =
        |_| ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"json");
    let busy: fn(&ReceivedRequest) -> ScriptedReply = |_| ScriptedReply::http(503, "", "");
    let policy = "retryPolicy: {maxAttempts: 3, initialBackoff: 1ms},";
    assert_eq!(call_broken_server(2, policy, reset).await, (3, GOOD.to_owned()));
    assert_eq!(call_broken_server(1, "retries: 1,", reset).await, (2, GOOD.to_owned()));
    let (calls, answer) = call_broken_server(9, policy, reset).await;
    assert_eq!(calls, 3);
    assert!(answer.contains("3 attempts exhausted: The connection to the server broke"), "{answer}");
    for (policy, how) in [("", reset), (policy, truncated), (policy, busy)] {
        let (calls, answer) = call_broken_server(1, policy, how).await;
        assert_eq!(calls, 1);
        assert!(!answer.contains("exhausted") && answer != GOOD, "{answer}");
    }
}
