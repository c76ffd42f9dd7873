//! Refuses requests that a web page caused a browser to send.
//!
//! A page can point its own name at 127.0.0.1 and talk to any server there ("DNS rebinding"). MCP requires servers to
//! check `Origin` (2026-07-28, basic/transports/streamable-http, security); the `Host` header reveals the rebound name
//! even if the browser sends no origin.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HOST, ORIGIN,
    VARY,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, Response, Uri};

use crate::listener::ClientAddress;

/// The allowed values of `Host` and `Origin`.
#[derive(Debug, Clone, Default)]
pub struct BrowserGuard {
    /// Hosts of the listening addresses, as in a `Host` header.
    pub own_hosts: Vec<String>,
    /// Additional hosts of this server, with or without a port, beside loopback names. If this is empty and the
    /// listener is reachable from other machines, any host is allowed, as a machine may have names that it does not
    /// know.
    pub hosts: Vec<String>,
    /// Origins of allowed pages, such as `https://inspector.example.com`.
    pub origins: Vec<String>,
    /// `true` if the listener is bound beyond loopback.
    pub exposed: bool,
}

/// The fault of a refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GuardRefusal {
    /// `Host` names another host.
    #[error("unknown host in the Host header")]
    Host,
    /// The page in `Origin` is not allowed.
    #[error("origin not allowed")]
    Origin,
}

impl BrowserGuard {
    /// Checks the headers of a request.
    ///
    /// # Errors
    /// Names the invalid header.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), GuardRefusal> {
        // Browsers cannot connect to Unix sockets, and other local clients have no host name to send.
        let is_local = matches!(request.extensions().get(), Some(ClientAddress::Unix(_)));
        if !is_local && !host_of(request).is_some_and(|host| self.is_own_host(host)) {
            return Err(GuardRefusal::Host);
        }
        let mut origins = request.headers().get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(()),
            (Some(origin), None) if origin.to_str().is_ok_and(|origin| self.is_allowed_origin(origin)) => {
                Ok(())
            }
            _ => Err(GuardRefusal::Origin),
        }
    }

    fn is_own_host(&self, host: &str) -> bool {
        let is_allowed_host = self.hosts.iter().any(|ours| without_port(ours).eq_ignore_ascii_case(host));
        is_allowed_host
            || is_loopback(host)
            || self.own_hosts.iter().any(|own| own == host)
            || (self.exposed && self.hosts.is_empty())
    }

    fn is_allowed_origin(&self, origin: &str) -> bool {
        if self.origins.iter().any(|ours| ours.eq_ignore_ascii_case(origin)) {
            return true;
        }
        // A page of this machine, on any port: its server could call without a browser as well.
        !self.exposed && is_local_page(origin)
    }
}

/// `true` if an origin belongs to a page of a server on this machine: an HTTP scheme and a loopback name.
fn is_local_page(origin: &str) -> bool {
    let Ok(uri) = origin.parse::<Uri>() else { return false };
    let has_scheme = uri.scheme_str().is_some_and(|scheme| matches!(scheme, "http" | "https"));
    // Browsers send no origin with a user (RFC 6454, section 6.2).
    let has_user = origin.contains('@');
    has_scheme
        && !has_user
        && uri.path() == "/"
        && uri.query().is_none()
        && uri.authority().is_some_and(has_valid_port)
        && uri.host().is_some_and(is_loopback)
}

/// Returns `true` if an authority has no port, or a valid one. Origins have no empty port.
fn has_valid_port(authority: &Authority) -> bool {
    match authority.as_str().strip_prefix(authority.host()) {
        Some("") => true,
        Some(port) => port.strip_prefix(':').is_some_and(|port| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
        }),
        None => false,
    }
}

/// Lets the page of a request read the response (Fetch, CORS protocol). Only for requests that have passed
/// [`BrowserGuard::check`]. `exposed` are response headers that the page may read beside the default ones.
pub fn allow_read<B>(request: &HeaderMap, response: &mut Response<B>, exposed: &'static str) {
    let Some(origin) = request.get(ORIGIN) else { return };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// Answers a preflight request of a browser. All headers are allowed, as tools define their own.
pub fn allow_preflight<B>(request: &HeaderMap, response: &mut Response<B>, methods: &'static str) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("3600"));
    if let Some(requested) = request.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
    }
}

/// Returns the host of a request without the port: that of its target, where the target has one (RFC 9112, section
/// 3.2.2), else that of `Host`.
fn host_of<B>(request: &Request<B>) -> Option<&str> {
    let header = || request.headers().get(HOST).and_then(|value| value.to_str().ok());
    request.uri().authority().map(Authority::as_str).or_else(header).map(without_port)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    }
}

