//! A handler of a type that is described and not served yet.
//!
//! A manifest of the whole contract starts a gateway: what can be served is, and the rest says why not.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolyard_core::{Backend, Call, Catalog, Code, Outcome, Phase, Tool, ToolError};

/// A backend that is never there. It knows the tool that its manifest describes, so that a call of it learns
/// that it is unavailable, not that it does not exist.
pub(super) struct NotYet {
    reason: String,
    catalog: watch::Sender<Arc<Catalog>>,
}

impl NotYet {
    /// The backend of a handler of this type, which may describe its tool.
    pub(super) fn new(handler_type: &str, tool: Option<Tool>) -> Self {
        let reason = format!("handlers of the type `{handler_type}` are not served yet");
        let catalog = Catalog {
            phase: Phase::Unavailable { reason: reason.clone() },
            tools: tool.into_iter().map(Arc::new).collect(),
            ..Catalog::default()
        };
        Self { reason, catalog: watch::Sender::new(Arc::new(catalog)) }
    }
}

impl Backend for NotYet {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, _call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(std::future::ready(Err(ToolError::new(Code::Unavailable, self.reason.clone()).unsent())))
    }
}
