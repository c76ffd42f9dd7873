//! Client state in the gateway: sessions, streams, running requests, and progress tokens.

use bytes::Bytes;
use futures_util::future::join_all;
use insta::assert_snapshot;
use tokio::sync::watch;
use toolyard_server::RunningGateway;
use toolyard_testing::json;
use toolyard_testing::upstream::{
    ReceivedRequest, ReplyScript, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, WireClient, WireConnection, WireResponse, post};

use crate::gateway::gateway;

async fn start(era: UpstreamEra, call: impl ReplyScript, process: &str) -> (TestUpstream, RunningGateway) {
    let upstream = TestUpstream::start(ScriptedUpstream::new(era, &[TOOL], call));
    let running = gateway(&[("h", upstream.address, "")], process).await;
    (upstream, running)
}

fn never(_: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::never()
}

/// The response to one request.
async fn send(running: &RunningGateway, bytes: &[u8]) -> WireResponse {
    let mut connection = WireConnection::open(running.address()).await;
    connection.send(bytes).await;
    connection.response().await.unwrap()
}

/// Ends a session; returns the status code.
async fn delete(running: &RunningGateway, session: &str) -> u16 {
    let head = format!("DELETE /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {session}\r\n\r\n");
    send(running, head.as_bytes()).await.head.status()
}

fn id_of(client: &WireClient) -> String {
    match &client.mode {
        ClientMode::Session(id) => id.clone(),
        other => panic!("{other:?}"),
    }
}

/// Sessions belong to the legacy era, so that a modern client cannot use one (2026-07-28,
/// basic/transports/streamable-http).
#[tokio::test]
async fn modern_client_cannot_use_a_session() {
    let (_upstream, running) = start(UpstreamEra::Legacy, never, "").await;
    let session = id_of(&WireClient::in_session(running.address()).await);
    let mut lines = Vec::new();
    for (method, version) in
        [("GET", "2026-07-28"), ("DELETE", "2026-07-28"), ("GET", "1999-01-01"), ("DELETE", "2025-11-25")]
    {
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\
             mcp-protocol-version: {version}\r\nmcp-session-id: {session}\r\n\r\n"
        );
        let response = send(&running, head.as_bytes()).await;
        let allow = response.head.header("allow").unwrap_or_default();
        let line = format!("{method} {version}: {} {allow}", response.head.status());
        lines.push(line.trim_end().to_owned());
    }
    assert_snapshot!(lines.join("\n"), @"
    GET 2026-07-28: 405 POST
    DELETE 2026-07-28: 405 POST
    GET 1999-01-01: 400
    DELETE 2025-11-25: 204
    ");
}