fn is_loopback(host: &str) -> bool {
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| name.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(guard: &BrowserGuard, host: &str, origin: Option<&str>, expect: Result<(), GuardRefusal>) {
        let request = Request::get("/mcp").header(HOST, host);
        let request = origin.into_iter().fold(request, |request, origin| request.header(ORIGIN, origin));
        assert_eq!(guard.check(&request.body(()).unwrap()), expect, "{host} {origin:?}");
    }

    #[test]
    fn loopback_listener_accepts_local_hosts_and_origins() {
        let guard = BrowserGuard { origins: vec!["https://tools.example".into()], ..BrowserGuard::default() };
        for host in ["localhost:8080", "127.0.0.1", "[::1]:80", "[::1]", "LOCALHOST"] {
            check(&guard, host, None, Ok(()));
        }
        for host in ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "[::2]:80"] {
            check(&guard, host, None, Err(GuardRefusal::Host));
        }
        for origin in
            ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:65535", "https://tools.example"]
        {
            check(&guard, "localhost", Some(origin), Ok(()));
        }
        for origin in [
            "http://evil.example",
            "null",
            "",
            "file://",
            "file://localhost",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "http://user@localhost",
            "http://user:password@localhost:3000",
            "http://@localhost",
            "ftp://localhost",
            "chrome-extension://localhost",
            "moz-extension://127.0.0.1",
            "app://localhost",
            "localhost",
            "//localhost",
            "http://localhost/evil.example",
            "http://localhost?evil.example",
            "http://localhost:65536",
            "http://localhost:",
            "http://localhost:+80",
            "http://[::1]:99999",
            "http://localhost, http://evil.example",
            "http://localhost http://evil.example",
        ] {
            check(&guard, "localhost", Some(origin), Err(GuardRefusal::Origin));
        }
        let twice = Request::get("/mcp").header(HOST, "localhost");
        let twice = twice.header(ORIGIN, "http://localhost").header(ORIGIN, "http://evil.example");
        assert_eq!(guard.check(&twice.body(()).unwrap()), Err(GuardRefusal::Origin));
    }

    #[test]
    fn host_of_the_target_is_checked_before_the_header() {
        for (target, expected) in [
            ("http://localhost:8080/mcp", Ok(())),
            ("http://evil.example/mcp", Err(GuardRefusal::Host)),
            ("http://localhost@evil.example/mcp", Err(GuardRefusal::Host)),
        ] {
            let request = Request::get(target).header(HOST, "localhost");
            assert_eq!(BrowserGuard::default().check(&request.body(()).unwrap()), expected, "{target}");
        }
    }

    #[test]
    fn exposed_listener_accepts_configured_hosts() {
        let open = BrowserGuard { exposed: true, ..BrowserGuard::default() };
        check(&open, "gateway.internal:8080", None, Ok(()));
        check(&open, "gateway.internal", Some("http://localhost:3000"), Err(GuardRefusal::Origin));
        let named = BrowserGuard {
            own_hosts: vec!["10.0.0.1".into()],
            hosts: vec!["gateway.internal:8080".into()],
            ..open
        };
        check(&named, "gateway.internal:8080", None, Ok(()));
        check(&named, "10.0.0.1:8080", None, Ok(()));
        check(&named, "other.internal", None, Err(GuardRefusal::Host));
    }

    #[test]
    fn unix_socket_accepts_any_host() {
        let check = |client: ClientAddress, origin: Option<&str>| {
            let request = Request::get("/mcp").header(HOST, "whatever").extension(client);
            let request = origin.into_iter().fold(request, |request, origin| request.header(ORIGIN, origin));
            BrowserGuard::default().check(&request.body(()).unwrap())
        };
        let elsewhere = ClientAddress::Tcp("127.0.0.1:1".parse().unwrap());
        assert_eq!(check(ClientAddress::Unix(None), None), Ok(()));
        assert_eq!(check(ClientAddress::Unix(None), Some("https://evil.example")), Err(GuardRefusal::Origin));
        assert_eq!(check(elsewhere, None), Err(GuardRefusal::Host));
    }

    #[test]
    fn allowed_page_can_send_and_read() {
        let page = HeaderMap::from_iter([
            (ORIGIN, HeaderValue::from_static("https://tools.example")),
            (ACCESS_CONTROL_REQUEST_HEADERS, HeaderValue::from_static("mcp-method, mcp-param-region")),
        ]);
        let cors_headers = |request: &HeaderMap| {
            let mut response = Response::new(());
            allow_preflight(request, &mut response, "POST");
            allow_read(request, &mut response, "mcp-session-id");
            let header = |name| {
                response.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap().to_owned())
            };
            [ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS]
                .map(header)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            cors_headers(&page),
            [some("https://tools.example"), some("mcp-method, mcp-param-region"), some("POST")]
        );
        // A client without an origin gets no CORS headers.
        assert_eq!(cors_headers(&HeaderMap::new())[0], None);
    }
}
