//! Percent-encoding (RFC 3986), with the rules of RFC 6570 for values.

use std::fmt::Write;

/// The characters that are percent-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PercentEscape {
    /// None: headers and multipart parts have no such encoding.
    Nothing,
    /// All except unreserved characters (RFC 3986, section 2.3).
    Reserved,
    /// Characters that are neither unreserved, nor reserved, nor already percent-encoded (`allowReserved`; RFC 6570,
    /// section 3.2.3), and those that would end a value in a query or are invalid in it: `[`, `]`, `#`, `&`, `=` and
    /// `+`.
    Illegal,
}

impl PercentEscape {
    /// Encodes a single value.
    pub(crate) fn value(self, text: &str) -> String {
        match self {
            Self::Nothing => text.to_owned(),
            Self::Reserved => percent_encoded(text),
            Self::Illegal => with_triples(text, b":/?@!$'()*,;"),
        }
    }

    /// Encodes one of several values: it must not contain the comma that separates them.
    pub(crate) fn item(self, text: &str) -> String {
        match self {
            Self::Illegal => with_triples(text, b":/?@!$'()*;"),
            _ => self.value(text),
        }
    }

    /// Encodes a name. Names never keep reserved characters.
    pub(crate) fn name(self, text: &str) -> String {
        if self == Self::Nothing { text.to_owned() } else { percent_encoded(text) }
    }

    /// Encodes a delimiter between values. Only the comma is valid in a URI.
    pub(crate) fn delimiter(self, delimiter: char) -> String {
        match delimiter {
            ',' => ",".to_owned(),
            _ => self.name(delimiter.encode_utf8(&mut [0; 4])),
        }
    }
}

/// Percent-encodes all except unreserved characters. A space becomes `%20`, in forms too: every form parser accepts
/// that, and some, such as Prism, do not accept `+`.
#[must_use]
pub fn percent_encoded(text: &str) -> String {
    encode_except(text, is_unreserved)
}

/// Encodes only characters that are invalid everywhere in a URI, for the literal parts of a path or query, which the
/// author of a document has already encoded.
pub(crate) fn encode_illegal(text: &str) -> String {
    encode_except(text, |byte| is_unreserved(byte) || b"%:/?#@!$&'()*+,;=".contains(&byte))
}

fn with_triples(text: &str, keep: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&encode_except(&rest[..at], |byte| is_unreserved(byte) || keep.contains(&byte)));
        rest = &rest[at..];
        let is_triple = escaped_byte(rest.as_bytes()).is_some();
        let (sign, behind) = if is_triple { rest.split_at(3) } else { ("%25", &rest[1..]) };
        out.push_str(sign);
        rest = behind;
    }
    out.push_str(&encode_except(rest, |byte| is_unreserved(byte) || keep.contains(&byte)));
    out
}

fn encode_except(text: &str, stays: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if stays(byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _written = write!(out, "%{byte:02X}");
        }
    }
    out
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Decodes a text. A `%` without two digits is literal.
pub(crate) fn percent_decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let (byte, behind) = escaped_byte(rest).map_or((*first, behind), |byte| (byte, &rest[3..]));
        out.push(byte);
        rest = behind;
    }
    out
}

/// Decodes an escape at the start of a text.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_stay_unencoded() {
        let text = "aZ9-._~ :/?#[]@!$&'()*+,;=%2f%2%é\n";
        let strict = "aZ9-._~%20%3A%2F%3F%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D%252f%252%25%C3%A9%0A";
        let lenient = "aZ9-._~%20:/?%23%5B%5D@!$%26'()*%2B,;%3D%2f%252%25%C3%A9%0A";
        assert_eq!(PercentEscape::Reserved.value(text), strict);
        assert_eq!(PercentEscape::Illegal.value(text), lenient);
        assert_eq!(PercentEscape::Illegal.item(text), lenient.replace(',', "%2C"));
        assert_eq!(PercentEscape::Illegal.name(text), strict);
        assert_eq!(PercentEscape::Nothing.value(text), text);
        assert_eq!(percent_decoded(strict), text.as_bytes());
        assert_eq!(percent_decoded("%4a%4x%"), b"J%4x%");
        assert_eq!(encode_illegal("/a b/%20{x}?c=é|"), "/a%20b/%20%7Bx%7D?c=%C3%A9%7C");
    }
}
