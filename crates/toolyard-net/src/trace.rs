//! The context of a trace, from one request to the next (W3C Trace Context, W3C Baggage).

use http::{HeaderMap, HeaderName, HeaderValue};

const PARENT: HeaderName = HeaderName::from_static("traceparent");
const STATE: HeaderName = HeaderName::from_static("tracestate");
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");

/// The headers for a context whose parts `get` knows by their names: in the parameters of MCP, the members of `_meta`
/// (SEP-414). What cannot be a header is left out, and so is the context of a trace that is none.
pub fn headers<T: AsRef<str>>(get: impl Fn(&str) -> Option<T>) -> HeaderMap {
    let value = |name: &HeaderName| HeaderValue::from_str(get(name.as_str())?.as_ref()).ok();
    let mut headers = HeaderMap::new();
    if let Some(parent) = value(&PARENT).filter(|parent| has_form(parent.as_bytes())) {
        headers.insert(PARENT, parent);
        headers.extend(value(&STATE).map(|state| (STATE, state)));
    }
    headers.extend(value(&BAGGAGE).map(|baggage| (BAGGAGE, baggage)));
    headers
}

/// Whether this is four hexadecimal numbers of the right lengths. Later versions may have more.
fn has_form(parent: &[u8]) -> bool {
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
        let headers = headers(get);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), expected, "{parts:?}");
    }

    #[test]
    fn what_goes_on() {
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
