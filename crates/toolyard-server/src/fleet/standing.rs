//! How a handler is, and was.

use std::sync::Arc;
use std::time::SystemTime;

use toolyard_core::{Catalog, Phase};
use toolyard_manifest as manifest;

/// Where a handler comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The manifest.
    Manifest,
    /// Somebody who has added it while the gateway ran.
    RunTime,
}

/// A handler as an operator wants to know it.
#[derive(Debug, Clone)]
pub struct Standing {
    /// What it is to be.
    pub declared: Arc<manifest::Handler>,
    /// Who says so.
    pub origin: Origin,
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
    pub(super) fn new(declared: Arc<manifest::Handler>, origin: Origin) -> Self {
        Self {
            declared,
            origin,
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
