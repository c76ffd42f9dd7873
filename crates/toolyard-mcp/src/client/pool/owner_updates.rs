//! Updates of a dedicated connection for its owner: changed lists, and changes of the resources that it follows.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use toolyard_core::Catalog;
use toolyard_core::registry::EntryKind;

use super::connection_keeper::DEBOUNCE;
use super::connector::UpstreamConnector;
use super::dedicated_connection::DedicatedConnection;
use super::open_connections::OpenConnections;
use crate::client::catalog::list_invalidation::ListSet;
use crate::client::catalog::published::{CatalogPublisher, ConnectionLists};
use crate::client::connection::UpstreamConnection;

/// Maximum time that the first call of a connection waits for its stream of changes and its subscriptions.
const PREPARATION_TIME: Duration = Duration::from_secs(2);

/// Passes the changes on dedicated connections to their owners.
pub(super) struct OwnerUpdates {
    pub(super) connector: Arc<UpstreamConnector>,
    pub(super) catalog: Arc<CatalogPublisher>,
    pub(super) open: Arc<OpenConnections>,
}

impl OwnerUpdates {
    /// Prepares a connection for its first call, whose changes are announced only to listeners that are known by then.
    pub(super) async fn prepare(
        &self,
        dedicated: &DedicatedConnection,
        connection: &Arc<UpstreamConnection>,
    ) {
        let Some(owner) = &dedicated.key.owner else { return };
        let followed = self.open.followed(owner);
        let follow = |uri: Arc<str>| {
            let follower = connection.followed_resources().clone().follow(uri.clone());
            (uri, follower)
        };
        let mut prepared: HashMap<_, _> = followed.into_iter().map(follow).collect();
        let subscribed = async {
            connection.wait_until_listening().await;
            join_all(prepared.values_mut().map(|follower| follower.wait_confirmed())).await;
        };
        let _too_slow = timeout(PREPARATION_TIME, subscribed).await;
        self.open.add(owner, connection.clone(), prepared);
    }

    /// Fetches the lists that the server announces as changed on this connection, and publishes them to its owner.
    /// Never returns.
    pub(super) async fn keep_lists(
        &self,
        dedicated: &DedicatedConnection,
        connection: &Arc<UpstreamConnection>,
    ) -> Infallible {
        // A client that nothing identifies sees the lists of all.
        let Some(owner) = &dedicated.key.owner else { return pending().await };
        let options = &self.connector.options;
        let (mut fetched, mut lists) = (ListSet::NONE, Catalog::default());
        // A server of both eras describes its tools differently in each. Only what it announces matters there.
        if dedicated.key.era.is_none() {
            connection.list_invalidation().invalidate(connection.missed_lists());
        }
        loop {
            connection.list_invalidation().wait().await;
            sleep(DEBOUNCE).await;
            let changed = connection.list_invalidation().take();
            // A list that cannot be fetched counts as that of all.
            copy_lists(changed.difference(fetched), &self.catalog.current(), &mut lists);
            let refresh = connection.refresh_lists(changed, &mut lists);
            match timeout(options.connect_timeout, refresh).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    let reason = error.cause(&options.secrets);
                    tracing::warn!(handler = %self.connector.name, %reason, "failed to fetch the lists of a client");
                    continue;
                }
                Err(_) => {
                    tracing::warn!(handler = %self.connector.name, "fetching the lists of a client timed out");
                    continue;
                }
            }
            fetched = fetched.union(changed);
            let (connection, client) = (dedicated.number, owner.clone());
            let own = ConnectionLists { connection, client, fetched, lists: lists.clone() };
            let limit = options.dedicated.max_list_bytes;
            if self.catalog.publish_own(own, limit) {
                let handler = &self.connector.name;
                tracing::warn!(%handler, limit, "the lists of a client exceed `limits.laneListBytes`: left out the rest");
            }
        }
    }

    /// Withdraws what a connection has told its owner.
    pub(super) fn withdraw(&self, dedicated: &DedicatedConnection, connection: &Arc<UpstreamConnection>) {
        if let Some(owner) = &dedicated.key.owner {
            self.open.remove(owner, connection);
            self.catalog.withdraw(dedicated.number);
        }
    }
}

/// Copies lists of a catalog to another one.
fn copy_lists(lists: ListSet, from: &Catalog, to: &mut Catalog) {
    for kind in EntryKind::ALL.into_iter().filter(|kind| lists.contains(*kind)) {
        match kind {
            EntryKind::Tools => to.tools.clone_from(&from.tools),
            EntryKind::Prompts => to.prompts.clone_from(&from.prompts),
            EntryKind::Resources => to.resources.clone_from(&from.resources),
            EntryKind::Templates => to.templates.clone_from(&from.templates),
        }
    }
}
