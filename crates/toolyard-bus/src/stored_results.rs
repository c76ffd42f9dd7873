//! Results above the limit of messages: they go through a store that both ends of a call use, and the answer refers to
//! them.
//!
//! A request asks for it by the header `rb-result-store`. The answer is then an error that any receiver can read, with a
//! [`ResultReference`] in the header `rb-result-reference`. A receiver with the store has the result instead. A reference
//! grants no rights: it is a random key in a space that only processes with the store can read.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolyard_core::random::hex;
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, StoreError};
use toolyard_core::{ErrorCode, ToolError};
use toolyard_manifest::{BusSettings, StoredResultSettings};

use crate::bus::{BusError, DeadLetter, Deliveries, MessageBus, Subscription};
use crate::envelope::{Envelope, new_id};
use crate::headers;
use crate::topic::{Topic, TopicPattern};

const RESULTS: KeySpace = KeySpace("bus-results");

/// Returns a bus whose results above the limit of messages go through this store, if the settings say so.
#[must_use]
pub fn with_store(
    bus: Arc<dyn MessageBus>,
    store: Arc<dyn KeyValueStore>,
    settings: &BusSettings,
) -> Arc<dyn MessageBus> {
    match settings.stored_results {
        Some(settings) => Arc::new(BusWithStore { bus, results: StoredResults { store, settings } }),
        None => bus,
    }
}

/// The results that go through the store.
#[derive(Clone)]
pub struct StoredResults {
    store: Arc<dyn KeyValueStore>,
    settings: StoredResultSettings,
}

/// A stored result, as the header `rb-result-reference` of an answer has it in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultReference {
    /// Key of the result: 32 hexadecimal digits.
    pub key: String,
    /// SHA-256 of the body in hexadecimal digits.
    pub sha256: String,
    /// Size of the body in bytes.
    pub bytes: usize,
    /// Type of the message that the body belongs to.
    pub message_type: String,
}

