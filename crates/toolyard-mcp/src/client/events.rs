//! The events of a response that is a stream.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use hyper::body::Incoming;
use toolyard_net::body;
use toolyard_net::sse::{Decoder, Event};

use super::transport::{TransportError, parse};
use crate::wire::Message;

/// A stream of events, each of them bounded.
pub(super) struct Events {
    stream: Incoming,
    decoder: Decoder,
}

/// Whether a response with this head is a stream of events.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.starts_with("text/event-stream")
}

/// Whether an event carries a message. The first event of a resumable stream has an id and no data; other types
/// are not ours.
pub(super) fn is_message(event: &Event) -> bool {
    !event.data.is_empty() && matches!(&*event.kind, "" | "message")
}

impl Events {
    pub(super) fn new(stream: Incoming, event_bytes: usize) -> Self {
        Self { stream, decoder: Decoder::new(event_bytes) }
    }

    /// The next event, whatever it is; `None` at the end.
    pub(super) async fn event(&mut self) -> Result<Option<Event>, TransportError> {
        loop {
            if let Some(event) =
                self.decoder.next_event().map_err(|error| TransportError::TooLarge(error.0))?
            {
                return Ok(Some(event));
            }
            match body::next_data(&mut self.stream).await {
                Ok(Some(bytes)) => self.decoder.push(&bytes),
                Ok(None) => return Ok(None),
                Err(error) => return Err(TransportError::Interrupted(error.into())),
            }
        }
    }

    /// The next message; `None` at the end.
    pub(super) async fn message(&mut self) -> Result<Option<Message>, TransportError> {
        while let Some(event) = self.event().await? {
            if is_message(&event) {
                return parse(event.data).map(Some);
            }
        }
        Ok(None)
    }
}
