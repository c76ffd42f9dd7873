//! The gateways of a store at which requests need no key yet.
//!
//! A gateway reads new keys at intervals. `toolyard key create` waits until no gateway is left here, so that no request
//! is admitted without a key after the first one was created.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep, timeout};
use toolyard_core::random::{hex, random_bytes};
use toolyard_core::store::{KeySpace, PutRequest, Store, StoreError};

const OPEN_GATEWAYS: KeySpace = KeySpace("open-gateways");

/// Lifetime of an entry: a killed gateway does not delay the creation of keys for longer.
const LIFETIME: Duration = Duration::from_secs(60);

/// Interval of its renewal.
const RENEWAL: Duration = Duration::from_secs(20);

/// Interval at which the creator of a key looks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The entry of one gateway. Without a store there is none.
#[derive(Default)]
pub(super) struct OpenGateway(Mutex<Option<(String, Instant)>>);

impl OpenGateway {
    /// Writes the entry, or renews it.
    pub(super) async fn announce(&self, store: &dyn Store) {
        let entry = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let id = match entry {
            Some((_, renewed)) if renewed.elapsed() < RENEWAL => return,
            Some((id, _)) => id,
            None => match random_id() {
                Some(id) => id,
                None => return,
            },
        };
        let expires = Some(SystemTime::now() + LIFETIME);
        let put = PutRequest { expires, ..PutRequest::always("") };
        if store.put(OPEN_GATEWAYS, &id, put).await.is_ok() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((id, Instant::now()));
        }
    }

    /// True if there is an entry.
    pub(super) fn is_announced(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Removes the entry.
    pub(super) async fn withdraw(&self, store: &dyn Store) {
        let entry = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((id, _)) = entry {
            // It expires if this fails.
            store.delete(OPEN_GATEWAYS, &id).await.ok();
        }
    }
}

fn random_id() -> Option<String> {
    Some(hex(&random_bytes::<8>().ok()?))
}

/// Waits until no gateway of the store admits requests without a key. Returns false if some still do after `limit`.
///
/// # Errors
/// If the store fails.
pub async fn wait_until_closed(store: &dyn Store, limit: Duration) -> Result<bool, StoreError> {
    let closed = async {
        while !store.list(OPEN_GATEWAYS, "", None, 1).await?.is_empty() {
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    };
    match timeout(limit, closed).await {
        Ok(outcome) => outcome.map(|()| true),
        Err(_) => Ok(false),
    }
}
