//! Permits for connections: the limits in all and per address, and eviction.
//!
//! At the limit a new connection replaces the one that has been silent for longest: first among connections without
//! an admitted request, then among the others without an open request. Candidates are queued in the order of their
//! arrival or last known activity, so that an eviction takes constant amortized time.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::connection::{ConnectionSignal, OpenConnection};

/// Maximum time until an evicted connection has ended.
const EVICTION_TIME: Duration = Duration::from_secs(1);

/// Maximum number of candidates that one eviction examines; the next one continues with the others.
const MAX_SCANNED: usize = 1024;

/// The network that an address counts for: an IPv4 address, or the first 64 bits of an IPv6 address, the common
/// allocation of one customer. `None` for this machine, which has no limit per address.
fn network(address: SocketAddr) -> Option<IpAddr> {
    match address.ip().to_canonical() {
        ip if ip.is_loopback() => None,
        IpAddr::V4(ip) => Some(ip.into()),
        IpAddr::V6(ip) => Some(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into()),
    }
}

/// Permits for connections. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct ConnectionPermits {
    permits: Arc<Semaphore>,
    limit_per_address: usize,
    table: Arc<Mutex<PermitTable>>,
}

#[derive(Debug, Default)]
struct PermitTable {
    open: usize,
    /// All connections that were not told to end at once.
    all: EvictionCandidates,
    networks: HashMap<IpAddr, NetworkConnections>,
}

/// The connections from one network.
#[derive(Debug, Default)]
struct NetworkConnections {
    open: usize,
    candidates: EvictionCandidates,
}

/// The permit of an open connection, released on drop.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    pub(super) connection: Arc<OpenConnection>,
    permits: ConnectionPermits,
    network: Option<IpAddr>,
    _permit: OwnedSemaphorePermit,
}

/// A connection was refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum PermitRefusal {
    /// The address is at its limit, with each connection in use.
    #[error("too many connections are open from {0}")]
    Address(IpAddr),
    /// All permits are in use.
    #[error("too many connections are open")]
    Full,
}

impl From<PermitRefusal> for io::Error {
    fn from(refusal: PermitRefusal) -> Self {
        Self::other(refusal)
    }
}

impl ConnectionPermits {
    pub(super) fn new(limit: usize, limit_per_address: usize) -> Self {
        let permits = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Self { permits, limit_per_address, table: Arc::default() }
    }

    /// Acquires a permit for a new connection, by eviction of another one if necessary. `client` is the address that
    /// it counts for, if known.
    ///
    /// # Errors
    /// Errors if no other connection can be evicted.
    pub(super) async fn acquire(
        &self,
        client: Option<SocketAddr>,
    ) -> Result<ConnectionPermit, PermitRefusal> {
        let network = client.and_then(network);
        let has_evicted = match network {
            Some(network) => self.table().make_room(network, self.limit_per_address)?,
            None => false,
        };
        let permit = match self.permits.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) if has_evicted || self.evict() => self.next_permit().await.ok_or(PermitRefusal::Full)?,
            Err(_) => return Err(PermitRefusal::Full),
        };
        let connection = Arc::<OpenConnection>::default();
        let mut table = self.table();
        table.open += 1;
        let open = table.open;
        table.all.add(connection.clone(), open);
        if let Some(network) = network {
            table.count(network, &connection);
        }
        drop(table);
        Ok(ConnectionPermit { connection, permits: self.clone(), network, _permit: permit })
    }

    /// The permit of an evicted connection.
    async fn next_permit(&self) -> Option<OwnedSemaphorePermit> {
        timeout(EVICTION_TIME, self.permits.clone().acquire_owned()).await.ok()?.ok()
    }

    /// Evicts the connection that has been silent for longest; `false` if there is none.
    pub(super) fn evict(&self) -> bool {
        self.table().all.evict()
    }

    /// Number of open connections, including those that were told to end.
    pub(super) fn open(&self) -> usize {
        self.table().open
    }

    /// `true` if a request is open on any of the connections.
    pub(super) fn is_busy(&self) -> bool {
        self.table().all.iter().any(|connection| connection.is_busy())
    }

    /// Sends a signal to all connections.
    pub(super) fn send(&self, signal: ConnectionSignal) {
        self.table().all.iter().for_each(|connection| connection.send(signal));
    }

    fn table(&self) -> MutexGuard<'_, PermitTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PermitTable {
    /// Makes room for one more connection from a network; `true` if another one was evicted for it.
    fn make_room(&mut self, network: IpAddr, limit: usize) -> Result<bool, PermitRefusal> {
        match self.networks.get_mut(&network) {
            Some(counted) if counted.open >= limit => {
                if counted.candidates.evict() {
                    Ok(true)
                } else {
                    Err(PermitRefusal::Address(network))
                }
            }
            _ => Ok(false),
        }
    }

    fn count(&mut self, network: IpAddr, connection: &Arc<OpenConnection>) {
        let entry = self.networks.entry(network).or_default();
        entry.open += 1;
        entry.candidates.add(connection.clone(), entry.open);
    }
}

impl ConnectionPermit {
    /// Counts the connection for the address that a proxy names.
    ///
    /// # Errors
    /// Errors if no other connection of the address can be evicted.
    pub(super) fn count_for(&mut self, client: SocketAddr) -> Result<(), PermitRefusal> {
        let Some(network) = network(client) else { return Ok(()) };
        let mut table = self.permits.table();
        table.make_room(network, self.permits.limit_per_address)?;
        table.count(network, &self.connection);
        drop(table);
        self.network = Some(network);
        Ok(())
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connection.set_closed();
        let mut table = self.permits.table();
        table.open -= 1;
        if let Some(network) = self.network
            && let Some(counted) = table.networks.get_mut(&network)
        {
            counted.open -= 1;
            if counted.open == 0 {
                table.networks.remove(&network);
            }
        }
    }
}

