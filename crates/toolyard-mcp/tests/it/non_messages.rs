//! Servers that send more than messages: heartbeats, batches, texts.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use serde_json::json;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use toolyard_core::Backend;
use toolyard_mcp::client::{ClientOptions, DedicatedOptions, HttpEndpoint, McpBackend, ServerEndpoint};
use toolyard_net::client::HttpClient;
use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream};

use crate::function::{call, names, options, ready};

/// Events that are no messages. The last three are skipped as such.
const NOISE: &str = ": connected\n\nid: 1\ndata:\n\nevent: ping\ndata: tick\n\ndata: {\"type\":\"heartbeat\",\"at\":1}\n\ndata: [1]\n\ndata: oops\n\n";

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}"#;
const INITIALIZED: &str =
    r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":0,"cacheScope":"public"}"#;
const GOOD: &str = r#"{"content":[{"type":"text","text":"good"}],"resultType":"complete"}"#;

/// Returns the result of a request; `None` for a notification and for a method of the other era.
fn result(request: &ReceivedRequest, is_modern: bool) -> Option<&'static str> {
    match &*request.method() {
        "server/discover" if is_modern => Some(DISCOVERED),
        "initialize" if !is_modern => Some(INITIALIZED),
        "tools/list" => Some(TOOLS),
        "tools/call" => Some(GOOD),
        _ => None,
    }
}

fn answer(request: &ReceivedRequest, result: &str) -> String {
    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n\n", request.id())
}

fn start(upstream: &TestUpstream) -> McpBackend {
    let url = format!("http://{}/mcp", upstream.address).parse().unwrap();
    let endpoint = HttpEndpoint::new(url, HttpClient::without_roots().unwrap());
    let options = ClientOptions {
        discover_timeout: Duration::from_secs(30),
        dedicated: DedicatedOptions::SHARED,
        probe: None,
        ..options()
    };
    McpBackend::start("s", ServerEndpoint::Http(endpoint), options)
}

/// A server of streamable HTTP that sends noise in front of each answer. `on_call` replies to calls.
fn streamable(
    is_modern: bool,
    on_call: impl Fn(&ReceivedRequest) -> Option<ScriptedReply> + Send + Sync + 'static,
) -> TestUpstream {
    TestUpstream::start(move |request: &ReceivedRequest| {
        if request.method() == "tools/call"
            && let Some(reply) = on_call(request)
        {
            return reply;
        }
        match (&*request.method(), result(request, is_modern)) {
            (_, Some(result)) => {
                ScriptedReply::events([(NOISE.to_owned() + &answer(request, result)).into()])
            }
            ("GET" | "DELETE", None) => ScriptedReply::http(405, "allow: POST\r\n", ""),
            (method, None) if method.starts_with("notifications/") => ScriptedReply::http(202, "", ""),
            (_, None) => ScriptedReply::json(&format!(
                r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32601,"message":"Method not found"}}}}"#,
                request.id()
            )),
        }
    })
}

