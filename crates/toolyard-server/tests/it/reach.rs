//! How servers over HTTP are reached: where they are found, what requests carry, which tools are served, and how often
//! a call is made.

use std::sync::atomic::{AtomicUsize, Ordering};

use insta::assert_snapshot;
use toolyard_server::Running;

use crate::client::{Client, Speech};
use crate::sse_upstream::{self, Sessions, SseServer};
use crate::upstream::{Era, Log, Received, Reply, Script, Server, TOOL, Upstream, but};
use crate::{entry, gateway_of};

fn good(request: &Received) -> Reply {
    Reply::result(request, r#"{"good":1}"#)
}

const GOOD: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"good":1}}"#;

async fn call(running: &Running) -> String {
    Client::new(running.address(), Speech::Bare).await.call("t", "{}").await.body
}

async fn names(running: &Running) -> String {
    let tools = Client::new(running.address(), Speech::Bare).await.tools().await;
    tools.iter().map(|tool| tool.get("name").plain()).collect::<Vec<_>>().join(" ")
}

/// The path of a request.
fn path(request: &Received) -> &str {
    request.head.start.split(' ').nth(1).unwrap_or_default()
}

/// A server that is at one path only.
fn only_at(at: &'static str, server: impl Script) -> impl Script {
    move |request: &Received| match path(request) {
        path if path == at || path.starts_with("/messages") => server.reply(request),
        _ => Reply::http(404, "", "not found"),
    }
}

/// Starts a gateway in front of a server and calls it; gives what the server was asked, up to `tools/list`.
async fn asked(transport: &str, path: &str, script: impl Script) -> String {
    let upstream = Upstream::start(script);
    let config = format!("transport: {transport}, endpoint: 'http://{}{path}'", upstream.address);
    let running = gateway_of(&entry("h", "", &config), "timeouts: {eraProbe: 300ms}").await;
    assert_eq!(call(&running).await, GOOD, "{transport} {path}");
    let line = |request: &Received| {
        let start: Vec<_> = request.head.start.split(' ').take(2).collect();
        format!("{} {}", start.join(" "), request.method())
    };
    upstream.now(|log| {
        let asked = log.requests.iter().take_while(|request| request.method() != "tools/list");
        asked
            .filter(|request| request.method() != "subscriptions/listen")
            .map(line)
            .collect::<Vec<_>>()
            .join("\n")
    })
}

fn sse() -> SseServer {
    SseServer::new(&Sessions::default(), sse_upstream::good)
}

fn streamable(era: Era) -> Server {
    Server::new(era, &[TOOL], good)
}

