//! The common part of the servers of the bench.

use std::error::Error;
use std::io::Write;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, server::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

/// Prints a free port of the loopback interface and serves on it, on one thread, until the process is killed.
pub(super) fn serve_forever<A, F, B>(answer: A) -> anyhow::Result<()>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response<B>, hyper::Error>> + Send + 'static,
    B: Body<Data = Bytes, Error: Error + Send + Sync + 'static> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        writeln!(std::io::stdout(), "http://{}", listener.local_addr()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(serve_connection(stream, answer.clone()));
        }
    })
}

/// Serves one connection of a client.
pub(super) async fn serve_connection<A, F, B, E>(stream: TcpStream, answer: A) -> anyhow::Result<()>
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
    B: Body<Data = Bytes, Error: Error + Send + Sync + 'static> + 'static,
{
    stream.set_nodelay(true)?;
    http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await?;
    Ok(())
}
