//! Servers of HTTP+SSE behind the gateway: what passes, and what becomes of calls when the stream, or a message on its
//! way, is lost.

use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use toolyard_server::Running;

use crate::client::{Client, Speech};
use crate::sse_upstream::{Sessions, SseServer, Voice, accepted, good};
use crate::upstream::{Received, Reply, Upstream};
use crate::{entry, gateway_of};

type OnCall = fn(&Received, &Voice) -> Reply;

/// A gateway in front of a server that says one thing after the other.
struct Target {
    running: Running,
    upstream: Upstream,
    sessions: Sessions,
    saying: Arc<Mutex<OnCall>>,
}

impl Target {
    async fn start(process: &str) -> Self {
        Self::with("", process).await
    }

    async fn with(rest: &str, process: &str) -> Self {
        let saying: Arc<Mutex<OnCall>> = Arc::new(Mutex::new(good));
        let (say, sessions) = (saying.clone(), Sessions::default());
        let server = SseServer::new(&sessions, move |request, voice| (say.lock().unwrap())(request, voice));
        let upstream = Upstream::start(server);
        let running = gateway_of(&sse(&upstream, rest), process).await;
        Self { running, upstream, sessions, saying }
    }

    fn say(&self, saying: OnCall) {
        *self.saying.lock().unwrap() = saying;
    }

    /// What a caller gets when the server says this.
    async fn call(&self, saying: OnCall) -> String {
        self.say(saying);
        let mut client = Client::new(self.running.address(), Speech::Bare).await;
        let body = client.call("t", "{}").await.body;
        let start = r#"{"jsonrpc":"2.0","id":7,"#;
        body.strip_prefix(start).and_then(|body| body.strip_suffix('}')).unwrap().to_owned()
    }

    /// A line for each of the cases. After each of them the gateway still works.
    async fn table(&self, cases: &[(&str, OnCall)]) -> String {
        let mut lines = Vec::new();
        for (name, saying) in cases {
            lines.push(format!("{name}: {}", self.call(*saying).await));
            assert_eq!(self.call(good).await, GOOD, "after {name}");
        }
        lines.join("\n")
    }
}

const GOOD: &str = r#""result":{"good":1}"#;

/// A handler of the server's stream.
fn sse(upstream: &Upstream, rest: &str) -> String {
    entry("h", rest, &format!("transport: sse, endpoint: 'http://{}/sse'", upstream.address))
}

#[tokio::test]
async fn what_a_server_says_to_a_call() {
    let target = Target::start("limits: {responseBytes: 64KiB}").await;
    let cases: &[(&str, OnCall)] = &[
        ("before it has taken the message", |request, voice| {
            voice.result(request, "{}");
            Reply::never()
        }),
        ("200 and a body", |request, voice| {
            voice.result(request, "{}");
            Reply::json("{}")
        }),
        ("an error", |request, voice| {
            let error = r#""error":{"code":1,"message":"m","data":[1.10]}"#;
            voice.say(&format!(r#"{{"jsonrpc":"2.0","id":{},{error}}}"#, request.id()));
            accepted()
        }),
        ("in small pieces", |request, voice| {
            let event =
                format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\ndata: \"result\":{{}}}}\n\n", request.id());
            event.bytes().for_each(|byte| voice.raw(vec![byte]));
            accepted()
        }),
        ("behind other things", |request, voice| {
            voice.raw(": a comment\n\nevent: ping\ndata: now\n\nevent: message\ndata: oops\n\n");
            voice.say(r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#);
            voice.say(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
            voice.say(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#);
            voice.result(request, "{}");
            accepted()
        }),
        ("garbage with its id", |request, voice| {
            voice.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"x":NaN}}}}"#, request.id()));
            accepted()
        }),
        ("400", |_, _| Reply::http(400, "", "no")),
        ("401", |_, _| Reply::http(401, "", "")),
        ("302", |_, _| Reply::http(302, "location: http://localhost:1/\r\n", "")),
        ("503", |_, _| Reply::http(503, "", "")),
        ("a long refusal", |_, _| Reply::raw(format!("HTTP/1.1 500 Oops\r\n\r\n{}", "x".repeat(200_000)))),
        ("a broken connection", |_, _| Reply::raw("")),
    ];
    assert_snapshot!(target.table(cases).await, @r#"
    before it has taken the message: "result":{}
    200 and a body: "result":{}
    an error: "error":{"code":1,"message":"m","data":[1.10]}
    in small pieces: "result":{}
    behind other things: "result":{}
    garbage with its id: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    400: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"The server refused the request","retryable":false}}
    401: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"The server refused the request","retryable":false}}
    302: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"The server refused the request","retryable":false}}
    503: "error":{"code":-32603,"message":"The server failed to answer","data":{"code":"unavailable","reason":"The server failed to answer","retryable":true}}
    a long refusal: "error":{"code":-32603,"message":"The server failed to answer","data":{"code":"unavailable","reason":"The server failed to answer","retryable":true}}
    a broken connection: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    "#);
    let answers = |log: &crate::upstream::Log| {
        let answers = log.requests.iter().filter(|request| request.method().is_empty());
        answers.map(|request| request.body.clone()).collect::<Vec<_>>().join("\n")
    };
    let answers = target.upstream.saw(|log| log.count("") == 2, answers).await;
    assert_snapshot!(answers, @r#"
    {"jsonrpc":"2.0","id":"p","result":{}}
    {"jsonrpc":"2.0","id":"q","error":{"code":-32601,"message":"Method not found: roots/list"}}
    "#);
    assert_eq!(target.sessions.opened(), 1);
}

