//! The log of calls of a host that stops.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use toolyard_core::store::{KeySpace, LogRecord, Store};
use toolyard_core::{ErrorCode, Json};
use toolyard_functions::{LogQuery, VersionSelector};
use toolyard_store::{DatabaseLocation, StoreOptions, open};
use toolyard_testing::wait::until_async;

use crate::counting::Counting;
use crate::scripted::{host, project};

const CALLS: KeySpace = KeySpace("function-calls");

async fn memory() -> Arc<dyn Store> {
    open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap()
}

/// Repeated, because the writer learns of the entry and of the stop at the same time.
#[tokio::test]
async fn stop_removes_expired_entries() {
    for attempt in 0..20 {
        let store = memory().await;
        let old = LogRecord { time: SystemTime::UNIX_EPOCH, tags: Vec::new(), body: "{}".into() };
        store.append(CALLS, [old].into()).await.unwrap();
        let host = host(&store);
        host.save_draft("a", &project("a")).await.unwrap();
        host.log_refusal("a", VersionSelector::Draft, Instant::now(), ErrorCode::RateLimited, "too many");
        host.stop(Duration::from_secs(10)).await;
        let left = store.trim(CALLS, SystemTime::UNIX_EPOCH + Duration::from_secs(1)).await.unwrap();
        let entries = host.logs("a", LogQuery::default()).await.unwrap().entries;
        assert_eq!((left, entries.len()), (0, 1), "attempt {attempt}");
    }
}

#[tokio::test]
async fn entries_queued_after_a_failed_write_are_written() {
    let counting = Counting::new(memory().await);
    let host = host(&(counting.clone() as Arc<dyn Store>));
    host.save_draft("a", &project("a")).await.unwrap();
    let loaded = host.resolve("a", VersionSelector::Draft).await.unwrap();
    counting.is_broken.store(true, Ordering::SeqCst);
    let asked = counting.asked.load(Ordering::SeqCst);
    host.invoke(&loaded, &Json::null(), None, None).await.unwrap();
    until_async("a failed write", || counting.asked.load(Ordering::SeqCst) > asked).await;
    host.invoke(&loaded, &Json::null(), None, None).await.unwrap();
    counting.is_broken.store(false, Ordering::SeqCst);
    host.stop(Duration::from_secs(10)).await;
    let entries = host.logs("a", LogQuery::default()).await.unwrap().entries;
    assert_eq!((entries.len(), host.lost_entries()), (2, 0));
}
