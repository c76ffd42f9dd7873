//! The content of a response body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Response, header};
use toolyard_core::Json;

use super::header_text;
use crate::wire::media;

/// The content of a body, by the block of MCP that represents it.
pub(super) enum ResponseContent {
    /// JSON.
    Json(Json),
    /// Text.
    Text(String),
    /// An image or audio: the type of its block in MCP, and its media type.
    Media { kind: &'static str, mime_type: String },
    /// Anything else.
    Bytes { mime_type: String },
}

/// Subtypes of `application/*` that are text.
const TEXT_SUBTYPES: [&str; 8] =
    ["yaml", "x-yaml", "javascript", "x-ndjson", "x-www-form-urlencoded", "graphql", "sql", "toml"];

impl ResponseContent {
    /// Detects the content of a response. Objects and arrays of JSON are detected with any content type: many servers
    /// declare them as text.
    pub(super) fn of(response: &Response<Bytes>) -> Self {
        let body = response.body();
        let declared = header_text(response.headers(), &header::CONTENT_TYPE).unwrap_or_default();
        let essence = media::essence(declared).to_ascii_lowercase();
        let kind = if media::is_of(&essence, "audio") { "audio" } else { "image" };
        // An SVG is of no use to a model as an image, but readable as text.
        if media::is_of(&essence, kind) && !media::is_xml(&essence) && !body.is_empty() {
            return Self::Media { kind, mime_type: essence };
        }
        let is_json =
            media::is_json(&essence) || matches!(body.trim_ascii_start().first(), Some(b'{' | b'['));
        if let Some(json) = is_json.then(|| Json::parse(body.clone()).ok()).flatten() {
            return Self::Json(json);
        }
        match text(&essence, declared, body) {
            Some(text) => Self::Text(text),
            None if essence.is_empty() => Self::Bytes { mime_type: "application/octet-stream".to_owned() },
            None => Self::Bytes { mime_type: essence },
        }
    }
}

/// Returns the text of a body. A declared text is decoded with replacement characters. Without a declared type, the
/// body must be UTF-8 without control characters: binary data may be valid UTF-8 by chance, but not without control
/// characters.
fn text(essence: &str, declared: &str, body: &Bytes) -> Option<String> {
    if body.is_empty() {
        return Some(String::new());
    }
    let subtype = essence.strip_prefix("application/").unwrap_or_default();
    let is_text = media::is_of(essence, "text")
        || media::is_json(essence)
        || media::is_xml(essence)
        || TEXT_SUBTYPES.contains(&subtype)
        || subtype.ends_with("+yaml");
    if is_text {
        return Some(decode_charset(declared, body));
    }
    let is_unsaid = matches!(essence, "" | "*/*" | "application/octet-stream" | "application/*");
    let text = std::str::from_utf8(body).ok().filter(|_| is_unsaid)?;
    let is_printable = |character: char| !character.is_control() || "\t\n\r".contains(character);
    text.chars().all(is_printable).then(|| text.to_owned())
}

/// Decodes a body in its charset. Only charsets that need no table are supported.
fn decode_charset(declared: &str, body: &Bytes) -> String {
    let charset = media::parameter(declared, "charset").unwrap_or_default().to_ascii_lowercase();
    match std::str::from_utf8(body) {
        Ok(text) => text.to_owned(),
        Err(_) if matches!(&*charset, "iso-8859-1" | "latin1" | "latin-1") => {
            body.iter().map(|byte| char::from(*byte)).collect()
        }
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}

/// Encodes bytes as a JSON string in base64.
pub(super) fn base64(bytes: &[u8]) -> Json {
    Json::string(&STANDARD.encode(bytes))
}
