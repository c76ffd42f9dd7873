//! A store that is unavailable for a while.

use std::fs;
use std::time::Duration;

use tempfile::TempDir;
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, StoreErrorKind};
use toolyard_store::{DatabaseLocation, ReopeningStore, StoreOpenError, StoreOptions};

const SPACE: KeySpace = KeySpace("reopening");

#[tokio::test(start_paused = true)]
async fn failed_store_is_opened_later() {
    let folder = TempDir::new().unwrap();
    let obstacle = folder.path().join("state");
    fs::write(&obstacle, "").unwrap();
    let store = ReopeningStore::new(StoreOptions::at(DatabaseLocation::File(obstacle.join("toolyard.db"))));
    assert!(matches!(store.open().await, Err(StoreOpenError::Folder { .. })));

    let error = store.get(SPACE, "key").await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    assert!(error.source.to_string().contains("File exists"), "{error:?}");

    // Not every call tries to open the store.
    fs::remove_file(&obstacle).unwrap();
    assert!(store.get(SPACE, "key").await.is_err());
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(store.get(SPACE, "key").await.unwrap(), None);
    assert!(store.put(SPACE, "key", PutRequest::always("value")).await.unwrap().is_some());
}

#[tokio::test]
async fn store_is_opened_at_first_use() {
    let store = ReopeningStore::new(StoreOptions::at(DatabaseLocation::Memory));
    assert!(store.put(SPACE, "key", PutRequest::always("value")).await.unwrap().is_some());
    assert_eq!(store.get(SPACE, "key").await.unwrap().unwrap().bytes, "value");
}
