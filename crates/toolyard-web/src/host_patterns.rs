//! Patterns of hosts: `example.com`, `example.com:8443`, or `*.example.com` for all its subdomains but not for itself. A
//! pattern without a port matches every port.

use http::uri::Authority;

use crate::web_url::WebUrl;

/// Returns `true` if one of the patterns matches the host of a URL.
#[must_use]
pub fn any_matches(patterns: &[String], url: &WebUrl) -> bool {
    patterns.iter().any(|pattern| matches(pattern, url))
}

fn matches(pattern: &str, url: &WebUrl) -> bool {
    let (name, is_wildcard) = match pattern.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (pattern, false),
    };
    let Ok(allowed) = name.parse::<Authority>() else { return false };
    let (host, name) = (url.host(), allowed.host().trim_matches(['[', ']']).to_ascii_lowercase());
    let is_host = match is_wildcard {
        true => host.strip_suffix(&name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        false => host == name,
    };
    is_host && allowed.port_u16().is_none_or(|port| port == url.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_matches_its_hosts() {
        #[track_caller]
        fn check(pattern: &str, url: &str, expected: bool) {
            let url = WebUrl::parse(url).expect("a URL");
            assert_eq!(any_matches(&[pattern.to_owned()], &url), expected, "{pattern} {url}");
        }
        check("example.com", "https://example.com/x", true);
        check("example.com", "https://EXAMPLE.com.:8443/x", true);
        check("example.com", "https://www.example.com/", false);
        check("example.com:8443", "https://example.com/", false);
        check("example.com:443", "https://example.com/", true);
        check("*.example.com", "https://a.b.example.com/", true);
        check("*.example.com", "https://example.com/", false);
        check("*.example.com", "https://notexample.com/", false);
        check("127.0.0.1:8080", "http://127.0.0.1:8080/", true);
        check("[::1]:8080", "http://[::1]:8080/", true);
    }
}
