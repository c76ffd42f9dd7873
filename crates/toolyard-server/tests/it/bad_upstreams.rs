//! Servers that break the protocol, their connections or their promises: the caller gets an error that says
//! so, and the next call is answered as ever.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use insta::assert_snapshot;
use toolyard_server::Running;

use crate::client::{Client, Speech};
use crate::gateway;
use crate::upstream::{Era, Log, Received, Reply, Server, TOOL, Upstream};

/// What a server says to a call.
type Saying = fn(&Received) -> Reply;

/// A gateway in front of a server that says one thing after the other.
struct Target {
    running: Running,
    upstream: Upstream,
    saying: Arc<Mutex<Saying>>,
}

fn good(request: &Received) -> Reply {
    Reply::result(request, r#"{"good":1}"#)
}

impl Target {
    async fn start(era: Era, process: &str) -> Self {
        Self::with(era, "", process).await
    }

    async fn with(era: Era, handler: &str, process: &str) -> Self {
        let saying: Arc<Mutex<Saying>> = Arc::new(Mutex::new(good));
        let say = saying.clone();
        let server = Server::new(era, &[TOOL], move |request: &Received| (say.lock().unwrap())(request));
        let upstream = Upstream::start(server);
        let running = gateway(&[("h", upstream.address, handler)], process).await;
        Self { running, upstream, saying }
    }

    /// What a caller gets when the server says this.
    async fn call(&self, saying: Saying) -> String {
        *self.saying.lock().unwrap() = saying;
        let mut client = Client::new(self.running.address(), Speech::Bare).await;
        let response = client.call("t", "{}").await;
        assert_eq!(response.head.status(), 200);
        let start = r#"{"jsonrpc":"2.0","id":7,"#;
        response.body.strip_prefix(start).and_then(|body| body.strip_suffix('}')).unwrap().to_owned()
    }

    /// A line for each of the cases. After each of them the gateway still works.
    async fn table(&self, cases: &[(&str, Saying)]) -> String {
        let mut lines = Vec::new();
        for (name, saying) in cases {
            lines.push(format!("{name}: {}", self.call(*saying).await));
            assert_eq!(self.call(good).await, r#""result":{"good":1}"#, "after {name}");
        }
        lines.join("\n")
    }
}

/// A response that carries the second half of a message.
fn says(request: &Received, members: &str) -> Reply {
    Reply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},{members}}}"#, request.id()))
}

