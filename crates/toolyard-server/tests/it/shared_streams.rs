//! Notifications on streams that calls share: each reaches the client that it is certain to belong to, or is counted.

use std::sync::{Arc, Mutex};

use toolyard_server::RunningGateway;
use toolyard_testing::json;
use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream, UpstreamEra, but};
use toolyard_testing::wire_client::{ClientMode, WireClient, WireConnection, WireEventStream};

use crate::catalog_server::CatalogServer;
use crate::gateway::{entry, gateway, gateway_of};
use crate::sse_upstream::{SessionStream, SseServer, SseSessions, accepted};

/// A log message with an unknown member of the envelope.
const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1.10},"x-trace":{"b":1.0,"a":[ ]}}"#;

/// A notification that the specification does not have.
const VENDOR: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/vendor/news","params":{"vendor":1.10},"x-trace":[ 1 ]}"#;

/// The parameters of a call that wants log messages.
const LOG_LEVEL: &str = r#""io.modelcontextprotocol/logLevel":"debug""#;

async fn clients(running: &RunningGateway) -> [WireClient; 2] {
    [
        WireClient::in_session(running.address()).await,
        WireClient::new(running.address(), ClientMode::Modern).await,
    ]
}

async fn open_call(client: WireClient) -> WireEventStream {
    let params = client.call_params("t", "{}", LOG_LEVEL);
    client.open("tools/call", &params).await
}

/// The messages of a response that is JSON or a stream, the answer last.
async fn all_messages(stream: WireEventStream) -> Vec<String> {
    if stream.head.header("content-type") == Some("application/json") {
        return vec![stream.rest().await];
    }
    let (mut stream, mut messages) = (stream, Vec::new());
    while let Some(message) = stream.message().await {
        messages.push(message);
    }
    messages
}

