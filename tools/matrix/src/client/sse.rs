//! HTTP+SSE, of 2024-11-05: one stream for received messages, one endpoint for sent ones.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Request, StatusCode};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::RESPONSE_TIMEOUT;
use super::link::{InboxMessage, LinkInbox, MessageOrigin};
use super::stream::{EventReader, send};

pub(super) struct SseLink {
    address: SocketAddr,
    /// The endpoint for messages, from the server's first event.
    endpoint: String,
    _stream: JoinSet<()>,
}

impl SseLink {
    pub(super) async fn open(address: SocketAddr, inbox: LinkInbox) -> anyhow::Result<Self> {
        let request =
            Request::get("/sse").header(ACCEPT, "text/event-stream").body(Full::new(Bytes::new()))?;
        let response =
            timeout(RESPONSE_TIMEOUT, send(address, request)).await.context("no stream in time")??;
        let mut events = EventReader::of(response)?;
        let first = timeout(RESPONSE_TIMEOUT, events.next()).await.context("no event in time")??;
        let first = first.context("the stream ended without an event")?;
        ensure!(first.kind == "endpoint", "unexpected type of the first event: {:?}", first.kind);
        let mut stream = JoinSet::new();
        stream.spawn(async move {
            while let Ok(Some(event)) = events.next().await {
                let message = event.message();
                if inbox.send(InboxMessage { origin: MessageOrigin::Shared, message }).is_err() {
                    return;
                }
            }
        });
        Ok(Self { address, endpoint: first.data, _stream: stream })
    }

    pub(super) async fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let body = Full::new(Bytes::from(message.to_string()));
        let request = Request::post(&self.endpoint).header(CONTENT_TYPE, "application/json").body(body)?;
        let response = timeout(RESPONSE_TIMEOUT, send(self.address, request))
            .await
            .context("not accepted in time")??;
        ensure!(
            response.status() == StatusCode::ACCEPTED,
            "unexpected status {} for a message",
            response.status()
        );
        Ok(())
    }
}
