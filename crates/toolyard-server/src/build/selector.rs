//! Builds handlers with `selector`. The operator replaces them by the Services of its cluster; a gateway on its own has
//! none.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolyard_core::cause::CauseCode;
use toolyard_core::{Backend, BackendPhase, Call, Catalog, ErrorCode, FailureCause, Outcome, ToolError};

/// The reason why there are no Services.
const REASON: &str =
    "`selector` is for gateways that the operator runs in a cluster; this one watches no cluster";

pub(super) fn backend() -> Arc<dyn Backend> {
    let reason = FailureCause::new(CauseCode::NoCluster, REASON);
    let catalog = Catalog { phase: BackendPhase::Unavailable { reason }, ..Catalog::default() };
    Arc::new(UnwatchedServices { catalog: watch::Sender::new(Arc::new(catalog)) })
}

/// A backend without tools, which waits for a cluster.
struct UnwatchedServices {
    catalog: watch::Sender<Arc<Catalog>>,
}

impl Backend for UnwatchedServices {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, _call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::ToolNotFound, REASON).unsent())))
    }
}