/// The number of notifications without a recipient, in the status.
async fn dropped(running: &RunningGateway) -> String {
    let mut connection = WireConnection::open(running.address()).await;
    connection.send(b"GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let status = json::read(&connection.response().await.unwrap().body);
    let handler = &status.get("handlers").items()[0];
    handler.find("droppedNotifications").map_or_else(|| "0".to_owned(), |count| count.text())
}

fn sse(upstream: &TestUpstream) -> String {
    entry("h", "", &format!("transport: sse, endpoint: 'http://{}/sse'", upstream.address))
}

/// A server on HTTP+SSE that sends both notifications and then the answers once it has `calls` calls.
fn sse_server(calls: usize) -> (TestUpstream, SseSessions) {
    let (sessions, held) = (SseSessions::default(), Arc::new(Mutex::new(Vec::new())));
    let server = SseServer::new(&sessions, move |request: &ReceivedRequest, voice: &SessionStream| {
        let mut held = held.lock().unwrap();
        held.push(request.clone());
        if held.len() == calls {
            voice.say(LOG);
            voice.say(VENDOR);
            held.drain(..).for_each(|request| voice.result(&request, "{}"));
        }
        accepted()
    });
    (TestUpstream::start(server), sessions)
}

#[tokio::test]
async fn sole_call_on_a_single_stream_gets_log_and_vendor_notifications() {
    let (upstream, _sessions) = sse_server(1);
    let running = gateway_of(&sse(&upstream), "").await;
    for client in clients(&running).await {
        let messages = all_messages(open_call(client).await).await;
        assert_eq!(messages[..messages.len() - 1], [LOG, VENDOR]);
    }
    assert_eq!(dropped(&running).await, "0");
}

#[tokio::test]
async fn two_calls_on_a_single_stream_get_no_notifications_of_each_other() {
    let (upstream, _sessions) = sse_server(2);
    let running = gateway_of(&sse(&upstream), "").await;
    let [one, other] = clients(&running).await;
    let (one, other) = tokio::join!(open_call(one), open_call(other));
    for stream in [one, other] {
        let messages = all_messages(stream).await;
        assert_eq!(messages.len(), 1, "{messages:?}");
    }
    assert_eq!(dropped(&running).await, "2");
}

/// A server on streamable HTTP that sends both notifications on its stream of server notifications, and the answers
/// once `calls` clients run a call and the test lets it.
async fn http_server(calls: usize) -> (TestUpstream, CatalogServer, tokio::sync::watch::Sender<bool>) {
    let server =
        CatalogServer::new(UpstreamEra::Legacy, |_: &ReceivedRequest| ScriptedReply::http(500, "", ""));
    let (news, open) = (server.clone(), tokio::sync::watch::Sender::new(false));
    let (count, gate) = (Arc::new(Mutex::new(0)), open.clone());
    let upstream = TestUpstream::start(but(server.clone(), move |request| {
        if request.method() == "logging/setLevel" {
            return Some(ScriptedReply::result(request, "{}"));
        }
        if request.method() != "tools/call" {
            return None;
        }
        let mut count = count.lock().unwrap();
        *count += 1;
        if *count == calls {
            news.say_text(LOG);
            news.say_text(VENDOR);
        }
        let mut gate = gate.subscribe();
        Some(
            ScriptedReply::result(request, "{}")
                .after(async move { drop(gate.wait_for(|open| *open).await) }),
        )
    }));
    (upstream, server, open)
}

#[tokio::test]
async fn sole_call_gets_notifications_of_the_server_stream() {
    for is_modern in [false, true] {
        let (upstream, _server, open) = http_server(1).await;
        let running = gateway(&[("h", upstream.address, "")], "").await;
        upstream.saw(|log| log.count("GET") > 0, |_| ()).await;
        let [session, modern] = clients(&running).await;
        let mut stream = open_call(if is_modern { modern } else { session }).await;
        assert_eq!(stream.message().await.as_deref(), Some(LOG));
        assert_eq!(stream.message().await.as_deref(), Some(VENDOR));
        open.send_replace(true);
        assert!(stream.message().await.unwrap().contains("result"));
        assert_eq!(dropped(&running).await, "0");
    }
}

#[tokio::test]
async fn two_calls_get_no_notifications_of_the_server_stream() {
    let (upstream, server, open) = http_server(2).await;
    let running = gateway(&[("h", upstream.address, "")], "").await;
    upstream.saw(|log| log.count("GET") > 0, |_| ()).await;
    let [one, other] = clients(&running).await;
    let (one, other) = (tokio::spawn(open_call(one)), tokio::spawn(open_call(other)));
    // The list is fetched again after the notifications before it were handled.
    upstream.saw(|log| log.count("tools/call") == 2, |_| ()).await;
    let lists = upstream.now(|log| log.count("tools/list"));
    server.say("notifications/tools/list_changed", "{}");
    upstream.saw(|log| log.count("tools/list") > lists, |_| ()).await;
    open.send_replace(true);
    for stream in [one, other] {
        let messages = all_messages(stream.await.unwrap()).await;
        assert_eq!(messages.len(), 1, "{messages:?}");
    }
    assert_eq!(dropped(&running).await, "2");
}

/// A server with a connection for this client alone sends log on its stream of server notifications, and then answers.
#[tokio::test]
async fn log_before_the_answer_precedes_it_on_a_dedicated_connection() {
    const CALLS: usize = 40;
    let server =
        CatalogServer::new(UpstreamEra::Legacy, |_: &ReceivedRequest| ScriptedReply::http(500, "", ""));
    let (news, count) = (server.clone(), Mutex::new(0));
    let upstream = TestUpstream::start(but(server, move |request| match &*request.method() {
        "logging/setLevel" => Some(ScriptedReply::result(request, "{}")),
        "tools/call" => {
            let mut count = count.lock().unwrap();
            news.say_text(LOG);
            news.say_text(VENDOR);
            // Both connections of the gateway get them: the shared one and that of the client.
            *count += 4;
            Some(ScriptedReply::result(request, "{}").after(news.wait_until_written(*count)))
        }
        _ => None,
    }));
    let running = gateway(&[("h", upstream.address, "")], "").await;
    upstream.saw(|log| log.count("GET") == 1, |_| ()).await;
    let session = session_that_elicits(&running).await;
    for call in 0..CALLS {
        let client = WireClient::new(running.address(), session.clone()).await;
        let messages = all_messages(open_call(client).await).await;
        assert_eq!(messages[..messages.len() - 1], [LOG, VENDOR], "call {call}");
    }
    // The notifications on the shared connection belong to no client.
    assert_eq!(dropped(&running).await, (2 * CALLS).to_string());
}

/// A session of a client that can be asked, whose calls run on a connection of their own.
async fn session_that_elicits(running: &RunningGateway) -> ClientMode {
    let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}"#;
    let response = client.ask("initialize", params).await;
    ClientMode::Session(response.head.header("mcp-session-id").unwrap().to_owned())
}
