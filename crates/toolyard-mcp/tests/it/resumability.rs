//! Resumability of interrupted streams.

use std::net::SocketAddr;
use std::time::Duration;

use http::{HeaderMap, Method, header};
use tokio::sync::watch;
use toolyard_core::{Call, ClientNotification, Json, Object};
use toolyard_mcp::server::SessionLimits;

use crate::client::{LEGACY, MODERN, tool_params};
use crate::script::{OFFERED, text};
use crate::test_gateway::{Ended, Offered, Setup, TestGateway};
use crate::web::{Exchange, request};

/// Number of progress notifications of the backend, each sent when the test allows it; the answer follows.
const STEPS: u64 = 3;

async fn step_by_step(mut steps: watch::Receiver<u64>, call: Call) -> Ended {
    for step in 1..=STEPS {
        steps.wait_for(|allowed| *allowed >= step).await.unwrap();
        let progress = Object::new().with("progress", Json::unsigned(step));
        call.client.notify(ClientNotification::Progress(progress.into()));
    }
    steps.wait_for(|allowed| *allowed > STEPS).await.unwrap();
    Ok(text("done"))
}

fn gateway(sessions: SessionLimits) -> (TestGateway, watch::Sender<u64>) {
    let (allow, steps) = watch::channel(0);
    let gateway = TestGateway::build(Setup { sessions, ..Setup::default() }, move |call| {
        step_by_step(steps.clone(), call)
    });
    (gateway, allow)
}

/// A client that reads its streams by hand.
struct ManualClient {
    address: SocketAddr,
    headers: HeaderMap,
}

impl ManualClient {
    fn bare(gateway: &TestGateway, revision: &'static str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        headers.insert(header::ACCEPT, "application/json, text/event-stream".parse().unwrap());
        if revision >= LEGACY[2] {
            headers.insert("mcp-protocol-version", revision.parse().unwrap());
        }
        Self { address: gateway.address(), headers }
    }

    /// Opens a session.
    async fn new(gateway: &TestGateway, revision: &'static str) -> Self {
        let mut hand = Self::bare(gateway, revision);
        let params = format!(r#""protocolVersion":"{revision}","capabilities":{{}}"#);
        let opened = hand.post("initialize", &params).await;
        let session = opened.response.headers()["mcp-session-id"].clone();
        hand.headers.insert("mcp-session-id", session);
        hand
    }

    async fn send(&self, method: Method, body: &str) -> Exchange {
        Exchange::begin(self.address, request(method, "/mcp", &self.headers, body)).await
    }

    async fn post(&self, method: &str, params: &str) -> Exchange {
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#);
        self.send(Method::POST, &body).await
    }

    /// Calls a tool, with a progress token.
    async fn call(&self) -> Exchange {
        let meta = r#""_meta":{"progressToken":1}"#;
        self.post("tools/call", &format!("{},{meta}", tool_params("echo", ""))).await
    }

    async fn listen(&self) -> Exchange {
        self.send(Method::GET, "").await
    }

    /// Resumes a stream.
    async fn resume(&self, id: &str) -> Exchange {
        let mut headers = self.headers.clone();
        headers.insert("last-event-id", id.parse().unwrap());
        Exchange::begin(self.address, request(Method::GET, "/mcp", &headers, "")).await
    }

    async fn status_of(&self, id: &str) -> u16 {
        self.resume(id).await.response.status().as_u16()
    }
}

/// Returns the rest of a stream: progress by its numbers, anything else unchanged.
async fn rest(mut stream: Exchange) -> String {
    assert!(stream.is_stream(), "{}", stream.response.status());
    let mut received = Vec::new();
    while let Some(message) = stream.message().await {
        received.push(short(&message));
    }
    received.join(" ")
}

fn short(message: &str) -> String {
    let step = message.split_once(r#""progress":"#).map(|(_, rest)| rest[..1].to_owned());
    let answer = || {
        message.replace(
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"done"}]}}"#,
            "done",
        )
    };
    step.unwrap_or_else(answer)
}

fn last(stream: &Exchange) -> String {
    stream.ids.last().unwrap().clone()
}

