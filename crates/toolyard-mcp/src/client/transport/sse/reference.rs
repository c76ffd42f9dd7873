//! Resolves the endpoint reference of a server.

use http::Uri;
use http::uri::Scheme;

/// Resolves a reference against `base` (RFC 3986, section 5.2, without removing dot segments). `None` if the result is
/// not a URL of the same origin: requests to it carry the credentials of `base`.
pub(super) fn resolve(base: &Uri, reference: &[u8]) -> Option<Uri> {
    let reference = std::str::from_utf8(reference).ok()?.trim();
    let scheme = base.scheme_str()?;
    let authority = base.authority()?.as_str();
    let absolute = if has_scheme(reference) {
        reference.to_owned()
    } else if reference.starts_with("//") {
        format!("{scheme}:{reference}")
    } else if reference.starts_with('/') {
        format!("{scheme}://{authority}{reference}")
    } else if reference.starts_with('?') {
        format!("{scheme}://{authority}{}{reference}", base.path())
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{reference}")
    };
    let url: Uri = absolute.parse().ok()?;
    (!reference.is_empty() && origin(&url)? == origin(base)?).then_some(url)
}

/// True if the reference starts with a scheme.
fn has_scheme(reference: &str) -> bool {
    let head = reference.split(['/', '?', '#']).next().unwrap_or_default();
    head.contains(':')
}

fn origin(url: &Uri) -> Option<(&str, String, u16)> {
    let default_port = match url.scheme()? {
        scheme if *scheme == Scheme::HTTPS => 443,
        _ => 80,
    };
    let authority = url.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let port = authority.port_u16().unwrap_or(default_port);
    Some((url.scheme_str()?, authority.host().to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, reference: &str, expect: Option<&str>) {
        let url = resolve(&base.parse().unwrap(), reference.as_bytes());
        assert_eq!(url.map(|url| url.to_string()).as_deref(), expect, "{reference}");
    }

    #[test]
    fn same_origin_references_are_resolved() {
        let base = "http://a:1/x/sse?k=v";
        check(base, "/messages/?session_id=1", Some("http://a:1/messages/?session_id=1"));
        check(base, "message?sessionId=1", Some("http://a:1/x/message?sessionId=1"));
        check(base, "?sessionId=1", Some("http://a:1/x/sse?sessionId=1"));
        check(base, " /m\n", Some("http://a:1/m"));
        check(base, "/m?then=http://b/", Some("http://a:1/m?then=http://b/"));
        check(base, "http://a:1/m", Some("http://a:1/m"));
        check(base, "http://A:1/m", Some("http://A:1/m"));
        check(base, "//a:1/m", Some("http://a:1/m"));
        check("http://a/sse", "http://a:80/m", Some("http://a:80/m"));
        check("https://a/sse", "https://a:443/m", Some("https://a:443/m"));
        check("http://a", "m", Some("http://a/m"));
    }

    #[test]
    fn other_origins_are_refused() {
        for reference in [
            "http://a:2/m",
            "https://a:1/m",
            "http://b:1/m",
            "//b:1/m",
            "http://a.b:1/m",
            "http://a:1@b:1/m",
            "http://u:p@a:1/m",
            "file:///m",
            "javascript:1",
            "http:m",
            "/a b",
            "",
        ] {
            check("http://a:1/sse", reference, None);
        }
        assert_eq!(resolve(&"http://a/sse".parse().unwrap(), b"\xff"), None);
    }
}
