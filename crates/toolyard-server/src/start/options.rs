//! Options that are not part of the manifest.

use std::fmt;
use std::sync::Arc;

use toolyard_core::store::Store;
use toolyard_process::ProcessSpawner;

use crate::keys::KeyMarker;
use crate::log::LogControl;

/// Options of a gateway beside its manifest.
#[derive(Clone)]
pub struct GatewayOptions {
    /// Starts the programs of handlers.
    pub spawner: ProcessSpawner,
    /// Data that outlives the process: keys, remaining quotas, the audit trail, tool names, and results of calls with
    /// an idempotency key. `None`: nothing outlives it.
    pub store: Option<Arc<dyn Store>>,
    /// The marker that the gateway has had keys. `None`: no marker is written.
    pub key_marker: Option<KeyMarker>,
    /// Layers to leave out, by name, to measure the cost of each.
    pub without_layers: Vec<String>,
    /// The log of the process.
    pub log: LogControl,
}

impl fmt::Debug for GatewayOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spawner, store: _, key_marker: _, without_layers, log: _ } = self;
        let mut debug = f.debug_struct("GatewayOptions");
        debug.field("spawner", spawner).field("without_layers", without_layers).finish_non_exhaustive()
    }
}

/// Options for a program that embeds this crate: no process supervisor, no persistent store.
impl Default for GatewayOptions {
    fn default() -> Self {
        let (spawner, without_layers, log) = (ProcessSpawner::Direct, Vec::new(), LogControl::default());
        Self { spawner, store: None, key_marker: None, without_layers, log }
    }
}
