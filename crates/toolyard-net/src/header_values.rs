//! Header values, compared as RFC 9110 has them: media types (section 8.3.1), authentication schemes (11.1), content
//! codings (8.4.1) and the names of parameters ignore case. Values of parameters keep it where their definition does, as
//! that of `boundary`.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// The media type of server-sent events.
pub const EVENT_STREAM: &str = "text/event-stream";

/// The media type of JSON.
pub const JSON: &str = "application/json";

/// Returns `true` if the content is of this media type, with any parameters. Of several headers each must name it: a
/// reader behind this one may choose another.
#[must_use]
pub fn content_is(headers: &HeaderMap, media_type: &str) -> bool {
    let mut kinds = headers.get_all(header::CONTENT_TYPE).iter().peekable();
    kinds.peek().is_some() && kinds.all(|kind| is_media_type(kind, media_type))
}

/// Returns `true` if a value is this media type, with any parameters.
#[must_use]
pub fn is_media_type(value: &HeaderValue, media_type: &str) -> bool {
    // The common form, without a look at each byte.
    value == media_type || value.to_str().is_ok_and(|value| has_name(value, media_type))
}

/// Returns `true` if a list of media ranges names this media type itself and does not refuse it by `q=0`. A range with
/// `*` does not name it.
#[must_use]
pub fn names_media_type(headers: &HeaderMap, name: &HeaderName, media_type: &str) -> bool {
    items_of(headers, name).any(|item| has_name(item, media_type) && !is_refused(item))
}

/// Returns `true` if the first media range of a list is this media type.
#[must_use]
pub fn begins_with_media_type(headers: &HeaderMap, name: &HeaderName, media_type: &str) -> bool {
    items_of(headers, name).next().is_some_and(|item| has_name(item, media_type) && !is_refused(item))
}

/// Returns `true` if the client accepts a content coding (RFC 9110, section 12.5.3), by its name or by `*`.
#[must_use]
pub fn accepts_coding(headers: &HeaderMap, coding: &str) -> bool {
    let named = |name| items_of(headers, &header::ACCEPT_ENCODING).find(|item| has_name(item, name));
    named(coding).or_else(|| named("*")).is_some_and(|item| !is_refused(item))
}

/// Credentials of an `Authorization` header (RFC 9110, section 11.4).
#[derive(Clone, Copy)]
pub struct Credentials<'h> {
    scheme: &'h str,
    /// The token, or the parameters.
    pub token: &'h str,
}

impl<'h> Credentials<'h> {
    /// Splits a value; `None` if it names no scheme.
    #[must_use]
    pub fn parse(value: &'h str) -> Option<Self> {
        let (scheme, token) = value.trim().split_once(' ')?;
        Some(Self { scheme, token: token.trim() })
    }

    /// Returns `true` if they are of this scheme.
    #[must_use]
    pub const fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }
}

/// Returns the items of a list (RFC 9110, section 5.6.1): commas in quoted strings do not separate.
pub(crate) fn list_items(value: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let is_separator = move |character: char| {
        match character {
            _ if std::mem::take(&mut is_escaped) => {}
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' => return !is_quoted,
            _ => {}
        }
        false
    };
    value.split(is_separator).map(str::trim).filter(|item| !item.is_empty())
}

fn items_of<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).flat_map(list_items)
}

/// Returns `true` if an item has this name in front of its parameters.
fn has_name(item: &str, name: &str) -> bool {
    let end = item.find(';').unwrap_or(item.len());
    item[..end].trim().eq_ignore_ascii_case(name)
}

/// Returns `true` if the weight of an item is zero (RFC 9110, section 12.4.2).
fn is_refused(item: &str) -> bool {
    item.split(';').skip(1).any(|parameter| {
        let (name, weight) = parameter.split_once('=').unwrap_or((parameter, ""));
        name.trim().eq_ignore_ascii_case("q") && weight.trim().parse() == Ok(0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &HeaderName, values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn media_types_ignore_case_and_parameters() {
        for (values, expected) in [
            (&["text/event-stream"][..], true),
            (&["Text/Event-Stream; charset=UTF-8"], true),
            (&["TEXT/EVENT-STREAM;charset=utf-8"], true),
            (&[" text/event-stream ;x=\"a;b\""], true),
            (&["text/event-stream", "Text/event-stream;x"], true),
            (&["text/event-stream", "text/plain"], false),
            (&["text/event-streams"], false),
            (&["text/event-stream, text/plain"], false),
            (&["text/plain; text/event-stream"], false),
            (&[""], false),
            (&[], false),
        ] {
            assert_eq!(
                content_is(&headers(&header::CONTENT_TYPE, values), EVENT_STREAM),
                expected,
                "{values:?}"
            );
        }
    }

    #[test]
    fn accepted_media_types_are_named() {
        for (values, named, first) in [
            (&["application/json, text/event-stream"][..], true, false),
            (&["Application/Json;q=0.9 , Text/Event-Stream"], true, false),
            (&["text/event-stream,application/json"], true, true),
            (&[" , TEXT/event-stream;q=1, */*"], true, true),
            (&["application/json", "text/event-stream"], true, false),
            (&["application/json, text/event-stream;Q=0.0"], false, false),
            (&["application/json;x=\", text/event-stream,\""], false, false),
            (&["application/json;x=\"\\\", text/event-stream,\""], false, false),
            (&["text/event-streams, x-text/event-stream"], false, false),
            (&["*/*"], false, false),
            (&[], false, false),
        ] {
            let headers = headers(&header::ACCEPT, values);
            assert_eq!(names_media_type(&headers, &header::ACCEPT, EVENT_STREAM), named, "{values:?}");
            assert_eq!(begins_with_media_type(&headers, &header::ACCEPT, EVENT_STREAM), first, "{values:?}");
        }
    }

    #[test]
    fn codings_have_weights() {
        for (value, expected) in [
            ("gzip", true),
            ("br, GZip;Q=0.5", true),
            ("gzip;q=0", false),
            ("*;q=0.1", true),
            ("*, gzip;q=0.000", false),
            ("identity", false),
            ("gzip ; q=0.0, *", false),
        ] {
            assert_eq!(
                accepts_coding(&headers(&header::ACCEPT_ENCODING, &[value]), "gzip"),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn schemes_ignore_case() {
        let token = |value| Credentials::parse(value).filter(|it| it.is("bearer")).map(|it| it.token);
        for (value, expected) in [
            ("Bearer Ab", Some("Ab")),
            ("BEARER   Ab ", Some("Ab")),
            ("bearer Ab c", Some("Ab c")),
            ("Basic Ab", None),
            ("Bearer", None),
            ("Ab", None),
        ] {
            assert_eq!(token(value), expected, "{value}");
        }
    }
}