#[tokio::test]
async fn the_other_transport_is_tried() {
    assert_snapshot!(asked("streamable-http", "/x", only_at("/x", sse())).await, @"
    POST /x server/discover
    POST /x initialize
    GET /x GET
    POST /messages?session=1 initialize
    POST /messages?session=1 notifications/initialized
    ");
    assert_snapshot!(asked("sse", "/x", streamable(Era::Modern)).await, @"
    GET /x GET
    POST /x server/discover
    ");
    let with_streams = only_at(
        "/x",
        but(streamable(Era::Legacy), |request| {
            // Some open a stream to whoever asks, and say nothing on it.
            let is_first = request.method() == "GET" && request.head.header("mcp-session-id").is_none();
            is_first.then(|| Reply::live("text/event-stream", futures_util::stream::empty()))
        }),
    );
    assert_snapshot!(asked("sse", "/x", with_streams).await, @"
    GET /x GET
    POST /x server/discover
    POST /x initialize
    POST /x notifications/initialized
    ");
}

#[tokio::test]
async fn a_url_without_a_path_stands_for_the_usual_one() {
    assert_snapshot!(asked("streamable-http", "", only_at("/mcp", streamable(Era::Modern))).await, @"POST /mcp server/discover");
    assert_snapshot!(asked("streamable-http", "/", only_at("/", streamable(Era::Legacy))).await, @"
    POST /mcp server/discover
    POST /mcp initialize
    POST / server/discover
    POST / initialize
    POST / notifications/initialized
    ");
    assert_snapshot!(asked("sse", "", only_at("/sse", sse())).await, @"
    GET /sse GET
    POST /messages?session=1 initialize
    POST /messages?session=1 notifications/initialized
    ");
    assert_snapshot!(asked("sse", "", only_at("/mcp", streamable(Era::Modern))).await, @"
    GET /sse GET
    GET / GET
    POST /mcp server/discover
    ");
}

#[tokio::test]
async fn where_a_server_was_found_is_remembered() {
    let sessions = Sessions::default();
    let upstream = Upstream::start(only_at("/", SseServer::new(&sessions, sse_upstream::good)));
    let config = format!("transport: streamable-http, endpoint: 'http://{}'", upstream.address);
    let running = gateway_of(&entry("h", "", &config), "").await;
    let before = upstream.now(|log| log.requests.len());
    sessions.end();
    upstream.saw(|log| log.count("tools/list") == 2, |_| ()).await;
    let next = upstream.now(|log| log.requests[before].head.start.clone());
    assert_eq!((next.as_str(), call(&running).await.as_str()), ("GET / HTTP/1.1", GOOD));
}

#[tokio::test]
async fn a_server_that_refuses_is_not_looked_for_elsewhere() {
    for status in [401, 403, 500, 302] {
        let upstream = Upstream::start(move |_: &Received| Reply::http(status, "location: /other\r\n", ""));
        let config = format!("transport: streamable-http, endpoint: 'http://{}'", upstream.address);
        let _running = gateway_of(&entry("h", "", &config), "timeouts: {firstList: 100ms}").await;
        let paths = upstream.saw(
            |log| log.count("initialize") > 0,
            |log| log.requests.iter().map(|request| path(request).to_owned()).collect::<Vec<_>>(),
        );
        assert!(paths.await.iter().all(|path| path == "/mcp"));
    }
}

/// What every request of a handler carries.
fn carried(log: &Log) -> Vec<String> {
    let line = |request: &Received| {
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
    let upstream = Upstream::start(but(streamable(Era::Legacy), |request| {
        (request.method() == "DELETE").then(|| Reply::http(204, "", ""))
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
    let upstream = Upstream::start(sse());
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
async fn a_redirect_takes_no_credentials_anywhere() {
    let other = Upstream::start(|_: &Received| Reply::http(200, "", "{}"));
    let location = format!("location: http://{}/mcp\r\n", other.address);
    let upstream = Upstream::start(move |_: &Received| Reply::http(307, &location, ""));
    let auth = "auth: {type: bearer, token: secret},";
    let config = format!("transport: streamable-http, endpoint: 'http://{}/mcp'", upstream.address);
    let running = gateway_of(&entry("h", auth, &config), "timeouts: {firstList: 100ms}").await;
    upstream.saw(|log| log.count("initialize") == 1, |_| ()).await;
    assert_eq!((names(&running).await.as_str(), other.now(|log| log.requests.len())), ("", 0));
}

#[tokio::test]
async fn only_tools_that_pass_the_filter_are_there() {
    let tools = ["a", "A", "b", "c"].map(|name| format!(r#"{{"name":"{name}"}}"#));
    let tools: Vec<_> = tools.iter().map(String::as_str).collect();
    let upstream = Upstream::start(Server::new(Era::Modern, &tools, good));
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
        let hidden = Client::new(running.address(), Speech::Bare).await.call("d", "{}").await.body;
        assert!(hidden.contains("Unknown tool"), "{hidden}");
    }
}

/// A server whose connection breaks for the first calls, so many of them; gives how many came, and what was said.
async fn broken(times: usize, handler: &str, how: fn(&Received) -> Reply) -> (usize, String) {
    let broken = AtomicUsize::new(0);
    let upstream = Upstream::start(Server::new(Era::Modern, &[TOOL], move |request: &Received| {
        if broken.fetch_add(1, Ordering::SeqCst) < times { how(request) } else { good(request) }
    }));
    let config = format!("transport: streamable-http, endpoint: 'http://{}/mcp'", upstream.address);
    let running = gateway_of(&entry("h", handler, &config), "").await;
    let said = call(&running).await;
    (upstream.now(|log| log.count("tools/call")), said)
}

#[tokio::test]
async fn calls_are_tried_again_where_the_manifest_says_so() {
    let reset: fn(&Received) -> Reply = |_| Reply::raw("");
    let begun: fn(&Received) -> Reply = |_| Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"json");
    let busy: fn(&Received) -> Reply = |_| Reply::http(503, "", "");
    let policy = "retryPolicy: {maxAttempts: 3, initialBackoff: 1ms},";
    assert_eq!(broken(2, policy, reset).await, (3, GOOD.to_owned()));
    assert_eq!(broken(1, "retries: 1,", reset).await, (2, GOOD.to_owned()));
    let (calls, said) = broken(9, policy, reset).await;
    assert_eq!(calls, 3);
    assert!(said.contains("3 attempts exhausted: The connection to the server broke"), "{said}");
    for (policy, how) in [("", reset), (policy, begun), (policy, busy)] {
        let (calls, said) = broken(1, policy, how).await;
        assert_eq!(calls, 1);
        assert!(!said.contains("exhausted") && said != GOOD, "{said}");
    }
}
