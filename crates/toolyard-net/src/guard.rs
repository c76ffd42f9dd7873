//! Refuses requests that a web page made a browser send.
//!
//! A page can point its own name at 127.0.0.1 and talk to whatever listens there ("DNS rebinding").
//! MCP asks servers to check `Origin` (2026-07-28, basic/transports/streamable-http, security); the
//! `Host` header gives the rebound name away even where a browser sends no origin.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HOST, ORIGIN,
    VARY,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, Response, Uri};

use crate::listener::ClientAddress;

/// Which `Host` and `Origin` a request may carry.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// The hosts of the addresses that are listened on, as a `Host` header has them.
    pub own: Vec<String>,
    /// Hosts (a port does not matter) that are ours beside that one and the loopback names. Where this is empty and the
    /// listener is reached from other machines, any host is: nobody can know all names of a machine.
    pub hosts: Vec<String>,
    /// Origins of pages that may call, such as `https://inspector.example.com`.
    pub origins: Vec<String>,
    /// Whether the listener is bound beyond loopback.
    pub exposed: bool,
}

/// What was wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name in `Host` is not ours.
    #[error("the Host header names another host")]
    Host,
    /// The page in `Origin` may not call.
    #[error("the Origin header names a page that may not call")]
    Origin,
}

impl Guard {
    /// Looks at the headers of a request.
    ///
    /// # Errors
    /// Names the header that is wrong.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        // No browser connects to a Unix socket, and who does has no name for this machine to give.
        let is_local = request.extensions().get() == Some(&ClientAddress::Unix);
        if !is_local && !host_of(request).is_some_and(|host| self.is_our_host(host)) {
            return Err(Refusal::Host);
        }
        match request.headers().get(ORIGIN) {
            Some(origin) if !origin.to_str().is_ok_and(|origin| self.may_call(origin)) => {
                Err(Refusal::Origin)
            }
            _ => Ok(()),
        }
    }

    fn is_our_host(&self, host: &str) -> bool {
        let listed = self.hosts.iter().any(|ours| without_port(ours).eq_ignore_ascii_case(host));
        listed
            || is_loopback(host)
            || self.own.iter().any(|own| own == host)
            || (self.exposed && self.hosts.is_empty())
    }

    fn may_call(&self, origin: &str) -> bool {
        if self.origins.iter().any(|ours| ours.eq_ignore_ascii_case(origin)) {
            return true;
        }
        // A page of this machine, on whatever port: it could call without a browser as well.
        let host = origin.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
        !self.exposed && host.is_some_and(|host| is_loopback(&host))
    }
}

/// Lets the page that a request came from read the response (Fetch, CORS protocol). Only for a request that
/// has passed [`Guard::check`]: its origin is one that may call. `exposed` are the response's headers that
/// the page may see beside the usual ones.
pub fn let_read<B>(request: &HeaderMap, response: &mut Response<B>, exposed: &'static str) {
    let Some(origin) = request.get(ORIGIN) else { return };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// Answers a browser that asks before it sends a request for a page. Every header is allowed: which ones
/// there are, the tools decide.
pub fn let_send<B>(request: &HeaderMap, response: &mut Response<B>, methods: &'static str) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("3600"));
    if let Some(asked) = request.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
}

/// What a request names as its host, without the port.
fn host_of<B>(request: &Request<B>) -> Option<&str> {
    let header = request.headers().get(HOST).and_then(|value| value.to_str().ok());
    header.or_else(|| request.uri().authority().map(Authority::as_str)).map(without_port)
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
    fn check(guard: &Guard, host: &str, origin: Option<&str>, expect: Result<(), Refusal>) {
        let request = Request::get("/mcp").header(HOST, host);
        let request = origin.into_iter().fold(request, |request, origin| request.header(ORIGIN, origin));
        assert_eq!(guard.check(&request.body(()).unwrap()), expect, "{host} {origin:?}");
    }

    #[test]
    fn on_loopback() {
        let guard = Guard { origins: vec!["https://tools.example".into()], ..Guard::default() };
        for host in ["localhost:8080", "127.0.0.1", "[::1]:80", "[::1]", "LOCALHOST"] {
            check(&guard, host, None, Ok(()));
        }
        for host in ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "[::2]:80"] {
            check(&guard, host, None, Err(Refusal::Host));
        }
        for origin in ["http://localhost:3000", "https://127.0.0.1", "https://tools.example"] {
            check(&guard, "localhost", Some(origin), Ok(()));
        }
        for origin in ["http://evil.example", "null", "", "file://", "http://localhost.evil.example"] {
            check(&guard, "localhost", Some(origin), Err(Refusal::Origin));
        }
    }

    #[test]
    fn beyond_loopback() {
        let open = Guard { exposed: true, ..Guard::default() };
        check(&open, "gateway.internal:8080", None, Ok(()));
        check(&open, "gateway.internal", Some("http://localhost:3000"), Err(Refusal::Origin));
        let named =
            Guard { own: vec!["10.0.0.1".into()], hosts: vec!["gateway.internal:8080".into()], ..open };
        check(&named, "gateway.internal:8080", None, Ok(()));
        check(&named, "10.0.0.1:8080", None, Ok(()));
        check(&named, "other.internal", None, Err(Refusal::Host));
    }

    #[test]
    fn on_a_unix_socket() {
        let check = |client: ClientAddress, origin: Option<&str>| {
            let request = Request::get("/mcp").header(HOST, "whatever").extension(client);
            let request = origin.into_iter().fold(request, |request, origin| request.header(ORIGIN, origin));
            Guard::default().check(&request.body(()).unwrap())
        };
        let elsewhere = ClientAddress::Tcp("127.0.0.1:1".parse().unwrap());
        assert_eq!(check(ClientAddress::Unix, None), Ok(()));
        assert_eq!(check(ClientAddress::Unix, Some("https://evil.example")), Err(Refusal::Origin));
        assert_eq!(check(elsewhere, None), Err(Refusal::Host));
    }

    #[test]
    fn a_page_that_may_call_can_send_and_read() {
        let page = HeaderMap::from_iter([
            (ORIGIN, HeaderValue::from_static("https://tools.example")),
            (ACCESS_CONTROL_REQUEST_HEADERS, HeaderValue::from_static("mcp-method, mcp-param-region")),
        ]);
        let told = |request: &HeaderMap| {
            let mut response = Response::new(());
            let_send(request, &mut response, "POST");
            let_read(request, &mut response, "mcp-session-id");
            let header = |name| {
                response.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap().to_owned())
            };
            [ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS]
                .map(header)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            told(&page),
            [some("https://tools.example"), some("mcp-method, mcp-param-region"), some("POST")]
        );
        // A client that is no browser is told nothing of pages.
        assert_eq!(told(&HeaderMap::new())[0], None);
    }
}