#[tokio::test]
async fn answers() {
    let target = Target::start(Era::Modern, "").await;
    let cases: &[(&str, Saying)] = &[
        ("garbage", |_| Reply::json("oops")),
        ("nothing", |_| Reply::json("")),
        ("an array", |_| Reply::json("[]")),
        ("the id of another request", |_| Reply::json(r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#)),
        ("the id as a string", |r| {
            Reply::json(&format!(r#"{{"jsonrpc":"2.0","id":"{}","result":{{}}}}"#, r.id()))
        }),
        ("a request", |r| says(r, r#""method":"ping""#)),
        ("no jsonrpc", |r| Reply::json(&format!(r#"{{"id":{},"result":{{}}}}"#, r.id()))),
        ("a result that is an array", |r| says(r, r#""result":[]"#)),
        ("a result that is null", |r| says(r, r#""result":null"#)),
        ("a result with a member twice", |r| says(r, r#""result":{"a":1,"a":2}"#)),
        ("a result of an unknown type", |r| says(r, r#""result":{"resultType":"later"}"#)),
        ("a result whose type is no string", |r| says(r, r#""result":{"resultType":1}"#)),
        ("a result and an error", |r| says(r, r#""result":{},"error":{"code":1,"message":"m"}"#)),
        ("neither", |r| says(r, r#""x":1"#)),
        ("an error that is a string", |r| says(r, r#""error":"oops""#)),
        ("an error without a code", |r| says(r, r#""error":{"message":"m"}"#)),
        ("an error whose code is a string", |r| says(r, r#""error":{"code":"E","message":"m"}"#)),
        ("an error without a message", |r| says(r, r#""error":{"code":-32000}"#)),
        ("an error without an id", |_| Reply::json(r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#)),
        ("an error whose id is null", |_| {
            Reply::json(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#)
        }),
    ];
    assert_snapshot!(target.table(cases).await, @r#"
    garbage: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    nothing: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    an array: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    the id of another request: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    the id as a string: "result":{}
    a request: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    no jsonrpc: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    a result that is an array: "error":{"code":-32603,"message":"The server's result is malformed","data":{"code":"execution_failed","reason":"The server's result is malformed","retryable":false}}
    a result that is null: "error":{"code":-32603,"message":"The server's result is malformed","data":{"code":"execution_failed","reason":"The server's result is malformed","retryable":false}}
    a result with a member twice: "error":{"code":-32603,"message":"The server's result is malformed","data":{"code":"execution_failed","reason":"The server's result is malformed","retryable":false}}
    a result of an unknown type: "error":{"code":-32603,"message":"The server's result is of an unknown type","data":{"code":"execution_failed","reason":"The server's result is of an unknown type","retryable":false}}
    a result whose type is no string: "error":{"code":-32603,"message":"The server's result is of an unknown type","data":{"code":"execution_failed","reason":"The server's result is of an unknown type","retryable":false}}
    a result and an error: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    neither: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    an error that is a string: "error":{"code":-32603,"message":"The server's error is malformed","data":{"code":"execution_failed","reason":"The server's error is malformed","retryable":false}}
    an error without a code: "error":{"code":-32603,"message":"The server's error is malformed","data":{"code":"execution_failed","reason":"The server's error is malformed","retryable":false}}
    an error whose code is a string: "error":{"code":-32603,"message":"The server's error is malformed","data":{"code":"execution_failed","reason":"The server's error is malformed","retryable":false}}
    an error without a message: "error":{"code":-32603,"message":"The server's error is malformed","data":{"code":"execution_failed","reason":"The server's error is malformed","retryable":false}}
    an error without an id: "error":{"code":1,"message":"m"}
    an error whose id is null: "error":{"code":1,"message":"m"}
    "#);
}

#[tokio::test]
async fn responses() {
    let target = Target::start(Era::Modern, "").await;
    const ERROR: &str = r#""error":{"code":1,"message":"m"}"#;
    fn with(status: u16, headers: &str, request: &Received, members: &str) -> Reply {
        Reply::http(status, headers, &format!(r#"{{"jsonrpc":"2.0","id":{},{members}}}"#, request.id()))
    }
    const JSON: &str = "content-type: application/json\r\n";
    let cases: &[(&str, Saying)] = &[
        ("no type", |r| with(200, "", r, r#""result":{}"#)),
        ("the type of a page", |r| with(200, "content-type: text/html\r\n", r, r#""result":{}"#)),
        ("a page", |_| Reply::http(200, "content-type: text/html\r\n", "<html>")),
        ("201", |r| with(201, JSON, r, r#""result":{}"#)),
        ("202 and nothing", |_| Reply::http(202, "", "")),
        ("302", |_| Reply::http(302, "location: http://localhost:1/\r\n", "")),
        ("400 and an error", |r| with(400, JSON, r, ERROR)),
        ("400 and a result", |r| with(400, JSON, r, r#""result":{}"#)),
        ("401", |_| Reply::http(401, "www-authenticate: Bearer\r\n", "")),
        ("404", |_| Reply::http(404, "", "not here")),
        ("429", |_| Reply::http(429, "retry-after: 1\r\n", "")),
        ("500", |_| Reply::http(500, "", "")),
        ("500 and an error", |r| with(500, JSON, r, ERROR)),
        ("500 and an error of another request", |_| {
            Reply::http(500, JSON, r#"{"jsonrpc":"2.0","id":4711,"error":{"code":1,"message":"m"}}"#)
        }),
        ("500 and garbage", |_| Reply::http(500, JSON, "{")),
        ("an end before the head", |_| Reply::raw("")),
        ("an end in the head", |_| Reply::raw("HTTP/1.1 200 OK\r\ncontent-")),
        ("an end before the body", |_| Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")),
        ("an end in the body", |_| Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"json")),
        ("an end in a chunk", |_| {
            Reply::raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\n{\"js")
        }),
        ("a chunk without a size", |_| {
            Reply::raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n")
        }),
        ("no HTTP", |_| Reply::raw("hello\r\n\r\n")),
    ];
    assert_snapshot!(target.table(cases).await, @r#"
    no type: "result":{}
    the type of a page: "result":{}
    a page: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    201: "result":{}
    202 and nothing: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    302: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"The server refused the request","retryable":false}}
    400 and an error: "error":{"code":1,"message":"m"}
    400 and a result: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"The server refused the request","retryable":false}}
    401: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"The server refused the request","retryable":false}}
    404: "error":{"code":-32603,"message":"The server refused the request","data":{"code":"execution_failed","reason":"The server refused the request","retryable":false}}
    429: "error":{"code":-32603,"message":"The server failed to answer","data":{"code":"unavailable","reason":"The server failed to answer","retryable":true}}
    500: "error":{"code":-32603,"message":"The server failed to answer","data":{"code":"unavailable","reason":"The server failed to answer","retryable":true}}
    500 and an error: "error":{"code":1,"message":"m"}
    500 and an error of another request: "error":{"code":-32603,"message":"The server failed to answer","data":{"code":"unavailable","reason":"The server failed to answer","retryable":true}}
    500 and garbage: "error":{"code":-32603,"message":"The server failed to answer","data":{"code":"unavailable","reason":"The server failed to answer","retryable":true}}
    an end before the head: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    an end in the head: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    an end before the body: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    an end in the body: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    an end in a chunk: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    a chunk without a size: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    no HTTP: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    "#);
}

/// An event stream of this text, in which `ID` stands for the id and `ANSWER` for the whole answer.
fn events(request: &Received, text: &str) -> Reply {
    let answer = text.replace("ANSWER", r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#);
    Reply::events([Bytes::from(answer.replace("ID", &request.id()))])
}

#[tokio::test]
async fn streams() {
    let target = Target::start(Era::Legacy, "").await;
    let cases: &[(&str, Saying)] = &[
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
        ("more behind the answer", |r| events(r, "data: ANSWER\n\ndata: oops\n\n")),
        ("the answer to another request", |r| {
            events(r, "data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}\n\n")
        }),
        ("garbage", |r| events(r, "data: oops\n\ndata: ANSWER\n\n")),
        ("no answer", |r| events(r, ": nothing\n\n")),
        ("an end in the event", |r| events(r, "data: ANSWER\n")),
        ("an end in the answer", |r| events(r, "data: {\"jsonrpc\":\"2.0\",\"id\":ID,")),
        ("an end in a chunk", |_| {
            Reply::raw(
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
    more behind the answer: "result":{}
    the answer to another request: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    garbage: "error":{"code":-32603,"message":"The server's answer is malformed","data":{"code":"execution_failed","reason":"The server's answer is malformed","retryable":false}}
    no answer: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    an end in the event: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    an end in the answer: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    an end in a chunk: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    "#);
    let answered = target.upstream.now(|log| log.last("").body.clone());
    assert_snapshot!(answered, @r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
}

/// A response without an end.
fn flood(kind: &str, start: &'static str) -> Reply {
    let start = stream::iter([Bytes::from_static(start.as_bytes())]);
    Reply::live(kind, start.chain(stream::repeat(Bytes::from_static(&[b'x'; 4096]))))
}

#[tokio::test]
async fn more_than_a_message_may_have() {
    let target = Target::start(Era::Modern, "limits: {responseBytes: 64KiB}").await;
    let cases: &[(&str, Saying)] = &[
        ("a large body", |r| Reply::result(r, &format!("{{\"x\":\"{}\"}}", "x".repeat(70_000)))),
        ("an endless body", |_| flood("application/json", "{\"x\":\"")),
        ("an endless event", |_| flood("text/event-stream", "data: ")),
        ("an endless line of no field", |_| flood("text/event-stream", "x")),
        ("an endless comment", |_| flood("text/event-stream", ":")),
        ("an endless body of an error", |_| {
            Reply::raw(format!("HTTP/1.1 500 Oops\r\n\r\n{}", "x".repeat(70_000)))
        }),
        ("an endless head", |_| Reply::raw(format!("HTTP/1.1 200 OK\r\n{}", "x: y\r\n".repeat(100_000)))),
        ("a large body in many events", |r| {
            events(r, &format!("{}data: ANSWER\n\n", format!(": {}\n\n", "x".repeat(1000)).repeat(100)))
        }),
    ];
    assert_snapshot!(target.table(cases).await, @r#"
    a large body: "error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"The server's answer is too large","retryable":false}}
    an endless body: "error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"The server's answer is too large","retryable":false}}
    an endless event: "error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"The server's answer is too large","retryable":false}}
    an endless line of no field: "error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"The server's answer is too large","retryable":false}}
    an endless comment: "error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"The server's answer is too large","retryable":false}}
    an endless body of an error: "error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"The server's answer is too large","retryable":false}}
    an endless head: "error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}
    a large body in many events: "result":{}
    "#);
}

#[tokio::test]
async fn ten_megabytes() {
    let target = Target::start(Era::Modern, "").await;
    fn text() -> String {
        format!("{{\"x\":\"{}\"}}", "0123456789".repeat(1_000_000))
    }
    let ways: [Saying; 2] = [
        |r| Reply::result(r, &text()),
        |r| events(r, &format!("data: {{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}}\n\n", text())),
    ];
    for way in ways {
        let got = target.call(way).await;
        assert!(got == format!("\"result\":{}", text()), "{} bytes came", got.len());
    }
}

#[tokio::test]
async fn a_server_that_is_too_slow() {
    let mut said = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        let target = Target::with(era, "timeout: 200ms,", "").await;
        said.push(target.call(|_| Reply::never()).await);
        saw_the_end(&target.upstream, era).await;
        assert_eq!(target.call(good).await, r#""result":{"good":1}"#);
    }
    assert_eq!(said[0], said[1]);
    assert_snapshot!(said[0], @r#""error":{"code":-32603,"message":"The tool did not answer in time","data":{"code":"timeout","reason":"The tool did not answer in time","retryable":true}}"#);
}

#[tokio::test]
async fn a_caller_that_leaves() {
    for era in [Era::Legacy, Era::Modern] {
        let target = Target::start(era, "").await;
        *target.saying.lock().unwrap() = |_| Reply::never();
        for (already, speech) in [Speech::Bare, Speech::Modern].into_iter().enumerate() {
            let mut client = Client::new(target.running.address(), speech).await;
            let params = client.call_params("t", "{}", "");
            client.send("", "tools/call", &params).await;
            target.upstream.saw(|log| log.count("tools/call") > already, |_| ()).await;
            drop(client);
            target.upstream.saw(|log| log.dropped.len() > already, |_| ()).await;
        }
        saw_the_end(&target.upstream, era).await;
    }
}

/// Waits until a server knows that the latest call is not wanted any more. A legacy one is told so in words,
/// because a lost connection means nothing there.
async fn saw_the_end(upstream: &Upstream, era: Era) {
    upstream.saw(|log| log.dropped.iter().any(|method| method == "tools/call"), |_| ()).await;
    if era == Era::Legacy {
        let told = |log: &Log| log.count("notifications/cancelled") == log.count("tools/call");
        let (call, withdrawal) = upstream
            .saw(told, |log| (log.last("tools/call").id(), log.last("notifications/cancelled").params()))
            .await;
        assert_eq!(withdrawal.get("requestId").text(), call);
    }
}
