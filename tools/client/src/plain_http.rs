//! One plain HTTP request, on a connection of its own.

use std::net::SocketAddr;

use anyhow::ensure;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::http::request::Builder;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Sends a request and returns the body of the response.
///
/// # Errors
/// Errors with the body if the status is not a success.
pub async fn exchange(
    address: SocketAddr,
    request: Builder,
    body: impl Into<Bytes>,
) -> anyhow::Result<String> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    let request = request.header(HOST, address.to_string()).header(CONTENT_TYPE, "application/json");
    let (head, body) = sender.send_request(request.body(Full::new(body.into()))?).await?.into_parts();
    let body = String::from_utf8(body.collect().await?.to_bytes().into())?;
    ensure!(head.status.is_success(), "{}: {body}", head.status);
    Ok(body)
}
