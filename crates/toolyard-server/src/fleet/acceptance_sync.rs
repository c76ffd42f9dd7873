//! Follows acceptances of changed tools by other gateways on the same store.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use toolyard_core::store::{Store, StoreError};

use super::handler_records::{ACCEPTANCES, key, read};
use super::{FleetCommand, HandlerStatus};

/// Follows acceptances for as long as the future is polled. The fleet gets them after `every` at most.
pub(crate) async fn follow_acceptances(
    store: Arc<dyn Store>,
    commands: mpsc::WeakSender<FleetCommand>,
    statuses: watch::Receiver<Arc<[HandlerStatus]>>,
    every: Duration,
) {
    let (mut is_well, mut last_read) = (true, None);
    loop {
        sleep(every).await;
        let keys: Vec<_> = statuses.borrow().iter().map(|status| key(&status.declared)).collect();
        match changed_records(&*store, &keys, &mut last_read).await {
            Ok(None) => is_well = true,
            Ok(Some(records)) => {
                is_well = true;
                let Some(commands) = commands.upgrade() else { return };
                if commands.send(FleetCommand::MergeAcceptances(records)).await.is_err() {
                    return;
                }
            }
            Err(error) if is_well => {
                is_well = false;
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "cannot follow acceptances of changed tools at other gateways");
            }
            Err(_) => {}
        }
    }
}

/// Reads the records of these handlers if the store or the handlers have changed since the last read.
async fn changed_records(
    store: &dyn Store,
    keys: &[String],
    last_read: &mut Option<(u64, Vec<String>)>,
) -> Result<Option<HashMap<String, Bytes>>, StoreError> {
    // The revision comes first, so that a change during the read causes another read.
    let revision = store.revision(ACCEPTANCES).await?;
    if last_read
        .as_ref()
        .is_some_and(|(last_revision, handlers)| *last_revision == revision && handlers == keys)
    {
        return Ok(None);
    }
    let records = read(store, ACCEPTANCES, keys).await?;
    *last_read = Some((revision, keys.to_vec()));
    Ok(Some(records))
}
