//! URLs, hosts and origins.

use std::fmt;

use http::{
    Uri,
    uri::{Authority, Scheme},
};

use super::FormatError;
use crate::handler::SecretString;

/// The URL of a server: `http` or `https`, with a host and without user information.
///
/// `Debug` shows only the origin: some services have their secret in the path or the query.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointUrl(Uri);

impl EndpointUrl {
    /// Parses a URL.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        const INVALID: FormatError =
            FormatError::new("an endpoint", "a URL such as https://mcp.example.com/mcp");
        if !text.contains("://") {
            return Err(INVALID.hint("the scheme is missing: put `http://` or `https://` in front"));
        }
        let uri: Uri = text.parse().map_err(|_| INVALID)?;
        if uri.scheme() != Some(&Scheme::HTTP) && uri.scheme() != Some(&Scheme::HTTPS) {
            return Err(INVALID.hint("it begins with http:// or https://"));
        }
        let authority = uri.authority().ok_or(INVALID)?;
        if authority.as_str().contains('@') {
            return Err(INVALID.hint("remove the user name and password: URLs appear in logs"));
        }
        if is_host_and_port(authority) { Ok(Self(uri)) } else { Err(INVALID) }
    }

    /// A URL of this crate itself, which is valid.
    pub(crate) fn of_literal(url: &'static str) -> Self {
        Self(Uri::from_static(url))
    }

    /// The URL.
    pub fn uri(&self) -> &Uri {
        &self.0
    }

    /// The URL without its query, for display: services take tokens from the query.
    #[must_use]
    pub fn display_url(&self) -> String {
        let (scheme, authority) = (self.0.scheme_str().unwrap_or_default(), self.0.authority());
        format!("{scheme}://{}{}", authority.map_or("", Authority::as_str), self.0.path())
    }

    /// True if requests use TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.0.scheme() == Some(&Scheme::HTTPS)
    }
}

impl fmt::Debug for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.scheme_str().unwrap_or_default();
        let authority = self.0.authority().map_or("", Authority::as_str);
        write!(f, "EndpointUrl({scheme}://{authority}/…)")
    }
}

/// The base URL of an API, to which paths are appended.
pub(crate) fn api_base_url(text: &str) -> Result<EndpointUrl, FormatError> {
    const INVALID: FormatError = FormatError::new(
        "the base URL of an API",
        "a URL without a query, such as https://openrouter.ai/api/v1",
    );
    let base = EndpointUrl::parse(text).map_err(|invalid| FormatError { hint: invalid.hint, ..INVALID })?;
    let has_query = base.uri().query().is_some();
    if has_query { Err(INVALID.hint("remove the query")) } else { Ok(base) }
}

/// A host as in a `Host` header, with or without a port.
pub(crate) fn host(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError =
        FormatError::new("a host", "a host such as tools.example.com or localhost:8080");
    let authority: Authority = text.parse().map_err(|_| INVALID)?;
    let valid = !text.contains('@') && is_host_and_port(&authority);
    if valid { Ok(text.to_owned()) } else { Err(INVALID) }
}

/// A host, or `*.` and a domain, with or without a port.
pub(crate) fn host_pattern(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError =
        FormatError::new("a host", "a host such as mcp.example.com, or *.example.com");
    let plain = text.strip_prefix("*.").unwrap_or(text);
    match plain.contains('*') || host(plain).is_err() {
        true => Err(INVALID),
        false => Ok(text.to_lowercase()),
    }
}

/// A host and a port, without a scheme.
pub(crate) fn host_and_port(text: &str) -> Result<Authority, FormatError> {
    const INVALID: FormatError =
        FormatError::new("a host and a port", "a host and a port such as tools.example.com:50051");
    if text.contains("://") {
        return Err(INVALID.hint("remove the scheme; `tls` enables encryption"));
    }
    let authority: Authority = host(text).map_err(|_| INVALID)?.parse().map_err(|_| INVALID)?;
    if authority.port_u16().is_some_and(|port| port > 0) { Ok(authority) } else { Err(INVALID) }
}

/// An origin as in an `Origin` header: a scheme and a host, without a path. Other schemes than those of HTTP are valid:
/// extensions of browsers and editors have their own.
pub(crate) fn origin(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError = FormatError::new("an origin", "an origin such as https://app.example.com");
    let (scheme, rest) = text.split_once("://").ok_or(INVALID)?;
    if scheme.is_empty() || Scheme::try_from(scheme).is_err() {
        return Err(INVALID);
    }
    host(rest).map_err(|_| INVALID.hint("an origin has no path and no `/` at its end"))?;
    Ok(text.to_owned())
}

/// The origin of an HTTP server.
pub(crate) fn http_origin(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError =
        FormatError::new("an origin of HTTP", "a scheme, a host and a port, such as http://10.0.0.5:8080");
    match text.starts_with("http://") || text.starts_with("https://") {
        true => origin(text).map_err(|_| INVALID),
        false => Err(INVALID),
    }
}

/// The URL of a trace, with a place for its id.
pub(crate) fn trace_url(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError = FormatError::new(
        "the URL of a trace",
        "an HTTP URL with `{traceId}`, such as https://jaeger.example.com/trace/{traceId}",
    );
    let is_url = EndpointUrl::parse(&text.replace("{traceId}", "0")).is_ok();
    if is_url && text.contains("{traceId}") { Ok(text.to_owned()) } else { Err(INVALID) }
}

/// A key that several gateways share. It must be hard to guess; only its length can be checked.
pub(crate) fn cluster_key(text: &str) -> Result<SecretString, FormatError> {
    const LEAST: usize = 32;
    const INVALID: FormatError = FormatError::new(
        "a key that cannot be guessed",
        "at least 32 characters, such as `openssl rand -hex 32` prints",
    );
    if text.len() >= LEAST { Ok(SecretString::new(text)) } else { Err(INVALID) }
}

/// The URL of a PostgreSQL database, which may contain a password. The database client checks the rest.
pub(crate) fn postgres_url(text: &str) -> Result<SecretString, FormatError> {
    const INVALID: FormatError = FormatError::new(
        "the URL of a PostgreSQL database",
        "a URL such as postgres://toolyard@db.example.com/toolyard",
    );
    let mut schemes = ["postgres://", "postgresql://"].into_iter();
    if schemes.any(|scheme| text.len() > scheme.len() && text.starts_with(scheme)) {
        Ok(SecretString::new(text))
    } else {
        Err(INVALID)
    }
}

/// True if there is a valid host, and if the rest is a port. The URI parser accepts more, such as `*`, which is not a
/// wildcard here.
fn is_host_and_port(authority: &Authority) -> bool {
    let host = authority.host();
    let of_a_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    let has_host = !host.is_empty() && host.chars().all(of_a_host);
    has_host && (authority.as_str().len() == host.len() || authority.port_u16().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_is_a_url_with_a_host() {
        for text in [
            "http://a",
            "https://a.b:8443/mcp?x=1",
            "http://127.0.0.1:80/",
            "http://[::1]:80/mcp",
            "HTTPS://a",
        ] {
            assert!(EndpointUrl::parse(text).is_ok(), "{text}");
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
            assert!(EndpointUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn debug_of_an_endpoint_hides_secrets() {
        let endpoint = EndpointUrl::parse("https://a.example/s/SECRET/mcp?key=SECRET").unwrap();
        assert_eq!(format!("{endpoint:?}"), "EndpointUrl(https://a.example/…)");
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
