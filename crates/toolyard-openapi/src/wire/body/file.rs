//! Files in arguments: base64, or a `data:` URL (RFC 2397).

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use toolyard_core::{Json, ToolError};

use crate::wire::{escape, invalid_argument, media};

/// A file in an argument.
pub(super) struct DecodedFile {
    pub(super) bytes: Vec<u8>,
    /// Media type of its URL.
    pub(super) media_type: Option<String>,
    /// Name in its URL (`;name=`), a common extension of the standard.
    pub(super) name: Option<String>,
}

/// Decodes the file in an argument.
pub(super) fn read(at: &str, value: &Json) -> Result<DecodedFile, ToolError> {
    let text = value.to_str().ok_or_else(|| invalid_argument(at, "a file must be a string in base64"))?;
    let Some(url) = text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:")) else {
        return Ok(DecodedFile { bytes: from_base64(at, &text)?, media_type: None, name: None });
    };
    let (head, data) = text[url.len()..]
        .split_once(',')
        .ok_or_else(|| invalid_argument(at, "a `data:` URL must contain a comma"))?;
    let base64 = head.get(head.len().saturating_sub(7)..).filter(|end| end.eq_ignore_ascii_case(";base64"));
    let head = &head[..head.len() - base64.map_or(0, str::len)];
    let bytes = match base64 {
        Some(_) => from_base64(at, &String::from_utf8_lossy(&escape::percent_decoded(data)))?,
        None => escape::percent_decoded(data),
    };
    let name = media::parameter(head, "name")
        .map(|name| String::from_utf8_lossy(&escape::percent_decoded(name)).into_owned());
    let media_type = Some(without_name(head)).filter(|media_type| media_type.contains('/'));
    Ok(DecodedFile { bytes, media_type, name })
}

fn without_name(head: &str) -> String {
    let is_name = |parameter: &&str| {
        parameter.split_once('=').is_some_and(|(key, _)| key.trim().eq_ignore_ascii_case("name"))
    };
    head.split(';').filter(|parameter| !is_name(parameter)).collect::<Vec<_>>().join(";")
}

/// Decodes base64 with either alphabet, with or without padding and line breaks, as people and models write it.
fn from_base64(at: &str, text: &str) -> Result<Vec<u8>, ToolError> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let is_url_safe = text.contains(['-', '_']);
    let alphabet = if is_url_safe { &alphabet::URL_SAFE } else { &alphabet::STANDARD };
    let text: String = text.split_ascii_whitespace().collect();
    let decoded = GeneralPurpose::new(alphabet, config).decode(text);
    decoded.map_err(|error| invalid_argument(at, "it is not base64").caused_by(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes, the media type and the name.
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
        check("data:text/plain", Err("Invalid arguments: /f: a `data:` URL must contain a comma"));
        let object = read("a/f", &Json::parse("{}").unwrap()).err().unwrap();
        assert_eq!(object.message(), "Invalid arguments: /a/f: a file must be a string in base64");
    }
}
