//! The storage of a split result in working memory.

use tokio::time::{Duration, timeout};
use toolyard_core::store::StoreError;

use super::message::{self, VisibleKeys};
use super::preparation::{ResultKeys, SplitResult};
use crate::memory::chunk_keys as keys;
use crate::memory::{
    MemoryAccess, MemoryCaller, MemoryError, MemoryNamespace, NewEntry, RoomPolicy, WorkingMemory,
};

/// A place for a result: a namespace, and keys in it.
pub(super) struct ResultPlace {
    pub(super) keys: ResultKeys,
    access: MemoryAccess,
    namespace: MemoryNamespace,
}

impl ResultPlace {
    /// Returns a place for a result of a tool. The caller can use its keys for `ttl`.
    pub(super) async fn new(
        memory: &WorkingMemory,
        caller: MemoryCaller,
        tool: &str,
        ttl: Duration,
    ) -> Result<Self, StoreError> {
        let access = memory.access(caller).await?;
        let result = access.result_namespace()?;
        let base = keys::new_base(&result.namespace, tool)?;
        // The keys that the caller reads differ from the stored ones if they carry an id.
        let visible = VisibleKeys { base: access.visible_base(&result, &base, ttl), has_id: result.is_new };
        let keys = ResultKeys { base, visible, max_query: memory.limits().query.input_bytes };
        Ok(Self { keys, access, namespace: result.namespace })
    }

    /// Returns a handle of the namespace for the host, if the caller needs one.
    pub(super) fn handle(&self, memory: &WorkingMemory) -> Option<String> {
        self.access.handle_of(&self.namespace, memory.limits().longest_ttl)
    }

    /// Stores the chunks of a result and their outline.
    pub(super) async fn put(
        &self,
        memory: &WorkingMemory,
        result: &SplitResult,
        ttl: Duration,
        room: RoomPolicy,
    ) -> Result<(), MemoryError> {
        let (category, ttl) = (Some(message::CATEGORY), Some(ttl));
        let chunks: Vec<_> = result.chunks().collect();
        let entries = chunks
            .iter()
            .map(|(key, stored, place)| NewEntry { place: Some(*place), ..NewEntry::new(key, stored) });
        let index = result.index_key();
        let outline =
            NewEntry { chunks: Some(chunks.len()), ..NewEntry::new(&index, &result.entries.outline) };
        let entries: Vec<_> =
            entries.chain([outline]).map(|entry| NewEntry { category, ttl, ..entry }).collect();
        memory.save_with(&self.access.address(), &self.namespace, &entries, room).await.map(drop)
    }
}

/// The reason why working memory does not have a result.
pub(super) enum MemoryRefusal {
    TooSlow,
    Error(MemoryError),
}

/// Waits for working memory for a time.
pub(super) async fn in_time<T, E: Into<MemoryError>>(
    time: Duration,
    stored: impl Future<Output = Result<T, E>>,
) -> Result<T, MemoryRefusal> {
    match timeout(time, stored).await {
        Ok(result) => result.map_err(|error| MemoryRefusal::Error(error.into())),
        Err(_) => Err(MemoryRefusal::TooSlow),
    }
}

impl MemoryRefusal {
    /// Returns the reason for the model; logs failures of the store.
    pub(super) fn text(&self, tool: &str) -> String {
        let Self::Error(error) = self else { return message::TOO_SLOW.to_owned() };
        if let MemoryError::Store(cause) = error {
            let error = cause as &dyn std::error::Error;
            tracing::warn!(tool, error, "failed to store a large result, truncating it");
        }
        error.to_string()
    }
}
