//! Names and values of HTTP headers.

use http::{HeaderName, HeaderValue};

use super::FormatError;
use crate::handler::SecretString;

/// Headers of message framing and routing, which the HTTP client writes.
const FRAMING_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers of MCP, in addition to those that start with `mcp-`.
const MCP_HEADERS: &[&str] = &["accept", "content-type", "last-event-id"];

/// The name of a header that a manifest may set.
pub(crate) fn header_name(text: &str) -> Result<HeaderName, FormatError> {
    const INVALID: FormatError = FormatError::new("the name of a header to set", "a name such as X-Api-Key");
    let name: HeaderName = text.parse().map_err(|_| INVALID)?;
    if FRAMING_HEADERS.contains(&name.as_str()) {
        return Err(INVALID.hint("the gateway sets the headers of message framing and routing itself"));
    }
    Ok(name)
}

/// Checks the name of a header that is a field name.
pub(crate) fn is_header_name(text: &str) -> Result<(), FormatError> {
    header_name(text).map(drop)
}

/// Like [`is_header_name`], without the headers of MCP.
pub(crate) fn is_mcp_header_name(text: &str) -> Result<(), FormatError> {
    const INVALID: FormatError = FormatError::new("the name of a header to set", "a name such as X-Api-Key")
        .hint("the gateway sets the headers of MCP itself");
    let name = header_name(text)?;
    let of_mcp = MCP_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("mcp-");
    if of_mcp { Err(INVALID) } else { Ok(()) }
}

/// The value of a header.
pub(crate) fn header_value(text: &str) -> Result<HeaderValue, FormatError> {
    const INVALID: FormatError =
        FormatError::new("the value of a header", "one line of visible ASCII characters");
    let visible = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if visible { HeaderValue::from_str(text).map_err(|_| INVALID) } else { Err(INVALID) }
}

/// The value of a header that may be secret.
pub(crate) fn secret_header_value(text: &str) -> Result<SecretString, FormatError> {
    header_value(text).map(|_| SecretString::new(text))
}

/// A token for an `Authorization` header.
pub(crate) fn token(text: &str) -> Result<SecretString, FormatError> {
    const INVALID: FormatError = FormatError::new("a token", "visible ASCII characters without blanks");
    let valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if valid { Ok(SecretString::new(text)) } else { Err(INVALID.hint("is the variable empty?")) }
}

/// A user name and a password for an `Authorization` header.
pub(crate) fn user_and_password(text: &str) -> Result<SecretString, FormatError> {
    const INVALID: FormatError = FormatError::new("a name and a password", "`user:password`");
    let valid = text.contains(':') && !text.chars().any(char::is_control);
    if valid { Ok(SecretString::new(text)) } else { Err(INVALID) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        for text in ["X-Api-Key", "accept"] {
            assert!(header_name(text).is_ok(), "{text}");
        }
        for text in ["", "a b", "é", "a:", "Host", "Content-Length", "transfer-encoding"] {
            assert!(header_name(text).is_err(), "{text}");
        }
        for (text, valid) in [
            ("X-Key", true),
            ("Authorization", true),
            ("Accept", false),
            ("MCP-Session-Id", false),
            ("Host", false),
        ] {
            assert_eq!(is_mcp_header_name(text).is_ok(), valid, "{text}");
        }
        for text in ["", "a b", "application/json; charset=utf-8"] {
            assert!(header_value(text).is_ok(), "{text}");
        }
        for text in ["a\r\nb: c", "a\nb", "é", "\t", "\u{7f}"] {
            assert!(header_value(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn credentials() {
        assert!(token("abc.def-_~+/=").is_ok());
        for text in ["", " ", "a b", "a\n"] {
            assert!(token(text).is_err(), "{text:?}");
        }
        for (text, valid) in [("a:b", true), ("a:", true), ("é:b c:d", true), ("a", false), ("a:\n", false)]
        {
            assert_eq!(user_and_password(text).is_ok(), valid, "{text:?}");
        }
    }
}
