//! Responses of proxies and other servers of HTTP/2 in the place of a gRPC server's, and streams that are reset.

use std::convert::Infallible;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, Response};
use tokio::net::TcpListener;
use toolyard_grpc::client::GrpcBackend;

use crate::support::{call, defined_tool, options, unavailable};

const NOTHING: &str = r#"{"name":"nothing","inputSchema":{"type":"object"}}"#;

/// An answer to each request.
#[derive(Clone)]
enum Answer {
    /// A response of HTTP, with this status and content type.
    Http(u16, &'static str),
    /// The stream is reset, after the head of the response or before it.
    Reset(Reason, bool),
    /// A head with this many bytes of headers.
    LongHead(usize),
}

async fn serve(listener: TcpListener, answer: Answer) -> Result<Infallible, h2::Error> {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let answer = answer.clone();
        tokio::spawn(async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_request, mut respond))) = connection.accept().await {
                let head = |status: u16, kind| {
                    Response::builder().status(status).header("content-type", kind).body(()).unwrap()
                };
                match answer {
                    Answer::Http(status, kind) => {
                        let mut body = respond.send_response(head(status, kind), false).unwrap();
                        body.send_data(Bytes::from_static(b"<html>a page</html>"), true).unwrap();
                    }
                    Answer::Reset(reason, false) => respond.send_reset(reason),
                    Answer::Reset(reason, true) => {
                        let mut body = respond.send_response(head(200, "application/grpc"), false).unwrap();
                        body.send_reset(reason);
                    }
                    Answer::LongHead(bytes) => {
                        let mut response = head(200, "application/grpc");
                        let value = "x".repeat(1000).parse().unwrap();
                        let name = |number| format!("x-{number}").parse().unwrap();
                        let headers =
                            (0..bytes / 1000).map(|number| (name(number), http::HeaderValue::clone(&value)));
                        response.headers_mut().extend(HeaderMap::from_iter(headers));
                        respond.send_response(response, true).unwrap();
                    }
                }
            }
        });
    }
}

/// Calls a tool of a server with this answer, and compares the error.
async fn check(answer: Answer, expected: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(serve(listener, answer));
    let mut options = options(&address, None);
    options.tools = defined_tool(NOTHING);
    let error = call(&GrpcBackend::start(options), "nothing", "{}").await.unwrap_err();
    assert_eq!(error, expected);
}

/// The mapping of `http-grpc-status-mapping.md` of gRPC.
#[tokio::test]
async fn http_status_becomes_a_status_of_grpc() {
    let http = async |status: u16, code: &str, name: &str| {
        let expected =
            format!("{code}: gRPC status {name}: no gRPC, but HTTP status {status} [gRPC status {name}]");
        check(Answer::Http(status, "text/html"), &expected).await;
    };
    http(200, "execution_failed", "UNKNOWN").await;
    http(302, "execution_failed", "UNKNOWN").await;
    http(400, "execution_failed", "INTERNAL").await;
    http(401, "denied", "UNAUTHENTICATED").await;
    http(403, "denied", "PERMISSION_DENIED").await;
    http(404, "execution_failed", "UNIMPLEMENTED").await;
    http(429, "unavailable", "UNAVAILABLE").await;
    http(502, "unavailable", "UNAVAILABLE").await;
    http(503, "unavailable", "UNAVAILABLE").await;
    http(504, "unavailable", "UNAVAILABLE").await;
    http(500, "execution_failed", "UNKNOWN").await;
}

/// The status of the handler names the page in the place of a gRPC status.
#[tokio::test]
async fn http_status_is_the_reason_why_tools_cannot_be_read() {
    for (status, code) in [
        (200, "http_status"),
        (302, "http_status"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "http_status"),
        (502, "http_status"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(serve(listener, Answer::Http(status, "text/html")));
        let reason = unavailable(&GrpcBackend::start(options(&address, None))).await;
        assert_eq!(reason, format!("{code}: no gRPC, but HTTP status {status}"));
    }
}

/// The mapping of "gRPC over HTTP2", "Errors".
#[tokio::test]
async fn reset_of_a_stream_becomes_a_status() {
    let reset = async |reason: Reason, code: &str, name: &str| {
        let expected =
            format!("{code}: gRPC status {name}: the server reset the stream [gRPC status {name}]");
        for has_head in [false, true] {
            check(Answer::Reset(reason, has_head), &expected).await;
        }
    };
    reset(Reason::CANCEL, "execution_failed", "CANCELLED").await;
    reset(Reason::INTERNAL_ERROR, "execution_failed", "INTERNAL").await;
    reset(Reason::ENHANCE_YOUR_CALM, "rate_limited", "RESOURCE_EXHAUSTED").await;
    reset(Reason::INADEQUATE_SECURITY, "denied", "PERMISSION_DENIED").await;
}

#[tokio::test]
async fn long_head_is_named() {
    let long_head = async |bytes, reason| {
        let expected = format!("unavailable: The connection to the tool's server broke [{reason}]");
        check(Answer::LongHead(bytes), &expected).await;
    };
    long_head(20_000, "the response's headers are invalid or too long").await;
    long_head(200_000, "the server sends too many frames or too long headers").await;
}
