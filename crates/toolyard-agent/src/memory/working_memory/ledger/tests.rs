use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;
use toolyard_manifest::MemorySettings;

use crate::memory::testing::ManualStore;
use crate::memory::testing::observed_store::{ObservedStore, StoreOperation};
use crate::memory::{FullKey, MemoryNamespace, NewEntry, RoomPolicy, WorkingMemory};

/// Callers without a key that share 10,000 bytes, and have an address each.
struct KeylessCallers {
    store: Arc<ObservedStore>,
    inner: Arc<ManualStore>,
    memory: WorkingMemory,
}

impl KeylessCallers {
    fn new() -> Self {
        let limits = MemorySettings {
            keyless_bytes: Some(10_000),
            keyless_address_bytes: Some(4_000),
            ..MemorySettings::default()
        };
        let (inner, memory) = ManualStore::memory(limits);
        let store = ObservedStore::new(inner.clone());
        let memory = WorkingMemory::new(store.clone(), *memory.limits()).with_clock(inner.clock());
        Self { store, inner, memory }
    }

    fn key(caller: usize) -> FullKey {
        let namespace = MemoryNamespace::new("session", &format!("{caller:016x}"));
        FullKey { path: format!("{namespace}/notes"), namespace }
    }

    async fn save(&self, caller: usize, bytes: usize) {
        let (key, value) = (Self::key(caller), "v".repeat(bytes));
        let (address, entry) = (format!("192.0.2.{caller}"), [NewEntry::new(&key.path, &value)]);
        let saved = self.memory.save_with(&address, &key.namespace, &entry, RoomPolicy::Refuse).await;
        self.inner.pass(Duration::from_secs(1));
        saved.expect("room");
    }

    /// Returns the callers whose entries can be read.
    async fn left(&self) -> Vec<usize> {
        let mut left = Vec::new();
        for caller in 0..9 {
            if self.memory.get(&Self::key(caller)).await.expect("a store").is_some() {
                left.push(caller);
            }
        }
        left
    }
}

/// However an eviction ends, all that can be read counts.
#[tokio::test]
async fn cancelled_eviction_is_completed_by_the_next_save() {
    for held in ["working-memory-keyless", "working-memory-keyless-values"] {
        let callers = KeylessCallers::new();
        for (caller, bytes) in [(0, 3_200), (1, 2_900), (2, 2_800)] {
            callers.save(caller, bytes).await;
        }
        callers.store.hold(StoreOperation::Delete, held);
        // Dropped when it deletes the entries of the first caller, which has most bytes.
        let mut save = Box::pin(callers.save(3, 2_700));
        for _ in 0..100 {
            assert!((&mut save).now_or_never().is_none(), "{held}");
        }
        drop(save);
        callers.store.release();
        callers.save(4, 2_700).await;
        assert_eq!(callers.left().await, [1, 2, 4], "{held}");
        callers.save(5, 2_600).await;
        assert_eq!(callers.left().await, [2, 4, 5], "{held}");
        callers.inner.pass(Duration::from_secs(1_000));
        assert_eq!(callers.inner.len(), 0, "{held}: nothing is left in the store");
    }
}

#[tokio::test]
async fn evicted_caller_can_save_again() {
    let callers = KeylessCallers::new();
    for (caller, bytes) in [(0, 3_200), (1, 2_900), (2, 2_800)] {
        callers.save(caller, bytes).await;
    }
    callers.store.hold(StoreOperation::Delete, "working-memory-keyless");
    let mut save = Box::pin(callers.save(3, 2_700));
    for _ in 0..100 {
        assert!((&mut save).now_or_never().is_none());
    }
    drop(save);
    callers.store.release();
    callers.save(0, 2_000).await;
    assert_eq!(callers.left().await, [0, 1, 2]);
}

/// Both the ledger and the list of a namespace are changed under a condition.
#[tokio::test(start_paused = true)]
async fn conflicting_changes_wait_before_they_try_again() {
    let callers = KeylessCallers::new();
    let start = Instant::now();
    callers.save(0, 10).await;
    assert_eq!(Instant::now(), start, "without conflicts");
    callers.store.conflict(5);
    callers.save(0, 20).await;
    let of_ledger = Instant::now();
    assert!(of_ledger > start);
    callers.store.conflict(5);
    assert!(callers.memory.delete(&KeylessCallers::key(0)).await.expect("a store").is_some());
    assert!(Instant::now() > of_ledger);
}
