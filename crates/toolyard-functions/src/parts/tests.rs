use std::sync::Arc;

use toolyard_store::{DatabaseLocation, StoreOptions, open};

use super::*;
use crate::code::SourceLanguage;
use crate::function_index::FUNCTIONS;
use crate::project::{FunctionKind, FunctionProject};

async fn store() -> Arc<dyn Store> {
    open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap()
}

/// Stores the parts of a function with this source, and optionally its record.
async fn put(store: &dyn Store, source: &'static str, with_record: bool) -> Vec<String> {
    let project = FunctionProject::from_source(FunctionKind::Mcp, SourceLanguage::Lua, source);
    let (content, mut parts) = VersionContent::of(&project);
    let text = content.to_bytes();
    let name = digest(&text);
    parts.insert(name.clone(), text);
    store_parts(store, &parts).await.unwrap();
    if with_record {
        let mut record = FunctionRecord::new(FunctionKind::Mcp, SourceLanguage::Lua, SystemTime::now());
        let (time, bytes, notes) = (0, 1, String::new());
        record.draft = Some(crate::record::StoredContent { digest: name, time, bytes, notes });
        store.put(FUNCTIONS, source, PutRequest::always(record.to_bytes())).await.unwrap();
    }
    parts.into_keys().collect()
}

async fn are_there(store: &dyn Store, names: &[String]) -> Vec<bool> {
    let mut there = Vec::new();
    for name in names {
        there.push(store.get_blob(PARTS, name).await.unwrap().is_some());
    }
    there
}

/// Sets the marks to an old time.
async fn age(store: &dyn Store, names: &[String], going: bool) {
    for name in names {
        let mark = serde_json::to_vec(&PartMark { time: 0, going }).unwrap();
        store.put(PARTS, name, PutRequest::always(mark)).await.unwrap();
    }
}

#[tokio::test]
async fn unused_parts_are_swept() {
    let store = &*store().await;
    let (needed, left, young) =
        (put(store, "a", true).await, put(store, "b", false).await, put(store, "c", false).await);
    age(store, &[needed.clone(), left.clone()].concat(), false).await;
    assert_eq!(sweep(store).await.unwrap(), 2);
    assert_eq!(are_there(store, &needed).await, [true; 2]);
    assert_eq!(are_there(store, &left).await, [false; 2]);
    assert_eq!(are_there(store, &young).await, [true; 2]);
    assert_eq!(sweep(store).await.unwrap(), 0);
    store.delete(FUNCTIONS, "a").await.unwrap();
    assert_eq!(sweep(store).await.unwrap(), 2);
    assert_eq!(are_there(store, &needed).await, [false; 2]);
    let marks = store.list(PARTS, "", None, 100).await.unwrap();
    assert_eq!(marks.len(), young.len());
}

#[tokio::test]
async fn interrupted_removal_is_completed_or_reverted() {
    let store = &*store().await;
    let left = put(store, "a", false).await;
    age(store, &left, true).await;
    assert_eq!(put(store, "a", true).await, left);
    assert_eq!(sweep(store).await.unwrap(), 0);
    assert_eq!(are_there(store, &left).await, [true; 2]);

    let left = put(store, "b", false).await;
    age(store, &left, true).await;
    assert_eq!(sweep(store).await.unwrap(), 2);
    assert_eq!(are_there(store, &left).await, [false; 2]);
}

#[tokio::test]
async fn store_waits_for_a_running_removal() {
    let store = store().await;
    let names = put(&*store, "a", false).await;
    for name in &names {
        store.put(PARTS, name, PartMark::put(true, WriteCondition::Always)).await.unwrap();
    }
    let putting = tokio::spawn({
        let store = store.clone();
        async move { put(&*store, "a", true).await }
    });
    for name in &names {
        tokio::task::yield_now().await;
        assert!(!putting.is_finished());
        store.delete_blob(PARTS, name).await.unwrap();
        store.delete(PARTS, name).await.unwrap();
    }
    putting.await.unwrap();
    assert_eq!(are_there(&*store, &names).await, [true; 2]);
}

#[tokio::test]
async fn parts_of_later_formats_are_not_removed() {
    let store = &*store().await;
    let left = put(store, "a", false).await;
    age(store, &left, false).await;
    store.put(FUNCTIONS, "later", PutRequest::always(r#"{"format":2}"#)).await.unwrap();
    assert_eq!(sweep(store).await.unwrap_err().kind, StoreErrorKind::Unreadable);
    assert_eq!(are_there(store, &left).await, [true; 2]);
    // A damaged content needs no parts.
    store.put(FUNCTIONS, "later", PutRequest::always("garbage")).await.unwrap();
    assert_eq!(sweep(store).await.unwrap(), 2);
}
