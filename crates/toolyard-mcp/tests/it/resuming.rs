//! Streams that break, and clients that come back to them.

use std::net::SocketAddr;
use std::time::Duration;

use http::{HeaderMap, Method, header};
use tokio::sync::watch;
use toolyard_core::{Call, Json, Notice, Object};
use toolyard_mcp::server::SessionLimits;

use crate::client::{LEGACY, MODERN, tool_params};
use crate::script::{OFFERED, text};
use crate::web::{Exchange, request};
use crate::yard::{Ended, Offered, Setup, Yard};

/// A backend that tells how far it is when a test says so: so many steps of progress, and with the last one the answer.
const STEPS: u64 = 3;

async fn step_by_step(mut steps: watch::Receiver<u64>, call: Call) -> Ended {
    for step in 1..=STEPS {
        steps.wait_for(|allowed| *allowed >= step).await.unwrap();
        let progress = Object::new().with("progress", Json::unsigned(step));
        call.client.notify(Notice::Progress(progress));
    }
    steps.wait_for(|allowed| *allowed > STEPS).await.unwrap();
    Ok(text("done"))
}

fn yard(sessions: SessionLimits) -> (Yard, watch::Sender<u64>) {
    let (allow, steps) = watch::channel(0);
    let yard =
        Yard::build(Setup { sessions, ..Setup::default() }, move |call| step_by_step(steps.clone(), call));
    (yard, allow)
}

/// A client that reads its streams by hand.
struct Hand {
    address: SocketAddr,
    headers: HeaderMap,
}

impl Hand {
    fn bare(yard: &Yard, revision: &'static str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        headers.insert(header::ACCEPT, "application/json, text/event-stream".parse().unwrap());
        if revision >= LEGACY[2] {
            headers.insert("mcp-protocol-version", revision.parse().unwrap());
        }
        Self { address: yard.address(), headers }
    }

