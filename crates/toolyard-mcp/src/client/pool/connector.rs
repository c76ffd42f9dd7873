//! Opens connections to one server, and remembers its properties.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::time::timeout;
use toolyard_core::{CallTarget, Tool};

use crate::client::connection::declared_capabilities::DeclaredCapabilities;
use crate::client::connection::{ConnectError, UpstreamConnection};
use crate::client::{ClientOptions, ServerEndpoint};
use crate::wire::{ProtocolEra, ToolTaskSupport};

/// Opens the connections to a server.
pub(in crate::client) struct UpstreamConnector {
    /// Name of the server, for the log.
    pub(super) name: Arc<str>,
    pub(in crate::client) endpoint: ServerEndpoint,
    pub(super) options: Arc<ClientOptions>,
    /// True if the last connection was of the legacy era. Then `server/discover` is skipped: some servers die of it.
    is_legacy: AtomicBool,
    /// The tools that a legacy server runs only as tasks.
    task_tools: RwLock<HashSet<Arc<str>>>,
}

impl UpstreamConnector {
    pub(in crate::client) fn new(name: &str, endpoint: ServerEndpoint, options: ClientOptions) -> Self {
        let options = Arc::new(options);
        Self {
            name: name.into(),
            endpoint,
            options,
            is_legacy: AtomicBool::new(false),
            task_tools: RwLock::default(),
        }
    }

    /// Returns the settings of the server.
    pub(in crate::client) fn options(&self) -> &ClientOptions {
        &self.options
    }

    /// True if the server is reached over HTTP.
    pub(super) const fn is_remote(&self) -> bool {
        matches!(self.endpoint, ServerEndpoint::Http(_))
    }

    /// Records the tools that a legacy server runs only as tasks. A modern server answers the call with a task.
    pub(super) fn record_tasks(&self, connection: &UpstreamConnection, tools: &[Arc<Tool>]) {
        let supports_tasks =
            connection.revision().era() == ProtocolEra::Legacy && connection.capabilities.has_tasks();
        let runs_as_task =
            |tool: &&Arc<Tool>| ToolTaskSupport::of(&tool.definition) == ToolTaskSupport::Required;
        let task_tools =
            tools.iter().filter(|_| supports_tasks).filter(runs_as_task).map(|tool| tool.name.clone());
        *self.task_tools.write().unwrap_or_else(PoisonError::into_inner) = task_tools.collect();
    }

    /// True if a call needs a task.
    pub(in crate::client) fn runs_as_task(&self, target: &CallTarget) -> bool {
        let task_tools = self.task_tools.read().unwrap_or_else(PoisonError::into_inner);
        matches!(target, CallTarget::Tool(name) if task_tools.contains(name))
    }

    /// Opens a connection, within the connect timeout. After a failure in the known era, the next attempt detects the
    /// era anew: it may be another server by then.
    pub(super) async fn connect(
        &self,
        declared: &DeclaredCapabilities,
    ) -> Result<UpstreamConnection, ConnectError> {
        let known_era = self.is_legacy.load(Ordering::Relaxed).then_some(ProtocolEra::Legacy);
        let open =
            UpstreamConnection::connect(&self.name, &self.endpoint, &self.options, declared, known_era);
        let connection = timeout(self.options.connect_timeout, open).await;
        let connection = connection.unwrap_or(Err(ConnectError::Timeout(self.options.connect_timeout)));
        let is_legacy =
            connection.as_ref().is_ok_and(|connection| connection.revision().era() == ProtocolEra::Legacy);
        self.is_legacy.store(is_legacy, Ordering::Relaxed);
        connection
    }
}
