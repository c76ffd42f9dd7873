//! Opens connections to one server, and remembers its properties.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
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
    /// The era of the next connection, if it is known: the legacy one after a connection of that era, so that
    /// `server/discover` is skipped, of which some servers die; the modern one after a late answer to the probe.
    known_era: Mutex<Option<ProtocolEra>>,
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
            known_era: Mutex::default(),
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
        match (self.known_era(), failed) {
            (Some(ProtocolEra::Legacy), _) => EraRule::ProbablyLegacy,
            (Some(ProtocolEra::Modern), _) => EraRule::Only(ProtocolEra::Modern),
            (None, 1..) if is_program && failed % 2 == 1 => EraRule::ProbablyLegacy,
            (None, 1..) if is_program => EraRule::DetectOnce,
            (None, _) => EraRule::Detect,
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
        let limit = self.connect_timeout();
        let open = timeout(limit, self.open(declared, rule));
        if other.is_some() {
            return self.record_other_era(open.await.unwrap_or(Err(ConnectError::Timeout(limit))));
        }
        // A late answer counts for one attempt, also if it is the next one.
        let before = self.known_era();
        if before == Some(ProtocolEra::Modern) {
            self.set_known_era(None);
        }
        let connection = open.await.unwrap_or(Err(ConnectError::Timeout(limit)));
        match connection.as_ref().map(|connection| connection.revision().era()) {
            Ok(ProtocolEra::Legacy) => self.set_known_era(Some(ProtocolEra::Legacy)),
            Err(_) if before != Some(ProtocolEra::Legacy) => {}
            Ok(ProtocolEra::Modern) | Err(_) => self.set_known_era(None),
        }
        connection
    }

    /// Opens a connection, in the modern era if a server that starts slowly turns out to speak it after the legacy
    /// handshake.
    async fn open(
        &self,
        declared: &DeclaredCapabilities,
        rule: EraRule,
    ) -> Result<UpstreamConnection, ConnectError> {
        let connect =
            |rule| UpstreamConnection::connect(&self.name, &self.endpoint, &self.options, declared, rule);
        let connection = connect(rule).await?;
        if !connection.speaks_modern_too {
            return Ok(connection);
        }
        tracing::info!(handler = %self.name, "the server has answered the probe of its era late: connecting again");
        self.set_known_era(Some(ProtocolEra::Modern));
        connection.close().await;
        connect(EraRule::Only(ProtocolEra::Modern)).await
    }

    fn known_era(&self) -> Option<ProtocolEra> {
        *self.known_era.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_known_era(&self, era: Option<ProtocolEra>) {
        *self.known_era.lock().unwrap_or_else(PoisonError::into_inner) = era;
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
