//! Servers that speak something else than gRPC.

use std::io::{Read, Write};
use std::net::TcpListener;

use toolyard_grpc::client::GrpcBackend;

use crate::support::{call, defined_tool, options, unavailable};

const NOTHING: &str = r#"{"name":"nothing","inputSchema":{"type":"object"}}"#;

/// Starts a server that writes these bytes to each connection, once it has read something.
fn server(answer: &'static [u8], closes: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                let _request = connection.read(&mut request);
                let _written = connection.write_all(answer);
                while !closes && connection.read(&mut request).is_ok_and(|count| count > 0) {}
            });
        }
    });
    address
}

async fn check(answer: &'static [u8], closes: bool, expected: &str, cause: &str) {
    let address = server(answer, closes);
    let mut defined = options(&address, None);
    defined.tools = defined_tool(NOTHING);
    let error = call(&GrpcBackend::start(defined), "nothing", "{}").await.unwrap_err();
    assert_eq!(error, format!("unavailable: The connection to the tool's server broke [{expected}]"));
    // The tools of such a server cannot be read either.
    let discovered = GrpcBackend::start(options(&address, None));
    assert_eq!(
        unavailable(&discovered).await,
        format!("{cause}: the connection to the server broke: {expected}")
    );
}

#[tokio::test]
async fn server_without_http2_is_named() {
    let no_http2 = "the server does not speak HTTP/2";
    let http1 = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    check(http1, false, no_http2, "protocol").await;
    check(b"garbage garbage garbage garbage garbage", false, no_http2, "protocol").await;
    check(&[0xff; 64], false, no_http2, "protocol").await;
}

#[tokio::test]
async fn server_that_closes_connections_is_named() {
    check(b"", true, "connection closed", "connection_broken").await;
}
