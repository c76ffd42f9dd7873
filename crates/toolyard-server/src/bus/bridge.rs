//! The servers of a bridge, for the management tools.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, ready};
use toolyard_agent::management::{
    BridgeManager, BridgedCall, BridgedResult, BridgedServer, BridgedTool, NewServer,
};
use toolyard_core::ToolError;
use toolyard_core::store::Store;
use toolyard_manifest::BusSettings;

use super::{BusFailure, connected};

/// Returns the servers of the bridge on this bus. Without a usable bus there are none.
pub(crate) fn bridged_servers(settings: &BusSettings, store: &Arc<dyn Store>) -> Arc<dyn BridgeManager> {
    connected::bridge::servers(settings, store).unwrap_or_else(|failure| {
        tracing::error!(error = &failure as &dyn std::error::Error, "cannot use the servers of a bridge");
        Arc::new(MissingBridge(failure))
    })
}

/// The bridge of a process without a usable bus.
struct MissingBridge(BusFailure);

impl MissingBridge {
    fn refuse<T: Send + 'static>(&self) -> BoxFuture<'static, Result<T, ToolError>> {
        let BusFailure { code, message } = self.0.clone();
        ready(Err(ToolError::new(code, message).unsent())).boxed()
    }
}

impl BridgeManager for MissingBridge {
    fn servers(&self) -> Vec<Arc<BridgedServer>> {
        Vec::new()
    }

    fn details<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<BridgedTool>, ToolError>> {
        self.refuse()
    }

    fn invoke(&self, _: BridgedCall) -> BoxFuture<'_, Result<BridgedResult, ToolError>> {
        self.refuse()
    }

    fn register(&self, _: NewServer) -> BoxFuture<'_, Result<Option<usize>, ToolError>> {
        self.refuse()
    }

    fn unregister<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        self.refuse()
    }
}
