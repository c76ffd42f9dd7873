//! What names a place on the web: endpoints, hosts, origins.

use std::fmt;

use http::{
    Uri,
    uri::{Authority, Scheme},
};

use super::Invalid;
use crate::handler::Secret;

/// The URL of a server: `http` or `https`, with a host and without user information.
///
/// `Debug` shows where it points to and no more: with some services the path or the query is the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Uri);

impl Endpoint {
    /// Parses a URL.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        const INVALID: Invalid = Invalid::new("an endpoint", "a URL such as https://mcp.example.com/mcp");
        let uri: Uri = text.parse().map_err(|_| INVALID)?;
        if uri.scheme() != Some(&Scheme::HTTP) && uri.scheme() != Some(&Scheme::HTTPS) {
            return Err(INVALID.hint("it begins with http:// or https://"));
        }
        let authority = uri.authority().ok_or(INVALID)?;
        if authority.as_str().contains('@') {
            return Err(INVALID.hint("a URL is no place for a user name or a password: it ends up in logs"));
        }
        if is_sound(authority) { Ok(Self(uri)) } else { Err(INVALID) }
    }

    /// The URL.
    pub fn uri(&self) -> &Uri {
        &self.0
    }

    /// Where it points to, for people, without the query: that is where services take tokens from.
    #[must_use]
    pub fn shown(&self) -> String {
        let (scheme, authority) = (self.0.scheme_str().unwrap_or_default(), self.0.authority());
        format!("{scheme}://{}{}", authority.map_or("", Authority::as_str), self.0.path())
    }

    /// Whether requests go over TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.0.scheme() == Some(&Scheme::HTTPS)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.scheme_str().unwrap_or_default();
        let authority = self.0.authority().map_or("", Authority::as_str);
        write!(f, "Endpoint({scheme}://{authority}/…)")
    }
}

/// A host as a `Host` header names it, with or without a port.
pub(crate) fn host(text: &str) -> Result<String, Invalid> {
    const INVALID: Invalid = Invalid::new("a host", "a host such as tools.example.com or localhost:8080");
    let authority: Authority = text.parse().map_err(|_| INVALID)?;
    let valid = !text.contains('@') && is_sound(&authority);
    if valid { Ok(text.to_owned()) } else { Err(INVALID) }
}

/// A host, or with `*.` in front the hosts below it, with or without a port.
pub(crate) fn host_pattern(text: &str) -> Result<String, Invalid> {
    const INVALID: Invalid = Invalid::new("a host", "a host such as mcp.example.com, or *.example.com");
    let plain = text.strip_prefix("*.").unwrap_or(text);
    match plain.contains('*') || host(plain).is_err() {
        true => Err(INVALID),
        false => Ok(text.to_lowercase()),
    }
}

/// A host and a port, without a scheme.
pub(crate) fn host_and_port(text: &str) -> Result<Authority, Invalid> {
    const INVALID: Invalid =
        Invalid::new("a host and a port", "a host and a port such as tools.example.com:50051");
    if text.contains("://") {
        return Err(INVALID.hint("it has no scheme: `tls` says whether it is encrypted"));
    }
    let authority: Authority = host(text).map_err(|_| INVALID)?.parse().map_err(|_| INVALID)?;
    if authority.port_u16().is_some() { Ok(authority) } else { Err(INVALID) }
}

/// An origin as an `Origin` header names it: a scheme and a host, without a path. The scheme need not be
/// HTTP's: extensions of browsers and editors have their own.
pub(crate) fn origin(text: &str) -> Result<String, Invalid> {
    const INVALID: Invalid = Invalid::new("an origin", "an origin such as https://app.example.com");
    let (scheme, rest) = text.split_once("://").ok_or(INVALID)?;
    if scheme.is_empty() || Scheme::try_from(scheme).is_err() {
        return Err(INVALID);
    }
    host(rest).map_err(|_| INVALID.hint("an origin has no path and no `/` at its end"))?;
    Ok(text.to_owned())
}

