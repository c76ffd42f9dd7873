//! Opens connections to one server, and remembers its properties.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::time::timeout;
use toolyard_core::{CallTarget, Tool};

use crate::client::connection::declared_capabilities::DeclaredCapabilities;
use crate::client::connection::handshake::EraRule;
use crate::client::connection::{ConnectError, UpstreamConnection};
use crate::client::eras::ServerEras;
use crate::client::{ClientOptions, ServerEndpoint};
use crate::wire::{ProtocolEra, ToolTaskSupport};

/// Opens the connections to a server.
pub(in crate::client) struct UpstreamConnector {
    /// Name of the server, for the log.
    pub(super) name: Arc<str>,
    pub(in crate::client) endpoint: ServerEndpoint,
    pub(in crate::client) options: Arc<ClientOptions>,
    /// The knowledge about its eras.
    pub(in crate::client) eras: ServerEras,
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
            eras: ServerEras::new(options.max_list_items),
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

    /// Records the tools that a legacy server runs only as tasks. A modern server answers the call with a task, and
    /// need not do so in the legacy era.
    pub(super) fn record_tasks(&self, connection: &UpstreamConnection, tools: &[Arc<Tool>]) {
        let is_legacy = connection.revision().era() == ProtocolEra::Legacy;
        let supports_tasks = is_legacy && connection.capabilities.has_tasks();
        let runs_as_task =
            |tool: &&Arc<Tool>| ToolTaskSupport::of(&tool.definition) == ToolTaskSupport::Required;
        if !is_legacy {
            tools.iter().filter(runs_as_task).for_each(|tool| self.eras.record_task_tool(&tool.name));
        }
        let task_tools =
            tools.iter().filter(|_| supports_tasks).filter(runs_as_task).map(|tool| tool.name.clone());
        *self.task_tools.write().unwrap_or_else(PoisonError::into_inner) = task_tools.collect();
    }

    /// True if a call needs a task.
    pub(in crate::client) fn runs_as_task(&self, target: &CallTarget) -> bool {
        let task_tools = self.task_tools.read().unwrap_or_else(PoisonError::into_inner);
        matches!(target, CallTarget::Tool(name) if task_tools.contains(name))
    }

    /// Opens a connection, within the connect timeout, in the `other` era if it is not to be that of the shared
    /// connection. After a failure in the known era, the next attempt detects the era anew: it may be another server by
    /// then.
    pub(super) async fn connect(
        &self,
        declared: &DeclaredCapabilities,
        other: Option<ProtocolEra>,
    ) -> Result<UpstreamConnection, ConnectError> {
        let is_legacy = self.is_legacy.load(Ordering::Relaxed);
        let rule = match other.or_else(|| self.options.era.only()) {
            Some(era) => EraRule::Only(era),
            None if is_legacy => EraRule::ProbablyLegacy,
            None => EraRule::Detect,
        };
        let open = UpstreamConnection::connect(&self.name, &self.endpoint, &self.options, declared, rule);
        let connection = timeout(self.options.connect_timeout, open).await;
        let connection = connection.unwrap_or(Err(ConnectError::Timeout(self.options.connect_timeout)));
        if other.is_some() {
            return self.record_other_era(connection);
        }
        let is_legacy =
            connection.as_ref().is_ok_and(|connection| connection.revision().era() == ProtocolEra::Legacy);
        self.is_legacy.store(is_legacy, Ordering::Relaxed);
        connection
    }

    /// Records whether a modern server also speaks the legacy era, in which it can send requests.
    fn record_other_era(
        &self,
        connection: Result<UpstreamConnection, ConnectError>,
    ) -> Result<UpstreamConnection, ConnectError> {
        let connection = connection.and_then(|connection| match connection.can_send_requests() {
            true => Ok(connection),
            false => Err(ConnectError::NoSession),
        });
        match &connection {
            Ok(_) => self.eras.record_legacy_handshake(true),
            Err(error) if error.is_about_era(self.is_remote()) => {
                self.eras.record_legacy_handshake(false);
                tracing::info!(handler = %self.name, %error, "the server speaks one era only");
            }
            Err(_) => {}
        }
        connection
    }
}