#[tokio::test]
async fn broken_stream_is_resumed() {
    for revision in &LEGACY[1..] {
        let (gateway, allow) = gateway(SessionLimits::default());
        let client = ManualClient::new(&gateway, revision).await;
        let (mut stream, _) = tokio::join!(client.call(), async { allow.send_replace(1) });
        assert_eq!(short(&stream.message().await.unwrap()), "1");
        let (seen, ids) = (last(&stream), stream.ids.len());
        assert_eq!(ids, if *revision == LEGACY[3] { 2 } else { 1 }, "only new clients are primed");
        drop(stream);
        // One step without a reader, the others after the stream was resumed.
        allow.send_replace(2);
        let again = client.resume(&seen).await;
        let rest = rest(again);
        let (received, _) = tokio::join!(rest, async {
            tokio::task::yield_now().await;
            allow.send_replace(STEPS + 1)
        });
        assert_eq!(received, "2 3 done");
        assert_eq!(gateway.ended(1).await, ["echo Ok(true)"]);
        // An answer that was sent may be lost on the way.
        assert_eq!(self::rest(client.resume(&seen).await).await, "2 3 done");
    }
}

#[tokio::test]
async fn answer_waits_for_its_client() {
    let (gateway, allow) = gateway(SessionLimits::default());
    let client = ManualClient::new(&gateway, LEGACY[3]).await;
    let (stream, _) = tokio::join!(client.call(), async { allow.send_replace(1) });
    let mut stream = stream;
    stream.message().await.unwrap();
    let primed = stream.ids[0].clone();
    drop(stream);
    allow.send_replace(STEPS + 1);
    gateway.ended(1).await;
    assert_eq!(rest(client.resume(&primed).await).await, "1 2 3 done");
}

#[tokio::test]
async fn silent_call_can_be_resumed() {
    let (gateway, allow) = gateway(SessionLimits::default());
    let client = ManualClient::new(&gateway, LEGACY[3]).await;
    let mut stream = client.call().await;
    let primed = stream.priming().await;
    drop(stream);
    let again = client.resume(&primed).await;
    allow.send_replace(STEPS + 1);
    assert_eq!(rest(again).await, "1 2 3 done");
}

#[tokio::test]
async fn abandoned_call_is_cancelled() {
    let (gateway, allow) =
        gateway(SessionLimits { resume_timeout: Duration::from_millis(20), ..SessionLimits::default() });
    let client = ManualClient::new(&gateway, LEGACY[3]).await;
    let (mut stream, _) = tokio::join!(client.call(), async { allow.send_replace(1) });
    stream.message().await.unwrap();
    let id = last(&stream);
    drop(stream);
    assert_eq!(gateway.ended(1).await, ["echo Err(Cancelled)"]);
    // The stream is removed once its call has ended.
    while client.status_of(&id).await != 400 {}
    gateway.wait_for_running(0).await;
}

#[tokio::test]
async fn disconnected_call_is_cancelled_by_id_and_with_its_session() {
    for by_session in [false, true] {
        let (gateway, allow) = gateway(SessionLimits::default());
        let client = ManualClient::new(&gateway, LEGACY[3]).await;
        let (mut stream, _) = tokio::join!(client.call(), async { allow.send_replace(1) });
        stream.message().await.unwrap();
        let id = last(&stream);
        drop(stream);
        if by_session {
            assert_eq!(client.send(Method::DELETE, "").await.response.status(), 204);
        } else {
            let body = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
            assert_eq!(client.send(Method::POST, body).await.response.status(), 202);
        }
        assert_eq!(gateway.ended(1).await, ["echo Err(Cancelled)"]);
        match by_session {
            true => assert_eq!(client.status_of(&id).await, 404),
            // The stream ends without an answer.
            false => assert_eq!(rest(client.resume(&id).await).await, ""),
        }
    }
}

#[tokio::test]
async fn requests_without_a_session_end_with_their_connection() {
    for revision in [LEGACY[3], MODERN] {
        let (gateway, allow) = gateway(SessionLimits::default());
        let client = ManualClient::bare(&gateway, revision);
        let call = async {
            if revision == LEGACY[3] {
                return client.call().await;
            }
            let mut headers = client.headers.clone();
            headers.insert("mcp-method", "tools/call".parse().unwrap());
            headers.insert("mcp-name", "echo".parse().unwrap());
            let meta = format!(
                r#""io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}},"progressToken":1"#
            );
            let params = format!(r#"{},"_meta":{{{meta}}}"#, tool_params("echo", ""));
            let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{{params}}}}}"#);
            Exchange::begin(client.address, request(Method::POST, "/mcp", &headers, &body)).await
        };
        let (mut stream, _) = tokio::join!(call, async { allow.send_replace(1) });
        assert_eq!(short(&stream.message().await.unwrap()), "1");
        assert_eq!(stream.ids, Vec::<String>::new(), "there is nothing to come back with");
        drop(stream);
        assert_eq!(gateway.ended(1).await, ["echo Err(Cancelled)"]);
    }
}

