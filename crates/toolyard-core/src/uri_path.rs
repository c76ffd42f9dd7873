//! Dot segments in URIs: `res://open/../secret` means a sibling of `open`, whatever it begins with.
//!
//! Scopes compare URIs as text, and servers resolve them as paths, some after decoding them once or twice. A path is
//! therefore not normalised here, because servers differ in their normal forms; one that any of them may resolve to
//! another path is refused where it matters.

/// Returns `true` if a URI, or a part of a path, has a segment that servers resolve: `.` or `..`, also percent-encoded
/// any number of times.
///
/// ```
/// use toolyard_core::uri_path::has_dot_segments;
///
/// assert!(has_dot_segments("res://open/../secret/a"));
/// assert!(has_dot_segments("res://open/%252e%2E%2fsecret/a"));
/// assert!(!has_dot_segments("res://open/a..b/.well-known/x"));
/// ```
#[must_use]
pub fn has_dot_segments(text: &str) -> bool {
    let decoded = decoded(text);
    decoded.split(ends_segment).any(|segment| matches!(segment.trim_ascii(), b"." | b".."))
}

/// Returns `true` if a byte ends a segment for any server: separators of paths, here and on Windows, delimiters behind
/// a path, parameters of a segment, which many servers drop, and the end of a string in C.
const fn ends_segment(byte: &u8) -> bool {
    matches!(byte, b'/' | b'\\' | b'?' | b'#' | b';' | b':' | b'\0')
}

/// Returns a text without percent-encoding, however often it was encoded, and without characters that browsers drop
/// from URLs (WHATWG URL, basic URL parser).
fn decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        decoded.push(byte);
        // A decoded byte may end another triple.
        while let Some(byte) = last_triple(&decoded) {
            decoded.truncate(decoded.len() - 3);
            decoded.push(byte);
        }
        if matches!(decoded.last(), Some(b'\t' | b'\n' | b'\r')) {
            decoded.pop();
        }
    }
    decoded
}

/// Returns the byte that the last three encode, if they are percent-encoded.
fn last_triple(text: &[u8]) -> Option<u8> {
    let [.., b'%', high, low] = text else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_servers_resolve() {
        let cases = [
            "..",
            ".",
            "res://open/..",
            "res://open/../secret/a",
            "res://open/./a",
            "res://open/a/../../secret",
            "res://open/%2e%2e/secret",
            "res://open/%2E./secret",
            "res://open/.%2e/secret",
            "res://open/..%2fsecret",
            "res://open/..%2Fsecret",
            "res://open/..%5csecret",
            "res://open/..\\secret",
            "res://open/%252e%252e/secret",
            "res://open/%25252e%25252e%25252fsecret",
            "res://open/%%32e%%32e/secret",
            "res://open/..;/secret",
            "res://open/..;x=1/secret",
            "res://open/..%3b/secret",
            "res://open/..?x",
            "res://open/..#x",
            "res://open/a?x=1/../../secret",
            "res://open/.\t./secret",
            "res://open/.%0a./secret",
            "res://open/..%00/secret",
            "res://open/.. /secret",
            "res://open/%20../secret",
            "open:../secret",
            "docs+file:///open/../secret",
            "file:///open/%2e%2e%2f%2e%2e%2fetc/passwd",
        ];
        for uri in cases {
            assert!(has_dot_segments(uri), "{uri:?}");
        }
    }

    #[test]
    fn segments_that_none_resolves() {
        let cases = [
            "",
            "res://open/a",
            "res://open/a..b",
            "res://open/..a",
            "res://open/a..",
            "res://open/...",
            "res://open/.well-known/x",
            "res://open/v1.2/x.txt",
            "res://open//a",
            "res://open/%2e%2",
            "res://open/100%",
            "res://open/%C3%BC",
            "https://example.com:8080/a?b=c..d#e",
            "res://open/{+path}{?q,n}",
            "res://open/a{.ext}",
        ];
        for uri in cases {
            assert!(!has_dot_segments(uri), "{uri:?}");
        }
    }

    #[test]
    fn a_long_text_takes_no_time() {
        let text = format!("%{}2e", "25".repeat(1_000_000));
        assert!(has_dot_segments(&text));
        assert!(!has_dot_segments(&"%2".repeat(1_000_000)));
    }
}
