use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use toolyard_core::{Backend, Call, Json, Outcome};
use toolyard_manifest::MemorySettings;
use toolyard_sdk::Server;

use crate::memory::access::FullKey;
use crate::memory::testing::ManualStore;
use crate::memory::testing::observed_store::{ObservedStore, StoreOperation};
use crate::memory::{MemoryNamespace, NewEntry, WorkingMemory, tools};

const VALUES: &str = "working-memory-values";

/// Entries of one key, whose reads are counted.
struct SearchHarness {
    store: Arc<ObservedStore>,
    backend: Arc<dyn Backend>,
}

impl SearchHarness {
    /// Saves `count` entries of a length.
    async fn new(count: usize, length: usize) -> Self {
        let (inner, memory) = ManualStore::memory(MemorySettings::default());
        let store = ObservedStore::new(inner.clone());
        let memory = WorkingMemory::new(store.clone(), *memory.limits()).with_clock(inner.clock());
        let namespace = MemoryNamespace::new("key", "abc");
        for number in 0..count {
            let key = FullKey { path: format!("{namespace}/{number}"), namespace: namespace.clone() };
            let value = format!("needle {}", "x".repeat(length));
            memory.save(&namespace, &[NewEntry::new(&key.path, &value)]).await.expect("room");
        }
        let server = tools::add(Server::new("memory", "1.0.0"), memory).expect("tools");
        Self { store, backend: server.into_backend() }
    }

    /// Searches, and waits for an hour at most.
    async fn search(&self, query: &str) -> String {
        let arguments = serde_json::json!({"query": query});
        let mut call = Call::tool(tools::SEARCH, Json::from_value(&arguments));
        call.caller.principal = Some("abc".into());
        let Ok(found) = timeout(Duration::from_secs(3600), self.backend.call(call)).await else {
            return "no end".to_owned();
        };
        let Ok(Outcome::Done(output)) = found else { panic!("no result") };
        output.body.to_json().to_value()["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn search_ends_at_its_time_limit() {
    let harness = SearchHarness::new(3, 10).await;
    harness.store.hold(StoreOperation::List, VALUES);
    let hits = harness.search("needle").await;
    assert_eq!(hits, "The search took too long. Search in one namespace, or for a category or a tag.");
    harness.store.release();
    assert!(harness.search("needle").await.contains("key/abc/2"), "{hits}");
}

#[tokio::test(start_paused = true)]
async fn search_of_many_bytes_waits_for_a_permit() {
    for (length, waits) in [(10, false), (100_000, true)] {
        let harness = SearchHarness::new(1, length).await;
        harness.store.hold(StoreOperation::List, VALUES);
        // As many searches as may run, and one more.
        let (ended, reads) = tokio::join!(
            async { tokio::join!(harness.search("a"), harness.search("b"), harness.search("c")) },
            async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                harness.store.take_count(StoreOperation::List)
            }
        );
        assert_eq!(reads, if waits { 2 } else { 3 }, "{length}");
        assert_ne!(ended.2, "no end", "{length}");
    }
}

#[tokio::test]
async fn values_are_read_concurrently() {
    let harness = SearchHarness::new(20, 10).await;
    let before = harness.store.most_running();
    assert!(harness.search("needle").await.contains("key/abc/7"));
    assert!(before < 8 && harness.store.most_running() == 8, "{before} {}", harness.store.most_running());
}
