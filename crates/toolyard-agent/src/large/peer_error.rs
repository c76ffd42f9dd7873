//! Errors of servers that are too long for a model.

use toolyard_core::{Json, Object, ToolError};

/// Returns an error with its message and the peer's own error in `bound` characters: what is longer is cut to a quarter
/// of that.
pub(super) fn limited(error: ToolError, bound: usize) -> ToolError {
    let max = bound / 4;
    let peer = error
        .peer()
        .filter(|peer| peer.as_bytes().len() > bound)
        .map(|peer| shortened(peer, max).unwrap_or_else(|| Json::string(&cut(peer.as_text(), max))));
    let message = (error.message().len() > bound).then(|| cut(error.message(), max));
    let error = match message {
        Some(message) => error.with_message(message),
        None => error,
    };
    match peer {
        Some(peer) => error.from_peer(peer),
        None => error,
    }
}

/// Returns a JSON-RPC error with at most `max` characters of its message and, if they fit as well, its data. `None` if
/// it is not an object.
pub(super) fn shortened(error: &Json, max: usize) -> Option<Json> {
    let error = error.to_object().ok()?;
    let mut message = cut(&error.get_str("message").unwrap_or_default(), max);
    let data = error.get("data");
    let short_data = data.filter(|data| data.as_bytes().len() <= max);
    if let (Some(data), None) = (data, short_data) {
        message.push_str(&format!("\n[error data omitted — {} chars]", data.as_text().chars().count()));
    }
    let mut short = Object::new();
    if let Some(code) = error.get("code").filter(|code| code.is_number()) {
        short.set("code", code.clone());
    }
    short.set("message", Json::string(&message));
    if let Some(data) = short_data {
        short.set("data", data.clone());
    }
    Some(short.to_json())
}

/// Returns a text, or its beginning with a notice.
fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => {
            let omitted = text[end..].chars().count();
            format!("{}\n[error message truncated — {omitted} chars omitted]", &text[..end])
        }
        None => text.to_owned(),
    }
}
