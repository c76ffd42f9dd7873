//! A bare JSON proxy: it parses each message and forwards it, and has no other feature. Its cost is the lower limit of
//! a proxy on hyper and tokio that looks into messages.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};

use super::serve::serve_connection;

/// A JSON-RPC message of either direction. Nothing but its structure is looked at.
#[derive(Deserialize)]
struct HopMessage<'a> {
    #[serde(borrow, rename = "id")]
    _id: Option<&'a RawValue>,
    #[serde(borrow, rename = "method")]
    _method: Option<&'a RawValue>,
    #[serde(borrow, rename = "params")]
    _params: Option<&'a RawValue>,
    #[serde(borrow, rename = "result")]
    _result: Option<&'a RawValue>,
}

/// A connection to the upstream for each connection of a client, so that none waits for another.
struct HopConnection {
    upstream: SocketAddr,
    sender: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

/// Prints a free port of the loopback interface and serves on it until the process is killed, with a thread for each
/// processor, which get the connections in turn.
pub(super) fn run(upstream: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let threads: Vec<_> = (0..std::thread::available_parallelism().map_or(1, usize::from))
        .map(|_| {
            let (sender, streams) = mpsc::unbounded_channel();
            std::thread::spawn(move || serve_streams(streams, upstream));
            sender
        })
        .collect();
    writeln!(std::io::stdout(), "http://{}", listener.local_addr()?)?;
    for thread in threads.iter().cycle() {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        ensure!(thread.send(stream).is_ok(), "a thread of the proxy has ended");
    }
    Ok(())
}

fn serve_streams(
    mut streams: mpsc::UnboundedReceiver<std::net::TcpStream>,
    upstream: SocketAddr,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        while let Some(stream) = streams.recv().await {
            let connection = Arc::new(HopConnection { upstream, sender: Mutex::new(None) });
            let answer = move |request| forward(Arc::clone(&connection), request);
            tokio::spawn(serve_connection(TcpStream::from_std(stream)?, answer));
        }
        Ok(())
    })
}

async fn forward(
    connection: Arc<HopConnection>,
    request: Request<Incoming>,
) -> anyhow::Result<Response<Full<Bytes>>> {
    let (mut head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    check(&body)?;
    head.headers.insert(HOST, HeaderValue::from_str(&connection.upstream.to_string())?);
    head.headers.remove(TRANSFER_ENCODING);
    head.headers.remove(CONTENT_LENGTH);
    let mut sender = connection.sender.lock().await;
    let mut open = match sender.take() {
        Some(open) => open,
        None => connect(connection.upstream).await?,
    };
    open.ready().await?;
    let (mut head, body) = open.send_request(Request::from_parts(head, Full::new(body))).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    *sender = Some(open);
    drop(sender);
    let is_event = body.starts_with(b"data:");
    check(if is_event { b"" } else { &body })?;
    head.headers.remove(TRANSFER_ENCODING);
    head.headers.remove(CONTENT_LENGTH);
    Ok(Response::from_parts(head, Full::new(body)))
}

/// Parses a message, if there is one.
fn check(body: &[u8]) -> anyhow::Result<()> {
    if body.is_empty() {
        return Ok(());
    }
    serde_json::from_slice::<HopMessage<'_>>(body).context("invalid message")?;
    Ok(())
}

async fn connect(upstream: SocketAddr) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(upstream).await?;
    stream.set_nodelay(true)?;
    let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    Ok(sender)
}
