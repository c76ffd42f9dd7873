//! Which of several media types a request has.

/// What is known of a media type by its name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    Json,
    Form,
    Multipart,
    Xml,
    Text,
    Other,
}

pub(super) fn family(media_type: &str) -> Family {
    let essence = essence(media_type);
    match &*essence {
        "application/json" | "*/*" | "application/*" | "text/json" => Family::Json,
        json if json.ends_with("+json") || json.ends_with("/json") => Family::Json,
        "application/x-www-form-urlencoded" => Family::Form,
        "application/xml" | "text/xml" => Family::Xml,
        xml if xml.ends_with("+xml") => Family::Xml,
        multipart if multipart.starts_with("multipart/") => Family::Multipart,
        text if text.starts_with("text/") => Family::Text,
        _ => Family::Other,
    }
}

/// The type and the subtype, without parameters.
pub(super) fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The one that a request is written in: JSON before forms before all else, and of these the one that comes first.
pub(super) fn preferred<'m, T>(all: impl Iterator<Item = (&'m str, T)>) -> Option<(&'m str, T)> {
    all.min_by_key(|(media_type, _)| {
        let plain = essence(media_type) != "application/json";
        (family(media_type), plain)
    })
}

/// What a request says that it is: a range of types is none.
pub(super) fn concrete(media_type: &str) -> String {
    match media_type.contains('*') {
        true if family(media_type) == Family::Multipart => "multipart/form-data".to_owned(),
        true if family(media_type) == Family::Text => "text/plain".to_owned(),
        true if family(media_type) == Family::Json => "application/json".to_owned(),
        true => "application/octet-stream".to_owned(),
        false => media_type.to_owned(),
    }
}
