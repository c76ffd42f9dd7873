//! The keys of a running gateway: the checks at startup, and the task that follows the store.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use toolyard_core::store::{Store, StoreErrorKind};
use toolyard_manifest::{ListenAddress, ProcessSettings};

use super::{KeyCache, KeyMarker, KeyPolicy, KeySessions};
use crate::context::GatewayContext;
use crate::shutdown::Subsystem;
use crate::start::StartError;

/// The keys, and the task that follows them in the store.
pub(crate) struct KeyService {
    pub(crate) cache: Arc<KeyCache>,
    _follower: JoinSet<()>,
}

impl KeyService {
    /// Loads and follows the keys.
    ///
    /// # Errors
    /// If the gateway would be open to other machines without keys and that is not allowed, if its keys are lost, or if
    /// the stored ones are unreadable.
    pub(crate) async fn start(
        context: &GatewayContext,
        marker: Option<&KeyMarker>,
    ) -> Result<Self, StartError> {
        let cache = load(&context.store, &context.process, marker).await?;
        let (followed, every) = (cache.clone(), context.process.timeouts.key_check);
        let mut follower = JoinSet::new();
        follower.spawn(async move { followed.follow(every).await });
        Ok(Self { cache, _follower: follower })
    }
}

impl Subsystem for KeyService {
    fn stop(self: Box<Self>, _drain: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.cache.stop().await })
    }
}

fn key_policy(process: &ProcessSettings) -> KeyPolicy {
    match process.addresses().any(ListenAddress::is_exposed) {
        _ if process.allow_unauthenticated => KeyPolicy::Never,
        true => KeyPolicy::Always,
        false => KeyPolicy::OnceCreated,
    }
}

async fn load(
    store: &Arc<dyn Store>,
    process: &ProcessSettings,
    marker: Option<&KeyMarker>,
) -> Result<Arc<KeyCache>, StartError> {
    // A gateway without listeners does not authenticate by keys.
    let marker = marker.filter(|_| process.addresses().next().is_some());
    let (policy, marker_file) = (key_policy(process), marker.and_then(KeyMarker::existing));
    let policy = match marker_file {
        Some(_) if policy == KeyPolicy::OnceCreated => KeyPolicy::Always,
        _ => policy,
    };
    let console = &process.console;
    let sessions = KeySessions::new(console.sessions, console.session_time);
    let cache = KeyCache::new(store.clone(), policy).with_sessions(sessions);
    let cache = if process.unauthenticated_admin { cache } else { cache.without_anonymous_admin() };
    let cache = Arc::new(match marker {
        Some(marker) => cache.with_marker(marker.clone()),
        None => cache,
    });
    if process.addresses().next().is_some() {
        // First, so that a key that is created meanwhile waits for this gateway.
        cache.announce().await;
    }
    let has_keys = match cache.read().await {
        Ok(has_keys) => has_keys,
        // An unreadable store does not recover by itself.
        Err(error) if error.kind == StoreErrorKind::Unreadable => return Err(StartError::Keys(error)),
        // No request is admitted until the keys can be read.
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "cannot read the keys");
            true
        }
    };
    if let Some(path) = marker_file.filter(|_| !process.allow_unauthenticated && !has_keys) {
        return Err(StartError::KeysLost(path.to_owned()));
    }
    let exposed = process.addresses().find(|address| address.is_exposed());
    match exposed.filter(|_| !process.allow_unauthenticated && !has_keys) {
        None => Ok(cache),
        Some(address) => Err(StartError::Unauthenticated(address.clone())),
    }
}
