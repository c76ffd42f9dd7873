//! Upstreams that break the protocol, their connections or their limits: the caller gets an error that names the fault,
//! and the next call succeeds.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use insta::assert_snapshot;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, RequestLog, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::gateway::gateway;

/// The reply of a server to a call.
type CallScript = fn(&ReceivedRequest) -> ScriptedReply;

/// A gateway in front of a server whose replies the test exchanges.
struct FaultyUpstream {
    running: RunningGateway,
    upstream: TestUpstream,
    reply: Arc<Mutex<CallScript>>,
}

fn good(request: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::result(request, r#"{"good":1}"#)
}

impl FaultyUpstream {
    async fn start(era: UpstreamEra, process: &str) -> Self {
        Self::with(era, "", process).await
    }

    async fn with(era: UpstreamEra, handler: &str, process: &str) -> Self {
        let reply: Arc<Mutex<CallScript>> = Arc::new(Mutex::new(good));
        let say = reply.clone();
        let server = ScriptedUpstream::new(era, &[TOOL], move |request: &ReceivedRequest| {
            (say.lock().unwrap())(request)
        });
        let upstream = TestUpstream::start(server);
        let running = gateway(&[("h", upstream.address, handler)], process).await;
        Self { running, upstream, reply }
    }

    /// The caller's answer when the server replies like this.
    async fn call(&self, reply: CallScript) -> String {
        *self.reply.lock().unwrap() = reply;
        let mut client = WireClient::new(self.running.address(), ClientMode::Bare).await;
        let response = client.call("t", "{}").await;
        assert_eq!(response.head.status(), 200);
        let start = r#"{"jsonrpc":"2.0","id":7,"#;
        response.body.strip_prefix(start).and_then(|body| body.strip_suffix('}')).unwrap().to_owned()
    }

    /// One line for each case. Checks after each case that the gateway still works.
    async fn table(&self, cases: &[(&str, CallScript)]) -> String {
        let mut lines = Vec::new();
        for (name, reply) in cases {
            lines.push(format!("{name}: {}", self.call(*reply).await));
            assert_eq!(self.call(good).await, r#""result":{"good":1}"#, "after {name}");
        }
        lines.join("\n")
    }
}

/// A response with these members after `jsonrpc` and `id`.
fn response_with(request: &ReceivedRequest, members: &str) -> ScriptedReply {
    ScriptedReply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},{members}}}"#, request.id()))
}

