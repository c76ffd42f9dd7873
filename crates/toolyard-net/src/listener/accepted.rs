//! An accepted connection before HTTP: the header of a proxy, and the TLS handshake.

use std::fmt;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream as StdTcpStream};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{proxy, tls};

/// The origin of a request, in the extensions of every request.
///
/// The address of the connection, or the one in the PROXY protocol header of a trusted proxy. Request headers such as
/// `X-Forwarded-For` are ignored, as any client can send them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientAddress {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket of this machine, with the id of the connected user (`SO_PEERCRED`) if the system tells it.
    Unix(Option<u32>),
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(_) => f.write_str("unix"),
        }
    }
}

/// The response to a connection without a permit.
const REFUSAL: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 30\r\n\
    Retry-After: 1\r\nConnection: close\r\n\r\ntoo many connections are open\n";

/// An accepted connection without any bytes read. It is not bound to a thread yet.
pub(super) enum AcceptedConnection {
    Tcp {
        stream: StdTcpStream,
        peer: SocketAddr,
        /// `true` if the peer has to send a PROXY protocol header.
        is_proxy: bool,
        tls: Option<TlsAcceptor>,
    },
    Unix(StdUnixStream),
}

/// A connection that is ready for HTTP.
pub(super) enum ClientStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AcceptedConnection {
    /// Address of the client; `None` if it has none, or if a proxy has not sent it yet.
    pub(super) const fn client(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp { peer, is_proxy: false, .. } => Some(*peer),
            Self::Tcp { is_proxy: true, .. } | Self::Unix(_) => None,
        }
    }

    /// Sends a refusal as far as this is possible without waiting, and closes the connection.
    pub(super) fn refuse(self) {
        if let Self::Tcp { mut stream, tls: None, .. } = self {
            let _is_told = stream.write(REFUSAL.as_bytes());
        }
    }

    /// Binds the connection to the current thread, and runs the protocols ahead of HTTP. `count` receives the address
    /// that a proxy names, and may refuse it.
    pub(super) async fn admit(
        self,
        time: Duration,
        count: impl FnOnce(SocketAddr) -> io::Result<()>,
    ) -> io::Result<(ClientStream, ClientAddress)> {
        match self {
            Self::Unix(stream) => {
                let stream = UnixStream::from_std(stream)?;
                let user = stream.peer_cred().ok().map(|peer| peer.uid());
                Ok((ClientStream::Unix(stream), ClientAddress::Unix(user)))
            }
            Self::Tcp { stream, peer, is_proxy: false, tls: None } => {
                Ok((ClientStream::Tcp(TcpStream::from_std(stream)?), ClientAddress::Tcp(peer)))
            }
            Self::Tcp { stream, peer, is_proxy, tls } => {
                let stream = TcpStream::from_std(stream)?;
                // Boxed, so that the connection does not keep the memory of this future.
                let handshake = timeout(time, Box::pin(establish(stream, peer, is_proxy, tls, count))).await;
                handshake.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

/// The client that a proxy names.
async fn proxied_client(
    stream: &mut TcpStream,
    peer: SocketAddr,
    count: impl FnOnce(SocketAddr) -> io::Result<()>,
) -> io::Result<SocketAddr> {
    let client = proxy::read(stream, peer).await.inspect_err(|error| {
        // Only configured proxies can cause this.
        tracing::warn!(%peer, %error, "invalid PROXY protocol header from a proxy");
    })?;
    // A proxy that connects for itself stands for all its clients.
    if client != peer {
        count(client)?;
    }
    Ok(client)
}

async fn establish(
    mut stream: TcpStream,
    peer: SocketAddr,
    is_proxy: bool,
    tls: Option<TlsAcceptor>,
    count: impl FnOnce(SocketAddr) -> io::Result<()>,
) -> io::Result<(ClientStream, ClientAddress)> {
    let client = match is_proxy {
        false => peer,
        true => proxied_client(&mut stream, peer, count).await?,
    };
    let stream = match tls {
        None => ClientStream::Tcp(stream),
        Some(acceptor) => ClientStream::Tls(Box::new(tls::handshake(acceptor, stream).await?)),
    };
    Ok((stream, ClientAddress::Tcp(client)))
}
