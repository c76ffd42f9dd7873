//! The events of a response that is a stream, and where it breaks off.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use hyper::body::Incoming;
use toolyard_net::body;
use toolyard_net::sse::{Decoder, Event};

use super::transport::{TransportError, parse};
use crate::wire::Message;
use crate::wire::headers::LAST_EVENT_ID;

/// How long a server that does not say is left alone before it is asked for the rest of a stream.
const WAIT: Duration = Duration::from_secs(1);

/// The shortest wait, so that a server that ends every stream at once is not asked all the time, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(300));

/// A stream of events, each of them bounded.
pub(super) struct Events {
    stream: Incoming,
    decoder: Decoder,
}

/// Where a stream has got to, and when its server wants to be asked for the rest.
#[derive(Debug, Default)]
pub(super) struct Position {
    last_id: Option<HeaderValue>,
    retry: Option<Duration>,
}

impl Position {
    /// Goes on to where these events have got.
    pub(super) fn advance(&mut self, events: &Events) {
        if let Some(id) = events.decoder.last_id() {
            // What no header can carry, or is empty, is no place to go on from.
            self.last_id = HeaderValue::from_bytes(id.as_bytes()).ok().filter(|id| !id.is_empty());
        }
        self.retry = events.decoder.retry().or(self.retry);
    }

    /// Whether there is a place to go on from.
    pub(super) const fn is_known(&self) -> bool {
        self.last_id.is_some()
    }

    /// What asks for the rest.
    pub(super) fn headers(&self) -> HeaderMap {
        self.last_id.iter().map(|id| (LAST_EVENT_ID, id.clone())).collect()
    }

    /// How long to wait before that.
    pub(super) fn wait(&self) -> Duration {
        self.retry.unwrap_or(WAIT).clamp(WAITS.0, WAITS.1)
    }
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
