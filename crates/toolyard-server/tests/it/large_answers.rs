//! Answers of more than 1 MiB that follow a notification, as events that the client reads.

use bytes::Bytes;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, WireClient, WireConnection, WireEventStream, post};

use crate::gateway::gateway;

/// The HTTP library of the Python SDK, which refuses events of more than 1 MiB.
const PYTHON: &str = "user-agent: python-httpx2/2.16.2\r\n";

/// A result of 2 MiB.
fn large() -> String {
    format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(2 << 20))
}

/// Calls the tool, and asks for progress.
async fn call(client: &WireClient, address: std::net::SocketAddr, agent: &str) -> WireEventStream {
    let params = client.call_params("t", "{}", r#""progressToken":1"#);
    let headers = client.headers("tools/call", &params);
    let headers = format!("accept: application/json, text/event-stream\r\n{agent}{headers}");
    let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
    let mut connection = WireConnection::open(address).await;
    connection.send(&post(&headers, &body)).await;
    connection.stream().await
}

fn content_type(stream: &WireEventStream) -> &str {
    stream.head.header("content-type").unwrap()
}

#[tokio::test]
async fn large_result_after_progress_is_cut_for_limited_clients() {
    let upstream =
        TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], |r: &ReceivedRequest| {
            let token = r.params().get("_meta").get("progressToken").text();
            let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
            let progress =
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#);
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#, r.id(), large());
            ScriptedReply::events([Bytes::from(format!("data: {progress}\n\ndata: {answer}\n\n"))])
        }));
    let running = gateway(&[("h", upstream.address, "")], "").await;
    let address = running.address();
    for client in [WireClient::in_session(address).await, WireClient::new(address, ClientMode::Modern).await]
    {
        for (agent, is_limited) in [(PYTHON, true), ("", false)] {
            let mut stream = call(&client, address, agent).await;
            assert_eq!(content_type(&stream), "text/event-stream");
            assert!(stream.message().await.unwrap().contains("progress"));
            let answer = stream.message().await.unwrap();
            assert_eq!(answer.len() < 1 << 20, is_limited, "{:?} {agent}", client.mode);
            assert!(answer.contains(r#""result":"#), "{:?} {agent}", client.mode);
            let notice = "chars omitted: the client reads events of at most 1047552 bytes]";
            assert_eq!(answer.contains(notice), is_limited, "{:?} {agent}", client.mode);
        }
    }
}

#[tokio::test]
async fn client_that_names_events_first_gets_small_answers_as_events() {
    let upstream =
        TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], |r: &ReceivedRequest| {
            let is_large = r.params().get("arguments").find("large").is_some();
            let result = if is_large { large() } else { r#"{"content":[]}"#.to_owned() };
            ScriptedReply::result(r, &result)
        }));
    let running = gateway(&[("h", upstream.address, "")], "").await;
    let address = running.address();
    for client in [WireClient::in_session(address).await, WireClient::new(address, ClientMode::Modern).await]
    {
        for (accept, arguments, expected) in [
            ("text/event-stream, application/json", "{}", "text/event-stream"),
            ("text/event-stream, application/json", r#"{"large":1}"#, "application/json"),
            ("application/json, text/event-stream", "{}", "application/json"),
        ] {
            let params = client.call_params("t", arguments, "");
            let headers = format!("accept: {accept}\r\n{}", client.headers("tools/call", &params));
            let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
            let mut connection = WireConnection::open(address).await;
            connection.send(&post(&headers, &body)).await;
            let mut stream = connection.stream().await;
            assert_eq!(content_type(&stream), expected, "{:?} {arguments}", client.mode);
            if expected == "text/event-stream" {
                assert!(stream.message().await.unwrap().contains(r#""content":[]"#), "{:?}", client.mode);
            }
        }
    }
}
