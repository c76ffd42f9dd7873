//! Parsing and forwarding of proxy requests.

use http::Uri;

use super::{HostPort, UpstreamProxy};

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 64;

/// Headers that concern one connection, or are set anew.
const NOT_FORWARDED: [&str; 9] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-connection",
];

#[derive(Debug)]
pub(super) struct ProxyRequest {
    /// True for `CONNECT`.
    pub(super) is_tunnel: bool,
    /// True for `GET` and `HEAD`.
    pub(super) is_read: bool,
    pub(super) has_body: bool,
    pub(super) target: HostPort,
    pub(super) authorization: Option<Vec<u8>>,
    method: String,
    /// Path and query.
    path: String,
    headers: Vec<(String, Vec<u8>)>,
}

/// A request that is malformed or not a proxy request.
#[derive(Debug)]
pub(super) struct MalformedRequest;

impl ProxyRequest {
    /// Parses a head, including its empty line.
    pub(super) fn parse(head: &[u8]) -> Result<Self, MalformedRequest> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let is_whole = parsed.parse(head).is_ok_and(|status| status.is_complete());
        let (Some(method), Some(path), true) = (parsed.method, parsed.path, is_whole) else {
            return Err(MalformedRequest);
        };
        let uri: Uri = path.parse().map_err(|_| MalformedRequest)?;
        let is_tunnel = method == "CONNECT";
        let is_http = uri.scheme_str() == Some("http") && uri.path().starts_with('/');
        let is_sound = if is_tunnel { uri.scheme().is_none() } else { is_http };
        if !is_sound {
            return Err(MalformedRequest);
        }
        let default = if is_tunnel { None } else { Some(80) };
        let mut request = Self {
            is_tunnel,
            is_read: matches!(method, "GET" | "HEAD"),
            has_body: false,
            target: host_port(&uri, default).ok_or(MalformedRequest)?,
            authorization: None,
            method: method.to_owned(),
            path: uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            headers: Vec::new(),
        };
        parsed.headers.iter().for_each(|header| request.add(header.name, header.value));
        Ok(request)
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        let name = name.to_ascii_lowercase();
        self.has_body |= name == "transfer-encoding" || (name == "content-length" && value != b"0");
        if name == "proxy-authorization" {
            self.authorization = Some(value.to_owned());
        } else if !NOT_FORWARDED.contains(&&*name) {
            self.headers.push((name, value.to_owned()));
        }
    }

    /// Returns the head for the server, or for the upstream proxy.
    pub(super) fn head_for_server(&self, upstream: Option<&UpstreamProxy>) -> Vec<u8> {
        let host = format_authority(&self.target);
        let origin = if upstream.is_some() { format!("http://{host}") } else { String::new() };
        let begin = format!("{} {origin}{} HTTP/1.1\r\nHost: {host}\r\n", self.method, self.path);
        let mut head = begin.into_bytes();
        head.extend_from_slice(b"Connection: close\r\n");
        head.extend(authorization_header(upstream).into_bytes());
        for (name, value) in &self.headers {
            head.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// Returns the host and port of a URI without user information.
pub(in super::super) fn host_port(uri: &Uri, default: Option<u16>) -> Option<HostPort> {
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let port = match authority.as_str().rsplit_once(']').map_or(authority.as_str(), |(_, end)| end) {
        end if end.contains(':') => authority.port_u16()?,
        _ => default?,
    };
    (!host.is_empty()).then(|| (host.to_ascii_lowercase(), port))
}

/// Returns a request for a tunnel through the upstream proxy.
pub(super) fn connect_head(target: &HostPort, upstream: &UpstreamProxy) -> Vec<u8> {
    let host = format_authority(target);
    let authorization = authorization_header(Some(upstream));
    format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n{authorization}\r\n").into_bytes()
}

fn authorization_header(upstream: Option<&UpstreamProxy>) -> String {
    let value = upstream.and_then(|upstream| upstream.authorization.as_ref());
    value.map(|value| format!("Proxy-Authorization: {value}\r\n")).unwrap_or_default()
}

fn format_authority((host, port): &HostPort) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// True if the head of a response reports success.
pub(super) fn is_success(head: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut headers);
    parsed.parse(head).is_ok() && parsed.code.is_some_and(|code| (200..300).contains(&code))
}
