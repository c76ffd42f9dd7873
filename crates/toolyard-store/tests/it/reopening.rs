//! A store that is out of order for a while.

use std::fs;
use std::time::Duration;

use tempfile::TempDir;
use toolyard_core::store::{Kv, Put, Space, Trouble};
use toolyard_store::{Location, OpenError, Reopening, StoreOptions};

const SPACE: Space = Space("reopening");

#[tokio::test(start_paused = true)]
async fn it_is_opened_when_it_can_be() {
    let folder = TempDir::new().unwrap();
    let obstacle = folder.path().join("state");
    fs::write(&obstacle, "").unwrap();
    let store = Reopening::new(StoreOptions::at(Location::File(obstacle.join("toolyard.db"))));
    assert!(matches!(store.open().await, Err(OpenError::Folder { .. })));

    let error = store.get(SPACE, "key").await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Unavailable);
    assert!(error.source.to_string().contains("File exists"), "{error:?}");

    // Nobody tries at each call.
    fs::remove_file(&obstacle).unwrap();
    assert!(store.get(SPACE, "key").await.is_err());
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(store.get(SPACE, "key").await.unwrap(), None);
    assert!(store.put(SPACE, "key", Put::always("value")).await.unwrap().is_some());
}

#[tokio::test]
async fn it_is_opened_at_its_first_use() {
    let store = Reopening::new(StoreOptions::at(Location::Memory));
    assert!(store.put(SPACE, "key", Put::always("value")).await.unwrap().is_some());
    assert_eq!(store.get(SPACE, "key").await.unwrap().unwrap().bytes, "value");
}