#[tokio::test]
async fn answers() {
    let target = FaultyUpstream::start(UpstreamEra::Modern, "").await;
    let cases: &[(&str, CallScript)] = &[
        ("garbage", |_| ScriptedReply::json("oops")),
        ("nothing", |_| ScriptedReply::json("")),
        ("an array", |_| ScriptedReply::json("[]")),
        ("the id of another request", |_| ScriptedReply::json(r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#)),
        ("the id as a string", |r| {
            ScriptedReply::json(&format!(r#"{{"jsonrpc":"2.0","id":"{}","result":{{}}}}"#, r.id()))
        }),
        ("a request", |r| response_with(r, r#""method":"ping""#)),
        ("no jsonrpc", |r| ScriptedReply::json(&format!(r#"{{"id":{},"result":{{}}}}"#, r.id()))),
        ("a result that is an array", |r| response_with(r, r#""result":[]"#)),
        ("a result that is null", |r| response_with(r, r#""result":null"#)),
        ("a result with a member twice", |r| response_with(r, r#""result":{"a":1,"a":2}"#)),
        ("a result of an unknown type", |r| response_with(r, r#""result":{"resultType":"later"}"#)),
        ("a result whose type is no string", |r| response_with(r, r#""result":{"resultType":1}"#)),
        ("a result and an error", |r| response_with(r, r#""result":{},"error":{"code":1,"message":"m"}"#)),
        ("neither a result nor an error", |r| response_with(r, r#""x":1"#)),
        ("an error that is a string", |r| response_with(r, r#""error":"oops""#)),
        ("an error without a code", |r| response_with(r, r#""error":{"message":"m"}"#)),
        ("an error whose code is a string", |r| response_with(r, r#""error":{"code":"E","message":"m"}"#)),
        ("an error without a message", |r| response_with(r, r#""error":{"code":-32000}"#)),
        ("an error without an id", |_| {
            ScriptedReply::json(r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#)
        }),
        ("an error whose id is null", |_| {
            ScriptedReply::json(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#)
        }),
    ];
    assert_snapshot!(target.table(cases).await, @r#"
    garbage: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"the answer is not an MCP message","retryable":false}}
    nothing: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"the answer is not an MCP message","retryable":false}}
    an array: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"the answer is not an MCP message","retryable":false}}
    the id of another request: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"the answer is not an MCP message","retryable":false}}
    the id as a string: "result":{}
    a request: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"the answer is not an MCP message","retryable":false}}
    no jsonrpc: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"the answer is not an MCP message","retryable":false}}
    a result that is an array: "error":{"code":-32603,"message":"The server's result is malformed","data":{"code":"execution_failed","reason":"the result is not an object with unique members","retryable":false}}
    a result that is null: "error":{"code":-32603,"message":"The server's result is malformed","data":{"code":"execution_failed","reason":"the result is not an object with unique members","retryable":false}}
    a result with a member twice: "error":{"code":-32603,"message":"The server's result is malformed","data":{"code":"execution_failed","reason":"the result is not an object with unique members","retryable":false}}
    a result of an unknown type: "error":{"code":-32603,"message":"The server's result is of an unknown type","data":{"code":"execution_failed","reason":"unknown `resultType`","retryable":false}}
    a result whose type is no string: "error":{"code":-32603,"message":"The server's result is of an unknown type","data":{"code":"execution_failed","reason":"unknown `resultType`","retryable":false}}
    a result and an error: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"the answer is not an MCP message","retryable":false}}
    neither a result nor an error: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"the answer is not an MCP message","retryable":false}}
    an error that is a string: "error":{"code":-32603,"message":"The server's error is malformed","data":{"code":"execution_failed","reason":"the error is not an object with unique members","retryable":false}}
    an error without a code: "error":{"code":-32603,"message":"The server's error is malformed","data":{"code":"execution_failed","reason":"an error without an integer code and a message","retryable":false}}
    an error whose code is a string: "error":{"code":-32603,"message":"The server's error is malformed","data":{"code":"execution_failed","reason":"an error without an integer code and a message","retryable":false}}
    an error without a message: "error":{"code":-32603,"message":"The server's error is malformed","data":{"code":"execution_failed","reason":"an error without an integer code and a message","retryable":false}}
    an error without an id: "error":{"code":1,"message":"m"}
    an error whose id is null: "error":{"code":1,"message":"m"}
    "#);
}

#[tokio::test]
async fn responses() {
    let target = FaultyUpstream::start(UpstreamEra::Modern, "").await;
    const ERROR: &str = r#""error":{"code":1,"message":"m"}"#;
    fn with(status: u16, headers: &str, request: &ReceivedRequest, members: &str) -> ScriptedReply {
        ScriptedReply::http(
            status,
            headers,
            &format!(r#"{{"jsonrpc":"2.0","id":{},{members}}}"#, request.id()),
        )
    }
    const JSON: &str = "content-type: application/json\r\n";
    let cases: &[(&str, CallScript)] = &[
        ("no type", |r| with(200, "", r, r#""result":{}"#)),
        ("the content type of a page", |r| with(200, "content-type: text/html\r\n", r, r#""result":{}"#)),
        ("a page", |_| ScriptedReply::http(200, "content-type: text/html\r\n", "<html>")),
        ("201", |r| with(201, JSON, r, r#""result":{}"#)),
        ("202 and nothing", |_| ScriptedReply::http(202, "", "")),
        ("302", |_| ScriptedReply::http(302, "location: http://localhost:1/\r\n", "")),
        ("400 and an error", |r| with(400, JSON, r, ERROR)),
        ("400 and a result", |r| with(400, JSON, r, r#""result":{}"#)),
        ("401", |_| ScriptedReply::http(401, "www-authenticate: Bearer\r\n", "")),
        ("404", |_| ScriptedReply::http(404, "", "not here")),
        ("429", |_| ScriptedReply::http(429, "retry-after: 1\r\n", "")),
        ("500", |_| ScriptedReply::http(500, "", "")),
        ("500 and an error", |r| with(500, JSON, r, ERROR)),
        ("500 and an error of another request", |_| {
            ScriptedReply::http(500, JSON, r#"{"jsonrpc":"2.0","id":4711,"error":{"code":1,"message":"m"}}"#)
        }),
        ("500 and garbage", |_| ScriptedReply::http(500, JSON, "{")),
        ("an end before the head", |_| ScriptedReply::raw("")),
        ("an end in the head", |_| ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-")),
        ("an end before the body", |_| ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")),
        ("an end in the body", |_| ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"json")),
        ("an end in a chunk", |_| {
            ScriptedReply::raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\n{\"js")
        }),
        ("a chunk without a size", |_| {
            ScriptedReply::raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n")
        }),
        ("not HTTP", |_| ScriptedReply::raw("hello\r\n\r\n")),
    ];
    assert_snapshot!(target.table(cases).await, @r#"
    no type: "result":{}
    the content type of a page: "result":{}
    a page: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"the answer is not an MCP message","retryable":false}}
    201: "result":{}
    202 and nothing: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"the answer is not an MCP message","retryable":false}}
    302: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"HTTP status 302","retryable":false}}
    400 and an error: "error":{"code":1,"message":"m"}
    400 and a result: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"HTTP status 400","retryable":false}}
    401: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"HTTP status 401","retryable":false}}
    404: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"HTTP status 404","retryable":false}}
    429: "error":{"code":-32603,"message":"The server failed to answer","data":{"code":"unavailable","reason":"HTTP status 429","retryable":true}}
    500: "error":{"code":-32603,"message":"The server failed to answer","data":{"code":"unavailable","reason":"HTTP status 500","retryable":true}}
    500 and an error: "error":{"code":1,"message":"m"}
    500 and an error of another request: "error":{"code":-32603,"message":"The server failed to answer","data":{"code":"unavailable","reason":"HTTP status 500","retryable":true}}
    500 and garbage: "error":{"code":-32603,"message":"The server failed to answer","data":{"code":"unavailable","reason":"HTTP status 500","retryable":true}}
    an end before the head: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"connection closed","retryable":true}}
    an end in the head: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"connection closed","retryable":true}}
    an end before the body: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"connection closed","retryable":true}}
    an end in the body: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"connection closed","retryable":true}}
    an end in a chunk: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"connection closed","retryable":true}}
    a chunk without a size: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"connection broken during the answer","retryable":true}}
    not HTTP: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"the response is not HTTP","retryable":true}}
    "#);
}

/// An event stream with this text; `ID` stands for the request id, and `ANSWER` for the whole response message.
fn events(request: &ReceivedRequest, text: &str) -> ScriptedReply {
    let answer = text.replace("ANSWER", r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#);
    ScriptedReply::events([Bytes::from(answer.replace("ID", &request.id()))])
}

#[tokio::test]
async fn streams() {
    let target = FaultyUpstream::start(UpstreamEra::Legacy, "").await;
    let cases: &[(&str, CallScript)] = &[
        ("lines end in CRLF", |r| events(r, "event: message\r\ndata: ANSWER\r\n\r\n")),
        ("lines end in CR", |r| events(r, "data: ANSWER\r\r")),
        ("a byte order mark", |r| events(r, "\u{feff}data: ANSWER\n\n")),
        ("comments, retry and an unknown field", |r| events(r, ": hi\n\nretry: 10\nx: y\ndata: ANSWER\n\n")),
        ("a priming event", |r| events(r, "id: 1\ndata:\n\nid: 2\ndata: ANSWER\n\n")),
        ("data on many lines", |r| {
            events(r, "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":ID,\ndata:\"result\":{}}\n\n")
        }),
        ("an event of another kind", |r| events(r, "event: ping\ndata: now\n\ndata: ANSWER\n\n")),
        ("a log message", |r| {
            events(
                r,
                "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\ndata: ANSWER\n\n",
            )
        }),
        ("a ping", |r| {
            events(r, "data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\ndata: ANSWER\n\n")
        }),
        ("events after the answer", |r| events(r, "data: ANSWER\n\ndata: oops\n\n")),
        ("the answer to another request", |r| {
            events(r, "data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{\"a\":1}}\n\ndata: ANSWER\n\n")
        }),
        ("a result without an id", |r| {
            events(r, "data: {\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{\"a\":1}}\n\ndata: ANSWER\n\n")
        }),
        ("only the answer to another request", |r| {
            events(r, "data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}\n\n")
        }),
        ("garbage", |r| events(r, "data: oops\n\ndata: ANSWER\n\n")),
        ("no answer", |r| events(r, ": nothing\n\n")),
        ("an end in the event", |r| events(r, "data: ANSWER\n")),
        ("an end in the answer", |r| events(r, "data: {\"jsonrpc\":\"2.0\",\"id\":ID,")),
        ("an end in a chunk", |_| {
            ScriptedReply::raw(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nff\r\ndata: {",
            )
        }),
    ];
    assert_snapshot!(target.table(cases).await, @r#"
    lines end in CRLF: "result":{}
    lines end in CR: "result":{}
    a byte order mark: "result":{}
    comments, retry and an unknown field: "result":{}
    a priming event: "result":{}
    data on many lines: "result":{}
    an event of another kind: "result":{}
    a log message: "result":{}
    a ping: "result":{}
    events after the answer: "result":{}
    the answer to another request: "result":{}
    a result without an id: "result":{}
    only the answer to another request: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"connection broken during the answer","retryable":true}}
    garbage: "result":{}
    no answer: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"connection broken during the answer","retryable":true}}
    an end in the event: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"connection broken during the answer","retryable":true}}
    an end in the answer: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"connection broken during the answer","retryable":true}}
    an end in a chunk: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"connection closed","retryable":true}}
    "#);
    let answered = target.upstream.now(|log| log.last("").body.clone());
    assert_snapshot!(answered, @r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
}

