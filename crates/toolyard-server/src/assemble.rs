//! What all backends offer becomes one registry, again at each change.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use toolyard_core::names::Names;
use toolyard_core::registry::Handler;
use toolyard_core::{Catalog, Phase, Registry};

/// Changes that come together, as when a network comes back, make one registry.
const TOGETHER: Duration = Duration::from_millis(20);

/// Publishes registries until nobody is interested any more. The first one waits until every handler
/// has answered or failed, but no longer than `first`: after that, names go to whoever comes.
pub async fn assemble(handlers: Vec<Handler>, registry: watch::Sender<Arc<Registry>>, first: Duration) {
    let mut names = Names::default();
    let mut catalogs: Vec<_> = handlers.iter().map(|handler| handler.backend.catalog()).collect();
    if timeout(first, join_all(catalogs.iter_mut().map(answered))).await.is_err() {
        tracing::warn!("some handlers have not answered yet: the first list comes without them");
    }
    loop {
        let now: Vec<_> = catalogs.iter_mut().map(|catalog| catalog.borrow_and_update().clone()).collect();
        let parts: Vec<(Handler, Arc<Catalog>)> = handlers.iter().cloned().zip(now).collect();
        registry.send_replace(Arc::new(Registry::assemble(&parts, &mut names)));
        tokio::select! {
            () = changed(&mut catalogs) => sleep(TOGETHER).await,
            () = registry.closed() => return,
        }
    }
}

/// Waits until a handler has answered or failed.
async fn answered(catalog: &mut watch::Receiver<Arc<Catalog>>) {
    // One that will not say anything any more has said what it had to say.
    let _gone = catalog.wait_for(|catalog| catalog.phase != Phase::Connecting).await.map(drop);
}

/// Waits until one of the catalogs has changed. Catalogs that will not change any more are left out.
async fn changed(catalogs: &mut [watch::Receiver<Arc<Catalog>>]) {
    if catalogs.is_empty() {
        return std::future::pending().await;
    }
    let waits = catalogs.iter_mut().map(|catalog| {
        Box::pin(async {
            if catalog.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    });
    select_all(waits).await;
}
