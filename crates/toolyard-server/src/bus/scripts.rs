//! The runner of scripts of a gateway that has no right to run them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolyard_core::store::Store;
use toolyard_core::{PythonScript, ScriptExecutor, ScriptOutcome, ToolError};
use toolyard_manifest::BusSettings;

use super::{BusFailure, connected};

/// Returns the runner that sends scripts to a manager on this bus. Without a usable bus it refuses scripts.
pub(crate) fn runner(settings: &BusSettings, store: &Arc<dyn Store>) -> Arc<dyn ScriptExecutor> {
    connected::scripts::runner(settings, store).unwrap_or_else(|failure| Arc::new(MissingBus(failure)))
}

/// The runner of a process without a usable bus.
struct MissingBus(BusFailure);

impl ScriptExecutor for MissingBus {
    fn run(&self, _script: PythonScript) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        let BusFailure { code, message } = &self.0;
        let message = format!("scripts are configured to run over the message bus: {message}");
        Box::pin(std::future::ready(Err(ToolError::new(*code, message).unsent())))
    }
}
