//! Status of a handler.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use toolyard_core::backend::Installation;
use toolyard_core::registry::HandlerEntry;
use toolyard_core::{Backend, BackendPhase, Catalog, FailureCause, SecretRedactor};
use toolyard_manifest as manifest;

use super::{DefinitionChange, error_output};

/// Origin of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerOrigin {
    /// The manifest.
    Manifest,
    /// Added while the gateway runs.
    RunTime,
}

/// Declaration and status of a handler, for operators.
#[derive(Debug, Clone)]
pub struct HandlerStatus {
    /// The declaration.
    pub declared: Arc<manifest::HandlerConfig>,
    /// Origin of the declaration.
    pub origin: HandlerOrigin,
    /// Current phase.
    pub phase: BackendPhase,
    /// Time of the last change of phase.
    pub since: SystemTime,
    /// Protocol of the server, once known.
    pub protocol: Option<Arc<str>>,
    /// URL of the service for display, if only its description names it.
    pub service_url: Option<Arc<str>>,
    /// Reason and time of the last failure. It stays once the handler is available again.
    pub last_error: Option<(FailureCause, SystemTime)>,
    /// Tools whose definitions differ from the accepted ones.
    pub changes: Arc<[DefinitionChange]>,
    /// The running handler, which is asked for what changes too often to be published.
    pub(super) live: LiveHandler,
}

/// A running handler, or the one that is about to take over.
#[derive(Clone)]
pub(super) struct LiveHandler {
    backend: Arc<dyn Backend>,
    secrets: SecretRedactor,
}

impl LiveHandler {
    pub(super) fn of(handler: &HandlerEntry) -> Self {
        Self { backend: handler.backend.clone(), secrets: handler.secrets.clone() }
    }
}

impl fmt::Debug for LiveHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LiveHandler")
    }
}

impl HandlerStatus {
    /// Creates the status of a handler that has not answered yet.
    pub(super) fn new(
        declared: Arc<manifest::HandlerConfig>,
        origin: HandlerOrigin,
        live: LiveHandler,
    ) -> Self {
        Self {
            declared,
            origin,
            phase: BackendPhase::Connecting,
            since: SystemTime::now(),
            protocol: None,
            service_url: None,
            last_error: None,
            changes: Arc::default(),
            live,
        }
    }

    /// Returns the installation of the server's program, while there is one. Its line is redacted.
    #[must_use]
    pub fn installation(&self) -> Option<Installation> {
        let installation = self.live.backend.installation()?;
        let line = installation.line.and_then(|line| {
            let cause = FailureCause::from("").with_output(&line);
            self.redacted(cause).output.pop()
        });
        Some(Installation { line, ..installation })
    }

    /// Returns the cause and the time of the last failure, of which there may be one while the handler is available.
    #[must_use]
    pub fn last_failure(&self) -> Option<(FailureCause, SystemTime)> {
        let own = self.live.backend.last_failure().map(|(cause, time)| (self.redacted(cause), time));
        [self.last_error.clone(), own].into_iter().flatten().max_by_key(|(_, time)| *time)
    }

    fn redacted(&self, cause: FailureCause) -> FailureCause {
        error_output::redacted_cause(cause, &self.live.secrets, &error_output::given_values(&self.declared))
    }

    /// Updates the status from a catalog.
    pub(super) fn update(&mut self, catalog: &Catalog) {
        if let Some(protocol) = &catalog.protocol {
            self.protocol = Some(protocol.clone());
        }
        if let Some(url) = &catalog.service_url {
            self.service_url = Some(self.declared.displayed(url).into());
        }
        if self.phase == catalog.phase {
            return;
        }
        let now = SystemTime::now();
        // Another reason for being unavailable is not a change of phase.
        let is_still_unavailable = matches!(
            (&self.phase, &catalog.phase),
            (BackendPhase::Unavailable { .. }, BackendPhase::Unavailable { .. })
        );
        if !is_still_unavailable {
            self.since = now;
        }
        if let BackendPhase::Unavailable { reason } = &catalog.phase {
            self.last_error = Some((reason.clone(), now));
        }
        self.phase = catalog.phase.clone();
    }
}
