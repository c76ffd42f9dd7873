//! The attacks, one per file. Each has a function `attempt`, which a hostile client repeats.

pub(super) mod answers;
pub(super) mod arguments;
pub(super) mod bodies;
pub(super) mod connections;
pub(super) mod progress;
pub(super) mod sessions;
pub(super) mod silence;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use hyper::Response;
use hyper::body::{Body, Incoming};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::HostileAttack;

/// Time between two attempts of a hostile client.
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(100);

/// Time before a closed connection is opened again. Thousands of reconnects at once would be a load of their own.
const RECONNECT_DELAY: Duration = Duration::from_secs(5);

/// Receive buffer of a client that does not read, in bytes, so that the kernel takes little of a response.
const SMALL_RECEIVE_BUFFER: u32 = 4096;

/// Maximum length of an error response, in bytes.
const ERROR_BODY_BYTES: u64 = 16 << 10;

/// The gateway under attack.
#[derive(Clone)]
pub(super) struct AttackTarget {
    pub gateway: SocketAddr,
    /// The API key of the hostile clients.
    pub key: Arc<str>,
    counts: Arc<AttemptCounts>,
}

#[derive(Default)]
struct AttemptCounts {
    record_completed: AtomicUsize,
    refused: AtomicUsize,
}

impl AttackTarget {
    pub(super) fn new(gateway: SocketAddr, key: &Arc<str>) -> AttackTarget {
        AttackTarget { gateway, key: key.clone(), counts: Arc::default() }
    }

    /// Counts an attempt that got as far as intended.
    fn completed(&self) {
        self.counts.record_completed.fetch_add(1, Ordering::Relaxed);
    }

    /// The head of a request with a body of `length` bytes.
    fn request_head(&self, length: usize) -> String {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n",
            self.gateway, self.key
        )
    }

    /// Connects with a small receive buffer.
    async fn connect_with_small_buffer(&self) -> anyhow::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(SMALL_RECEIVE_BUFFER)?;
        Ok(socket.connect(self.gateway).await?)
    }
}

/// Returns the response of a call that the gateway accepted: a large one, or a stream.
///
/// # Errors
/// Errors if the response is an error; such a response is short.
fn ensure_accepted(answer: Response<Incoming>) -> anyhow::Result<Response<Incoming>> {
    let is_short = answer.body().size_hint().exact().is_some_and(|length| length < ERROR_BODY_BYTES);
    ensure!(answer.status().is_success() && !is_short, "refused with {}", answer.status());
    Ok(answer)
}

/// Hostile clients. Dropping them closes their connections.
pub(super) struct HostileClients {
    counts: Arc<AttemptCounts>,
    _tasks: JoinSet<()>,
}

impl HostileClients {
    pub(super) fn start(attack: HostileAttack, clients: usize, target: &AttackTarget) -> HostileClients {
        let mut tasks = JoinSet::new();
        for _ in 0..clients {
            tasks.spawn(repeat_attack(attack, target.clone()));
        }
        HostileClients { counts: target.counts.clone(), _tasks: tasks }
    }

    /// Number of attempts that got as far as intended.
    pub(super) fn completed(&self) -> usize {
        self.counts.record_completed.load(Ordering::Relaxed)
    }

    /// Number of attempts that the gateway refused.
    pub(super) fn refused(&self) -> usize {
        self.counts.refused.load(Ordering::Relaxed)
    }
}

async fn repeat_attack(attack: HostileAttack, target: AttackTarget) {
    loop {
        if attack.attempt(&target).await.is_err() {
            target.counts.refused.fetch_add(1, Ordering::Relaxed);
        }
        sleep(ATTEMPT_INTERVAL).await;
    }
}
