//! Working memory on the stores that there are: what one gateway keeps, another one on the same store finds, and together
//! they keep no more than a namespace may hold.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use toolyard_agent::memory::{FullKey, MemoryError, MemoryLimits, Namespace, NewEntry, WorkingMemory};
use toolyard_core::store::Store;
use toolyard_store::{Location, PostgresUrl, StoreOptions};

use crate::support::postgres::Server;

const LIMITS: MemoryLimits = MemoryLimits {
    entries: 20,
    bytes: 2_000_000,
    value_bytes: 1_000_000,
    total_bytes: 10_000_000,
    ttl: Duration::from_secs(60),
    longest_ttl: Duration::from_secs(3600),
};

async fn open(location: Location) -> Arc<dyn Store> {
    toolyard_store::open(&StoreOptions::at(location)).await.expect("a store")
}

fn key(name: &str) -> FullKey {
    let namespace = Namespace::new("session", "abc");
    FullKey { path: format!("{namespace}/{name}"), namespace }
}

async fn save(memory: &WorkingMemory, name: &str, value: &str) -> Result<(), MemoryError> {
    let FullKey { namespace, path } = key(name);
    memory.save(&namespace, &[NewEntry::new(&path, value)]).await.map(drop)
}

async fn value(memory: &WorkingMemory, name: &str) -> Option<String> {
    memory.get(&key(name)).await.expect("a store").map(|(_, value)| value)
}

/// What holds for two gateways, each with its own connections, on one store.
async fn two_gateways_share(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let [one, other] = [one, other].map(|store| WorkingMemory::new(store, LIMITS));
    save(&one, "Notes", "of one").await.expect("room");
    assert_eq!(value(&other, "notes").await.as_deref(), Some("of one"));
    // More than one row of a database, and parts that end inside of characters.
    let large = "é".repeat(450_001);
    save(&other, "large", &large).await.expect("room");
    assert!(value(&one, "large").await == Some(large));
    assert!(other.delete(&key("large")).await.expect("a store").is_some());
    assert_eq!(value(&one, "large").await, None);

    // Both write at once, each under keys of its own: as many get in as there is room for, and the others are told.
    let names: Vec<_> = (0..30).map(|number| format!("entry-{number}")).collect();
    let saving = names.iter().enumerate().map(|(number, name)| {
        let memory = if number % 2 == 0 { &one } else { &other };
        save(memory, name, name)
    });
    let saved = join_all(saving).await;
    let full = |saved: &Result<(), MemoryError>| matches!(saved, Err(MemoryError::TooManyEntries { .. }));
    assert_eq!(saved.iter().filter(|saved| saved.is_ok()).count(), LIMITS.entries - 1, "{saved:?}");
    assert!(saved.iter().all(|saved| saved.is_ok() || full(saved)), "{saved:?}");
    let listed = other.list(&key("").namespace).await.expect("a store");
    assert_eq!(listed.len(), LIMITS.entries);

    // Both write the same key: whoever is last, what is there is whole, and never missing.
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
    let server = Server::start();
    let location = || Location::Postgres(PostgresUrl::parse(&server.url()).expect("a URL"));
    two_gateways_share(open(location()).await, open(location()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_one_file_share_working_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = || Location::File(folder.path().join("store.db"));
    two_gateways_share(open(location()).await, open(location()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn working_memory_is_kept_in_memory_too() {
    let store = open(Location::Memory).await;
    two_gateways_share(store.clone(), store).await;
}

#[tokio::test]
async fn working_memory_outlives_its_gateway_but_not_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = || Location::File(folder.path().join("store.db"));
    save(&WorkingMemory::new(open(location()).await, LIMITS), "notes", "kept").await.expect("room");
    let store = open(location()).await;
    let memory = WorkingMemory::new(store.clone(), LIMITS);
    assert_eq!(value(&memory, "notes").await.as_deref(), Some("kept"));
    let short = WorkingMemory::new(store, MemoryLimits { longest_ttl: Duration::from_millis(50), ..LIMITS });
    save(&short, "short", "gone soon").await.expect("room");
    let gone = async { while value(&memory, "short").await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("it has expired");
    assert_eq!(memory.list(&key("").namespace).await.expect("a store").len(), 1);
}