#[tokio::test]
async fn versions() {
    let (_upstream, running) = start(UpstreamEra::Legacy, never, "").await;
    let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
    let mut lines = Vec::new();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1999-01-01", ""] {
        let params = format!(r#"{{"protocolVersion":"{version}","capabilities":{{}}}}"#);
        let response = client.ask("initialize", &params).await;
        let session = response.head.header("mcp-session-id").unwrap();
        assert!(session.len() == 32 && session.bytes().all(|byte| byte.is_ascii_hexdigit()), "{session}");
        lines.push(format!(
            "{version}: {}",
            json::read(&response.body).get("result").get("protocolVersion").plain()
        ));
    }
    assert_snapshot!(lines.join("\n"), @"
    2024-11-05: 2024-11-05
    2025-03-26: 2025-03-26
    2025-06-18: 2025-06-18
    2025-11-25: 2025-11-25
    2026-07-28: 2025-11-25
    1999-01-01: 2025-11-25
    : 2025-11-25
    ");
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#;
    let body = client.ask("initialize", params).await.body.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    assert_snapshot!(body, @r#"{"jsonrpc":"2.0","id":7,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}},"serverInfo":{"name":"toolyard","version":"VERSION"}}}"#);
}

#[tokio::test]
async fn client_ends_its_session() {
    let (_upstream, running) = start(UpstreamEra::Legacy, never, "").await;
    let mut client = WireClient::in_session(running.address()).await;
    let mut other = WireClient::in_session(running.address()).await;
    assert_ne!(client.mode, other.mode);
    assert_eq!(client.ask("ping", "{}").await.head.status(), 200);
    assert_eq!(delete(&running, &id_of(&client)).await, 204);
    assert_eq!(delete(&running, &id_of(&client)).await, 404);
    assert_eq!(client.ask("ping", "{}").await.head.status(), 404);
    assert_eq!(other.ask("ping", "{}").await.head.status(), 200);
}

#[tokio::test]
async fn running_calls_end_with_their_session() {
    let (upstream, running) = start(UpstreamEra::Legacy, never, "").await;
    let mut client = WireClient::in_session(running.address()).await;
    let stream = WireClient::new(running.address(), client.mode.clone()).await.changes().await;
    let session = id_of(&client);
    let (response, ()) = tokio::join!(client.call("t", "{}"), async {
        upstream.saw(|log| log.count("tools/call") == 1, |_| ()).await;
        assert_eq!(delete(&running, &session).await, 204);
    });
    assert_eq!((response.head.status(), &*response.body), (202, ""));
    let mut stream = stream;
    assert_eq!(stream.message().await, None);
    upstream.saw(|log| log.count("notifications/cancelled") == 1, |_| ()).await;
    assert_eq!(running.counts().cancelled, 1);
}

#[tokio::test]
async fn session_limit_replaces_idle_sessions() {
    let (_upstream, running) = start(UpstreamEra::Legacy, never, "limits: {sessions: 2}").await;
    let mut silent = WireClient::in_session(running.address()).await;
    let in_use = WireClient::in_session(running.address()).await;
    let _stream = in_use.changes().await;
    // The new session replaces the one that is idle and has no stream.
    let another = WireClient::in_session(running.address()).await;
    assert_eq!(silent.ask("ping", "{}").await.head.status(), 404);
    let session = id_of(&another);
    let stream = another.changes().await;
    let mut late = WireClient::new(running.address(), ClientMode::Bare).await;
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#;
    let refused = late.ask("initialize", params).await;
    assert_eq!(refused.head.status(), 200);
    assert_snapshot!(refused.body, @r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Too many sessions: close one, or try again later","data":{"code":"overloaded","reason":"a limit of the gateway is reached","retryable":true}}}"#);
    assert_eq!(delete(&running, &session).await, 204);
    drop(stream);
    assert_eq!(late.ask("initialize", params).await.head.status(), 200);
}

#[tokio::test]
async fn second_stream_replaces_the_first() {
    let (tools, offered) = watch::channel(vec![TOOL.to_owned()]);
    let upstream = TestUpstream::start(ScriptedUpstream {
        era: UpstreamEra::Modern,
        tools: offered,
        call: Box::new(never),
    });
    let running = gateway(&[("h", upstream.address, "")], "").await;
    upstream.saw(|log| log.count("subscriptions/listen") > 0, |_| ()).await;
    let client = WireClient::in_session(running.address()).await;
    let mode = client.mode.clone();
    let mut first = client.changes().await;
    let mut second = WireClient::new(running.address(), mode.clone()).await.changes().await;
    assert_eq!(first.message().await, None);
    tools.send_replace(Vec::new());
    assert!(second.message().await.unwrap().contains("tools/list_changed"));
}

#[tokio::test]
async fn request_ids_keep_their_notation() {
    let (_upstream, running) =
        start(UpstreamEra::Legacy, |request: &ReceivedRequest| ScriptedReply::result(request, "{}"), "")
            .await;
    let ids = [
        "0",
        "-1",
        "1.0",
        "1e3",
        "1.10",
        "123456789012345678901234567890",
        r#""""#,
        r#""1""#,
        r#""\u0061\/""#,
        r#""\ud800""#,
        "\"\u{1f980}\"",
    ];
    for id in ids {
        for method in ["ping", "tools/call", "x"] {
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"t"}}}}"#);
            let response = send(&running, &post("", &body)).await;
            assert_eq!(json::read(&response.body).get("id").text(), id);
        }
    }
}