/// A result cannot go through the store.
#[derive(Debug, thiserror::Error)]
pub enum StoredResultError {
    /// The sender of the request does not read results from a store, or this process has none.
    #[error(
        "Raise `bus.maxMessageBytes` of both ends, or set `bus.storedResults` of both and let them share a `store`."
    )]
    NotShared,
    /// The result exceeds the limit of stored results.
    #[error("It has {bytes} bytes, and `bus.storedResults.bytes` is {limit}: raise this limit of both ends.")]
    TooLarge {
        /// Size of the result.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The results in the store have reached their limit.
    #[error("Too many results wait in the store: raise `bus.storedResults.totalBytes`, or try again later.")]
    Full,
    /// The store has no such result.
    #[error(
        "The result is not in the store of this process: it has expired (`bus.storedResults.ttl`), or both ends of the \
         call have different stores. Let them share a `store`."
    )]
    Missing,
    /// The stored bytes are not those of the reference.
    #[error("The result in the store is not the one that was sent. Call the tool again.")]
    Changed,
    /// The header of the answer is no reference.
    #[error("The answer has an invalid reference to its result.")]
    InvalidReference,
    /// The store failed.
    #[error("The result cannot go through the store: {0}.")]
    Store(#[from] StoreError),
    /// No key could be made.
    #[error("The result has no key: {0}.")]
    NoKey(#[from] BusError),
}

/// The tool has run, so that its call is not repeated.
impl From<StoredResultError> for ToolError {
    fn from(error: StoredResultError) -> Self {
        Self::new(ErrorCode::ExecutionFailed, error.to_string()).caused_by(error)
    }
}

// === impl StoredResults ===

impl StoredResults {
    /// Stores the body of an answer.
    ///
    /// # Errors
    /// If it exceeds a limit, or if the store fails.
    async fn put(&self, answer: &Envelope) -> Result<ResultReference, StoredResultError> {
        let StoredResultSettings { bytes: limit, total_bytes, ttl } = self.settings;
        let bytes = answer.body.len();
        if bytes > limit {
            return Err(StoredResultError::TooLarge { bytes, limit });
        }
        let stored = self.store.size(RESULTS).await?;
        if stored.saturating_add(bytes as u64) > total_bytes as u64 {
            return Err(StoredResultError::Full);
        }
        let key = new_id()?;
        let expires = SystemTime::now().checked_add(ttl);
        let put = PutRequest { expires, ..PutRequest::always(answer.body.clone()) };
        self.store.put(RESULTS, &key, put).await?;
        let message_type = answer.message_type.clone();
        Ok(ResultReference { key, sha256: digest(&answer.body), bytes, message_type })
    }

    /// Reads a result and removes it.
    ///
    /// # Errors
    /// If the store has no such result, or fails.
    async fn take(&self, reference: &ResultReference) -> Result<Bytes, StoredResultError> {
        let limit = self.settings.bytes;
        if reference.bytes > limit {
            return Err(StoredResultError::TooLarge { bytes: reference.bytes, limit });
        }
        let stored = self.store.get(RESULTS, &reference.key).await?.ok_or(StoredResultError::Missing)?;
        if let Err(error) = self.store.delete(RESULTS, &reference.key).await {
            // It expires.
            tracing::debug!(error = &error as &dyn std::error::Error, "cannot remove a result that was read");
        }
        match digest(&stored.bytes) == reference.sha256 {
            true => Ok(stored.bytes),
            false => Err(StoredResultError::Changed),
        }
    }
}

fn digest(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

/// Stores the body of an answer that is too large for a message.
///
/// # Errors
/// If the sender of the request cannot read it, or if it cannot be stored.
pub(crate) async fn store(
    bus: &dyn MessageBus,
    request: &Envelope,
    answer: &Envelope,
) -> Result<ResultReference, StoredResultError> {
    let is_asked = request.headers.get(headers::RESULT_STORE).is_some_and(|value| value == "true");
    match bus.stored_results().filter(|_| is_asked) {
        Some(results) => results.put(answer).await,
        None => Err(StoredResultError::NotShared),
    }
}

/// Returns the answer that a reference of this one stands for, or this one if it has none.
///
/// # Errors
/// If the result cannot be read.
pub(crate) async fn resolve(bus: &dyn MessageBus, answer: Envelope) -> Result<Envelope, StoredResultError> {
    let reference = answer.headers.get(headers::RESULT_REFERENCE);
    // Without a store the answer is an error that names the remedy.
    let (Some(reference), Some(results)) = (reference, bus.stored_results()) else { return Ok(answer) };
    let reference: ResultReference =
        serde_json::from_str(reference).map_err(|_| StoredResultError::InvalidReference)?;
    let body = results.take(&reference).await?;
    let mut answer = Envelope { body, message_type: reference.message_type, ..answer };
    for of_error in [headers::RESULT_REFERENCE, headers::ERROR_CODE, headers::ERROR_RETRYABLE] {
        answer.headers.remove(of_error);
    }
    Ok(answer)
}

impl ResultReference {
    /// Adds the reference to an answer.
    pub(crate) fn attach(&self, answer: Envelope) -> Result<Envelope, BusError> {
        let reference = serde_json::to_string(self).map_err(|error| BusError::invalid(error.to_string()))?;
        Ok(answer.header(headers::RESULT_REFERENCE, reference))
    }
}

// === the bus ===

/// A bus with a store for large results.
#[derive(Debug)]
struct BusWithStore {
    bus: Arc<dyn MessageBus>,
    results: StoredResults,
}

impl MessageBus for BusWithStore {
    fn publish<'a>(&'a self, topic: &'a Topic, envelope: Envelope) -> BoxFuture<'a, Result<(), BusError>> {
        self.bus.publish(topic, envelope)
    }

    fn broadcast<'a>(&'a self, topic: &'a Topic, envelope: Envelope) -> BoxFuture<'a, Result<(), BusError>> {
        self.bus.broadcast(topic, envelope)
    }

    fn subscribe(&self, subscription: Subscription) -> BoxFuture<'_, Result<Deliveries, BusError>> {
        self.bus.subscribe(subscription)
    }

    fn dead_letters<'a>(
        &'a self,
        group: &'a str,
        pattern: &'a TopicPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, BusError>> {
        self.bus.dead_letters(group, pattern, limit)
    }

    fn stored_results(&self) -> Option<&StoredResults> {
        Some(&self.results)
    }
}

impl fmt::Debug for StoredResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredResults").field("settings", &self.settings).finish_non_exhaustive()
    }
}
