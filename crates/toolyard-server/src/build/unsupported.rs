//! A handler that this gateway cannot build: its file of certificate authorities cannot be read, for example.
//!
//! A manifest with such a handler still starts: the others are served, and this one reports its reason.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolyard_core::{Backend, BackendPhase, Call, Catalog, ErrorCode, Outcome, Tool, ToolError};

/// A backend that is always unavailable. It knows the tool that its manifest defines, so that a call fails for this
/// reason and not as one of an unknown tool.
pub(super) struct UnsupportedBackend {
    reason: String,
    catalog: watch::Sender<Arc<Catalog>>,
}

impl UnsupportedBackend {
    /// Creates the backend of a handler that cannot be built for this reason, with its tool if the manifest defines one.
    pub(super) fn because(reason: impl Into<String>, tool: Option<Tool>) -> Self {
        let reason = reason.into();
        let catalog = Catalog {
            phase: BackendPhase::Unavailable { reason: reason.clone().into() },
            tools: tool.into_iter().map(Arc::new).collect(),
            ..Catalog::default()
        };
        Self { reason, catalog: watch::Sender::new(Arc::new(catalog)) }
    }

    /// Returns the error of each call. Another call fails, too, until the manifest or a file of it has changed.
    fn error(&self) -> ToolError {
        let error = ToolError::new(ErrorCode::ExecutionFailed, "The handler of this tool cannot be used");
        error
            .because("the handler cannot be used; its status has the cause")
            .caused_by(self.reason.clone())
            .unsent()
    }
}

impl Backend for UnsupportedBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, _call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(std::future::ready(Err(self.error())))
    }
}
