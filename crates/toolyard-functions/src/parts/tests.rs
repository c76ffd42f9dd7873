use std::sync::Arc;

use toolyard_store::{Location, StoreOptions, open};

use super::*;
use crate::code::Language;
use crate::project::{Kind, Project};
use crate::shelf::FUNCTIONS;

async fn store() -> Arc<dyn Store> {
    open(&StoreOptions::at(Location::Memory)).await.unwrap()
}

/// Puts the parts of a function of this source, and its record unless that is left out.
async fn put(store: &dyn Store, source: &'static str, with_record: bool) -> Vec<String> {
    let project = Project::of_source(Kind::Mcp, Language::Lua, source);
    let (content, mut parts) = Content::of(&project);
    let text = content.written();
    let name = digest(&text);
    parts.insert(name.clone(), text);
    keep(store, &parts).await.unwrap();
    if with_record {
        let mut record = Record::new(Kind::Mcp, Language::Lua, SystemTime::now());
        let (time, bytes, notes) = (0, 1, String::new());
        record.draft = Some(crate::record::Stored { digest: name, time, bytes, notes });
        store.put(FUNCTIONS, source, Put::always(record.written())).await.unwrap();
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

/// As if an hour had passed.
async fn age(store: &dyn Store, names: &[String], going: bool) {
    for name in names {
        let mark = serde_json::to_vec(&Mark { time: 0, going }).unwrap();
        store.put(PARTS, name, Put::always(mark)).await.unwrap();
    }
}

#[tokio::test]
async fn what_nothing_needs_is_swept_and_the_rest_stays() {
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
async fn what_was_being_removed_when_somebody_was_killed_is_removed_or_needed_again() {
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
async fn who_needs_a_part_that_is_being_removed_waits_until_it_is_gone() {
    let store = store().await;
    let names = put(&*store, "a", false).await;
    for name in &names {
        store.put(PARTS, name, Mark::put(true, Condition::Always)).await.unwrap();
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
async fn nothing_is_removed_while_somebody_later_may_need_it() {
    let store = &*store().await;
    let left = put(store, "a", false).await;
    age(store, &left, false).await;
    store.put(FUNCTIONS, "later", Put::always(r#"{"format":2}"#)).await.unwrap();
    assert_eq!(sweep(store).await.unwrap_err().trouble, Trouble::Unreadable);
    assert_eq!(are_there(store, &left).await, [true; 2]);
    // What is damaged needs nothing.
    store.put(FUNCTIONS, "later", Put::always("garbage")).await.unwrap();
    assert_eq!(sweep(store).await.unwrap(), 2);
}
