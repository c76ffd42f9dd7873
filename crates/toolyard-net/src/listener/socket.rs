//! Listening sockets.

use std::fs;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ipnet::IpNet;
use tokio::net::{TcpListener, UnixListener, UnixSocket, UnixStream};
use tokio::sync::watch;

use super::TlsSettings;
use super::accepted::AcceptedConnection;
use super::tls::OfferedVersion;

/// Maximum number of connections that the system queues until they are accepted.
const BACKLOG: u32 = 1024;

/// A listening socket, and the protocols ahead of HTTP.
#[derive(Debug)]
pub struct SocketListener {
    socket: ListeningSocket,
    /// TLS settings; the current ones apply to a new connection.
    tls: Option<watch::Receiver<TlsSettings>>,
    version: OfferedVersion,
    proxies: Arc<[IpNet]>,
}

#[derive(Debug)]
enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixListener, #[expect(dead_code, reason = "removes the file on drop")] SocketFile),
}

impl From<TcpListener> for SocketListener {
    /// Without TLS and trusted proxies.
    fn from(listener: TcpListener) -> Self {
        Self::plain(ListeningSocket::Tcp(listener))
    }
}

impl SocketListener {
    /// Listens on a Unix socket that only our own user may access. Its file is removed on drop. A stale socket file is
    /// replaced.
    ///
    /// # Errors
    /// Errors if another process listens there, or if the file is not a socket or cannot be created.
    pub async fn unix(path: &Path) -> io::Result<Self> {
        let socket = UnixSocket::new_stream()?;
        match socket.bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                remove_stale(path).await?;
                socket.bind(path)?;
            }
            bound => bound?,
        }
        let file = SocketFile::of(path)?;
        // Before any client can connect.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(Self::plain(ListeningSocket::Unix(socket.listen(BACKLOG)?, file)))
    }

    fn plain(socket: ListeningSocket) -> Self {
        Self { socket, tls: None, version: OfferedVersion::default(), proxies: Arc::default() }
    }

    /// Offers this version of HTTP to clients with TLS.
    #[cfg(feature = "http2")]
    pub(super) fn offering(self, version: OfferedVersion) -> Self {
        Self { version, ..self }
    }

    /// Adds TLS to a TCP listener. New settings apply to later connections.
    #[must_use]
    pub fn with_tls(self, tls: watch::Receiver<TlsSettings>) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Sets the networks of trusted proxies. Each connection from them begins with a PROXY protocol header; other
    /// connections never do.
    #[must_use]
    pub fn with_proxies(self, proxies: &[IpNet]) -> Self {
        Self { proxies: proxies.into(), ..self }
    }

    /// Returns the address with the port that the system chose; `None` for a Unix socket.
    ///
    /// # Errors
    /// Errors if the system does not return the address.
    pub fn tcp_address(&self) -> io::Result<Option<SocketAddr>> {
        match &self.socket {
            ListeningSocket::Tcp(listener) => listener.local_addr().map(Some),
            ListeningSocket::Unix(..) => Ok(None),
        }
    }

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<AcceptedConnection>> {
        Poll::Ready(match &self.socket {
            ListeningSocket::Tcp(listener) => {
                let (stream, peer) = ready!(listener.poll_accept(context))?;
                // Otherwise a response in two writes waits for an acknowledgement: 40 ms.
                stream.set_nodelay(true)?;
                let tls = self.tls.as_ref().map(|tls| tls.borrow().acceptor(self.version));
                let is_proxy = is_in_networks(&self.proxies, peer.ip());
                Ok(AcceptedConnection::Tcp { stream: stream.into_std()?, peer, is_proxy, tls })
            }
            ListeningSocket::Unix(listener, _) => {
                let (stream, _) = ready!(listener.poll_accept(context))?;
                Ok(AcceptedConnection::Unix(stream.into_std()?))
            }
        })
    }
}

fn is_in_networks(networks: &[IpNet], ip: IpAddr) -> bool {
    // On `[::]` the address of an IPv4 peer is mapped into IPv6.
    networks.iter().any(|network| network.contains(&ip.to_canonical()))
}

/// Several listeners, polled fairly.
pub(super) struct ListenerSet {
    all: Vec<SocketListener>,
    /// Index of the listener that is polled first.
    first: usize,
}

impl ListenerSet {
    pub(super) fn new(all: Vec<SocketListener>) -> Self {
        Self { all, first: 0 }
    }

    /// Returns the next connection of any listener. Cancellation-safe.
    pub(super) async fn accept(&mut self) -> io::Result<AcceptedConnection> {
        poll_fn(|context| {
            let count = self.all.len();
            for index in (self.first..count).chain(0..self.first) {
                if let Poll::Ready(accepted) = self.all[index].poll_accept(context) {
                    self.first = (index + 1) % count;
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The file of our own Unix socket.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    device_and_inode: (u64, u64),
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), device_and_inode: device_and_inode(path)? })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another file may have replaced it.
        if device_and_inode(&self.path).is_ok_and(|found| found == self.device_and_inode) {
            // Already removed.
            fs::remove_file(&self.path).ok();
        }
    }
}

fn device_and_inode(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Removes the file of a socket without a listener.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let in_use = |reason| io::Error::new(io::ErrorKind::AddrInUse, reason);
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(in_use("the file exists and is not a socket"));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        // A socket with a full queue has a listener.
        _ => Err(in_use("another process listens there")),
    }
}
