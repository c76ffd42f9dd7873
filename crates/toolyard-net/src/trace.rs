//! Propagation of trace context (W3C Trace Context, W3C Baggage).

use http::{HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");

/// The headers of a trace context, of which most requests have none.
pub type ContextHeaders = std::iter::Flatten<std::array::IntoIter<Option<(HeaderName, HeaderValue)>, 3>>;

/// The headers of a trace context whose members `get` returns by name; in MCP these are members of `_meta` (SEP-414).
/// Values that are invalid in headers are omitted, and so is a malformed trace context.
pub fn context_headers<T: AsRef<str>>(get: impl Fn(&str) -> Option<T>) -> ContextHeaders {
    let value = |name: &HeaderName| HeaderValue::from_str(get(name.as_str())?.as_ref()).ok();
    let parent = value(&TRACEPARENT).filter(|parent| is_traceparent(parent.as_bytes()));
    let state = parent.as_ref().and_then(|_| value(&TRACESTATE));
    let baggage = value(&BAGGAGE);
    [(TRACEPARENT, parent), (TRACESTATE, state), (BAGGAGE, baggage)]
        .map(|(name, value)| value.map(|value| (name, value)))
        .into_iter()
        .flatten()
}

/// `true` for four hexadecimal numbers of the right lengths. Later versions may have more parts.
fn is_traceparent(parent: &[u8]) -> bool {
    let is_number = |part: &[u8]| part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut parts = parent.split(|byte| *byte == b'-');
    [2, 32, 16, 2]
        .into_iter()
        .all(|length| parts.next().is_some_and(|part| part.len() == length && is_number(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn check(parts: &[(&str, &str)], expected: &[&str]) {
        let get = |name: &str| parts.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let names = context_headers(get).map(|(name, _)| name);
        assert_eq!(names.collect::<Vec<_>>(), expected, "{parts:?}");
    }

    #[test]
    fn valid_trace_context_is_propagated() {
        check(&[], &[]);
        check(&[("traceparent", CONTEXT)], &["traceparent"]);
        check(
            &[("traceparent", CONTEXT), ("tracestate", "a=b"), ("baggage", "k=v")],
            &["traceparent", "tracestate", "baggage"],
        );
        check(&[("tracestate", "a=b"), ("baggage", "k=v")], &["baggage"]);
        check(&[("traceparent", CONTEXT), ("tracestate", "a\nb")], &["traceparent"]);
        for malformed in ["", "00", "00-4bf9-00f0-01", &CONTEXT.to_uppercase(), &CONTEXT.replace('-', "_")] {
            check(&[("traceparent", malformed), ("tracestate", "a=b")], &[]);
        }
    }
}