/// A response without an end.
fn flood(kind: &str, start: &'static str) -> ScriptedReply {
    let start = stream::iter([Bytes::from_static(start.as_bytes())]);
    ScriptedReply::live(kind, start.chain(stream::repeat(Bytes::from_static(&[b'x'; 4096]))))
}

#[tokio::test]
async fn oversized_messages_are_refused() {
    let target = FaultyUpstream::start(UpstreamEra::Modern, "limits: {responseBytes: 64KiB}").await;
    let cases: &[(&str, CallScript)] = &[
        ("a large body", |r| ScriptedReply::result(r, &format!("{{\"x\":\"{}\"}}", "x".repeat(70_000)))),
        ("an endless body", |_| flood("application/json", "{\"x\":\"")),
        ("an endless event", |_| flood("text/event-stream", "data: ")),
        ("an endless line without a field", |_| flood("text/event-stream", "x")),
        ("an endless comment", |_| flood("text/event-stream", ":")),
        ("an endless body of an error", |_| {
            ScriptedReply::raw(format!("HTTP/1.1 500 Oops\r\n\r\n{}", "x".repeat(70_000)))
        }),
        ("an endless head", |_| {
            ScriptedReply::raw(format!("HTTP/1.1 200 OK\r\n{}", "x: y\r\n".repeat(100_000)))
        }),
        ("a large body in many events", |r| {
            events(r, &format!("{}data: ANSWER\n\n", format!(": {}\n\n", "x".repeat(1000)).repeat(100)))
        }),
    ];
    assert_snapshot!(target.table(cases).await, @r#"
    a large body: "error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"answer larger than 65536 bytes","retryable":false}}
    an endless body: "error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"answer larger than 65536 bytes","retryable":false}}
    an endless event: "error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"answer larger than 65536 bytes","retryable":false}}
    an endless line without a field: "error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"answer larger than 65536 bytes","retryable":false}}
    an endless comment: "error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"answer larger than 65536 bytes","retryable":false}}
    an endless body of an error: "error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"answer larger than 65536 bytes","retryable":false}}
    an endless head: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"the response is not HTTP","retryable":true}}
    a large body in many events: "result":{}
    "#);
}

