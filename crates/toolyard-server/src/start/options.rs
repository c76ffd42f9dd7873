//! Options that are not part of the manifest.

use std::fmt;
use std::path::PathBuf;
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
    /// Location of the store for operators, without its password. `None`: it is in the memory of the process.
    pub store_location: Option<String>,
    /// Path of the count of audit records that a kill of the process loses: see `DurableCount`. `None`: they are not
    /// counted.
    pub unrecorded_count: Option<PathBuf>,
    /// The marker that the gateway has had keys. `None`: no marker is written.
    pub key_marker: Option<KeyMarker>,
    /// Layers to leave out, by name, to measure the cost of each.
    pub without_layers: Vec<String>,
    /// The log of the process.
    pub log: LogControl,
    /// Part of the process on the message bus of the manifest. A build without the bus has none.
    pub bus_role: BusRole,
}

/// The part of a process on a message bus, beside sending calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BusRole {
    /// It consumes no messages.
    #[default]
    None,
    /// It runs calls of its tools.
    Worker,
    /// It has MCP servers for others.
    Bridge,
    /// It runs scripts.
    ScriptsManager,
}

impl fmt::Debug for GatewayOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spawner, store_location, without_layers, bus_role, .. } = self;
        let mut debug = f.debug_struct("GatewayOptions");
        debug.field("spawner", spawner).field("store_location", store_location);
        debug.field("without_layers", without_layers);
        debug.field("bus_role", bus_role).finish_non_exhaustive()
    }
}

/// Options for a program that embeds this crate: no process supervisor, no persistent store.
impl Default for GatewayOptions {
    fn default() -> Self {
        let (spawner, without_layers, log) = (ProcessSpawner::Direct, Vec::new(), LogControl::default());
        Self {
            spawner,
            store: None,
            store_location: None,
            unrecorded_count: None,
            key_marker: None,
            without_layers,
            log,
            bus_role: BusRole::None,
        }
    }
}
