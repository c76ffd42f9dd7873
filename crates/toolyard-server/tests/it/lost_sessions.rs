//! Servers that lose a session and report it in any of the usual ways: the caller does not notice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::join_all;
use insta::assert_snapshot;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, ReplyScript, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra, but,
    initialized,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::gateway::gateway;

/// The reply of a server that does not know the session of a request.
type SessionRefusal = fn(&ReceivedRequest) -> ScriptedReply;

/// A server with one session at a time, which a test can make it forget.
struct ForgetfulServer {
    running: RunningGateway,
    upstream: TestUpstream,
    opened: Arc<AtomicUsize>,
    refusal: Arc<Mutex<SessionRefusal>>,
    current_session: Arc<AtomicUsize>,
}

impl ForgetfulServer {
    async fn start(call: impl ReplyScript) -> Self {
        let opened = Arc::new(AtomicUsize::new(0));
        let current_session = Arc::new(AtomicUsize::new(0));
        let refusal: Arc<Mutex<SessionRefusal>> = Arc::new(Mutex::new(|_| ScriptedReply::http(404, "", "")));
        let script = {
            let (opened, current_session, refusal) =
                (opened.clone(), current_session.clone(), refusal.clone());
            but(ScriptedUpstream::new(UpstreamEra::Legacy, &[TOOL], call), move |request| {
                if request.method() == "initialize" {
                    let number = opened.fetch_add(1, Ordering::SeqCst) + 1;
                    current_session.store(number, Ordering::SeqCst);
                    return Some(initialized(request, &format!("s{number}")));
                }
                let session = request.head.header("mcp-session-id")?;
                let is_known = session == format!("s{}", current_session.load(Ordering::SeqCst));
                (!is_known).then(|| (refusal.lock().unwrap())(request))
            })
        };
        let upstream = TestUpstream::start(script);
        let running = gateway(&[("h", upstream.address, "")], "").await;
        Self { running, upstream, opened, refusal, current_session }
    }

    fn forget(&self, refusal: SessionRefusal) {
        *self.refusal.lock().unwrap() = refusal;
        self.current_session.store(0, Ordering::SeqCst);
    }

    async fn call(&self) -> String {
        WireClient::new(self.running.address(), ClientMode::Bare).await.call("t", "{}").await.body
    }
}

fn good(request: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::result(request, r#"{"good":1}"#)
}

const GOOD: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"good":1}}"#;
const JSON: &str = "content-type: application/json\r\n";

/// An error response with this id, or with the id of the request.
fn error(
    request: &ReceivedRequest,
    status: u16,
    id: Option<&str>,
    code: i32,
    message: &str,
) -> ScriptedReply {
    let id = id.map_or_else(|| request.id(), str::to_owned);
    let error = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#);
    ScriptedReply::http(status, JSON, &error)
}

#[tokio::test]
async fn every_form() {
    let cases: &[(&str, SessionRefusal)] = &[
        ("404", |_| ScriptedReply::http(404, "", "")),
        ("404 and a page", |_| ScriptedReply::http(404, "content-type: text/html\r\n", "<h1>Not Found</h1>")),
        ("404, TypeScript", |r| error(r, 404, Some("null"), -32001, "Session not found")),
        ("404, Python", |r| error(r, 404, Some("\"server-error\""), -32600, "Session not found")),
        ("404 and the request's own id", |r| error(r, 404, None, -32001, "Session not found")),
        ("400 in words", |_| ScriptedReply::http(400, "", "Bad Request: No valid session ID provided")),
        ("400, TypeScript", |r| {
            error(r, 400, Some("null"), -32000, "Bad Request: No valid session ID provided")
        }),
        ("400 of a server that was restarted", |r| {
            error(r, 400, Some("null"), -32000, "Bad Request: Server not initialized")
        }),
        ("400 and the request's own id", |r| error(r, 400, None, -32000, "Invalid session ID")),
        ("410", |_| ScriptedReply::http(410, "", "session terminated")),
        ("500 in words", |_| ScriptedReply::http(500, "", "Unknown session")),
        ("200 and an error", |r| error(r, 200, None, -32001, "Session expired")),
        ("200 and an error on a stream", |r| {
            let error = r#"{"code":-32000,"message":"Session not found"}"#;
            let event = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}\n\n", r.id());
            ScriptedReply::events([Bytes::from(event)])
        }),
    ];
    for (name, refusal) in cases {
        let server = ForgetfulServer::start(good).await;
        assert_eq!(server.call().await, GOOD, "{name}");
        server.forget(*refusal);
        assert_eq!(server.call().await, GOOD, "{name}");
        assert_eq!(server.opened.load(Ordering::SeqCst), 2, "{name}");
        let last = server.upstream.now(|log| log.last("tools/call").clone());
        assert_eq!(last.head.header("mcp-session-id"), Some("s2"), "{name}");
    }
}

