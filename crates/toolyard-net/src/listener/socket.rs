//! Sockets that are listened on.

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

use super::Tls;
use super::arrival::Arrival;

/// Connections that the system keeps until they are accepted.
const BACKLOG: u32 = 1024;

/// A socket that is listened on, and what is asked of its clients before HTTP.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    /// The one of the moment counts for a new connection.
    tls: Option<watch::Receiver<Tls>>,
    proxies: Arc<[IpNet]>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener, #[expect(dead_code, reason = "its end removes the file")] SocketFile),
}

impl From<TcpListener> for Listener {
    /// Plain, and behind no proxy.
    fn from(listener: TcpListener) -> Self {
        Self { socket: Socket::Tcp(listener), tls: None, proxies: Arc::default() }
    }
}

impl Listener {
    /// Listens on a Unix socket that only our own user may use. Its file is removed when this is dropped. One that
    /// somebody left behind, on which nobody listens any more, is replaced.
    ///
    /// # Errors
    /// When somebody listens there, or the file is no socket, or cannot be made.
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
        // Before anybody can connect.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        let socket = Socket::Unix(socket.listen(BACKLOG)?, file);
        Ok(Self { socket, tls: None, proxies: Arc::default() })
    }

    /// With TLS, where this listens on TCP. What is sent later counts for the connections after it.
    #[must_use]
    pub fn with_tls(self, tls: watch::Receiver<Tls>) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Peers of these networks are proxies: each of their connections begins with a header of the PROXY protocol.
    /// What others send is never read as one.
    #[must_use]
    pub fn behind(self, proxies: &[IpNet]) -> Self {
        Self { proxies: proxies.into(), ..self }
    }

    /// The address, with the port that the system chose; `None` for a Unix socket.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn tcp_address(&self) -> io::Result<Option<SocketAddr>> {
        match &self.socket {
            Socket::Tcp(listener) => listener.local_addr().map(Some),
            Socket::Unix(..) => Ok(None),
        }
    }

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Arrival>> {
        Poll::Ready(match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, peer) = ready!(listener.poll_accept(context))?;
                // Without it a reply in two writes waits for an acknowledgement: 40 ms.
                stream.set_nodelay(true)?;
                let tls = self.tls.as_ref().map(|tls| tls.borrow().clone());
                let is_proxy = is_in(&self.proxies, peer.ip());
                Ok(Arrival::Tcp { stream: stream.into_std()?, peer, is_proxy, tls })
            }
            Socket::Unix(listener, _) => {
                let (stream, _) = ready!(listener.poll_accept(context))?;
                Ok(Arrival::Unix(stream.into_std()?))
            }
        })
    }
}

fn is_in(networks: &[IpNet], ip: IpAddr) -> bool {
    // On `[::]` a peer with an IPv4 address has one that is mapped into IPv6.
    networks.iter().any(|network| network.contains(&ip.to_canonical()))
}

/// Several listeners, of which none waits for ever because of another.
pub(super) struct Listeners {
    all: Vec<Listener>,
    /// Which one is asked first.
    first: usize,
}

impl Listeners {
    pub(super) fn new(all: Vec<Listener>) -> Self {
        Self { all, first: 0 }
    }

    /// The next connection of any of them. Dropping the future loses none.
    pub(super) async fn accept(&mut self) -> io::Result<Arrival> {
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

/// The file of a Unix socket of ours.
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
        // Another one may have taken its place.
        if device_and_inode(&self.path).is_ok_and(|found| found == self.device_and_inode) {
            // Gone is gone.
            fs::remove_file(&self.path).ok();
        }
    }
}

fn device_and_inode(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Removes a socket on which nobody listens.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let in_use = |reason| io::Error::new(io::ErrorKind::AddrInUse, reason);
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(in_use("there is a file of this name that is no socket"));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        // One whose queue is full is one that listens.
        _ => Err(in_use("somebody listens there already")),
    }
}