/// Candidates for eviction, the longest silent one first.
#[derive(Debug, Default)]
struct EvictionCandidates {
    /// Connections without an admitted request when they were last examined.
    unauthenticated: VecDeque<EvictionCandidate>,
    authenticated: VecDeque<EvictionCandidate>,
}

#[derive(Debug)]
struct EvictionCandidate {
    connection: Arc<OpenConnection>,
    /// Value of [`OpenConnection::changes`] when the connection was last examined.
    changes: u64,
}

impl EvictionCandidates {
    /// Adds a connection; `open` is the number of open ones.
    fn add(&mut self, connection: Arc<OpenConnection>, open: usize) {
        // Closed ones are removed once they are the majority.
        for candidates in [&mut self.unauthenticated, &mut self.authenticated] {
            if candidates.len() > 2 * open + 64 {
                candidates.retain(|candidate| !candidate.connection.is_ending());
            }
        }
        let changes = connection.changes();
        self.unauthenticated.push_back(EvictionCandidate { connection, changes });
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<OpenConnection>> {
        let all = self.unauthenticated.iter().chain(&self.authenticated);
        all.map(|candidate| &candidate.connection).filter(|connection| !connection.is_ending())
    }

    /// Tells the longest silent connection to end at once; `false` if there is none.
    fn evict(&mut self) -> bool {
        let authenticated = &mut self.authenticated;
        let evicted = evict_from(&mut self.unauthenticated, |candidate| {
            if candidate.connection.is_authenticated() {
                authenticated.push_back(candidate);
                return None;
            }
            Some(candidate)
        });
        evicted || evict_from(&mut self.authenticated, Some)
    }
}

/// Evicts the longest silent one of these candidates. `filter` removes those that do not belong here.
fn evict_from(
    candidates: &mut VecDeque<EvictionCandidate>,
    mut filter: impl FnMut(EvictionCandidate) -> Option<EvictionCandidate>,
) -> bool {
    // Twice, since a connection that was active before is usually silent now.
    for _ in 0..(2 * candidates.len()).min(MAX_SCANNED) {
        let Some(candidate) = candidates.pop_front() else { break };
        if candidate.connection.is_ending() {
            continue;
        }
        let Some(EvictionCandidate { connection, changes }) = filter(candidate) else { continue };
        let latest = connection.changes();
        if connection.is_busy() || latest != changes {
            candidates.push_back(EvictionCandidate { connection, changes: latest });
            continue;
        }
        connection.send(ConnectionSignal::Cut);
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::connection::OpenRequest;
    use super::*;

    #[test]
    fn network_of_an_address() {
        for (address, expected) in [
            ("127.0.0.1:1", None),
            ("[::1]:1", None),
            ("[::ffff:127.0.0.9]:1", None),
            ("192.0.2.1:1", Some("192.0.2.1")),
            ("[::ffff:192.0.2.1]:1", Some("192.0.2.1")),
            ("[2001:db8:1:2:3:4:5:6]:1", Some("2001:db8:1:2::")),
        ] {
            let expected = expected.map(|ip| ip.parse().unwrap());
            assert_eq!(network(address.parse().unwrap()), expected, "{address}");
        }
    }

    /// A connection that ends as soon as it is told to.
    async fn serve(place: ConnectionPermit) {
        let connection = place.connection.clone();
        std::future::poll_fn(|context| match connection.poll_signal(context) {
            ConnectionSignal::None => std::task::Poll::Pending,
            ConnectionSignal::Finish | ConnectionSignal::Cut => std::task::Poll::Ready(()),
        })
        .await;
        drop(place);
    }

    /// Checks the outcome of connections from these addresses; `!` marks those with an open request.
    async fn check(limit: usize, limit_per_address: usize, clients: &[&str], expected: &str) {
        let permits = ConnectionPermits::new(limit, limit_per_address);
        let mut outcome = String::new();
        let mut requests = Vec::new();
        for client in clients {
            let (address, is_busy) = client.strip_suffix('!').map_or((*client, false), |ip| (ip, true));
            let address = address.parse().map(|ip: IpAddr| SocketAddr::new(ip, 1)).ok();
            match permits.acquire(address).await {
                Ok(place) => {
                    requests.extend(is_busy.then(|| OpenRequest::begin(&place.connection)));
                    tokio::spawn(serve(place));
                    outcome.push('+');
                }
                Err(PermitRefusal::Address(_)) => outcome.push('a'),
                Err(PermitRefusal::Full) => outcome.push('f'),
            }
            tokio::task::yield_now().await;
        }
        let open = permits.open();
        assert_eq!(format!("{outcome} {open}"), expected, "{clients:?}");
    }

    #[tokio::test]
    async fn permits_are_acquired_and_evicted() {
        let (a, b, local) = ("192.0.2.1", "192.0.2.2", "127.0.0.1");
        let (busy_a, busy_b, busy_local) = ("192.0.2.1!", "192.0.2.2!", "127.0.0.1!");
        check(3, 2, &[a, a, a, b], "++++ 3").await;
        check(3, 2, &[busy_a, busy_a, a, b, b], "++a++ 3").await;
        check(3, 2, &[busy_a, busy_a, busy_b, b, local], "+++ff 3").await;
        check(2, 1, &[busy_local, busy_local, local], "++f 2").await;
        check(2, 2, &["unix", "unix", a, b, "unix"], "+++++ 2").await;
        // An address at its limit evicts its own connections, not those of others.
        check(2, 1, &[busy_b, a, a, a], "++++ 2").await;
        check(2, 1, &[b, busy_a, a, a], "++aa 2").await;
    }
}
