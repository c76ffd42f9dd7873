//! Which of several media types a request has.

use crate::wire::media::{essence, is_form, is_json, is_of, is_xml};

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
    // What may be anything is JSON.
    let is_any = matches!(essence(media_type), "*/*" | "application/*");
    match media_type {
        json if is_any || is_json(json) => Family::Json,
        form if is_form(form) => Family::Form,
        xml if is_xml(xml) => Family::Xml,
        multipart if is_of(multipart, "multipart") => Family::Multipart,
        text if is_of(text, "text") => Family::Text,
        _ => Family::Other,
    }
}

/// The one that a request is written in: JSON before forms before all else, and of these the one that comes first.
pub(super) fn preferred<'m, T>(all: impl Iterator<Item = (&'m str, T)>) -> Option<(&'m str, T)> {
    all.min_by_key(|(media_type, _)| {
        // A list of changes is seldom what one has.
        let rank = match essence(media_type) {
            "application/json" => 0,
            "application/json-patch+json" => 2,
            _ => 1,
        };
        (family(media_type), rank)
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