#[tokio::test]
async fn an_end_of_the_stream_fails_what_runs_at_once() {
    let target = Target::start("limits: {responseBytes: 64KiB}").await;
    target.say(|_, _| accepted());
    let calls = (0..3).map(|_| async {
        Client::new(target.running.address(), Speech::Bare).await.call("t", "{}").await.body
    });
    let end = async {
        target.upstream.saw(|log| log.count("tools/call") == 3, |_| ()).await;
        target.sessions.end();
    };
    let (failed, ()) = tokio::join!(futures_util::future::join_all(calls), end);
    for body in failed {
        assert!(body.contains("The connection to the server broke"), "{body}");
    }
    // The next one finds another stream.
    assert_eq!(target.call(good).await, GOOD);
    assert_eq!(target.sessions.opened(), 2);
}

#[tokio::test]
async fn what_is_larger_than_a_message_may_be_ends_the_stream() {
    let cases: [OnCall; 3] = [
        |_, voice| {
            voice.raw(format!("data: {}", "x".repeat(70_000)));
            accepted()
        },
        |_, voice| {
            voice.raw(format!(": {}", "x".repeat(70_000)));
            accepted()
        },
        |request, voice| {
            voice.result(request, &format!(r#"{{"x":"{}"}}"#, "x".repeat(70_000)));
            accepted()
        },
    ];
    for case in cases {
        let target = Target::start("limits: {responseBytes: 64KiB}").await;
        let said = target.call(case).await;
        assert!(said.contains("The connection to the server broke"), "{said}");
        assert_eq!(target.call(good).await, GOOD);
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_is_withdrawn() {
    let target = Target::with("timeout: 200ms,", "").await;
    let said = target.call(|_, _| accepted()).await;
    assert!(said.contains("The tool did not answer in time"), "{said}");
    let seen = |log: &crate::upstream::Log| log.count("notifications/cancelled") == 1;
    let ids = |log: &crate::upstream::Log| {
        (log.last("tools/call").id(), log.last("notifications/cancelled").params().get("requestId").text())
    };
    let (call, withdrawn) = target.upstream.saw(seen, ids).await;
    assert_eq!(call, withdrawn);
}

#[tokio::test]
async fn progress_is_for_its_own_call() {
    let target = Target::start("").await;
    target.say(|request, voice| {
        let token = request.params().get("_meta").get("progressToken").text();
        let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
        voice.say(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#));
        good(request, voice)
    });
    let client = Client::new(target.running.address(), Speech::Modern).await;
    let params = client.call_params("t", "{}", r#""progressToken":"mine""#);
    let mut stream = client.open("tools/call", &params).await;
    let notice = stream.message().await.unwrap();
    assert!(notice.contains(r#""progressToken":"mine","progress":1"#), "{notice}");
    let answer = stream.message().await.unwrap();
    assert!(answer.contains(r#""good":1"#), "{answer}");
}

#[tokio::test]
async fn a_server_says_that_its_list_has_changed() {
    let target = Target::start("").await;
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    target.sessions.get(1).unwrap().say(changed);
    target.upstream.saw(|log| log.count("tools/list") == 2, |_| ()).await;
}

/// Messages carry credentials, and are for nobody else.
#[tokio::test]
async fn an_endpoint_elsewhere_is_told_nothing() {
    let other = Upstream::start(|_: &Received| Reply::http(202, "", ""));
    let endpoints =
        [format!("http://{}/messages?session=NUMBER", other.address), "http://127.0.0.2/m".to_owned()];
    for endpoint in endpoints {
        let sessions = Sessions::default();
        let upstream = Upstream::start(SseServer::new(&sessions, good).calling_itself(endpoint.leak()));
        let running = gateway_of(&sse(&upstream, ""), "timeouts: {firstList: 500ms}").await;
        let tools = Client::new(running.address(), Speech::Bare).await.tools().await;
        assert!(tools.is_empty());
        assert!(sessions.opened() > 0);
    }
    assert_eq!(other.now(|log| log.requests.len()), 0);
}

/// A session that a server has forgotten, while its stream stays open.
#[tokio::test]
async fn a_forgotten_session_is_opened_anew() {
    let target = Target::start("").await;
    assert_eq!(target.call(good).await, GOOD);
    let open = target.sessions.forget();
    assert_eq!(target.call(good).await, GOOD);
    assert_eq!((open.len(), target.sessions.opened()), (1, 2));
}
