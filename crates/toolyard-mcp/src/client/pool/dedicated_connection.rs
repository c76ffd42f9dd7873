//! A connection that serves a single client.

use std::sync::Arc;

use tokio::sync::{Notify, watch};
use toolyard_core::{CauseCode, ClientIdentity, FailureCause, ToolError};

use super::connector::UpstreamConnector;
use super::owner_updates::OwnerUpdates;
use crate::client::connection::UpstreamConnection;
use crate::client::connection::declared_capabilities::DeclaredCapabilities;
use crate::client::connection::liveness;
use crate::client::connection::state::{ConnectionState, DownReason, wait_connected};
use crate::wire::ProtocolEra;

/// The owner of a dedicated connection, and the capabilities that it declares. A client with other capabilities needs
/// another connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::client) struct DedicatedKey {
    /// The owner; `None` for callers without session and principal.
    pub(in crate::client) owner: Option<ConnectionOwner>,
    pub(in crate::client) declared: DeclaredCapabilities,
    /// The era, if it is not that of the shared connection.
    pub(in crate::client) era: Option<ProtocolEra>,
}

/// The owner of a dedicated connection.
pub(in crate::client) type ConnectionOwner = ClientIdentity;

impl DedicatedKey {
    /// True if the connection serves a single client for certain.
    pub(in crate::client) const fn has_session(&self) -> bool {
        matches!(self.owner, Some(ConnectionOwner::Session(_)))
    }

    /// True if concurrent calls may share the connection. Otherwise a request of the server could reach another client.
    /// The calls of a principal without capabilities share one, for servers that keep state.
    pub(super) fn allows_concurrent_calls(&self) -> bool {
        self.has_session() || (self.owner.is_some() && self.declared.is_empty())
    }
}

/// A dedicated connection. A task opens it and keeps it.
pub(super) struct DedicatedConnection {
    pub(super) key: DedicatedKey,
    /// Number of the connection.
    pub(super) number: u64,
    state: watch::Sender<ConnectionState>,
    closing: Notify,
}

impl DedicatedConnection {
    pub(super) fn new(key: DedicatedKey, number: u64) -> Self {
        Self { key, number, state: watch::Sender::new(ConnectionState::Connecting), closing: Notify::new() }
    }

    /// Waits for the connection.
    pub(super) async fn connection(&self) -> Result<Arc<UpstreamConnection>, ToolError> {
        wait_connected(&self.state.subscribe()).await
    }

    /// True if the connection is open.
    pub(super) fn is_up(&self) -> bool {
        self.state.borrow().connection().is_some()
    }

    /// True if the connection is open or being opened.
    pub(super) fn is_open(&self) -> bool {
        let state = self.state.borrow();
        state.connection().is_some() || matches!(*state, ConnectionState::Connecting)
    }

    /// Tells the server that the client's roots have changed, if it has requested them.
    pub(super) fn roots_changed(&self) {
        if let Some(connection) = self.state.borrow().connection() {
            connection.roots_changed();
        }
    }

    /// True once the server has sent a request whose answer it may keep, or that it may repeat.
    pub(super) fn has_requested(&self) -> bool {
        self.state.borrow().connection().is_some_and(|connection| connection.has_requested())
    }

    /// Closes the connection.
    pub(super) fn close(&self) {
        self.closing.notify_one();
    }

    /// Opens the connection, and keeps it until it is lost, closed or idle. Meanwhile its owner is told of its changes.
    /// Calls `on_close` before the connection is closed.
    pub(super) async fn run(
        &self,
        connector: &UpstreamConnector,
        updates: &OwnerUpdates,
        idle: impl Future<Output = ()>,
        on_close: impl FnOnce(),
    ) {
        let connected = tokio::select! {
            result = connector.connect(&self.key.declared, self.key.era) => result,
            () = self.closing.notified() => {
                on_close();
                return;
            }
        };
        let mark_down = |reason: DownReason| drop(self.state.send_replace(ConnectionState::Down(reason)));
        let connection = match connected {
            Ok(connection) => Arc::new(connection),
            Err(error) => {
                let reason = DownReason::of(&error, &connector.options.secrets);
                // A server of one era is no failure.
                if self.key.era.is_none() || connector.eras.may_speak_legacy() {
                    tracing::warn!(handler = %connector.name, reason = %reason.cause, "could not open a dedicated connection");
                }
                mark_down(reason);
                on_close();
                return;
            }
        };
        if self.key.has_session() {
            connection.server_requests.dedicate();
        }
        let serve = async {
            updates.prepare(self, &connection).await;
            self.state.send_replace(ConnectionState::Up(connection.clone()));
            updates.keep_lists(self, &connection).await
        };
        tokio::select! {
            never = connection.keep_subscribed() => match never {},
            never = serve => match never {},
            () = connection.wait_until_lost() => {}
            () = liveness::wait_until_unresponsive(&connection, connector.options.probe) => {
                tracing::warn!(handler = %connector.name, "closing a dedicated connection that does not respond");
            }
            () = idle => {}
            () = self.closing.notified() => {}
        }
        on_close();
        updates.withdraw(self, &connection);
        let cause = FailureCause::new(CauseCode::ConnectionBroken, "the dedicated connection was closed");
        mark_down(DownReason { cause: cause.into(), reason: "connection closed".into() });
        connection.close().await;
    }
}
