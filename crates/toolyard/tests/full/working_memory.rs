//! Working memory on each kind of store: gateways on one store share entries and the limits of a namespace.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use toolyard_agent::memory::{FullKey, MemoryError, MemoryNamespace, NewEntry, WorkingMemory};
use toolyard_core::store::Store;
use toolyard_manifest::MemorySettings;
use toolyard_store::{DatabaseLocation, PostgresUrl, StoreOptions};
use toolyard_testing::postgres::PostgresServer;

fn limits() -> MemorySettings {
    MemorySettings {
        entries: 20,
        bytes: 2_000_000,
        value_bytes: 1_000_000,
        total_bytes: 10_000_000,
        ttl: Duration::from_secs(60),
        longest_ttl: Duration::from_secs(3600),
        ..MemorySettings::default()
    }
}

async fn open(location: DatabaseLocation) -> Arc<dyn Store> {
    toolyard_store::open(&StoreOptions::at(location)).await.expect("a store")
}

fn key(name: &str) -> FullKey {
    let namespace = MemoryNamespace::new("key", "abc");
    FullKey { path: format!("{namespace}/{name}"), namespace }
}

async fn save(memory: &WorkingMemory, name: &str, value: &str) -> Result<(), MemoryError> {
    let FullKey { namespace, path } = key(name);
    memory.save(&namespace, &[NewEntry::new(&path, value)]).await.map(drop)
}

async fn value(memory: &WorkingMemory, name: &str) -> Option<String> {
    memory.get(&key(name)).await.expect("a store").map(|(_, value)| value)
}

/// Checks two gateways with separate connections on one store.
async fn two_gateways_share(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let [one, other] = [one, other].map(|store| WorkingMemory::new(store, limits()));
    save(&one, "Notes", "of one").await.expect("room");
    assert_eq!(value(&other, "notes").await.as_deref(), Some("of one"));
    // A value of several database rows, split inside of characters.
    let large = "é".repeat(450_001);
    save(&other, "large", &large).await.expect("room");
    assert!(value(&one, "large").await == Some(large));
    assert!(other.delete(&key("large")).await.expect("a store").is_some());
    assert_eq!(value(&one, "large").await, None);

    // Concurrent writes with different keys: as many succeed as the limit permits, and the others fail.
    let names: Vec<_> = (0..30).map(|number| format!("entry-{number}")).collect();
    let saving = names.iter().enumerate().map(|(number, name)| {
        let memory = if number % 2 == 0 { &one } else { &other };
        save(memory, name, name)
    });
    let saved = join_all(saving).await;
    let full = |saved: &Result<(), MemoryError>| matches!(saved, Err(MemoryError::TooManyEntries { .. }));
    assert_eq!(saved.iter().filter(|saved| saved.is_ok()).count(), limits().entries - 1, "{saved:?}");
    assert!(saved.iter().all(|saved| saved.is_ok() || full(saved)), "{saved:?}");
    let entries = other.list(&key("").namespace).await.expect("a store");
    assert_eq!(entries.len(), limits().entries);

    // Concurrent writes of the same key: the value is always complete and never missing.
    let values = ["a", "b"].map(|letter| letter.repeat(300_000));
    let writing = join_all((0..10).map(|number| {
        let memory = if number % 2 == 0 { &one } else { &other };
        save(memory, "notes", &values[number % 2])
    }));
    let reading = async {
        for _ in 0..20 {
            let read = value(&one, "notes").await.expect("it was there before");
            assert!(read == "of one" || values.contains(&read), "{} bytes of two values", read.len());
        }
    };
    let (written, ()) = tokio::join!(writing, reading);
    assert!(written.iter().all(Result::is_ok), "{written:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_on_one_postgresql_share_working_memory() {
    let server = PostgresServer::start();
    let location = || DatabaseLocation::Postgres(PostgresUrl::parse(&server.url()).expect("a URL"));
    two_gateways_share(open(location()).await, open(location()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_one_file_share_working_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = || DatabaseLocation::File(folder.path().join("store.db"));
    two_gateways_share(open(location()).await, open(location()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn working_memory_in_a_memory_store() {
    let store = open(DatabaseLocation::Memory).await;
    two_gateways_share(store.clone(), store).await;
}

#[tokio::test]
async fn working_memory_outlives_its_gateway_until_it_expires() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = || DatabaseLocation::File(folder.path().join("store.db"));
    save(&WorkingMemory::new(open(location()).await, limits()), "notes", "kept").await.expect("room");
    let store = open(location()).await;
    let memory = WorkingMemory::new(store.clone(), limits());
    assert_eq!(value(&memory, "notes").await.as_deref(), Some("kept"));
    let short =
        WorkingMemory::new(store, MemorySettings { longest_ttl: Duration::from_millis(50), ..limits() });
    save(&short, "short", "gone soon").await.expect("room");
    let gone = async { while value(&memory, "short").await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("it has expired");
    assert_eq!(memory.list(&key("").namespace).await.expect("a store").len(), 1);
}
