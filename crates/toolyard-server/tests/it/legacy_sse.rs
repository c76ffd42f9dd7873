//! Upstreams of HTTP+SSE: forwarded calls, and calls whose stream or message is lost.

use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::gateway::{entry, gateway_of};
use crate::sse_upstream::{SessionStream, SseServer, SseSessions, accepted, good};

type SseFault = fn(&ReceivedRequest, &SessionStream) -> ScriptedReply;

/// A gateway in front of a server whose replies the test exchanges.
struct FaultySseUpstream {
    running: RunningGateway,
    upstream: TestUpstream,
    sessions: SseSessions,
    saying: Arc<Mutex<SseFault>>,
}

impl FaultySseUpstream {
    async fn start(process: &str) -> Self {
        Self::with("", process).await
    }

    async fn with(rest: &str, process: &str) -> Self {
        let saying: Arc<Mutex<SseFault>> = Arc::new(Mutex::new(good));
        let (say, sessions) = (saying.clone(), SseSessions::default());
        let server = SseServer::new(&sessions, move |request, voice| (say.lock().unwrap())(request, voice));
        let upstream = TestUpstream::start(server);
        let running = gateway_of(&sse(&upstream, rest), process).await;
        Self { running, upstream, sessions, saying }
    }

    fn say(&self, saying: SseFault) {
        *self.saying.lock().unwrap() = saying;
    }

    /// The caller's answer when the server replies like this.
    async fn call(&self, saying: SseFault) -> String {
        self.say(saying);
        let mut client = WireClient::new(self.running.address(), ClientMode::Bare).await;
        let body = client.call("t", "{}").await.body;
        let start = r#"{"jsonrpc":"2.0","id":7,"#;
        body.strip_prefix(start).and_then(|body| body.strip_suffix('}')).unwrap().to_owned()
    }

    /// One line for each case. Checks after each case that the gateway still works.
    async fn table(&self, cases: &[(&str, SseFault)]) -> String {
        let mut lines = Vec::new();
        for (name, saying) in cases {
            lines.push(format!("{name}: {}", self.call(*saying).await));
            assert_eq!(self.call(good).await, GOOD, "after {name}");
        }
        lines.join("\n")
    }
}

const GOOD: &str = r#""result":{"good":1}"#;

/// The manifest entry of a handler for this server.
fn sse(upstream: &TestUpstream, rest: &str) -> String {
    entry("h", rest, &format!("transport: sse, endpoint: 'http://{}/sse'", upstream.address))
}

