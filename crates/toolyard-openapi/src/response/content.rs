//! What the body of a response is.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Response, header};
use toolyard_core::Json;

use super::text_of;
use crate::wire::media;

/// What a body is to a client.
pub(super) enum Content {
    /// JSON.
    Json(Json),
    /// Text.
    Text(String),
    /// A picture or a sound: the kind of its block in MCP, and its type.
    Media { kind: &'static str, mime_type: String },
    /// Anything else.
    Bytes { mime_type: String },
}

/// Types of application/* that are text, but do not say so.
const TEXTUAL: [&str; 8] =
    ["yaml", "x-yaml", "javascript", "x-ndjson", "x-www-form-urlencoded", "graphql", "sql", "toml"];

impl Content {
    /// An object or an array of JSON is one whatever it calls itself: many a server calls it text.
    pub(super) fn of(response: &Response<Bytes>) -> Self {
        let body = response.body();
        let declared = text_of(response.headers(), &header::CONTENT_TYPE).unwrap_or_default();
        let essence = media::essence(declared).to_ascii_lowercase();
        let kind = if media::is_of(&essence, "audio") { "audio" } else { "image" };
        // A drawing in XML is no picture to a model, but it can read it.
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

/// The text of a body. What calls itself text is read as well as it goes; what says nothing of the kind has to look like
/// it: a file of bytes may well be UTF-8 by chance, but not without control characters.
fn text(essence: &str, declared: &str, body: &Bytes) -> Option<String> {
    if body.is_empty() {
        return Some(String::new());
    }
    let subtype = essence.strip_prefix("application/").unwrap_or_default();
    let is_text = media::is_of(essence, "text")
        || media::is_json(essence)
        || media::is_xml(essence)
        || TEXTUAL.contains(&subtype)
        || subtype.ends_with("+yaml");
    if is_text {
        return Some(decoded(declared, body));
    }
    let is_unsaid = matches!(essence, "" | "*/*" | "application/octet-stream" | "application/*");
    let text = std::str::from_utf8(body).ok().filter(|_| is_unsaid)?;
    let is_printable = |character: char| !character.is_control() || "\t\n\r".contains(character);
    text.chars().all(is_printable).then(|| text.to_owned())
}

/// The text of a body in its charset, of which we know those that need no table.
fn decoded(declared: &str, body: &Bytes) -> String {
    let charset = media::parameter(declared, "charset").unwrap_or_default().to_ascii_lowercase();
    match std::str::from_utf8(body) {
        Ok(text) => text.to_owned(),
        Err(_) if matches!(&*charset, "iso-8859-1" | "latin1" | "latin-1") => {
            body.iter().map(|byte| char::from(*byte)).collect()
        }
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}

/// Bytes as a string of JSON.
pub(super) fn base64(bytes: &[u8]) -> Json {
    Json::string(&STANDARD.encode(bytes))
}
