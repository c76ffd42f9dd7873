//! The framing of requests: the end of a request, and its host.
//!
//! If a proxy and a server disagree about these, one request can hide in another ("request smuggling"). hyper accepts
//! some requests that a server must or may refuse (RFC 9112); this module refuses them for every route:
//!
//! - more than one `Host`, an invalid one, or none in HTTP/1.1 (section 3.2);
//! - a target with another host than `Host` (section 3.2.2);
//! - any `Transfer-Encoding` but a single `chunked` (section 6.1);
//! - `Transfer-Encoding` with `Content-Length` (section 6.3). hyper drops the length early, so that
//!   [`LengthLineCounter`] searches the received bytes for it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderValue, Request, StatusCode, Uri, Version, header};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The framing of the requests on one connection.
#[derive(Debug, Default)]
pub(super) struct RequestFraming {
    /// Number of received lines that begin with `Content-Length:`.
    length_lines: Arc<AtomicUsize>,
    /// Number of `Content-Length` headers in parsed requests.
    parsed_lengths: AtomicUsize,
}

impl RequestFraming {
    /// Returns the stream that requests are read from.
    pub(super) fn watch<S>(&self, stream: S) -> LengthLineCounter<S> {
        LengthLineCounter { stream, matched: None, lines: self.length_lines.clone() }
    }

    /// Checks the head of the next request.
    ///
    /// # Errors
    /// Names the fault. The connection has to be closed.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), &'static str> {
        let headers = request.headers();
        match headers.get_all(HOST).iter().count() {
            0 if request.version() == Version::HTTP_11 => return Err("missing Host header"),
            0 | 1 => {}
            _ => return Err("duplicate Host header"),
        }
        if let Some(host) = headers.get(HOST) {
            check_host(host, request.uri())?;
        }
        let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
        let parsed_lengths = self.parsed_lengths.fetch_add(lengths, Ordering::Relaxed) + lengths;
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
        match (codings.next(), codings.next()) {
            (None, _) => Ok(()),
            (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
                // A body with such a line counts as well, and so does the next pipelined request: no client is known to
                // send these, and it could repeat its request.
                match self.length_lines.load(Ordering::Relaxed) > parsed_lengths {
                    true => Err("both Transfer-Encoding and Content-Length headers"),
                    false => Ok(()),
                }
            }
            _ => Err("unsupported Transfer-Encoding: only `chunked` is supported"),
        }
    }
}

/// Checks the value of `Host` against the target of its request.
fn check_host(host: &HeaderValue, target: &Uri) -> Result<(), &'static str> {
    // Several hosts in one value, or other parts of a URI.
    if host
        .as_bytes()
        .iter()
        .any(|byte| matches!(byte, b',' | b'/' | b'?' | b'#' | b'@' | b'\\' | b' ' | b'\t'))
    {
        return Err("invalid Host header: expected a host with an optional port");
    }
    let Some(authority) = target.authority() else { return Ok(()) };
    let default_port: &[u8] = match target.scheme_str() {
        Some("http") => b":80",
        Some("https") => b":443",
        _ => b"",
    };
    let without_default = |host: &[u8]| host.strip_suffix(default_port).unwrap_or(host).to_ascii_lowercase();
    match without_default(host.as_bytes()) == without_default(authority.as_str().as_bytes()) {
        true => Ok(()),
        false => Err("the hosts of the request target and the Host header differ"),
    }
}

/// The response to a request with a framing fault.
pub(super) fn bad_request(fault: &'static str) -> Response {
    let mut response = Response::new(Body::from(fault));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The beginning of a line with the length of a body.
const LENGTH: &[u8] = b"content-length:";

/// A stream that counts received lines with `Content-Length`, also in bodies.
pub(super) struct LengthLineCounter<S> {
    stream: S,
    /// Number of bytes of [`LENGTH`] that the current line matches; `None` if it does not match.
    matched: Option<usize>,
    lines: Arc<AtomicUsize>,
}

impl<S> LengthLineCounter<S> {
    fn scan(&mut self, mut bytes: &[u8]) {
        while let Some(first) = bytes.first() {
            let Some(matched) = self.matched else {
                let Some(end) = memchr::memchr(b'\n', bytes) else { return };
                self.matched = Some(0);
                bytes = &bytes[end + 1..];
                continue;
            };
            if !first.eq_ignore_ascii_case(&LENGTH[matched]) {
                self.matched = None;
                continue;
            }
            bytes = &bytes[1..];
            self.matched = Some(matched + 1).filter(|matched| *matched < LENGTH.len());
            if self.matched.is_none() {
                self.lines.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LengthLineCounter<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.scan(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LengthLineCounter<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_header_must_be_one_host_and_match_the_target() {
        let check = |target: &str, host: &str| {
            let request = Request::post(target).version(Version::HTTP_11).header(HOST, host);
            RequestFraming::default().check(&request.body(()).unwrap()).is_ok()
        };
        for (target, host) in [
            ("/mcp", "localhost:8080"),
            ("/mcp", "[::1]:80"),
            ("/mcp", ""),
            ("http://localhost:8080/mcp", "LOCALHOST:8080"),
            ("http://localhost/mcp", "localhost:80"),
            ("https://localhost:443/mcp", "localhost"),
        ] {
            assert!(check(target, host), "{target} {host}");
        }
        for (target, host) in [
            ("/mcp", "localhost, evil.example"),
            ("/mcp", "localhost,evil.example"),
            ("/mcp", "localhost evil.example"),
            ("/mcp", "user@localhost"),
            ("/mcp", "localhost/mcp"),
            ("http://evil.example/mcp", "localhost"),
            ("http://localhost/mcp", "evil.example"),
            ("http://localhost:81/mcp", "localhost"),
            ("http://user@localhost/mcp", "localhost"),
            ("http://localhost/mcp", ""),
        ] {
            assert!(!check(target, host), "{target} {host}");
        }
    }

    /// The count does not depend on the chunks of the stream.
    #[test]
    fn content_length_lines_are_counted() {
        let cases = [
            ("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 1),
            ("POST / HTTP/1.1\nCONTENT-LENGTH:5\n\nhello", 1),
            ("GET /content-length: HTTP/1.1\r\nhost: a\r\n\r\n", 0),
            ("POST / HTTP/1.1\r\nx-content-length: 5\r\ncontent-lengths: 1\r\ncontent-length : 1\r\n\r\n", 0),
            ("POST / HTTP/1.1\r\ncontent-content-length: 1\r\ncontent-length: 1\r\n\r\n", 1),
            ("GET / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx", 2),
        ];
        for (text, expected) in cases {
            for size in 1..=text.len() {
                let framing = RequestFraming::default();
                let mut stream = framing.watch(());
                text.as_bytes().chunks(size).for_each(|bytes| stream.scan(bytes));
                assert_eq!(framing.length_lines.load(Ordering::Relaxed), expected, "{size} {text:?}");
            }
        }
    }
}
