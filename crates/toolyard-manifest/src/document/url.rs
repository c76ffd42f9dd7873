//! URLs for display.

use super::{REDACTED, is_reference};

/// Schemes of the URLs in manifests.
const SCHEMES: &[&str] = &["http", "https", "postgres", "postgresql", "amqp", "amqps", "nats", "tls"];

/// Maximum length of a segment of a path that is not taken for a token.
const MAX_SEGMENT: usize = 20;

/// The parts of a URL.
pub(super) struct UrlParts<'a> {
    scheme: &'a str,
    user: Option<&'a str>,
    host: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> UrlParts<'a> {
    /// Splits a URL. Returns `None` for other texts, for lists of URLs, and if the parts are ambiguous.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let (scheme, behind) = text.split_once("://")?;
        let is_plain = !behind.contains("://") && !behind.contains(":-") && !behind.contains("$${");
        if !is_plain || !SCHEMES.contains(&&*scheme.to_ascii_lowercase()) {
            return None;
        }
        let end = behind.find(['/', '?', '#']).unwrap_or(behind.len());
        let (authority, behind) = behind.split_at(end);
        // A password may contain what ends an authority.
        if behind.contains('@') || authority.contains(',') || authority.contains(char::is_whitespace) {
            return None;
        }
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let behind = behind.split('#').next().unwrap_or_default();
        let (path, query) = match behind.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (behind, None),
        };
        Some(Self { scheme, user, host, path, query })
    }

    /// Returns the URL without passwords, values of the query and fragment. Of a URL that may be secret, segments of the
    /// path that could be tokens are hidden, too.
    pub(super) fn shown(&self, is_secret: bool) -> String {
        let Self { scheme, user, host, path, query } = self;
        let user = user.map_or_else(String::new, |user| match user.split_once(':') {
            Some((user, password)) => format!("{user}:{}@", shown_value(password)),
            None => format!("{}@", shown_value(user)),
        });
        let segment = |segment: &str| match is_secret && !is_plain_segment(segment) {
            true => shown_value(segment).to_owned(),
            false => segment.to_owned(),
        };
        let path = path.split('/').map(segment).collect::<Vec<_>>().join("/");
        let pair = |pair: &str| match pair.split_once('=') {
            Some((name, value)) => format!("{name}={}", shown_value(value)),
            None => shown_value(pair).to_owned(),
        };
        let query = query.map(|query| query.split('&').map(pair).collect::<Vec<_>>().join("&"));
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        format!("{scheme}://{user}{host}{path}{query}")
    }
}

fn shown_value(value: &str) -> &str {
    if value.is_empty() || is_reference(value) { value } else { REDACTED }
}

/// Returns true for a word, or a version such as `v1`.
fn is_plain_segment(segment: &str) -> bool {
    let is_version =
        segment.strip_prefix('v').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    let is_word = |byte: u8| byte.is_ascii_lowercase() || b"._-".contains(&byte);
    is_version || (segment.len() <= MAX_SEGMENT && segment.bytes().all(is_word))
}
