//! Quoting and unquoting of JSON strings.

use std::borrow::Cow;

use super::scan::plain_length;

/// Encodes `text` as a JSON string with the escapes that RFC 8259 requires.
pub(super) fn write_quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, escaped) = rest.split_at(plain_length(rest));
        out.extend_from_slice(plain);
        let Some((byte, after)) = escaped.split_first() else { break };
        write_escape(*byte, out);
        rest = after;
    }
    out.push(b'"');
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    }
}

/// Returns the content of a validated JSON string; `None` for other values. Unpaired surrogates, which Unicode text
/// cannot contain, become U+FFFD.
pub(super) fn unquote(json: &[u8]) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let inner = std::str::from_utf8(inner).ok()?;
    if inner.contains('\\') { Some(Cow::Owned(unescape(inner))) } else { Some(Cow::Borrowed(inner)) }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        out.push_str(plain);
        let (meaning, after) = escape(escaped);
        out.push(meaning);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the character of an escape sequence, and the text behind it.
fn escape(text: &str) -> (char, &str) {
    let (kind, rest) = text.split_at(1);
    match kind {
        "b" => ('\u{8}', rest),
        "f" => ('\u{c}', rest),
        "n" => ('\n', rest),
        "r" => ('\r', rest),
        "t" => ('\t', rest),
        "u" => unicode_escape(rest),
        _ => (kind.chars().next().unwrap_or_default(), rest),
    }
}

fn unicode_escape(text: &str) -> (char, &str) {
    let (high, rest) = code_unit(text);
    if let Some((low, after)) = rest.strip_prefix("\\u").map(code_unit) {
        let pair = [high, low];
        if let Some(Ok(character)) = char::decode_utf16(pair).next()
            && character as u32 > 0xffff
        {
            return (character, after);
        }
    }
    (char::from_u32(u32::from(high)).unwrap_or(char::REPLACEMENT_CHARACTER), rest)
}

fn code_unit(text: &str) -> (u16, &str) {
    let (digits, rest) = text.split_at(4);
    (u16::from_str_radix(digits, 16).unwrap_or_default(), rest)
}
