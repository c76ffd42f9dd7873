//! The open dedicated connections of each client, and the resources that the client follows on them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use toolyard_core::ClientIdentity;

use crate::client::catalog::followed_resources::ResourceFollower;
use crate::client::connection::UpstreamConnection;

/// The open dedicated connections by client.
#[derive(Default)]
pub(in crate::client) struct OpenConnections(Mutex<HashMap<ClientIdentity, ClientConnections>>);

/// The connections of one client. The entry exists while there are any, or while the client follows resources.
#[derive(Default)]
struct ClientConnections {
    open: Vec<OpenConnection>,
    /// Number of followers by URI.
    followed: HashMap<Arc<str>, usize>,
    /// Wakes the followers when a connection is opened or closed.
    changes: watch::Sender<()>,
}

struct OpenConnection {
    connection: Arc<UpstreamConnection>,
    /// Followers that subscribed before the first call, until those of the client take them.
    prepared: HashMap<Arc<str>, ResourceFollower>,
}

/// The registration of a follower. Dropping it ends the registration.
pub(in crate::client) struct FollowRegistration {
    connections: Arc<OpenConnections>,
    client: ClientIdentity,
    uri: Arc<str>,
    changes: watch::Receiver<()>,
}

impl OpenConnections {
    /// Returns the resources that a client follows.
    pub(super) fn followed(&self, client: &ClientIdentity) -> Vec<Arc<str>> {
        let clients = self.lock();
        clients.get(client).map(|own| own.followed.keys().cloned().collect()).unwrap_or_default()
    }

    /// Adds a connection that is ready for calls.
    pub(super) fn add(
        &self,
        client: &ClientIdentity,
        connection: Arc<UpstreamConnection>,
        prepared: HashMap<Arc<str>, ResourceFollower>,
    ) {
        let mut clients = self.lock();
        let own = clients.entry(client.clone()).or_default();
        own.open.push(OpenConnection { connection, prepared });
        own.changes.send_replace(());
    }

    /// Removes a connection that is about to be closed.
    pub(super) fn remove(&self, client: &ClientIdentity, connection: &Arc<UpstreamConnection>) {
        let mut clients = self.lock();
        let Some(own) = clients.get_mut(client) else { return };
        own.open.retain(|open| !Arc::ptr_eq(&open.connection, connection));
        own.changes.send_replace(());
        if own.is_unused() {
            clients.remove(client);
        }
    }

    /// Registers a follower of a resource.
    pub(in crate::client) fn register(
        self: &Arc<Self>,
        client: ClientIdentity,
        uri: Arc<str>,
    ) -> FollowRegistration {
        let mut clients = self.lock();
        let own = clients.entry(client.clone()).or_default();
        *own.followed.entry(uri.clone()).or_default() += 1;
        let changes = own.changes.subscribe();
        drop(clients);
        FollowRegistration { connections: self.clone(), client, uri, changes }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClientIdentity, ClientConnections>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientConnections {
    fn is_unused(&self) -> bool {
        self.open.is_empty() && self.followed.is_empty()
    }
}

impl FollowRegistration {
    /// True if the client is a session, all of whose calls run on its connections.
    pub(in crate::client) const fn is_of_session(&self) -> bool {
        matches!(self.client, ClientIdentity::Session(_))
    }

    /// Returns the open connections, and marks them as seen.
    pub(in crate::client) fn connections(&mut self) -> Vec<Arc<UpstreamConnection>> {
        self.changes.mark_unchanged();
        let clients = self.connections.lock();
        let open = clients.get(&self.client).into_iter().flat_map(|own| &own.open);
        open.map(|open| open.connection.clone()).collect()
    }

    /// Follows the resource on a connection.
    pub(in crate::client) fn follow(&self, connection: &Arc<UpstreamConnection>) -> ResourceFollower {
        let mut clients = self.connections.lock();
        let mut open = clients.get_mut(&self.client).into_iter().flat_map(|own| &mut own.open);
        let prepared = open
            .find(|open| Arc::ptr_eq(&open.connection, connection))
            .and_then(|open| open.prepared.remove(&self.uri));
        drop(clients);
        prepared.unwrap_or_else(|| connection.followed_resources().clone().follow(self.uri.clone()))
    }

    /// Waits until a connection is opened or closed.
    pub(in crate::client) async fn changed(&mut self) {
        // Cannot fail: the sender lives as long as the registration.
        let _gone = self.changes.changed().await;
    }
}

impl Drop for FollowRegistration {
    fn drop(&mut self) {
        let mut clients = self.connections.lock();
        let Some(own) = clients.get_mut(&self.client) else { return };
        let Some(count) = own.followed.get_mut(&self.uri) else { return };
        *count -= 1;
        let mut unused = Vec::new();
        if *count == 0 {
            own.followed.remove(&self.uri);
            unused.extend(own.open.iter_mut().filter_map(|open| open.prepared.remove(&self.uri)));
        }
        if own.is_unused() {
            clients.remove(&self.client);
        }
        drop(clients);
        drop(unused);
    }
}
