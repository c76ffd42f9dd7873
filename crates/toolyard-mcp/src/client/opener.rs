//! Opens connections to one server, and remembers what it has found out about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::timeout;

use super::connection::{Connection, OpenError};
use super::declared::Declared;
use super::{ClientOptions, Endpoint};
use crate::wire::Era;

/// How a server is reached.
pub(super) struct Opener {
    /// For the log.
    pub(super) name: Arc<str>,
    pub(super) endpoint: Endpoint,
    pub(super) options: Arc<ClientOptions>,
    /// It was of the legacy era when it was last connected to, and is not asked again: some die of the question.
    is_legacy: AtomicBool,
}

impl Opener {
    pub(super) fn new(name: &str, endpoint: Endpoint, options: ClientOptions) -> Self {
        let options = Arc::new(options);
        Self { name: name.into(), endpoint, options, is_legacy: AtomicBool::new(false) }
    }

    /// Opens one more connection, within the time for that. An attempt in the era that was found before and fails is
    /// the last one: it may be another server by now.
    pub(super) async fn open(&self, declared: &Declared) -> Result<Connection, OpenError> {
        let known = self.is_legacy.load(Ordering::Relaxed).then_some(Era::Legacy);
        let open = Connection::find(&self.name, &self.endpoint, &self.options, declared, known);
        let connection = timeout(self.options.connect_time, open).await.unwrap_or(Err(OpenError::TooSlow));
        let is_legacy = connection.as_ref().is_ok_and(|opened| opened.revision().era() == Era::Legacy);
        self.is_legacy.store(is_legacy, Ordering::Relaxed);
        connection
    }
}
