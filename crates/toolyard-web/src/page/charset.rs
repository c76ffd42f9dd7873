//! Decodes bytes to text, as browsers do (WHATWG HTML, 13.2.3): by a byte order mark, the header, a `meta` element, or
//! else by whether it is UTF-8.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Number of bytes in which a `meta` element is looked for.
const META_BYTES: usize = 1024;

/// Returns the text of bytes. Invalid sequences become U+FFFD.
pub(super) fn decode<'a>(bytes: &'a [u8], charset: Option<&str>, is_html: bool) -> Cow<'a, str> {
    // A byte order mark takes precedence in `decode`.
    let encoding = charset
        .and_then(|label| Encoding::for_label(label.as_bytes()))
        .or_else(|| meta_encoding(bytes).filter(|_| is_html))
        .unwrap_or_else(|| if std::str::from_utf8(bytes).is_ok() { UTF_8 } else { WINDOWS_1252 });
    encoding.decode(bytes).0
}

/// Returns the encoding that a `meta` element declares.
fn meta_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(META_BYTES)].to_ascii_lowercase();
    let head = String::from_utf8_lossy(&head);
    let label = head.match_indices("<meta").find_map(|(at, _)| {
        let element = &head[at..];
        let element = &element[..element.find('>').unwrap_or(element.len())];
        let (_, value) = element.split_once("charset")?;
        let value = value.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(['"', '\'', ';', ' ', '/', '>']).unwrap_or(value.len());
        Some(value[..end].to_owned())
    })?;
    // The element could not be read if this were true.
    let encoding = Encoding::for_label(label.as_bytes())?;
    Some(if encoding == UTF_16BE || encoding == UTF_16LE { UTF_8 } else { encoding })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_of_a_page() {
        #[track_caller]
        fn check(bytes: &[u8], charset: Option<&str>, expected: &str) {
            assert_eq!(decode(bytes, charset, true), expected, "{charset:?}");
        }
        check(b"caf\xc3\xa9", None, "café");
        check(b"caf\xe9", None, "café");
        check(b"caf\xe9", Some("ISO-8859-1"), "café");
        check(b"caf\xc3\xa9", Some("nonsense"), "café");
        check(b"\xef\xbb\xbfcaf\xc3\xa9", Some("windows-1252"), "café");
        check(b"\xff\xfea\0b\0", None, "ab");
        check(b"\xcf\xf0\xe8\xe2\xe5\xf2", Some("windows-1251"), "Привет");
        check(b"\x82\xb1", Some("shift_jis"), "こ");
        check(b"<meta charset=shift_jis>\x82\xb1", None, "<meta charset=shift_jis>こ");
        check(
            b"<META http-equiv=x content='text/html; charset = \"koi8-r\"'>\xf0",
            None,
            "<META http-equiv=x content='text/html; charset = \"koi8-r\"'>П",
        );
        check(b"<meta charset=utf-16>caf\xc3\xa9", None, "<meta charset=utf-16>café");
        check(b"<meta charset=shift_jis>\xc3\xa9", Some("utf-8"), "<meta charset=shift_jis>é");
        check(b"a\xffb", Some("utf-8"), "a\u{fffd}b");
        assert_eq!(decode(b"<meta charset=shift_jis>\xc3\xa9", None, false), "<meta charset=shift_jis>é");
    }
}
