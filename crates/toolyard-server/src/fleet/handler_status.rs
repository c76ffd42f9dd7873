//! Status of a handler.

use std::sync::Arc;
use std::time::SystemTime;

use toolyard_core::{BackendPhase, Catalog};
use toolyard_manifest as manifest;

use super::DefinitionChange;

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
    pub last_error: Option<(String, SystemTime)>,
    /// Tools whose definitions differ from the accepted ones.
    pub changes: Arc<[DefinitionChange]>,
}

impl HandlerStatus {
    /// Creates the status of a handler that has not answered yet.
    pub(super) fn new(declared: Arc<manifest::HandlerConfig>, origin: HandlerOrigin) -> Self {
        Self {
            declared,
            origin,
            phase: BackendPhase::Connecting,
            since: SystemTime::now(),
            protocol: None,
            service_url: None,
            last_error: None,
            changes: Arc::default(),
        }
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