#[tokio::test]
async fn unknown_event_ids_are_refused() {
    let (gateway, allow) = gateway(SessionLimits::default());
    let client = ManualClient::new(&gateway, LEGACY[3]).await;
    let another = ManualClient::new(&gateway, LEGACY[3]).await;
    let (mut stream, _) = tokio::join!(client.call(), async { allow.send_replace(1) });
    stream.message().await.unwrap();
    let id = last(&stream);
    let later = id.replace("-call-1-", "-call-2-");
    for id in ["", "1", "x-call-1-1", &later] {
        assert_eq!(client.status_of(id).await, 400, "{id}");
    }
    assert_eq!(another.status_of(&id).await, 400, "it is another session's");
    let mut nobody = ManualClient::bare(&gateway, LEGACY[3]);
    assert_eq!(nobody.status_of(&id).await, 405);
    nobody.headers.insert("mcp-session-id", "none".parse().unwrap());
    assert_eq!(nobody.status_of(&id).await, 404);
    // None of these has ended the stream.
    allow.send_replace(STEPS + 1);
    assert_eq!(rest(stream).await, "2 3 done");
}

#[tokio::test]
async fn missed_notifications_are_reported() {
    let (gateway, _allow) = gateway(SessionLimits::default());
    let client = ManualClient::new(&gateway, LEGACY[3]).await;
    let mut stream = client.listen().await;
    let other = Offered { tools: &[], ..OFFERED };
    gateway.offer(other);
    assert!(stream.message().await.unwrap().contains("tools/list_changed"));
    let id = last(&stream);
    drop(stream);
    // The list changes often, and the client is notified at least once.
    for _ in 0..10 {
        gateway.offer(OFFERED);
        gateway.offer(other);
    }
    gateway.offer(OFFERED);
    let mut stream = client.resume(&id).await;
    assert!(stream.message().await.unwrap().contains("tools/list_changed"));
    gateway.offer(Offered { prompts: &[], ..OFFERED });
    while stream.message().await.unwrap().contains("tools/list_changed") {}
}

/// Notifications without a reader do not accumulate.
#[tokio::test]
async fn unread_notifications_do_not_accumulate() {
    let (gateway, _allow) = gateway(SessionLimits { max_replay_bytes: 2000, ..SessionLimits::default() });
    let client = ManualClient::new(&gateway, LEGACY[3]).await;
    let mut stream = client.listen().await;
    let id = stream.priming().await;
    drop(stream);
    for _ in 0..5000 {
        gateway.offer(Offered { tools: &[], ..OFFERED });
        tokio::task::yield_now().await;
        gateway.offer(OFFERED);
    }
    let mut stream = client.resume(&id).await;
    let mut received = 0;
    gateway.offer(Offered { tools: &[], prompts: &[], ..OFFERED });
    while stream.message().await.unwrap().contains("tools/list_changed") {
        received += 1;
    }
    assert!((1..=11).contains(&received), "what is kept, and one more: {received}");
}

#[tokio::test]
async fn expired_stream_reports_everything_as_changed() {
    let (gateway, _allow) =
        gateway(SessionLimits { resume_timeout: Duration::ZERO, ..SessionLimits::default() });
    let client = ManualClient::new(&gateway, LEGACY[3]).await;
    client.post("resources/subscribe", r#""uri":"mem:one""#).await;
    let mut stream = client.listen().await;
    gateway.offer(Offered { tools: &[], ..OFFERED });
    stream.message().await.unwrap();
    let id = last(&stream);
    gateway.wait_for_followers(&[("mem:one", 1)]).await;
    drop(stream);
    gateway.wait_for_followers(&[]).await;
    // Everything is reported as changed, since the changes are unknown.
    let mut stream = client.resume(&id).await;
    for change in ["tools/list_changed", "prompts/list_changed", "resources/list_changed", "mem:one"] {
        let message = stream.message().await.unwrap();
        assert!(message.contains(change), "{message}");
    }
}
