//! How a handler is, and was.

use std::sync::Arc;
use std::time::SystemTime;

use toolyard_core::{Catalog, Phase};
use toolyard_manifest as manifest;

/// A handler as an operator wants to know it.
#[derive(Debug, Clone)]
pub struct Standing {
    /// What the manifest declares.
    pub declared: Arc<manifest::Handler>,
    /// How it is.
    pub phase: Phase,
    /// Since when.
    pub since: SystemTime,
    /// What it speaks, where that is known.
    pub protocol: Option<Arc<str>>,
    /// Why it last was unavailable, and since when it was. It stays when the handler is back.
    pub last_error: Option<(String, SystemTime)>,
}

impl Standing {
    /// A handler that was not heard of yet.
    pub(super) fn new(declared: Arc<manifest::Handler>) -> Self {
        Self {
            declared,
            phase: Phase::Connecting,
            since: SystemTime::now(),
            protocol: None,
            last_error: None,
        }
    }

    /// Takes in what it offers now.
    pub(super) fn note(&mut self, catalog: &Catalog) {
        if let Some(protocol) = &catalog.protocol {
            self.protocol = Some(protocol.clone());
        }
        if self.phase == catalog.phase {
            return;
        }
        let now = SystemTime::now();
        // Another reason for being unavailable does not make it available in between.
        let is_still =
            matches!((&self.phase, &catalog.phase), (Phase::Unavailable { .. }, Phase::Unavailable { .. }));
        if !is_still {
            self.since = now;
        }
        if let Phase::Unavailable { reason } = &catalog.phase {
            self.last_error = Some((reason.clone(), now));
        }
        self.phase = catalog.phase.clone();
    }
}