/// Similar errors are the answer to the call.
#[tokio::test]
async fn other_errors_are_forwarded() {
    let cases: &[SessionRefusal] = &[
        |r| error(r, 200, None, -32001, "Request timed out"),
        |r| error(r, 200, None, -32602, "session not found"),
        |r| error(r, 200, None, -32000, "Browser session not found: abc"),
        |r| error(r, 200, None, -32000, "Session not found: abc"),
        |r| error(r, 400, None, -32000, "No active session for this user"),
        |r| error(r, 400, Some("null"), -32600, "`session` is an invalid argument"),
        |r| error(r, 400, None, -32002, "Resource session://1 not found"),
        |r| {
            ScriptedReply::result(
                r,
                r#"{"isError":true,"content":[{"type":"text","text":"session not found"}]}"#,
            )
        },
    ];
    for case in cases {
        let server = ForgetfulServer::start(*case).await;
        assert_ne!(server.call().await, GOOD);
        let calls = server.upstream.now(|log| log.count("tools/call"));
        assert_eq!((calls, server.opened.load(Ordering::SeqCst)), (1, 1));
    }
}

#[tokio::test]
async fn concurrent_calls_reopen_a_lost_session_once() {
    const CALLERS: usize = 20;
    let server = ForgetfulServer::start(good).await;
    for round in 2..5 {
        server.forget(|_| ScriptedReply::http(404, "", ""));
        let bodies = join_all((0..CALLERS).map(|_| server.call())).await;
        assert!(bodies.iter().all(|body| body == GOOD), "{bodies:?}");
        assert_eq!(server.opened.load(Ordering::SeqCst), round);
    }
}

/// If the new session is refused too, the caller gets the error.
#[tokio::test]
async fn call_is_repeated_once_after_a_lost_session() {
    let server = ForgetfulServer::start(|request: &ReceivedRequest| {
        error(request, 404, None, -32001, "Session not found")
    })
    .await;
    assert_snapshot!(server.call().await, @r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"The server has ended the session","data":{"code":"unavailable","reason":"session ended by the server","retryable":true}}}"#);
    assert_eq!(server.upstream.now(|log| log.count("tools/call")), 2);
}

/// The gateway does not repeat a call that the server has begun to answer.
#[tokio::test]
async fn call_with_a_begun_response_is_not_repeated() {
    let server = ForgetfulServer::start(|request: &ReceivedRequest| {
        let token = request.params().get("_meta").get("progressToken").text();
        let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
        let notice = format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#);
        let error = r#"{"code":-32001,"message":"Session not found"}"#;
        let error = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, request.id());
        ScriptedReply::events([Bytes::from(format!("data: {notice}\n\ndata: {error}\n\n"))])
    })
    .await;
    let client = WireClient::new(server.running.address(), ClientMode::Modern).await;
    let params = client.call_params("t", "{}", r#""progressToken":1"#);
    let mut stream = client.open("tools/call", &params).await;
    let mut last = String::new();
    while let Some(message) = stream.message().await {
        last = message;
    }
    assert!(last.contains("The server has ended the session"), "{last}");
    assert_eq!(server.upstream.now(|log| log.count("tools/call")), 1);
}
