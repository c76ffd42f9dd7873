//! A handler type that the specification describes and the gateway does not serve yet.
//!
//! A manifest with such a handler still starts: supported handlers are served, and this one reports its reason.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolyard_core::{Backend, BackendPhase, Call, Catalog, ErrorCode, Outcome, Tool, ToolError};

/// A backend that is always unavailable. It knows the tool that its manifest defines, so that a call fails as
/// unavailable and not as unknown.
pub(super) struct UnsupportedBackend {
    reason: String,
    catalog: watch::Sender<Arc<Catalog>>,
}

impl UnsupportedBackend {
    /// Creates the backend of a handler of this type, with its tool if the manifest defines one.
    pub(super) fn new(handler_type: &str, tool: Option<Tool>) -> Self {
        Self::because(format!("handlers of type `{handler_type}` are not supported yet"), tool)
    }

    /// Creates the backend of a handler that cannot be built, for this reason.
    pub(super) fn because(reason: String, tool: Option<Tool>) -> Self {
        let catalog = Catalog {
            phase: BackendPhase::Unavailable { reason: reason.clone().into() },
            tools: tool.into_iter().map(Arc::new).collect(),
            ..Catalog::default()
        };
        Self { reason, catalog: watch::Sender::new(Arc::new(catalog)) }
    }
}

impl Backend for UnsupportedBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, _call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(std::future::ready(
            Err(ToolError::new(ErrorCode::Unavailable, self.reason.clone()).unsent()),
        ))
    }
}
