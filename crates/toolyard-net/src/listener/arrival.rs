//! What happens with a connection before HTTP: a proxy says whom it speaks for, and TLS shakes hands.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream as StdTcpStream};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use super::{Tls, proxy};

/// Where a request came from: every request has one in its extensions.
///
/// It is what the connection says, or what one of the named proxies says by the PROXY protocol. A header of a request,
/// such as `X-Forwarded-For`, never counts: any client can write one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientAddress {
    /// From a machine.
    Tcp(SocketAddr),
    /// From this machine, through a Unix socket.
    Unix,
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}

/// A connection that was accepted, of which nothing was read. It belongs to no thread yet.
pub(super) enum Arrival {
    Tcp {
        stream: StdTcpStream,
        peer: SocketAddr,
        /// Whether the peer has to say whom it speaks for.
        is_proxy: bool,
        tls: Option<Tls>,
    },
    Unix(StdUnixStream),
}

/// A connection on which HTTP comes next.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Arrival {
    /// Takes the connection over, on the thread that is to serve it, and lets the client introduce itself.
    pub(super) async fn admit(self, time: Duration) -> io::Result<(Stream, ClientAddress)> {
        match self {
            Self::Unix(stream) => Ok((Stream::Unix(UnixStream::from_std(stream)?), ClientAddress::Unix)),
            Self::Tcp { stream, peer, is_proxy: false, tls: None } => {
                Ok((Stream::Tcp(TcpStream::from_std(stream)?), ClientAddress::Tcp(peer)))
            }
            Self::Tcp { stream, peer, is_proxy, tls } => {
                let stream = TcpStream::from_std(stream)?;
                // Apart, so that a connection does not keep the room that this takes for a moment.
                let introduced = timeout(time, Box::pin(introduce(stream, peer, is_proxy, tls))).await;
                introduced.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

async fn introduce(
    mut stream: TcpStream,
    peer: SocketAddr,
    is_proxy: bool,
    tls: Option<Tls>,
) -> io::Result<(Stream, ClientAddress)> {
    let client = match is_proxy {
        false => peer,
        true => proxy::read(&mut stream, peer).await.inspect_err(|error| {
            // Only who is named in the configuration can cause this.
            tracing::warn!(%peer, %error, "a proxy did not say whom it speaks for");
        })?,
    };
    let stream = match tls {
        None => Stream::Tcp(stream),
        Some(tls) => Stream::Tls(Box::new(tls.shake_hands(stream).await?)),
    };
    Ok((stream, ClientAddress::Tcp(client)))
}
