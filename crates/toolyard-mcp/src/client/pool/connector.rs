//! Opens connections to one server, and remembers its properties.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::timeout;
use toolyard_core::{CallTarget, Tool};

use crate::client::connection::declared_capabilities::DeclaredCapabilities;
use crate::client::connection::handshake::EraRule;
use crate::client::connection::{ConnectError, UpstreamConnection};
use crate::client::eras::ServerEras;
use crate::client::launcher::{ServerLauncher, StartEnd};
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
    /// Number of failed attempts in a row to open the shared connection.
    failed_attempts: AtomicU32,
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
            failed_attempts: AtomicU32::new(0),
            task_tools: RwLock::default(),
        }
    }

    /// Returns the settings of the server.
    pub(in crate::client) fn options(&self) -> &ClientOptions {
        &self.options
    }

    /// Returns the time limit of connecting. The first start by a launcher may take longer.
    pub(super) fn connect_timeout(&self) -> Duration {
        let first = self.options.launcher.as_ref().and_then(ServerLauncher::first_start);
        first.map_or(self.options.connect_timeout, |time| time.max(self.options.connect_timeout))
    }

    /// Records whether the shared connection was opened.
    pub(super) fn record_attempt(&self, failure: Option<&ConnectError>) {
        match failure {
            None => self.failed_attempts.store(0, Ordering::Relaxed),
            Some(_) => drop(self.failed_attempts.fetch_add(1, Ordering::Relaxed)),
        }
        if let Some(launcher) = &self.options.launcher {
            launcher.finish(match failure {
                None => StartEnd::Connected,
                Some(ConnectError::Timeout(_)) => StartEnd::Late,
                Some(_) => StartEnd::Failed,
            });
        }
    }

    /// Returns the rule for the shared connection. After a failure a program is started once an attempt, in one way and
    /// the other by turns.
    fn era_rule(&self) -> EraRule {
        let failed = self.failed_attempts.load(Ordering::Relaxed);
        let is_program = matches!(self.endpoint, ServerEndpoint::Stdio { .. });
        match failed {
            _ if self.is_legacy.load(Ordering::Relaxed) => EraRule::ProbablyLegacy,
            1.. if is_program && failed % 2 == 1 => EraRule::ProbablyLegacy,
            1.. if is_program => EraRule::DetectOnce,
            _ => EraRule::Detect,
        }
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
        let rule = match other.or_else(|| self.options.era.only()) {
            Some(era) => EraRule::Only(era),
            None => self.era_rule(),
        };
        let open = UpstreamConnection::connect(&self.name, &self.endpoint, &self.options, declared, rule);
        let limit = self.connect_timeout();
        let connection = timeout(limit, open).await.unwrap_or(Err(ConnectError::Timeout(limit)));
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