#[tokio::test]
async fn request_is_cancelled_by_its_id() {
    let (upstream, running) = start(UpstreamEra::Legacy, never, "").await;
    let mut client = WireClient::in_session(running.address()).await;
    let headers = client.headers("", "{}");
    let withdraw = async |id: &str| {
        let params = format!(r#"{{"requestId":{id},"reason":"enough"}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
        assert_eq!(send(&running, &post(&headers, &body)).await.head.status(), 202);
    };
    let (response, ()) = tokio::join!(client.call("t", "{}"), async {
        upstream.saw(|log| log.count("tools/call") == 1, |_| ()).await;
        // None of these equals the id of the call, which is 7.
        for other in ["\"7\"", "7.0", "8", "null"] {
            withdraw(other).await;
        }
        assert_eq!(running.counts().cancelled, 0);
        withdraw("7").await;
    });
    assert_eq!((response.head.status(), &*response.body), (202, ""));
    let (call, withdrawn) = upstream
        .saw(
            |log| log.count("notifications/cancelled") == 1,
            |log| {
                (
                    log.last("tools/call").id(),
                    log.last("notifications/cancelled").params().get("requestId").text(),
                )
            },
        )
        .await;
    assert_eq!(call, withdrawn);
    withdraw("7").await;
    assert_eq!(running.counts().cancelled, 1);
}

/// A client cannot cancel a request of another session.
#[tokio::test]
async fn request_of_another_session_is_not_cancelled() {
    let (release, released) = watch::channel(false);
    let waiting = move |request: &ReceivedRequest| {
        let mut released = released.clone();
        ScriptedReply::result(request, "{}").after(async move {
            released.wait_for(|released| *released).await.unwrap();
        })
    };
    let (upstream, running) = start(UpstreamEra::Legacy, waiting, "").await;
    let mut client = WireClient::in_session(running.address()).await;
    let other = WireClient::in_session(running.address()).await;
    let (response, ()) = tokio::join!(client.call("t", "{}"), async {
        upstream.saw(|log| log.count("tools/call") == 1, |_| ()).await;
        let body = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
        assert_eq!(send(&running, &post(&other.headers("", "{}"), body)).await.head.status(), 202);
        release.send_replace(true);
    });
    assert_eq!(response.body, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
}

/// Sends progress twice, with the token of the call, and then echoes the arguments.
fn echo_progress(request: &ReceivedRequest) -> ScriptedReply {
    let params = request.params();
    let who = params.get("arguments").get("who").text();
    let token = params.find("_meta").and_then(|meta| meta.find("progressToken")).map(json::JsonNode::text);
    let token = token.unwrap_or_else(|| "1".to_owned());
    let notice = |progress: u8| {
        let params = format!(r#"{{"progressToken":{token},"progress":{progress},"message":{who}}}"#);
        format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{params}}}\n\n")
    };
    let answer = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}\n\n", request.id());
    ScriptedReply::events([notice(1), notice(2), answer].map(Bytes::from))
}

/// All messages that a caller gets.
async fn call_messages(running: &RunningGateway, mode: ClientMode, who: &str, meta: &str) -> Vec<String> {
    let client = WireClient::new(running.address(), mode).await;
    let params = client.call_params("t", &format!(r#"{{"who":"{who}"}}"#), meta);
    let mut stream = client.open("tools/call", &params).await;
    let mut messages = Vec::new();
    while let Some(message) = stream.message().await {
        messages.push(message);
    }
    messages
}

#[tokio::test]
async fn progress_has_the_token_of_its_caller() {
    let mut messages = Vec::new();
    for era in [UpstreamEra::Legacy, UpstreamEra::Modern] {
        let (_upstream, running) = start(era, echo_progress, "").await;
        let mut lines = Vec::new();
        for token in ["\"mine\"", "12345678901234567890", "1.0", "\"\""] {
            let meta = format!("\"progressToken\":{token}");
            lines.push(call_messages(&running, ClientMode::Modern, "a", &meta).await.join("\n"));
        }
        messages.push(lines.join("\n\n"));
        // A call without a token gets no progress.
        let params = r#"{"name":"t","arguments":{"who":"a"}}"#;
        let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
        assert_eq!(client.ask("tools/call", params).await.body, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    }
    assert_eq!(messages[0], messages[1]);
    assert_snapshot!(messages[0], @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":1,"message":"a"}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":2,"message":"a"}}
    {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}

    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":12345678901234567890,"progress":1,"message":"a"}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":12345678901234567890,"progress":2,"message":"a"}}
    {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}

    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1.0,"progress":1,"message":"a"}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1.0,"progress":2,"message":"a"}}
    {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}

    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"","progress":1,"message":"a"}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"","progress":2,"message":"a"}}
    {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}
    "#);
}

#[tokio::test]
async fn equal_progress_tokens_are_kept_apart() {
    const CALLERS: usize = 20;
    for era in [UpstreamEra::Legacy, UpstreamEra::Modern] {
        // All calls arrive before the server answers any of them.
        let (arrived, all) = watch::channel(0);
        let together = move |request: &ReceivedRequest| {
            arrived.send_modify(|arrived| *arrived += 1);
            let mut all = all.clone();
            echo_progress(request).after(async move {
                all.wait_for(|arrived| *arrived == CALLERS).await.unwrap();
            })
        };
        let (upstream, running) = start(era, together, "").await;
        let caller = async |number: usize| {
            let messages =
                call_messages(&running, ClientMode::Bare, &number.to_string(), r#""progressToken":1"#).await;
            assert_eq!(messages.len(), 3);
            let own = format!(r#""message":"{number}""#);
            assert!(
                messages[..2].iter().all(|notice| notice.contains(&own)),
                "caller {number} received {messages:?}"
            );
        };
        join_all((0..CALLERS).map(caller)).await;
        let tokens = upstream.now(|log| {
            let calls = log.requests.iter().filter(|request| request.method() == "tools/call");
            calls
                .map(|call| call.params().get("_meta").get("progressToken").text())
                .collect::<std::collections::HashSet<_>>()
        });
        assert_eq!(tokens.len(), CALLERS);
    }
}
