//! HTTP proxy on a Unix socket: the only network of an installer. It reaches the package index and the hosts of its
//! files. TLS connections are tunnelled; requests without TLS are parsed one by one.

mod request;

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use request::ProxyRequest;
pub(super) use request::host_port;

/// Maximum number of concurrent connections. pip opens one or two; more wait.
const MAX_CONNECTIONS: usize = 32;

/// Time limit for a client to send a request, and for a server to accept a connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum length of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// Maximum number of refused hosts that an error names.
const MAX_REFUSED_HOSTS: usize = 5;

/// A host in lower case and a port, as in `files.example.com:443`.
pub(super) type HostPort = (String, u16);

/// Permitted destinations of an installer.
#[derive(Debug, Default, Clone)]
pub(super) struct ProxyPolicy {
    pub(super) allowed: BTreeSet<HostPort>,
    /// Proxy of the machine's network for all connections: pip's setting `proxy`.
    pub(super) upstream: Option<UpstreamProxy>,
    /// Maximum number of received bytes in total.
    pub(super) max_bytes: u64,
}

/// A proxy of the machine's network.
#[derive(Clone)]
pub(super) struct UpstreamProxy {
    pub(super) target: HostPort,
    /// Value of `Proxy-Authorization`.
    pub(super) authorization: Option<String>,
}

impl std::fmt::Debug for UpstreamProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamProxy").field("target", &self.target).finish_non_exhaustive()
    }
}

/// Proxy of one installation. It stops on drop.
pub(super) struct PackageProxy {
    socket: PathBuf,
    shared: Arc<ProxyState>,
    _task: JoinSet<()>,
}

struct ProxyState {
    policy: ProxyPolicy,
    /// Required value of `Proxy-Authorization`: other users may be able to open the socket.
    authorization: String,
    remaining_bytes: AtomicU64,
    refused_hosts: Mutex<BTreeSet<String>>,
    permits: Arc<Semaphore>,
}

impl PackageProxy {
    /// Listens on a new socket at this path. Clients authenticate with this value of `Proxy-Authorization`.
    pub(super) fn start(socket: PathBuf, authorization: String, policy: ProxyPolicy) -> io::Result<Self> {
        let listener = UnixListener::bind(&socket)?;
        // The sandbox runs as another user, which needs write access.
        std::fs::set_permissions(&socket, Permissions::from_mode(0o666))?;
        let remaining_bytes = AtomicU64::new(policy.max_bytes);
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let shared = Arc::new(ProxyState {
            policy,
            authorization,
            remaining_bytes,
            refused_hosts: Mutex::default(),
            permits,
        });
        let mut task = JoinSet::new();
        task.spawn(accept(listener, shared.clone()));
        Ok(Self { socket, shared, _task: task })
    }

    /// Path of the socket.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Requested hosts that are not permitted.
    pub(super) fn refused_hosts(&self) -> Vec<String> {
        self.shared.refused_hosts.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// True if the limit of received bytes was reached.
    pub(super) fn is_exhausted(&self) -> bool {
        self.shared.remaining_bytes.load(Ordering::Relaxed) == 0
    }
}

impl Drop for PackageProxy {
    fn drop(&mut self) {
        // Otherwise it is removed with its folder.
        let _left = std::fs::remove_file(&self.socket);
    }
}

async fn accept(listener: UnixListener, shared: Arc<ProxyState>) {
    let mut connections = JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(permit) = shared.permits.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { return };
        while connections.try_join_next().is_some() {}
        let shared = shared.clone();
        connections.spawn(async move {
            // An error on one side closes the other.
            let _broken = serve(stream, &shared).await;
            drop(permit);
        });
    }
}