#[tokio::test]
async fn replies_to_a_call() {
    let target = FaultySseUpstream::start("limits: {responseBytes: 64KiB}").await;
    let cases: &[(&str, SseFault)] = &[
        ("before the message is accepted", |request, voice| {
            voice.result(request, "{}");
            ScriptedReply::never()
        }),
        ("200 and a body", |request, voice| {
            voice.result(request, "{}");
            ScriptedReply::json("{}")
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
        ("after other events", |request, voice| {
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
        ("400", |_, _| ScriptedReply::http(400, "", "no")),
        ("401", |_, _| ScriptedReply::http(401, "", "")),
        ("302", |_, _| ScriptedReply::http(302, "location: http://localhost:1/\r\n", "")),
        ("503", |_, _| ScriptedReply::http(503, "", "")),
        ("a long refusal", |_, _| {
            ScriptedReply::raw(format!("HTTP/1.1 500 Oops\r\n\r\n{}", "x".repeat(200_000)))
        }),
        ("a broken connection", |_, _| ScriptedReply::raw("")),
    ];
    assert_snapshot!(target.table(cases).await, @r#"
    before the message is accepted: "result":{}
    200 and a body: "result":{}
    an error: "error":{"code":1,"message":"m","data":[1.10]}
    in small pieces: "result":{}
    after other events: "result":{}
    garbage with its id: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"the answer is not an MCP message","retryable":false}}
    400: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"HTTP status 400","retryable":false}}
    401: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"HTTP status 401","retryable":false}}
    302: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"HTTP status 302","retryable":false}}
    503: "error":{"code":-32603,"message":"The server failed to answer","data":{"code":"unavailable","reason":"HTTP status 503","retryable":true}}
    a long refusal: "error":{"code":-32603,"message":"The server failed to answer","data":{"code":"unavailable","reason":"HTTP status 500","retryable":true}}
    a broken connection: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"connection closed","retryable":true}}
    "#);
    let answers = |log: &toolyard_testing::upstream::RequestLog| {
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
async fn end_of_the_stream_fails_running_calls_at_once() {
    let target = FaultySseUpstream::start("limits: {responseBytes: 64KiB}").await;
    target.say(|_, _| accepted());
    let calls = (0..3).map(|_| async {
        WireClient::new(target.running.address(), ClientMode::Bare).await.call("t", "{}").await.body
    });
    let end = async {
        target.upstream.saw(|log| log.count("tools/call") == 3, |_| ()).await;
        target.sessions.end();
    };
    let (failed, ()) = tokio::join!(futures_util::future::join_all(calls), end);
    for body in failed {
        assert!(body.contains("The connection to the server broke"), "{body}");
    }
    // The next call opens a new stream.
    assert_eq!(target.call(good).await, GOOD);
    assert_eq!(target.sessions.opened(), 2);
}

#[tokio::test]
async fn oversized_message_ends_the_stream() {
    let cases: [SseFault; 3] = [
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
        let target = FaultySseUpstream::start("limits: {responseBytes: 64KiB}").await;
        let answer = target.call(case).await;
        assert!(answer.contains("The connection to the server broke"), "{answer}");
        assert_eq!(target.call(good).await, GOOD);
    }
}

#[tokio::test]
async fn timed_out_call_is_cancelled() {
    let target = FaultySseUpstream::with("timeout: 200ms,", "").await;
    let answer = target.call(|_, _| accepted()).await;
    assert!(answer.contains("The tool did not answer in time"), "{answer}");
    let seen = |log: &toolyard_testing::upstream::RequestLog| log.count("notifications/cancelled") == 1;
    let ids = |log: &toolyard_testing::upstream::RequestLog| {
        (log.last("tools/call").id(), log.last("notifications/cancelled").params().get("requestId").text())
    };
    let (call, withdrawn) = target.upstream.saw(seen, ids).await;
    assert_eq!(call, withdrawn);
}

#[tokio::test]
async fn progress_reaches_its_own_call() {
    let target = FaultySseUpstream::start("").await;
    target.say(|request, voice| {
        let token = request.params().get("_meta").get("progressToken").text();
        let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
        voice.say(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#));
        good(request, voice)
    });
    let client = WireClient::new(target.running.address(), ClientMode::Modern).await;
    let params = client.call_params("t", "{}", r#""progressToken":"mine""#);
    let mut stream = client.open("tools/call", &params).await;
    let notice = stream.message().await.unwrap();
    assert!(notice.contains(r#""progressToken":"mine","progress":1"#), "{notice}");
    let answer = stream.message().await.unwrap();
    assert!(answer.contains(r#""good":1"#), "{answer}");
}

#[tokio::test]
async fn list_change_of_an_sse_server_is_noticed() {
    let target = FaultySseUpstream::start("").await;
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    target.sessions.get(1).unwrap().say(changed);
    target.upstream.saw(|log| log.count("tools/list") == 2, |_| ()).await;
}

/// Messages carry credentials, so the gateway sends them to no other origin.
#[tokio::test]
async fn endpoint_of_another_origin_is_refused() {
    let other = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::http(202, "", ""));
    let endpoints =
        [format!("http://{}/messages?session=NUMBER", other.address), "http://127.0.0.2/m".to_owned()];
    for endpoint in endpoints {
        let sessions = SseSessions::default();
        let upstream = TestUpstream::start(SseServer::new(&sessions, good).calling_itself(endpoint.leak()));
        let running = gateway_of(&sse(&upstream, ""), "timeouts: {firstList: 500ms}").await;
        let tools = WireClient::new(running.address(), ClientMode::Bare).await.tools().await;
        assert!(tools.is_empty());
        assert!(sessions.opened() > 0);
    }
    assert_eq!(other.now(|log| log.requests.len()), 0);
}

/// The server forgets a session while its stream stays open.
#[tokio::test]
async fn forgotten_session_is_reopened() {
    let target = FaultySseUpstream::start("").await;
    assert_eq!(target.call(good).await, GOOD);
    let open = target.sessions.forget();
    assert_eq!(target.call(good).await, GOOD);
    assert_eq!((open.len(), target.sessions.opened()), (1, 2));
}
