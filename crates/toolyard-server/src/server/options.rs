//! What is not in the manifest.

use std::fmt;
use std::sync::Arc;

use toolyard_core::store::Store;
use toolyard_process::Spawner;

use crate::log::LogControl;

/// What a gateway is given beside its manifest.
#[derive(Clone)]
pub struct Options {
    /// How the programs of handlers are started.
    pub spawner: Spawner,
    /// What outlives the process: keys, what is left of quotas, the audit trail, names of tools, what came of calls with an
    /// idempotency key. `None`: nothing does.
    pub store: Option<Arc<dyn Store>>,
    /// Layers to leave out, by name. For measuring what each costs.
    pub without_layers: Vec<String>,
    /// The log of the process.
    pub log: LogControl,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spawner, store: _, without_layers, log: _ } = self;
        let mut shown = f.debug_struct("Options");
        shown.field("spawner", spawner).field("without_layers", without_layers).finish_non_exhaustive()
    }
}

/// A program that links this crate is no supervisor of processes unless it says so, and keeps nothing.
impl Default for Options {
    fn default() -> Self {
        let (spawner, without_layers, log) = (Spawner::Direct, Vec::new(), LogControl::default());
        Self { spawner, store: None, without_layers, log }
    }
}
