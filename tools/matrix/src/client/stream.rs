//! Requests over HTTP, each on a connection of its own, and the events of their responses.

use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Sends a request.
pub(super) async fn send(
    address: SocketAddr,
    mut request: Request<Full<Bytes>>,
) -> anyhow::Result<Response<Incoming>> {
    let stream = TcpStream::connect(address).await.context("connect")?;
    stream.set_nodelay(true)?;
    let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    request.headers_mut().insert(HOST, HeaderValue::from_str(&address.to_string())?);
    Ok(sender.send_request(request).await?)
}

pub(super) fn media_type(headers: &HeaderMap) -> &str {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default()
}

/// One event.
#[derive(Default)]
pub(super) struct ParsedEvent {
    pub(super) kind: String,
    pub(super) data: String,
}

impl ParsedEvent {
    /// The message of the event; `None` for an event with an ID only, which serves resumption.
    pub(super) fn message(&self) -> anyhow::Result<Option<Value>> {
        ensure!(matches!(&*self.kind, "" | "message"), "unexpected event type {}", self.kind);
        if self.data.is_empty() {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&self.data).with_context(|| format!("invalid JSON: {}", self.data))?))
    }
}

/// The events of a response.
pub(super) struct EventReader {
    body: Incoming,
    text: Vec<u8>,
}

impl EventReader {
    pub(super) fn of(response: Response<Incoming>) -> anyhow::Result<Self> {
        let (status, kind) = (response.status(), media_type(response.headers()).to_owned());
        if status != 200 || kind != "text/event-stream" {
            bail!("expected an event stream, got {status} with {kind:?}");
        }
        Ok(Self { body: response.into_body(), text: Vec::new() })
    }

    /// The next event; `None` at the end.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<ParsedEvent>> {
        loop {
            if let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.text.drain(..end + 2).collect();
                let event = parse_event(std::str::from_utf8(&block).context("invalid UTF-8")?);
                if let Some(event) = event {
                    return Ok(Some(event));
                }
                continue;
            }
            match self.body.frame().await {
                None => return Ok(None),
                // A server that closes the connection may do so within an event.
                Some(Err(_)) => return Ok(None),
                Some(Ok(frame)) => self.text.extend(frame.into_data().unwrap_or_default()),
            }
        }
    }
}

/// Parses the lines of an event; `None` if they are all comments.
fn parse_event(block: &str) -> Option<ParsedEvent> {
    let mut event = ParsedEvent::default();
    let mut has_data = false;
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => event.kind = value.to_owned(),
            "data" => {
                has_data = true;
                event.data += value;
            }
            _ => {}
        }
    }
    has_data.then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_has_type_and_data() {
        let read = |block| parse_event(block).map(|event| (event.kind, event.data));
        assert_eq!(read("event: message\ndata: {}\n\n"), Some(("message".to_owned(), "{}".to_owned())));
        assert_eq!(read("id: 1\nretry: 5\ndata:\n\n"), Some((String::new(), String::new())));
        assert_eq!(read(": keep-alive\n\n"), None);
    }
}
