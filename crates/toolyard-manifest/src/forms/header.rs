//! What HTTP headers consist of.

use http::{HeaderName, HeaderValue};

use super::Invalid;
use crate::handler::Secret;

/// Headers that say how a message is framed, and where it goes: they are the client's to write.
const FRAMING: &[&str] = &[
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

/// Headers that are part of MCP, beside those that begin with `mcp-`.
const OF_MCP: &[&str] = &["accept", "content-type", "last-event-id"];

/// The name of a header that an author may set.
pub(crate) fn header_name(text: &str) -> Result<HeaderName, Invalid> {
    const INVALID: Invalid = Invalid::new("the name of a header to set", "a name such as X-Api-Key");
    let name: HeaderName = text.parse().map_err(|_| INVALID)?;
    if FRAMING.contains(&name.as_str()) {
        return Err(INVALID.hint("how a request is framed, and for which host, is not for a manifest to say"));
    }
    Ok(name)
}

/// The same where the name is that of a field.
pub(crate) fn is_header_name(text: &str) -> Result<(), Invalid> {
    header_name(text).map(drop)
}

/// The same where MCP has words of its own.
pub(crate) fn is_mcp_header_name(text: &str) -> Result<(), Invalid> {
    const INVALID: Invalid = Invalid::new("the name of a header to set", "a name such as X-Api-Key")
        .hint("it is part of the protocol, and the client's to write");
    let name = header_name(text)?;
    let of_mcp = OF_MCP.contains(&name.as_str()) || name.as_str().starts_with("mcp-");
    if of_mcp { Err(INVALID) } else { Ok(()) }
}

/// The value of a header.
pub(crate) fn header_value(text: &str) -> Result<HeaderValue, Invalid> {
    const INVALID: Invalid = Invalid::new("the value of a header", "one line of visible ASCII characters");
    let visible = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if visible { HeaderValue::from_str(text).map_err(|_| INVALID) } else { Err(INVALID) }
}

/// The value of a header that may be secret.
pub(crate) fn secret_header_value(text: &str) -> Result<Secret, Invalid> {
    header_value(text).map(|_| Secret::new(text))
}

/// A token for an `Authorization` header.
pub(crate) fn token(text: &str) -> Result<Secret, Invalid> {
    const INVALID: Invalid = Invalid::new("a token", "visible ASCII characters without blanks");
    let valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if valid { Ok(Secret::new(text)) } else { Err(INVALID.hint("is the variable empty?")) }
}

/// A name and a password for an `Authorization` header.
pub(crate) fn user_and_password(text: &str) -> Result<Secret, Invalid> {
    const INVALID: Invalid = Invalid::new("a name and a password", "`user:password`");
    let valid = text.contains(':') && !text.chars().any(char::is_control);
    if valid { Ok(Secret::new(text)) } else { Err(INVALID) }
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
