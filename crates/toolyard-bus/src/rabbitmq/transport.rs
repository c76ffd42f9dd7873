//! The transport of a connection: TCP, with the gateway's own TLS.
//!
//! The TLS of the client library comes with a reader of PKCS #12 files and its forty crates. The library accepts other
//! streams if they are those of its runtime, which is therefore wrapped here.

use std::fmt;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

use async_compat::{Compat, CompatExt};
use async_rs::traits::{Executor, Reactor, RuntimeKit};
use async_rs::util::Task;
use async_rs::{Runtime, Tokio};
use futures_io::{AsyncRead, AsyncWrite};
use futures_util::Stream;
use lapin::tcp::AsyncTcpStream;
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{Connection, ConnectionProperties};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The runtime of tokio with [`TransportStream`] as its streams.
#[derive(Clone)]
struct TransportRuntime(Tokio);

/// A stream with or without TLS.
type TransportStream = Compat<Box<dyn BrokerStream>>;

trait BrokerStream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> BrokerStream for S {}

/// Connects to a broker.
///
/// # Errors
/// If the broker cannot be reached, its certificate is refused, or it refuses the user.
pub(super) async fn connect(uri: AMQPUri, properties: ConnectionProperties) -> lapin::Result<Connection> {
    let runtime = Runtime::new(TransportRuntime(Tokio::current()));
    let connect = async |uri: AMQPUri, _runtime: Runtime<TransportRuntime>| {
        Ok(AsyncTcpStream::Plain(stream(&uri).await?))
    };
    Connection::connector(uri, runtime, connect, properties).await
}

async fn stream(uri: &AMQPUri) -> io::Result<TransportStream> {
    let (host, port) = (uri.authority.host.as_str(), uri.authority.port);
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let stream: Box<dyn BrokerStream> = match uri.scheme {
        AMQPScheme::AMQP => Box::new(stream),
        AMQPScheme::AMQPS => {
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            Box::new(tls()?.connect(name, stream).await?)
        }
    };
    Ok(stream.compat())
}

/// Returns TLS with the root certificates of the system.
fn tls() -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    // Without a choice of the process the provider is chosen here.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

impl RuntimeKit for TransportRuntime {}

impl Executor for TransportRuntime {
    type Task<T: Send + 'static> = <Tokio as Executor>::Task<T>;

    fn block_on<T, F: Future<Output = T>>(&self, f: F) -> T {
        self.0.block_on(f)
    }

    fn spawn<T: Send + 'static, F: Future<Output = T> + Send + 'static>(&self, f: F) -> Task<Self::Task<T>> {
        self.0.spawn(f)
    }

    fn spawn_blocking<T: Send + 'static, F: FnOnce() -> T + Send + 'static>(
        &self,
        f: F,
    ) -> Task<Self::Task<T>> {
        self.0.spawn_blocking(f)
    }
}

impl Reactor for TransportRuntime {
    type TcpStream = TransportStream;
    type Sleep = <Tokio as Reactor>::Sleep;

    fn register<H: Read + Write + AsFd + AsRawFd + Send + 'static>(
        &self,
        socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        self.0.register(socket)
    }

    fn sleep(&self, dur: Duration) -> Self::Sleep {
        self.0.sleep(dur)
    }

    fn interval(&self, dur: Duration) -> impl Stream<Item = std::time::Instant> + Send + 'static {
        self.0.interval(dur)
    }

    #[expect(clippy::manual_async_fn, reason = "the future does not borrow the runtime")]
    fn tcp_connect_addr(
        &self,
        addr: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        async move {
            let stream: Box<dyn BrokerStream> = Box::new(TcpStream::connect(addr).await?);
            Ok(stream.compat())
        }
    }
}

impl fmt::Debug for TransportRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TransportRuntime")
    }
}