/// The origin of a server of HTTP.
pub(crate) fn http_origin(text: &str) -> Result<String, Invalid> {
    const INVALID: Invalid =
        Invalid::new("an origin of HTTP", "a scheme, a host and a port, such as http://10.0.0.5:8080");
    match text.starts_with("http://") || text.starts_with("https://") {
        true => origin(text).map_err(|_| INVALID),
        false => Err(INVALID),
    }
}

/// A key that several gateways share. It has to be hard to guess, which its length alone can show.
pub(crate) fn cluster_key(text: &str) -> Result<Secret, Invalid> {
    const LEAST: usize = 32;
    const INVALID: Invalid = Invalid::new(
        "a key that cannot be guessed",
        "at least 32 characters, such as `openssl rand -hex 32` prints",
    );
    if text.len() >= LEAST { Ok(Secret::new(text)) } else { Err(INVALID) }
}

/// The URL of a PostgreSQL database, which may hold a password. What else is in it is the database's business.
pub(crate) fn postgres_url(text: &str) -> Result<Secret, Invalid> {
    const INVALID: Invalid = Invalid::new(
        "the URL of a PostgreSQL database",
        "a URL such as postgres://toolyard@db.example.com/toolyard",
    );
    let mut schemes = ["postgres://", "postgresql://"].into_iter();
    if schemes.any(|scheme| text.len() > scheme.len() && text.starts_with(scheme)) {
        Ok(Secret::new(text))
    } else {
        Err(INVALID)
    }
}

/// Whether there is a host, and whether what follows it is a port. The parser is content with less, such as
/// `*`, which is not a wildcard here.
fn is_sound(authority: &Authority) -> bool {
    let host = authority.host();
    let of_a_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    let has_host = !host.is_empty() && host.chars().all(of_a_host);
    has_host && (authority.as_str().len() == host.len() || authority.port_u16().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url_with_a_host() {
        for text in [
            "http://a",
            "https://a.b:8443/mcp?x=1",
            "http://127.0.0.1:80/",
            "http://[::1]:80/mcp",
            "HTTPS://a",
        ] {
            assert!(Endpoint::parse(text).is_ok(), "{text}");
        }
        let cases = [
            "",
            "/mcp",
            "a",
            "a:80",
            "ftp://a",
            "http://",
            "http:///mcp",
            "http://:80",
            "http://a:",
            "http://a:99999",
            "http://a:x",
            "http://u@a",
            "http://u:p@a",
            "http://a b",
            "http://[::1",
            "https:a",
        ];
        for text in cases {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_endpoint_does_not_print_what_may_be_secret() {
        let endpoint = Endpoint::parse("https://a.example/s/SECRET/mcp?key=SECRET").unwrap();
        assert_eq!(format!("{endpoint:?}"), "Endpoint(https://a.example/…)");
    }

    #[test]
    fn hosts_and_origins() {
        for text in ["localhost", "a.example:80", "[::1]:80"] {
            assert_eq!(host(text).unwrap(), text);
        }
        for text in ["", "http://a", "a/b", "u@a", "a:x", "a:", "*", ":80"] {
            assert!(host(text).is_err(), "{text}");
        }
        assert_eq!(host_and_port("[::1]:50051").unwrap().port_u16(), Some(50051));
        for text in ["", "a", "a:", "a:99999", "u@a:1", "http://a:1", "a:1/b"] {
            assert!(host_and_port(text).is_err(), "{text}");
        }
        for text in ["http://localhost:6274", "https://a.example", "vscode-webview://abc"] {
            assert_eq!(origin(text).unwrap(), text);
        }
        for text in ["", "a.example", "https://a/", "https://a/b", "://a", "null", "https://"] {
            assert!(origin(text).is_err(), "{text}");
        }
    }
}
