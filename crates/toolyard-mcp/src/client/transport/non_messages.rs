//! Text of a server that is not a message, such as heartbeats on a stream or a program's other standard output. It is
//! skipped, unless it is a malformed response that a request waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use toolyard_core::Object;

use super::TransportError;
use crate::client::ClientOptions;
use crate::wire::RequestId;

/// The skipped messages of a server.
#[derive(Debug, Clone)]
pub(super) struct SkippedMessages {
    /// Name of the server, for the log.
    name: Arc<str>,
    /// Their number, on all connections to the server.
    count: Arc<AtomicU64>,
}

impl SkippedMessages {
    pub(super) fn new(name: &Arc<str>, options: &ClientOptions) -> Self {
        Self { name: name.clone(), count: options.skipped_messages.clone() }
    }

    /// Counts a skipped message. Only the first one is logged: heartbeats never end.
    pub(super) fn record(&self, error: &TransportError) {
        if self.count.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                handler = %self.name,
                %error,
                "skipped what is not a message; the status counts further ones"
            );
        }
    }
}

/// Returns the id of a malformed response: that of its envelope, or as far as its text shows it.
pub(super) fn id_of_malformed(text: &Bytes) -> Option<u64> {
    let Ok(envelope) = Object::parse(text.clone()) else { return id_of_fragment(text) };
    let has = |member| envelope.get(member).is_some();
    // Other JSON may have an `id` as well.
    let is_response = !has("method") && (has("jsonrpc") || has("result") || has("error"));
    RequestId::parse(envelope.get("id").filter(|_| is_response)?)?.to_lenient_number()
}

/// Finds the id of a response that cannot be parsed, if the first or the last members of its envelope show it. Other
/// positions may be part of a result, or of unrelated output.
pub(super) fn id_of_fragment(line: &[u8]) -> Option<u64> {
    const ENVELOPE: &[u8] = b"\"jsonrpc\":\"2.0\",\"id\":";
    const ENOUGH: usize = 64;
    let compact =
        |part: &[u8]| -> Vec<u8> { part.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect() };
    let (first, last) =
        (compact(&line[..line.len().min(ENOUGH)]), compact(&line[line.len().saturating_sub(ENOUGH)..]));
    let in_front = first.strip_prefix(b"{").and_then(|text| text.strip_prefix(ENVELOPE));
    let behind = memchr::memmem::rfind(&last, ENVELOPE).map(|at| &last[at + ENVELOPE.len()..]);
    let digits = |text: &[u8], end: &[u8]| {
        let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let id = std::str::from_utf8(&text[..length]).ok()?.parse().ok();
        id.filter(|_| text[length..].starts_with(end))
    };
    in_front
        .and_then(|text| digits(text, b",\"result\""))
        .or_else(|| behind.and_then(|text| digits(text, b"}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_malformed_response() {
        let cases = [
            (r#"{"jsonrpc": "2.0", "id": 3, "result": {"x": NaN}}"#, Some(3)),
            (r#"{"result":{"id":7,"x":NaN},"jsonrpc":"2.0","id":12}"#, Some(12)),
            (r#"{"id":3,"event":"received"}"#, None),
            (r#"{"result":{"id":7,"x":NaN},"id":12}"#, None),
            (r#"{"jsonrpc":"2.0","id":3,"method":"ping",}"#, None),
            (r#"{"jsonrpc":"2.0","id":4}"#, Some(4)),
            (r#"{"jsonrpc":"2.0","id":"5","result":1,"error":{}}"#, Some(5)),
            (r#"{"id":6,"result":{}}"#, Some(6)),
            (r#"{"jsonrpc":"1.0","id":7,"error":{"code":1,"message":""}}"#, Some(7)),
            (r#"{"jsonrpc":"2.0","id":8,"result":{},"result":{}}"#, Some(8)),
            (r#"{"jsonrpc":"2.0","id":9,"method":"ping","params":1}"#, None),
            (r#"{"jsonrpc":"2.0","id":{"a":1},"result":{}}"#, None),
            (r#"{"type":"heartbeat","at":1}"#, None),
            ("[1]", None),
            ("tick", None),
            ("", None),
        ];
        for (line, id) in cases {
            assert_eq!(id_of_malformed(&Bytes::from_static(line.as_bytes())), id, "{line}");
        }
    }
}
