//! Percent-encoding (RFC 3986), as RFC 6570 has it for values.

use std::fmt::Write;

/// What of a text is percent-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    /// Nothing: headers, and the parts of multipart bodies, have no such encoding.
    Nothing,
    /// Everything but unreserved characters (RFC 3986, section 2.3).
    Reserved,
    /// What is neither unreserved, nor reserved, nor percent-encoded already (`allowReserved`; RFC 6570, section 3.2.3);
    /// and what would end a value in a query, or may not stand in one: `[`, `]`, `#`, `&`, `=` and `+`.
    Illegal,
}

impl Escape {
    /// A value that stands alone.
    pub(crate) fn value(self, text: &str) -> String {
        match self {
            Self::Nothing => text.to_owned(),
            Self::Reserved => encoded(text),
            Self::Illegal => with_triples(text, b":/?@!$'()*,;"),
        }
    }

    /// A value beside others: the comma between them must not stand in it.
    pub(crate) fn item(self, text: &str) -> String {
        match self {
            Self::Illegal => with_triples(text, b":/?@!$'()*;"),
            _ => self.value(text),
        }
    }

    /// A name. It is not a value, so that reserved characters never stay.
    pub(crate) fn name(self, text: &str) -> String {
        if self == Self::Nothing { text.to_owned() } else { encoded(text) }
    }

    /// A character between values. Only the comma may stand in a URI.
    pub(crate) fn delimiter(self, delimiter: char) -> String {
        match delimiter {
            ',' => ",".to_owned(),
            _ => self.name(delimiter.encode_utf8(&mut [0; 4])),
        }
    }
}

/// Everything but unreserved characters in percent-encoding. A blank is `%20`, in forms too: whatever reads forms reads
/// that, and some of it, such as Prism, does not read `+`.
#[must_use]
pub fn encoded(text: &str) -> String {
    written(text, is_unreserved)
}

/// Encodes only what may stand nowhere in a URI: for the literal parts of a path or query, in which the author of a
/// document has encoded what is to be.
pub(crate) fn legal(text: &str) -> String {
    written(text, |byte| is_unreserved(byte) || b"%:/?#@!$&'()*+,;=".contains(&byte))
}

fn with_triples(text: &str, kept: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&written(&rest[..at], |byte| is_unreserved(byte) || kept.contains(&byte)));
        rest = &rest[at..];
        let is_triple = triple(rest.as_bytes()).is_some();
        let (sign, behind) = if is_triple { rest.split_at(3) } else { ("%25", &rest[1..]) };
        out.push_str(sign);
        rest = behind;
    }
    out.push_str(&written(rest, |byte| is_unreserved(byte) || kept.contains(&byte)));
    out
}

fn written(text: &str, stays: impl Fn(u8) -> bool) -> String {
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

/// The bytes that a text means. A `%` without two digits means itself.
pub(crate) fn decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let (byte, behind) = triple(rest).map_or((*first, behind), |byte| (byte, &rest[3..]));
        out.push(byte);
        rest = behind;
    }
    out
}

/// The byte that three characters at the beginning mean.
fn triple(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays() {
        let text = "aZ9-._~ :/?#[]@!$&'()*+,;=%2f%2%é\n";
        let strict = "aZ9-._~%20%3A%2F%3F%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D%252f%252%25%C3%A9%0A";
        let lenient = "aZ9-._~%20:/?%23%5B%5D@!$%26'()*%2B,;%3D%2f%252%25%C3%A9%0A";
        assert_eq!(Escape::Reserved.value(text), strict);
        assert_eq!(Escape::Illegal.value(text), lenient);
        assert_eq!(Escape::Illegal.item(text), lenient.replace(',', "%2C"));
        assert_eq!(Escape::Illegal.name(text), strict);
        assert_eq!(Escape::Nothing.value(text), text);
        assert_eq!(decoded(strict), text.as_bytes());
        assert_eq!(decoded("%4a%4x%"), b"J%4x%");
        assert_eq!(legal("/a b/%20{x}?c=é|"), "/a%20b/%20%7Bx%7D?c=%C3%A9%7C");
    }
}