#[tokio::test]
async fn ten_megabytes() {
    let target = FaultyUpstream::start(UpstreamEra::Modern, "").await;
    fn text() -> String {
        format!("{{\"x\":\"{}\"}}", "0123456789".repeat(1_000_000))
    }
    let ways: [CallScript; 2] = [
        |r| ScriptedReply::result(r, &text()),
        |r| events(r, &format!("data: {{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}}\n\n", text())),
    ];
    for way in ways {
        let got = target.call(way).await;
        assert!(got == format!("\"result\":{}", text()), "{} bytes came", got.len());
    }
}

#[tokio::test]
async fn slow_server_times_out() {
    let mut answers = Vec::new();
    for era in [UpstreamEra::Legacy, UpstreamEra::Modern] {
        let target = FaultyUpstream::with(era, "timeout: 200ms,", "").await;
        answers.push(target.call(|_| ScriptedReply::never()).await);
        wait_for_cancellation(&target.upstream, era).await;
        assert_eq!(target.call(good).await, r#""result":{"good":1}"#);
    }
    assert_eq!(answers[0], answers[1]);
    assert_snapshot!(answers[0], @r#""error":{"code":-32603,"message":"The tool did not answer in time","data":{"code":"timeout","reason":"timed out after 200 ms","retryable":true}}"#);
}

#[tokio::test]
async fn disconnected_client_cancels_its_call() {
    for era in [UpstreamEra::Legacy, UpstreamEra::Modern] {
        let target = FaultyUpstream::start(era, "").await;
        *target.reply.lock().unwrap() = |_| ScriptedReply::never();
        for (already, mode) in [ClientMode::Bare, ClientMode::Modern].into_iter().enumerate() {
            let mut client = WireClient::new(target.running.address(), mode).await;
            let params = client.call_params("t", "{}", "");
            client.send("", "tools/call", &params).await;
            target.upstream.saw(|log| log.count("tools/call") > already, |_| ()).await;
            drop(client);
            target.upstream.saw(|log| log.dropped.len() > already, |_| ()).await;
        }
        wait_for_cancellation(&target.upstream, era).await;
    }
}

/// Waits until the server knows that its calls were cancelled. A legacy server gets a notification for each, because a lost
/// connection means nothing in that era. The notifications of several calls come in any order.
async fn wait_for_cancellation(upstream: &TestUpstream, era: UpstreamEra) {
    upstream.saw(|log| log.dropped.iter().any(|method| method == "tools/call"), |_| ()).await;
    if era == UpstreamEra::Legacy {
        let ids = |log: &RequestLog, method: &str, id: fn(&ReceivedRequest) -> String| {
            let requests = log.requests.iter().filter(|request| request.method() == method);
            requests.map(id).collect::<BTreeSet<_>>()
        };
        let is_complete = |log: &RequestLog| log.count("notifications/cancelled") == log.count("tools/call");
        let (calls, cancelled) = upstream
            .saw(is_complete, |log| {
                let cancelled = |sent: &ReceivedRequest| sent.params().get("requestId").text();
                (ids(log, "tools/call", ReceivedRequest::id), ids(log, "notifications/cancelled", cancelled))
            })
            .await;
        assert_eq!(cancelled, calls);
    }
}
