//! Files in arguments: base64, or a `data:` URL (RFC 2397).

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use toolyard_core::{Json, ToolError};

use crate::wire::{escape, invalid, media};

/// What an argument has of a file.
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    /// What its URL says it is.
    pub(super) media_type: Option<String>,
    /// The name that its URL gives it (`;name=`), which is not a part of the standard, and is in use.
    pub(super) name: Option<String>,
}

/// The file that an argument has.
pub(super) fn read(at: &str, value: &Json) -> Result<File, ToolError> {
    let text = value.to_str().ok_or_else(|| invalid(at, "a file is a text in base64"))?;
    let Some(url) = text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:")) else {
        return Ok(File { bytes: from_base64(at, &text)?, media_type: None, name: None });
    };
    let (head, data) =
        text[url.len()..].split_once(',').ok_or_else(|| invalid(at, "a `data:` URL has a comma"))?;
    let base64 = head.get(head.len().saturating_sub(7)..).filter(|end| end.eq_ignore_ascii_case(";base64"));
    let head = &head[..head.len() - base64.map_or(0, str::len)];
    let bytes = match base64 {
        Some(_) => from_base64(at, &String::from_utf8_lossy(&escape::decoded(data)))?,
        None => escape::decoded(data),
    };
    let name = media::parameter(head, "name")
        .map(|name| String::from_utf8_lossy(&escape::decoded(name)).into_owned());
    let media_type = Some(without_name(head)).filter(|media_type| media_type.contains('/'));
    Ok(File { bytes, media_type, name })
}

fn without_name(head: &str) -> String {
    let is_name = |parameter: &&str| {
        parameter.split_once('=').is_some_and(|(key, _)| key.trim().eq_ignore_ascii_case("name"))
    };
    head.split(';').filter(|parameter| !is_name(parameter)).collect::<Vec<_>>().join(";")
}

/// Both alphabets, with and without padding, with line breaks: what people and models write.
fn from_base64(at: &str, text: &str) -> Result<Vec<u8>, ToolError> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let is_url_safe = text.contains(['-', '_']);
    let alphabet = if is_url_safe { &alphabet::URL_SAFE } else { &alphabet::STANDARD };
    let text: String = text.split_ascii_whitespace().collect();
    let decoded = GeneralPurpose::new(alphabet, config).decode(text);
    decoded.map_err(|error| invalid(at, "it is not base64").caused_by(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes, their type and their name.
    type Seen<'a> = (&'a [u8], Option<&'a str>, Option<&'a str>);

    #[track_caller]
    fn check(text: &str, expect: Result<Seen<'_>, &str>) {
        let file = read("f", &Json::string(text));
        let seen = file.as_ref().map(|file| (&*file.bytes, file.media_type.as_deref(), file.name.as_deref()));
        assert_eq!(seen.map_err(ToString::to_string), expect.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn files_are_base64_or_urls() {
        check("aGk=", Ok((b"hi", None, None)));
        check("aGk", Ok((b"hi", None, None)));
        check("-_\n8", Ok((&[0xfb, 0xff], None, None)));
        check("+/8=", Ok((&[0xfb, 0xff], None, None)));
        check("", Ok((b"", None, None)));
        check("data:image/png;base64,aGk=", Ok((b"hi", Some("image/png"), None)));
        check(
            "DATA:text/plain;charset=utf-8;BASE64,aGk%3D",
            Ok((b"hi", Some("text/plain;charset=utf-8"), None)),
        );
        check("data:image/png;name=a%20b.png;base64,aGk=", Ok((b"hi", Some("image/png"), Some("a b.png"))));
        check("data:,a%20b", Ok((b"a b", None, None)));
        check("data:;base64,aGk=", Ok((b"hi", None, None)));
        check("data:é,é", Ok(("é".as_bytes(), None, None)));
        check("hi!", Err("Invalid arguments: /f: it is not base64"));
        check("data:text/plain", Err("Invalid arguments: /f: a `data:` URL has a comma"));
        let object = read("a/f", &Json::parse("{}").unwrap()).err().unwrap();
        assert_eq!(object.message(), "Invalid arguments: /a/f: a file is a text in base64");
    }
}