#[tokio::test]
async fn text_that_is_not_a_message_is_skipped() {
    for is_modern in [false, true] {
        let upstream = streamable(is_modern, |_| None);
        let backend = start(&upstream);
        let catalog = ready(&backend).await;
        assert_eq!(names(&catalog), ["t"], "{is_modern}");
        let before = backend.skipped_messages();
        assert_eq!(call(&backend, "t", json!({})).await.unwrap(), r#""good""#, "{is_modern}");
        assert_eq!(backend.skipped_messages() - before, 3, "{is_modern}");
    }
}

/// Servers of revision 2025-03-26 may answer with a batch.
#[tokio::test]
async fn batch_with_the_answer_is_read() {
    const OTHERS: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}},7,{"jsonrpc":"2.0","id":99999,"result":{}}"#;
    let check = async |is_stream: bool, has_answer: bool, expected: Result<&str, &str>| {
        let upstream = streamable(false, move |request| {
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{GOOD}}}"#, request.id());
            let batch = if has_answer { format!("[{OTHERS},{answer}]") } else { format!("[{OTHERS}]") };
            Some(match is_stream {
                true => ScriptedReply::ending(
                    "text/event-stream",
                    stream::iter([Bytes::from(format!("data: {batch}\n\n"))]),
                ),
                false => ScriptedReply::json(&batch),
            })
        });
        let backend = start(&upstream);
        ready(&backend).await;
        let called = call(&backend, "t", json!({})).await;
        let called = called.map_err(|error| error.message().to_owned());
        assert_eq!(called.as_deref().map_err(String::as_str), expected, "stream: {is_stream}");
    };
    check(false, true, Ok(r#""good""#)).await;
    check(true, true, Ok(r#""good""#)).await;
    check(false, false, Err("The server's answer is malformed")).await;
}

/// Runs a call whose reply is a stream with this text in front of its end, if it ends.
async fn failed_call(
    is_modern: bool,
    ends: bool,
    text: impl Fn(&ReceivedRequest) -> String + Send + Sync + 'static,
) -> String {
    let upstream = streamable(is_modern, move |request| {
        let piece = stream::iter([Bytes::from(text(request))]);
        Some(match ends {
            true => ScriptedReply::ending("text/event-stream", piece),
            false => ScriptedReply::live("text/event-stream", piece),
        })
    });
    let backend = start(&upstream);
    ready(&backend).await;
    call(&backend, "t", json!({})).await.unwrap_err().message().to_owned()
}

#[tokio::test]
async fn malformed_answer_fails_its_call_at_once() {
    for is_modern in [false, true] {
        for rest in [r#""result":{"a":NaN}}"#, r#""result":{},"error":{}}"#, r#""extra":1}"#] {
            let text = move |request: &ReceivedRequest| {
                format!("{NOISE}data: {{\"jsonrpc\":\"2.0\",\"id\":{},{rest}\n\n", request.id())
            };
            assert_eq!(
                failed_call(is_modern, false, text).await,
                "The server's answer is malformed",
                "{rest}"
            );
        }
    }
}

#[tokio::test]
async fn body_without_an_answer_fails_its_call_at_once() {
    // Without an id, which would let a legacy stream be resumed.
    let noise = || NOISE.replace("id: 1\n", "");
    for is_modern in [false, true] {
        let broken = failed_call(is_modern, true, move |_| noise()).await;
        assert_eq!(broken, "The connection to the server broke");
    }
}

#[tokio::test]
async fn endless_noise_fails_its_call() {
    for is_modern in [false, true] {
        let noise = "data: {}\n\n".repeat(10_001);
        assert_eq!(
            failed_call(is_modern, false, move |_| noise.clone()).await,
            "The server's answer is malformed"
        );
    }
}

/// A server of HTTP+SSE with noise in front of everything, also of the first event.
#[tokio::test]
async fn legacy_stream_has_more_than_messages() {
    let (sender, receiver): (UnboundedSender<String>, UnboundedReceiver<String>) = mpsc::unbounded_channel();
    let receiver = Mutex::new(Some(receiver));
    let upstream = TestUpstream::start(move |request: &ReceivedRequest| match &*request.method() {
        "GET" => {
            let Some(events) = receiver.lock().unwrap().take() else { return ScriptedReply::never() };
            let first = format!("{NOISE}event: endpoint\ndata: /messages\n\n");
            sender.send(first).unwrap();
            ScriptedReply::ending(
                "Text/Event-Stream; charset=UTF-8",
                stream::unfold(events, async |mut events| Some((Bytes::from(events.recv().await?), events))),
            )
        }
        method => {
            if !request.head.start.contains("/messages") {
                return ScriptedReply::http(405, "allow: GET\r\n", "");
            }
            if let Some(result) = result(request, false) {
                sender.send(NOISE.to_owned() + &answer(request, result)).unwrap();
            } else if !method.starts_with("notifications/") {
                panic!("an unexpected request: {method}");
            }
            ScriptedReply::http(202, "", "")
        }
    });
    let backend = start(&upstream);
    let catalog = ready(&backend).await;
    assert_eq!(names(&catalog), ["t"]);
    assert_eq!(call(&backend, "t", json!({})).await.unwrap(), r#""good""#);
    assert_eq!(backend.skipped_messages(), 12);
}
