//! The largest event that a client reads.
//!
//! The Python SDK refuses an event of more than 1 MiB from version 2 on, however many lines of data it has, and with it
//! the stream of the call. Its HTTP library is the only sign of it. Other clients read events of any size, and every
//! client reads a plain JSON response of any size.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use toolyard_core::{ErrorCode, ToolError};

use crate::wire::{RpcError, RpcMessage, message};

/// Begin of the `User-Agent` of the HTTP library, and the size of the events that it refuses.
const LIMITED_AGENT: (&str, usize) = ("python-httpx2/", 1 << 20);

/// Bytes of an event beside its message.
const EVENT_OVERHEAD: usize = 1 << 10;

/// The maximum size of a message in an event; `None` if the client has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventLimit(Option<usize>);

impl EventLimit {
    /// Returns the limit of the client that sends these headers.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let (limited, bytes) = LIMITED_AGENT;
        Self(agent.starts_with(limited).then_some(bytes - EVENT_OVERHEAD))
    }

    /// True if the client has a limit, so that a plain response is better than a stream.
    pub(super) const fn exists(self) -> bool {
        self.0.is_some()
    }

    /// Returns a message that the client reads: this one, or the error that takes the place of a larger answer. `None`
    /// if a message that is not an answer is larger: it would end the stream before the answer.
    pub(super) fn fit(self, message: Vec<Bytes>) -> Option<Vec<Bytes>> {
        let size = message.iter().map(Bytes::len).sum();
        match self.0 {
            Some(limit) if size > limit => replacement(&message, size, limit),
            _ => Some(message),
        }
    }
}

/// Returns the error that takes the place of an answer.
fn replacement(message: &[Bytes], size: usize, limit: usize) -> Option<Vec<Bytes>> {
    let text: BytesMut = message.iter().flat_map(|piece| piece.iter().copied()).collect();
    let Ok(RpcMessage::Response { id, .. }) = RpcMessage::parse(text) else { return None };
    let problem = format!(
        "The answer has {size} bytes, and the client reads events of at most {limit}: request less, raise `max_sse_event_size` of the client, or call without a progress token, so that the answer is no event"
    );
    let error = ToolError::new(ErrorCode::ExecutionFailed, problem);
    let error = error.because("the answer is larger than an event that the client reads");
    Some(message::response(id.as_ref(), Err(RpcError::from(&error))))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use toolyard_core::Json;

    use super::*;
    use crate::wire::RequestId;

    #[test]
    fn large_messages_of_limited_clients_are_replaced() {
        let limit = |agent: &'static str| {
            EventLimit::of(&HeaderMap::from_iter([(header::USER_AGENT, HeaderValue::from_static(agent))]))
        };
        let answer = |bytes: usize| {
            let result = Json::string(&"x".repeat(bytes)).bytes();
            message::response(Some(&RequestId::number(7)), Ok(vec![result]))
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
            (python, notice(1 << 19), "same"),
            (python, notice(1 << 20), "none"),
            (limit("python-httpx/0.28.1"), answer(1 << 20), "same"),
            (limit("node"), answer(1 << 20), "same"),
            (EventLimit::of(&HeaderMap::new()), answer(1 << 20), "same"),
        ] {
            let fitted = match limit.fit(message.clone()) {
                None => "none",
                Some(same) if same == message => "same",
                Some(other) => {
                    let text = String::from_utf8(other.concat()).unwrap();
                    assert!(text.starts_with(r#"{"jsonrpc":"2.0","id":7,"error""#), "{text}");
                    "error"
                }
            };
            assert_eq!(fitted, expected);
        }
    }
}
