//! A connection for one client alone.

use std::sync::Arc;

use tokio::sync::{Notify, watch};
use toolyard_core::{Caller, ToolError};

use super::connection::Connection;
use super::declared::Declared;
use super::link::{Link, connected, reason};
use super::opener::Opener;
use super::probe;

/// Whose a lane is, and what it declares. A client that can be asked something else needs another lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LaneKey {
    /// `None`: nobody's in particular.
    pub(super) owner: Option<Owner>,
    pub(super) declared: Declared,
}

/// What tells one client from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// One client.
    Session(Arc<str>),
    /// Who shows one key: perhaps several clients, none of which has a session.
    Principal(Arc<str>),
}

impl LaneKey {
    /// Whether it is one client's for certain.
    pub(super) const fn is_one_clients(&self) -> bool {
        matches!(self.owner, Some(Owner::Session(_)))
    }

    /// Whether several calls may run on it at once: a question of one of them must not reach another client. A principal
    /// that can be asked nothing has its calls together, for servers that remember.
    pub(super) fn is_for_many_calls(&self) -> bool {
        self.is_one_clients() || (self.owner.is_some() && self.declared.is_nothing())
    }
}

impl Owner {
    pub(super) fn of(caller: &Caller) -> Option<Self> {
        let session = caller.session.clone().map(Self::Session);
        session.or_else(|| caller.principal.clone().map(Self::Principal))
    }
}

/// A lane. It is connected by a task, for as long as that runs.
pub(super) struct Lane {
    pub(super) key: LaneKey,
    link: watch::Sender<Link>,
    end: Notify,
}

impl Lane {
    pub(super) fn new(key: LaneKey) -> Self {
        Self { key, link: watch::Sender::new(Link::Connecting), end: Notify::new() }
    }

    /// The connection, which is waited for.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, ToolError> {
        connected(&self.link.subscribe()).await
    }

    /// Whether calls can be made on it now.
    pub(super) fn is_up(&self) -> bool {
        self.link.borrow().connection().is_some()
    }

    /// Whether calls can be made on it, or soon can.
    pub(super) fn is_open(&self) -> bool {
        let link = self.link.borrow();
        link.connection().is_some() || matches!(*link, Link::Connecting)
    }

    /// Tells its server that its client's folders are others, if it has asked for them.
    pub(super) fn roots_changed(&self) {
        if let Some(connection) = self.link.borrow().connection() {
            connection.roots_changed();
        }
    }

    /// Whether its server was told something by the client that has it, or may ask for it again.
    pub(super) fn has_asked(&self) -> bool {
        self.link.borrow().connection().is_some_and(|connection| connection.has_asked())
    }

    /// No call will be made on it any more.
    pub(super) fn end(&self) {
        self.end.notify_one();
    }

    /// The task: connects, and keeps the connection until it is lost, or not wanted any more. `over` comes with
    /// idleness. `leave` is called before the connection is closed.
    pub(super) async fn run(&self, opener: &Opener, over: impl Future<Output = ()>, leave: impl FnOnce()) {
        let opened = tokio::select! {
            opened = opener.open(&self.key.declared) => opened,
            () = self.end.notified() => {
                leave();
                return;
            }
        };
        let down = |reason: &str| drop(self.link.send_replace(Link::Down(reason.into())));
        let connection = match opened {
            Ok(connection) => Arc::new(connection),
            Err(error) => {
                let reason = reason(&error, &opener.options.secrets);
                tracing::warn!(handler = %opener.name, reason, "a client's own connection is not to be had");
                down(&reason);
                leave();
                return;
            }
        };
        if self.key.is_one_clients() {
            connection.callers.be_one_clients();
        }
        self.link.send_replace(Link::Up(connection.clone()));
        tokio::select! {
            () = connection.lost() => {}
            () = probe::unanswered(&connection, opener.options.probe) => {
                tracing::warn!(handler = %opener.name, "a client's own connection does not answer: it is ended");
            }
            () = over => {}
            () = self.end.notified() => {}
        }
        leave();
        down("the client's own connection has ended");
        connection.close().await;
    }
}