    /// A client that has opened a session.
    async fn new(yard: &Yard, revision: &'static str) -> Self {
        let mut hand = Self::bare(yard, revision);
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

    /// Calls a tool, and wants to hear of progress.
    async fn call(&self) -> Exchange {
        let meta = r#""_meta":{"progressToken":1}"#;
        self.post("tools/call", &format!("{},{meta}", tool_params("echo", ""))).await
    }

    async fn listen(&self) -> Exchange {
        self.send(Method::GET, "").await
    }

    /// Comes back to a stream.
    async fn resume(&self, id: &str) -> Exchange {
        let mut headers = self.headers.clone();
        headers.insert("last-event-id", id.parse().unwrap());
        Exchange::begin(self.address, request(Method::GET, "/mcp", &headers, "")).await
    }

    async fn status_of(&self, id: &str) -> u16 {
        self.resume(id).await.response.status().as_u16()
    }
}

/// What is left on a stream: steps of progress by their numbers, anything else as it is.
async fn rest(mut stream: Exchange) -> String {
    assert!(stream.is_stream(), "{}", stream.response.status());
    let mut heard = Vec::new();
    while let Some(message) = stream.message().await {
        heard.push(short(&message));
    }
    heard.join(" ")
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
async fn a_stream_that_breaks_is_gone_on_with() {
    for revision in &LEGACY[1..] {
        let (yard, allow) = yard(SessionLimits::default());
        let client = Hand::new(&yard, revision).await;
        let (mut stream, _) = tokio::join!(client.call(), async { allow.send_replace(1) });
        assert_eq!(short(&stream.message().await.unwrap()), "1");
        let (seen, ids) = (last(&stream), stream.ids.len());
        assert_eq!(ids, if *revision == LEGACY[3] { 2 } else { 1 }, "only new clients are primed");
        drop(stream);
        // One step while nobody reads, the others after the client came back.
        allow.send_replace(2);
        let again = client.resume(&seen).await;
        let rest = rest(again);
        let (heard, _) = tokio::join!(rest, async {
            tokio::task::yield_now().await;
            allow.send_replace(STEPS + 1)
        });
        assert_eq!(heard, "2 3 done");
        assert_eq!(yard.ended(1).await, ["echo Ok(true)"]);
        // An answer that was sent may not have come.
        assert_eq!(self::rest(client.resume(&seen).await).await, "2 3 done");
    }
}

#[tokio::test]
async fn an_answer_waits_for_its_client() {
    let (yard, allow) = yard(SessionLimits::default());
    let client = Hand::new(&yard, LEGACY[3]).await;
    let (stream, _) = tokio::join!(client.call(), async { allow.send_replace(1) });
    let mut stream = stream;
    stream.message().await.unwrap();
    let primed = stream.ids[0].clone();
    drop(stream);
    allow.send_replace(STEPS + 1);
    yard.ended(1).await;
    assert_eq!(rest(client.resume(&primed).await).await, "1 2 3 done");
}

#[tokio::test]
async fn a_call_that_takes_its_time_can_be_come_back_to_before_it_says_anything() {
    let (yard, allow) = yard(SessionLimits::default());
    let client = Hand::new(&yard, LEGACY[3]).await;
    let mut stream = client.call().await;
    let primed = stream.priming().await;
    drop(stream);
    let again = client.resume(&primed).await;
    allow.send_replace(STEPS + 1);
    assert_eq!(rest(again).await, "1 2 3 done");
}

#[tokio::test]
async fn who_does_not_come_back_has_withdrawn_the_call() {
    let (yard, allow) = yard(SessionLimits { resume: Duration::from_millis(20), ..SessionLimits::default() });
    let client = Hand::new(&yard, LEGACY[3]).await;
    let (mut stream, _) = tokio::join!(client.call(), async { allow.send_replace(1) });
    stream.message().await.unwrap();
    let id = last(&stream);
    drop(stream);
    assert_eq!(yard.ended(1).await, ["echo Err(Cancelled)"]);
    // The stream goes when its call has ended.
    while client.status_of(&id).await != 400 {}
    yard.runs(0).await;
}

#[tokio::test]
async fn a_call_whose_client_is_away_is_withdrawn_by_its_id_and_with_its_session() {
    for by_session in [false, true] {
        let (yard, allow) = yard(SessionLimits::default());
        let client = Hand::new(&yard, LEGACY[3]).await;
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
        assert_eq!(yard.ended(1).await, ["echo Err(Cancelled)"]);
        match by_session {
            true => assert_eq!(client.status_of(&id).await, 404),
            // Its stream ends without an answer.
            false => assert_eq!(rest(client.resume(&id).await).await, ""),
        }
    }
}

#[tokio::test]
async fn requests_without_a_session_end_with_their_connection() {
    for revision in [LEGACY[3], MODERN] {
        let (yard, allow) = yard(SessionLimits::default());
        let client = Hand::bare(&yard, revision);
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
        assert_eq!(yard.ended(1).await, ["echo Err(Cancelled)"]);
    }
}

#[tokio::test]
async fn ids_that_name_nothing() {
    let (yard, allow) = yard(SessionLimits::default());
    let client = Hand::new(&yard, LEGACY[3]).await;
    let another = Hand::new(&yard, LEGACY[3]).await;
    let (mut stream, _) = tokio::join!(client.call(), async { allow.send_replace(1) });
    stream.message().await.unwrap();
    let id = last(&stream);
    let later = id.replace("-call-1-", "-call-2-");
    for id in ["", "1", "x-call-1-1", &later] {
        assert_eq!(client.status_of(id).await, 400, "{id}");
    }
    assert_eq!(another.status_of(&id).await, 400, "it is another session's");
    let mut nobody = Hand::bare(&yard, LEGACY[3]);
    assert_eq!(nobody.status_of(&id).await, 405);
    nobody.headers.insert("mcp-session-id", "none".parse().unwrap());
    assert_eq!(nobody.status_of(&id).await, 404);
    // None of these has ended the stream.
    allow.send_replace(STEPS + 1);
    assert_eq!(rest(stream).await, "2 3 done");
}

#[tokio::test]
async fn news_that_a_client_missed() {
    let (yard, _allow) = yard(SessionLimits::default());
    let client = Hand::new(&yard, LEGACY[3]).await;
    let mut stream = client.listen().await;
    let other = Offered { tools: &[], ..OFFERED };
    yard.offer(other);
    assert!(stream.message().await.unwrap().contains("tools/list_changed"));
    let id = last(&stream);
    drop(stream);
    // The list changes often, and the client is told at least once.
    for _ in 0..10 {
        yard.offer(OFFERED);
        yard.offer(other);
    }
    yard.offer(OFFERED);
    let mut stream = client.resume(&id).await;
    assert!(stream.message().await.unwrap().contains("tools/list_changed"));
    yard.offer(Offered { prompts: &[], ..OFFERED });
    while stream.message().await.unwrap().contains("tools/list_changed") {}
}

/// What nobody reads does not gather, however often it changes.
#[tokio::test]
async fn news_of_who_does_not_read() {
    let (yard, _allow) = yard(SessionLimits { replay_bytes: 2000, ..SessionLimits::default() });
    let client = Hand::new(&yard, LEGACY[3]).await;
    let mut stream = client.listen().await;
    let id = stream.priming().await;
    drop(stream);
    for _ in 0..5000 {
        yard.offer(Offered { tools: &[], ..OFFERED });
        tokio::task::yield_now().await;
        yard.offer(OFFERED);
    }
    let mut stream = client.resume(&id).await;
    let mut heard = 0;
    yard.offer(Offered { tools: &[], prompts: &[], ..OFFERED });
    while stream.message().await.unwrap().contains("tools/list_changed") {
        heard += 1;
    }
    assert!((1..=11).contains(&heard), "what is kept, and one more: {heard}");
}

#[tokio::test]
async fn news_that_are_not_kept_any_more() {
    let (yard, _allow) = yard(SessionLimits { resume: Duration::ZERO, ..SessionLimits::default() });
    let client = Hand::new(&yard, LEGACY[3]).await;
    client.post("resources/subscribe", r#""uri":"mem:one""#).await;
    let mut stream = client.listen().await;
    yard.offer(Offered { tools: &[], ..OFFERED });
    stream.message().await.unwrap();
    let id = last(&stream);
    yard.follows(&[("mem:one", 1)]).await;
    drop(stream);
    yard.follows(&[]).await;
    // Nobody knows what has changed: everything may have.
    let mut stream = client.resume(&id).await;
    for change in ["tools/list_changed", "prompts/list_changed", "resources/list_changed", "mem:one"] {
        let message = stream.message().await.unwrap();
        assert!(message.contains(change), "{message}");
    }
}
