//! The events that a client reads.
//!
//! A client that names `text/event-stream` first in `Accept` gets a stream, unless its answer is large. Others get a
//! stream only if a message precedes the answer.
//!
//! The Python SDK refuses an event of more than 1 MiB from version 2 on, however many lines of data it has, and with it
//! the stream of the call. Its HTTP library is the only sign of it. Other clients read events of any size, and every
//! client reads a plain JSON response of any size.

mod truncated_result;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use toolyard_core::{ErrorCode, ToolError};
use toolyard_net::header_values::{EVENT_STREAM, begins_with_media_type};

use crate::wire::{RpcError, RpcMessage, message};

/// Begin of the `User-Agent` of the HTTP library, and the size of the events that it refuses.
const LIMITED_AGENT: (&str, usize) = ("python-httpx2/", 1 << 20);

/// Bytes of an event beside its message.
const EVENT_OVERHEAD: usize = 1 << 10;

/// Largest answer, in bytes, that is an event only because the client prefers events. Clients have various limits for
/// events, and none for plain responses.
const LARGEST_PREFERRED: usize = 64 << 10;

/// The events that a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClientEvents {
    /// The maximum size of a message in an event; `None` if there is no limit.
    limit: Option<usize>,
    are_preferred: bool,
}

impl ClientEvents {
    /// Returns the events for the client that sends these headers.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let (limited, bytes) = LIMITED_AGENT;
        let limit = agent.trim_start().starts_with(limited).then_some(bytes - EVENT_OVERHEAD);
        let are_preferred = begins_with_media_type(headers, &header::ACCEPT, EVENT_STREAM);
        Self { limit, are_preferred }
    }

    /// Returns `true` if the client has a limit, so that a plain response is better than a stream.
    pub(super) const fn are_limited(self) -> bool {
        self.limit.is_some()
    }

    /// Returns `true` if the client prefers an event to a plain response with this answer.
    pub(super) fn are_preferred_for(self, answer: &[Bytes]) -> bool {
        self.are_preferred && answer.iter().map(Bytes::len).sum::<usize>() <= LARGEST_PREFERRED
    }

    /// Returns a message that the client reads: this one, a larger answer with shorter texts, or the error that takes its
    /// place. `None` if a message that is not an answer is larger: it would end the stream before the answer.
    pub(super) fn fit(self, message: Vec<Bytes>) -> Option<Vec<Bytes>> {
        let size = message.iter().map(Bytes::len).sum();
        match self.limit {
            Some(limit) if size > limit => replacement(&message, size, limit),
            _ => Some(message),
        }
    }
}

/// Returns the answer that takes the place of a larger one.
fn replacement(message: &[Bytes], size: usize, limit: usize) -> Option<Vec<Bytes>> {
    let mut text = BytesMut::with_capacity(size);
    message.iter().for_each(|piece| text.extend_from_slice(piece));
    let Ok(RpcMessage::Response { id, answer }) = RpcMessage::parse(text) else { return None };
    let envelope: usize = message::response(id.as_ref(), Ok(Vec::new())).iter().map(Bytes::len).sum();
    let room = limit.saturating_sub(envelope);
    if let Some(result) = answer.ok().and_then(|result| truncated_result::truncate(&result, room, limit)) {
        return Some(message::response(id.as_ref(), Ok(vec![result.bytes()])));
    }
    let problem = format!(
        "The answer has {size} bytes, and the client reads events of at most {limit}: request less, or raise `max_sse_event_size` of the client"
    );
    let error = ToolError::new(ErrorCode::ExecutionFailed, problem);
    let error = error.because("the answer is larger than an event that the client reads");
    Some(message::response(id.as_ref(), Err(RpcError::from(&error))))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use toolyard_core::{Json, Object};

    use super::*;
    use crate::wire::RequestId;

    #[test]
    fn small_answers_are_events_if_the_client_names_them_first() {
        for (accept, bytes, expected) in [
            ("text/event-stream, application/json", 1 << 16, true),
            (" text/event-stream;q=1, */*", 0, true),
            ("text/event-stream, application/json", (1 << 16) + 1, false),
            ("application/json, text/event-stream", 0, false),
            ("*/*", 0, false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            let answer = [Bytes::from(vec![b' '; bytes])];
            assert_eq!(ClientEvents::of(&headers).are_preferred_for(&answer), expected, "{accept} {bytes}");
        }
    }

    #[test]
    fn large_messages_of_limited_clients_are_replaced() {
        let limit = |agent: &'static str| {
            ClientEvents::of(&HeaderMap::from_iter([(header::USER_AGENT, HeaderValue::from_static(agent))]))
        };
        let answer = |bytes: usize| {
            let result = Json::string(&"x".repeat(bytes)).bytes();
            message::response(Some(&RequestId::number(7)), Ok(vec![result]))
        };
        let tool_result = || {
            let block = Object::new()
                .with("type", Json::string("text"))
                .with("text", Json::string(&"x".repeat(1 << 20)));
            let result = Object::new().with("content", Json::array(&[block.to_json()]));
            message::response(Some(&RequestId::number(7)), Ok(result.to_pieces()))
        };
        let notice = |bytes: usize| {
            vec![Bytes::from(format!(
                r#"{{"jsonrpc":"2.0","method":"m","params":{{"x":"{}"}}}}"#,
                "x".repeat(bytes)
            ))]
        };
        let python = limit("python-httpx2/2.16.2");
        for (limit, message, expected) in [
            (python, answer(1 << 19), "same"),
            (python, answer(1 << 20), "error"),
            (python, tool_result(), "result"),
            (python, notice(1 << 19), "same"),
            (python, notice(1 << 20), "none"),
            (limit("python-httpx/0.28.1"), answer(1 << 20), "same"),
            (limit("node"), answer(1 << 20), "same"),
            (ClientEvents::of(&HeaderMap::new()), answer(1 << 20), "same"),
        ] {
            let fitted = match limit.fit(message.clone()) {
                None => "none",
                Some(same) if same == message => "same",
                Some(other) => {
                    let text = String::from_utf8(other.concat()).unwrap();
                    assert!(text.len() <= (1 << 20) - EVENT_OVERHEAD);
                    let member =
                        |name: &str| text.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":7,"{name}""#));
                    ["error", "result"].into_iter().find(|name| member(name)).unwrap()
                }
            };
            assert_eq!(fitted, expected);
        }
    }
}
