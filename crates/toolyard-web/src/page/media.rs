//! The kinds of texts, by `Content-Type`, or by how a body begins.

use crate::fetch::FetchError;

/// The kind of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    /// HTML, which is converted.
    Html,
    /// Markdown, JSON or another text, which stays as it is.
    Text,
}

/// Types of applications that are texts, besides those that end with `+json`, `+xml` and `+yaml`.
const TEXT_APPLICATIONS: [&str; 9] =
    ["json", "xml", "yaml", "x-yaml", "toml", "javascript", "ecmascript", "x-ndjson", "sql"];

/// Number of bytes that tell what a body without a type is.
const SNIFFED_BYTES: usize = 512;

/// Returns the kind of a body.
///
/// # Errors
/// Errors if it is not a text.
pub fn kind(content_type: Option<&str>, body: &[u8]) -> Result<MediaKind, FetchError> {
    let essence = content_type.map(essence).unwrap_or_default();
    if essence.is_empty() || essence == "application/octet-stream" || !essence.contains('/') {
        return sniffed(body).ok_or_else(|| {
            FetchError::MediaType(if essence.is_empty() { "unknown".to_owned() } else { essence })
        });
    }
    if essence == "text/html" || essence == "application/xhtml+xml" {
        return Ok(MediaKind::Html);
    }
    let is_text = match essence.split_once('/') {
        Some(("text", _)) => true,
        Some(("application", subtype)) => {
            let is_structured = ["+json", "+xml", "+yaml"].iter().any(|suffix| subtype.ends_with(suffix));
            is_structured || TEXT_APPLICATIONS.contains(&subtype)
        }
        Some(("image", "svg+xml")) => true,
        _ => false,
    };
    if is_text { Ok(MediaKind::Text) } else { Err(FetchError::MediaType(essence)) }
}

/// Returns the type without parameters in lower case. What no type can have is shown escaped.
fn essence(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.chars().take(100).collect::<String>().to_ascii_lowercase().escape_default().to_string()
}

/// Returns the parameter `charset`.
#[must_use]
pub fn charset(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// Returns the kind of a body by its beginning; `None` if it is not a text.
fn sniffed(body: &[u8]) -> Option<MediaKind> {
    let start = &body[..body.len().min(SNIFFED_BYTES)];
    let is_utf16 = start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff");
    if start.contains(&0) && !is_utf16 {
        return None;
    }
    let is_utf8 = match std::str::from_utf8(start) {
        Ok(_) => true,
        // The beginning may end within a character.
        Err(error) => error.error_len().is_none(),
    };
    let text =
        String::from_utf8_lossy(start).trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    if ["<!doctype html", "<html", "<head", "<body", "<!--"].iter().any(|tag| text.starts_with(tag)) {
        return Some(MediaKind::Html);
    }
    (is_utf8 || is_utf16).then_some(MediaKind::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_of_a_body() {
        #[track_caller]
        fn check(content_type: &str, body: &[u8], expected: Result<MediaKind, &str>) {
            let content_type = (!content_type.is_empty()).then_some(content_type);
            let kind = kind(content_type, body).map_err(|error| match error {
                FetchError::MediaType(name) => name,
                other => panic!("{other}"),
            });
            assert_eq!(kind.as_ref().map_err(String::as_str).copied(), expected, "{content_type:?}");
        }
        check("text/html; charset=utf-8", b"", Ok(MediaKind::Html));
        check("Application/XHTML+XML", b"", Ok(MediaKind::Html));
        for text in ["text/plain", "text/markdown", "text/csv", "application/json", "application/ld+json"] {
            check(text, b"<html>", Ok(MediaKind::Text));
        }
        check("application/vnd.api+json;x=y", b"", Ok(MediaKind::Text));
        check("image/svg+xml", b"", Ok(MediaKind::Text));
        for other in ["application/pdf", "image/png", "video/mp4", "application/zip", "multipart/mixed"] {
            check(other, b"text", Err(other));
        }
        check("", b"\xef\xbb\xbf \n<!DOCTYPE HTML><p>x", Ok(MediaKind::Html));
        check("", b"plain text", Ok(MediaKind::Text));
        check("", b"\x89PNG\0\0", Err("unknown"));
        check("", b"\xff\xd8\xff", Err("unknown"));
        check("application/octet-stream", b"# Title", Ok(MediaKind::Text));
        check("application/octet-stream", b"\0\x01", Err("application/octet-stream"));
        check("html", b"<html>", Ok(MediaKind::Html));
        check("a/`b\u{7}`", b"", Err("a/`b\\u{7}`"));
    }

    #[test]
    fn charset_of_a_type() {
        let check = |content_type: &str, expected: Option<&str>| {
            assert_eq!(charset(content_type), expected, "{content_type}");
        };
        check("text/html", None);
        check("text/html; charset=utf-8", Some("utf-8"));
        check("text/html; x=y; Charset = \"ISO-8859-1\"", Some("ISO-8859-1"));
        check("text/html; charset", None);
    }
}