/// Serves one request. A connection without TLS ends after it.
async fn serve(mut client: UnixStream, shared: &ProxyState) -> io::Result<()> {
    let Ok((head, rest)) = timeout(HANDSHAKE_TIMEOUT, read_head(&mut client)).await? else {
        return respond(&mut client, "400 Bad Request").await;
    };
    let Ok(request) = ProxyRequest::parse(&head) else {
        return respond(&mut client, "400 Bad Request").await;
    };
    if request.authorization.as_deref() != Some(shared.authorization.as_bytes()) {
        return respond(&mut client, "407 Proxy Authentication Required").await;
    }
    if !shared.allows(&request.target) {
        return respond(&mut client, "403 Forbidden").await;
    }
    if request.has_body || !(request.is_tunnel || request.is_read) {
        return respond(&mut client, "405 Method Not Allowed").await;
    }
    let connected = timeout(HANDSHAKE_TIMEOUT, connect(&request, &shared.policy.upstream)).await;
    let Ok(Ok(mut server)) = connected else {
        return respond(&mut client, "502 Bad Gateway").await;
    };
    if request.is_tunnel {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        server.write_all(&rest).await?;
    } else {
        let upstream = shared.policy.upstream.as_ref();
        server.write_all(&request.head_for_server(upstream)).await?;
    }
    relay(&mut client, &mut server, shared, request.is_tunnel).await
}

/// Reads up to the empty line; also returns the bytes after it.
async fn read_head(from: &mut (impl AsyncRead + Unpin)) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut head = Vec::new();
    loop {
        let begin = head.len().saturating_sub(3);
        if from.read_buf(&mut head).await? == 0 || head.len() > MAX_HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if let Some(end) = head[begin..].windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let rest = head.split_off(begin + end + 4);
            return Ok((head, rest));
        }
    }
}

async fn respond(client: &mut UnixStream, status: &str) -> io::Result<()> {
    let text = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    client.write_all(text.as_bytes()).await
}

impl ProxyState {
    fn allows(&self, target: &HostPort) -> bool {
        let allowed = self.policy.allowed.contains(target);
        if !allowed {
            let mut refused_hosts = self.refused_hosts.lock().unwrap_or_else(PoisonError::into_inner);
            if refused_hosts.len() < MAX_REFUSED_HOSTS {
                refused_hosts.insert(format!("{}:{}", target.0, target.1));
            }
        }
        allowed
    }

    /// Subtracts received bytes from the remaining ones.
    fn consume(&self, bytes: u64) -> io::Result<()> {
        let take = |remaining_bytes: u64| Some(remaining_bytes.saturating_sub(bytes));
        let before = self.remaining_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        match before.unwrap_or_default() > bytes {
            true => Ok(()),
            false => Err(io::ErrorKind::QuotaExceeded.into()),
        }
    }
}

/// Connects to the target, or to the upstream proxy.
async fn connect(request: &ProxyRequest, upstream: &Option<UpstreamProxy>) -> io::Result<TcpStream> {
    let (host, port) = &request.target;
    let Some(upstream) = upstream else { return TcpStream::connect((host.as_str(), *port)).await };
    let mut stream = TcpStream::connect((upstream.target.0.as_str(), upstream.target.1)).await?;
    if request.is_tunnel {
        stream.write_all(&request::connect_head(&request.target, upstream)).await?;
        let (head, _) = read_head(&mut stream).await?;
        if !request::is_success(&head) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
    }
    Ok(stream)
}

/// Copies in both directions until the server closes. Data after a request without TLS is not read.
async fn relay(
    client: &mut UnixStream,
    server: &mut TcpStream,
    shared: &ProxyState,
    both_ways: bool,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        if both_ways {
            copy_counted(&mut from_client, &mut to_server, |_| Ok(())).await?;
        }
        std::future::pending::<io::Result<()>>().await
    };
    let down = copy_counted(&mut from_server, &mut to_client, |bytes| shared.consume(bytes));
    tokio::select! {
        ended = up => ended,
        ended = down => ended,
    }
}

async fn copy_counted(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    take: impl Fn(u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        take(length as u64)?;
        to.write_all(&buffer[..length]).await?;
    }
}

#[cfg(test)]
mod tests;
