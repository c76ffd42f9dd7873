//! Sessions whose clients have nothing to ask at the moment.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, StatusCode};

use super::{Connection, Era, PATIENCE};

/// A session of the legacy era that is open and not used.
pub(crate) struct IdleSession {
    headers: HeaderMap,
    last_id: u64,
    /// On which the server would say what belongs to no request. It holds its connection open.
    stream: Option<Incoming>,
}

impl Connection {
    /// Closes the connection and leaves the session open.
    pub(crate) fn leave(self) -> IdleSession {
        IdleSession { headers: self.headers, last_id: self.last_id, stream: None }
    }

    /// Asks for the session's own stream and leaves both open.
    pub(crate) async fn listen(mut self) -> anyhow::Result<IdleSession> {
        let request = self.http(Method::GET, Bytes::new())?;
        let answer = tokio::time::timeout(PATIENCE, self.send(request)).await;
        let (head, stream) = answer.context("there was no stream in time")??.into_parts();
        let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        ensure!(
            head.status == StatusCode::OK && kind.starts_with("text/event-stream"),
            "asked for a stream and got {} with {kind:?}",
            head.status
        );
        Ok(IdleSession { stream: Some(stream), ..self.leave() })
    }
}

impl IdleSession {
    /// Comes back, on a new connection. If the session had a stream, that must have stayed open until now.
    pub(crate) async fn resume(mut self, address: SocketAddr) -> anyhow::Result<Connection> {
        while let Some(frame) = self.stream.as_mut().and_then(|stream| stream.frame().now_or_never()) {
            frame.context("the server ended a stream")??;
        }
        let mut connection = Connection::connect(address, Era::Legacy).await?;
        connection.headers = self.headers;
        connection.last_id = self.last_id;
        Ok(connection)
    }
}
