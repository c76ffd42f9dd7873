//! HTTP+SSE, of 2024-11-05: one stream for all that comes, and an address for all that goes.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Request, StatusCode};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::PATIENCE;
use super::link::{Heard, Inbox, Origin};
use super::stream::{Events, send};

pub(super) struct Sse {
    address: SocketAddr,
    /// Where messages go, as the server's first event says.
    endpoint: String,
    _stream: JoinSet<()>,
}

impl Sse {
    pub(super) async fn open(address: SocketAddr, inbox: Inbox) -> anyhow::Result<Self> {
        let request =
            Request::get("/sse").header(ACCEPT, "text/event-stream").body(Full::new(Bytes::new()))?;
        let response = timeout(PATIENCE, send(address, request)).await.context("no stream in time")??;
        let mut events = Events::of(response)?;
        let first = timeout(PATIENCE, events.next()).await.context("no event in time")??;
        let first = first.context("the stream ended at once")?;
        ensure!(first.kind == "endpoint", "the first event is of kind {:?}", first.kind);
        let mut stream = JoinSet::new();
        stream.spawn(async move {
            while let Ok(Some(event)) = events.next().await {
                let message = event.message();
                if inbox.send(Heard { origin: Origin::Shared, message }).is_err() {
                    return;
                }
            }
        });
        Ok(Self { address, endpoint: first.data, _stream: stream })
    }

    pub(super) async fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let body = Full::new(Bytes::from(message.to_string()));
        let request = Request::post(&self.endpoint).header(CONTENT_TYPE, "application/json").body(body)?;
        let response =
            timeout(PATIENCE, send(self.address, request)).await.context("not taken in time")??;
        ensure!(
            response.status() == StatusCode::ACCEPTED,
            "a message was answered with {}",
            response.status()
        );
        Ok(())
    }
}
