//! Notifications of a server about a call, on any stream, reach the client of that call only.

use bytes::Bytes;
use tokio::sync::watch;
use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream, UpstreamEra, but};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::catalog_server::{CatalogServer, ERAS};
use crate::gateway::gateway;

/// An event with a notification.
fn event(method: &str, params: &str) -> String {
    format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n\n")
}

fn answered(request: &ReceivedRequest) -> String {
    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}\n\n", request.id())
}

/// The progress token of a call at the server.
fn token(request: &ReceivedRequest) -> String {
    request.params().get("_meta").get("progressToken").text()
}

fn progress(token: &str, progress: u8) -> String {
    format!(r#"{{"progressToken":{token},"progress":{progress}}}"#)
}

/// The messages that clients of both eras get during a call, besides the result.
async fn call_messages(upstream: &TestUpstream) -> Vec<Vec<String>> {
    let running = gateway(&[("h", upstream.address, "")], "").await;
    let mut all_messages = Vec::new();
    for client in [
        WireClient::in_session(running.address()).await,
        WireClient::new(running.address(), ClientMode::Modern).await,
    ] {
        let params = client.call_params("t", "{}", r#""progressToken":"mine""#);
        let mut stream = client.open("tools/call", &params).await;
        let mut messages = Vec::new();
        while let Some(message) = stream.message().await {
            messages.push(message);
        }
        messages.pop();
        all_messages.push(messages);
    }
    all_messages
}

/// The gateway drops progress with an unknown token, also on the stream of a call.
#[tokio::test]
async fn progress_with_an_unknown_token_is_dropped() {
    for era in ERAS {
        let upstream = TestUpstream::start(CatalogServer::new(era, |request: &ReceivedRequest| {
            let others = ["\"somebody-else\"", "999999", "null"];
            let others = others.map(|token| event("notifications/progress", &progress(token, 1))).concat();
            let own = event("notifications/progress", &progress(&token(request), 2));
            ScriptedReply::events([Bytes::from(others + &own + &answered(request))])
        }));
        for call_messages in call_messages(&upstream).await {
            assert_eq!(call_messages.len(), 1, "{era:?}: {call_messages:?}");
            assert!(call_messages[0].contains(r#""progressToken":"mine""#), "{call_messages:?}");
            assert!(call_messages[0].contains(r#""progress":2"#), "{call_messages:?}");
        }
    }
}

/// A legacy server may send progress of a call on its stream of server notifications.
#[tokio::test]
async fn progress_on_the_notification_stream_reaches_its_call() {
    let server =
        CatalogServer::new(UpstreamEra::Legacy, |_: &ReceivedRequest| ScriptedReply::http(500, "", ""));
    let news = server.clone();
    let (call_messages, answers) = watch::channel(0);
    let upstream = TestUpstream::start(but(server, move |request| {
        if request.method() != "tools/call" {
            return None;
        }
        news.say("notifications/progress", &progress(&token(request), 1));
        let (mut answers, before) = (answers.clone(), *answers.borrow());
        let answer = ScriptedReply::events([Bytes::from(answered(request))]);
        // The two streams are not ordered relative to each other.
        Some(
            answer
                .after(async move { drop(answers.wait_for(|call_messages| *call_messages > before).await) }),
        )
    }));
    let running = gateway(&[("h", upstream.address, "")], "").await;
    upstream.saw(|log| log.count("GET") > 0, |_| ()).await;
    for client in [
        WireClient::in_session(running.address()).await,
        WireClient::new(running.address(), ClientMode::Modern).await,
    ] {
        let params = client.call_params("t", "{}", r#""progressToken":"mine""#);
        let mut stream = client.open("tools/call", &params).await;
        let first = stream.message().await.unwrap();
        assert!(first.contains(r#""progressToken":"mine""#), "{first}");
        call_messages.send_modify(|call_messages| *call_messages += 1);
        assert!(stream.message().await.unwrap().contains("result"));
    }
}

/// The gateway forwards unknown notifications on the stream of a call to the client of that call.
#[tokio::test]
async fn unknown_notifications_are_forwarded() {
    let params = r#"{"vendor":1.10,"_meta":{"x":[ ]}}"#;
    for era in ERAS {
        let upstream = TestUpstream::start(CatalogServer::new(era, move |request: &ReceivedRequest| {
            let notification = event("notifications/vendor/news", params);
            ScriptedReply::events([Bytes::from(notification + &answered(request))])
        }));
        for call_messages in call_messages(&upstream).await {
            let expected =
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/vendor/news","params":{params}}}"#);
            assert_eq!(call_messages, [expected], "{era:?}");
        }
    }
}

/// Members of the envelope that the gateway does not know are part of every notification of a call.
#[tokio::test]
async fn unknown_members_of_the_envelope_are_forwarded() {
    const EXTRA: &str = r#""x-trace":{"b":1.0,"a":[ ]}"#;
    for era in ERAS {
        let upstream = TestUpstream::start(CatalogServer::new(era, move |request: &ReceivedRequest| {
            let notification = |method: &str, params: &str| {
                format!(
                    "data: {{\"jsonrpc\":\"2.0\",{EXTRA},\"method\":\"{method}\",\"params\":{params}}}\n\n"
                )
            };
            if request.method() == "logging/setLevel" {
                return ScriptedReply::result(request, "{}");
            }
            let all = notification("notifications/progress", &progress(&token(request), 1))
                + &notification("notifications/message", r#"{"level":"error","data":1}"#)
                + &notification("notifications/vendor/news", "{}");
            ScriptedReply::events([Bytes::from(all + &answered(request))])
        }));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        for client in [
            WireClient::in_session(running.address()).await,
            WireClient::new(running.address(), ClientMode::Modern).await,
        ] {
            let meta = r#""progressToken":"mine","io.modelcontextprotocol/logLevel":"debug""#;
            let params = client.call_params("t", "{}", meta);
            let mut stream = client.open("tools/call", &params).await;
            for method in ["progress", "message", "vendor/news"] {
                let message = stream.message().await.unwrap();
                assert!(message.contains(&format!("notifications/{method}")), "{era:?}: {message}");
                assert!(message.contains(EXTRA), "{era:?}: {message}");
            }
        }
    }
}

/// If a modern server refuses mirrored headers, the gateway requests the tool list again and repeats the call once.
#[tokio::test]
async fn mismatched_headers_are_corrected_once() {
    const NOW: &str = r#"{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}"#;
    for is_cured in [true, false] {
        let server =
            CatalogServer::new(UpstreamEra::Modern, |_: &ReceivedRequest| ScriptedReply::http(500, "", ""));
        let lists = server.clone();
        let upstream = TestUpstream::start(but(server, move |request| {
            if request.method() != "tools/call" {
                return None;
            }
            if is_cured && request.head.header("mcp-param-region") == Some("eu") {
                return Some(ScriptedReply::result(request, r#"{"resultType":"complete","good":1}"#));
            }
            lists.set("tools/list", &format!(r#""tools":[{NOW}],"ttlMs":0,"cacheScope":"public""#));
            let error = r#"{"code":-32020,"message":"mismatch"}"#;
            let body = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, request.id());
            Some(ScriptedReply::http(400, "content-type: application/json\r\n", &body))
        }));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
        let answer = client.call("t", r#"{"r":"eu"}"#).await.body;
        assert_eq!(answer.contains(r#""good":1"#), is_cured, "{answer}");
        assert_eq!(upstream.now(|log| log.count("tools/call")), 2);
    }
}
