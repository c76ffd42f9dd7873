//! Selects one of several media types.

use crate::wire::media::{essence, is_form, is_json, is_of, is_xml};

/// The family of a media type, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MediaFamily {
    Json,
    Form,
    Multipart,
    Xml,
    Text,
    Other,
}

pub(super) fn family(media_type: &str) -> MediaFamily {
    // A wildcard is JSON.
    let is_any = matches!(essence(media_type), "*/*" | "application/*");
    match media_type {
        json if is_any || is_json(json) => MediaFamily::Json,
        form if is_form(form) => MediaFamily::Form,
        xml if is_xml(xml) => MediaFamily::Xml,
        multipart if is_of(multipart, "multipart") => MediaFamily::Multipart,
        text if is_of(text, "text") => MediaFamily::Text,
        _ => MediaFamily::Other,
    }
}

/// Returns the preferred media type of a request: JSON, then forms, then others; within a family the first.
pub(super) fn preferred<'m, T>(all: impl Iterator<Item = (&'m str, T)>) -> Option<(&'m str, T)> {
    all.min_by_key(|(media_type, _)| {
        // A JSON patch is rarely the body that a caller has.
        let rank = match essence(media_type) {
            "application/json" => 0,
            "application/json-patch+json" => 2,
            _ => 1,
        };
        (family(media_type), rank)
    })
}

/// Returns the media type to send: a wildcard becomes a specific type.
pub(super) fn concrete(media_type: &str) -> String {
    match media_type.contains('*') {
        true if family(media_type) == MediaFamily::Multipart => "multipart/form-data".to_owned(),
        true if family(media_type) == MediaFamily::Text => "text/plain".to_owned(),
        true if family(media_type) == MediaFamily::Json => "application/json".to_owned(),
        true => "application/octet-stream".to_owned(),
        false => media_type.to_owned(),
    }
}
