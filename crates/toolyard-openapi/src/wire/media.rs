//! Properties of media types.

/// Returns the type without its parameters.
pub(crate) fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// Returns one of its parameters, such as `charset`, without quotes.
pub(crate) fn parameter<'a>(media_type: &'a str, name: &str) -> Option<&'a str> {
    let parameters = media_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let mut named = parameters.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
    named.next().map(|(_, value)| value.trim().trim_matches('"'))
}

/// True for JSON (RFC 6839 for the suffix).
pub(crate) fn is_json(media_type: &str) -> bool {
    let essence = essence(media_type).to_ascii_lowercase();
    matches!(&*essence, "application/json" | "text/json") || essence.ends_with("+json")
}

/// True for XML.
pub(crate) fn is_xml(media_type: &str) -> bool {
    let essence = essence(media_type).to_ascii_lowercase();
    matches!(&*essence, "application/xml" | "text/xml") || essence.ends_with("+xml")
}

/// True for a URL-encoded form.
pub(crate) fn is_form(media_type: &str) -> bool {
    essence(media_type).eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// True if the type has this top-level type.
pub(crate) fn is_of(media_type: &str, first: &str) -> bool {
    essence(media_type).split_once('/').is_some_and(|(kind, _)| kind.eq_ignore_ascii_case(first))
}

/// Returns the first specific type of a list, without ranges such as `image/*`.
pub(crate) fn concrete(list: &str) -> Option<&str> {
    list.split(',').map(str::trim).find(|one| !one.is_empty() && !one.contains('*'))
}
