//! Idle sessions.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, StatusCode};

use super::{McpConnection, McpEra, RESPONSE_TIMEOUT};

/// An open session of the legacy era that is not used.
pub struct IdleSession {
    headers: HeaderMap,
    last_id: u64,
    /// The stream for server messages outside of requests. It keeps its connection open.
    stream: Option<Incoming>,
}

impl McpConnection {
    /// Closes the connection and leaves the session open.
    pub fn into_idle(self) -> IdleSession {
        IdleSession { headers: self.headers, last_id: self.last_id, stream: None }
    }

    /// Opens the session's own stream, and leaves both open.
    pub async fn listen(mut self) -> anyhow::Result<IdleSession> {
        let request = self.http(Method::GET, Bytes::new())?;
        let answer = tokio::time::timeout(RESPONSE_TIMEOUT, self.send(request)).await;
        let (head, stream) = answer.context("no stream in time")??.into_parts();
        let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        ensure!(
            head.status == StatusCode::OK && kind.starts_with("text/event-stream"),
            "expected an event stream, got {} with {kind:?}",
            head.status
        );
        Ok(IdleSession { stream: Some(stream), ..self.into_idle() })
    }
}

impl IdleSession {
    /// Resumes the session on a new connection. Errors if its stream was closed meanwhile.
    pub async fn resume(mut self, address: SocketAddr) -> anyhow::Result<McpConnection> {
        while let Some(frame) = self.stream.as_mut().and_then(|stream| stream.frame().now_or_never()) {
            frame.context("the server closed the stream")??;
        }
        let mut connection = McpConnection::new(super::connect(address).await?, McpEra::Legacy).await?;
        connection.headers = self.headers;
        connection.last_id = self.last_id;
        Ok(connection)
    }
}
