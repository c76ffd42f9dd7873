//! The gateways of a cluster. Each of them shows a sign of life in the store that they share, and reads those of the others.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, Store, StoreError, StoreErrorKind};
use toolyard_core::timestamp::iso_8601;

use crate::context::GatewayContext;

/// Space of the signs of life, by the addresses of the gateways.
const MEMBERS: KeySpace = KeySpace("cluster-members");

/// Time between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Time after the last sign of life in which a gateway counts as running.
const LIFETIME: Duration = Duration::from_secs(30);

/// Maximum number of gateways that are listed.
const MAX_LISTED: usize = 1000;

/// A gateway of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterGateway {
    /// Address for the other gateways.
    pub address: String,
    /// Version of the program.
    pub version: String,
    /// Time of the start, in RFC 3339.
    pub started: String,
}

/// Starts the signs of life, if the gateway is in a cluster.
pub(crate) fn start(context: &GatewayContext) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    if let Some(cluster) = &context.process.cluster {
        let own = ClusterGateway {
            address: cluster.address.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: iso_8601(SystemTime::now()),
        };
        tasks.spawn(show_life(context.store.clone(), own, context.cluster_members.clone()));
    }
    tasks
}

/// Stores signs of life, and publishes the running gateways, until it is dropped.
async fn show_life(
    store: Arc<dyn Store>,
    own: ClusterGateway,
    members: watch::Sender<Arc<[ClusterGateway]>>,
) {
    let mut ticks = interval(HEARTBEAT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // A failing store is logged until it works again.
    let mut is_failing = false;
    loop {
        ticks.tick().await;
        match exchange(&*store, &own).await {
            Ok(running) => {
                members.send_replace(running.into());
                is_failing = false;
            }
            Err(error) => {
                if !is_failing {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        "cannot exchange signs of life with the other gateways of the cluster"
                    );
                }
                is_failing = true;
                members.send_replace(Arc::from([]));
            }
        }
    }
}

/// Stores a sign of life, and returns the gateways that have shown one, by their addresses.
async fn exchange(
    store: &dyn KeyValueStore,
    own: &ClusterGateway,
) -> Result<Vec<ClusterGateway>, StoreError> {
    let unreadable = |error: serde_json::Error| StoreError::new(StoreErrorKind::Unreadable, error);
    let sign = serde_json::to_vec(own).map_err(unreadable)?;
    let expires = Some(SystemTime::now() + LIFETIME);
    store.put(MEMBERS, &own.address, PutRequest { expires, ..PutRequest::always(sign) }).await?;
    let stored = store.list(MEMBERS, "", None, MAX_LISTED).await?;
    // One of another version may be unreadable.
    Ok(stored.iter().filter_map(|(_, value)| serde_json::from_slice(&value.bytes).ok()).collect())
}
