use std::time::{Duration, SystemTime};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};
use toolyard_core::layers::CallObserver;
use toolyard_core::store::{LogRecord, RecordQuery, Store};
use toolyard_core::{Call, ErrorCode, Json, ToolError};
use toolyard_manifest::ProcessSettings;
use toolyard_store::{DatabaseLocation, DurableCount, StoreOptions};

use super::record::{MAX_BYTES_WITHOUT_DIGEST, RecordEncoder};
use super::*;

const OPTIONS: AuditQueueOptions = AuditQueueOptions { records: 1000, bytes: 1 << 20, arguments: false };

/// Queues a call of an unknown tool with arguments of this size in bytes.
fn call(audit: &AuditQueue, bytes: usize) {
    let error = ToolError::new(ErrorCode::Unavailable, "Unknown tool");
    audit.unknown(&Call::tool("t", Json::string(&"x".repeat(bytes - 2))), &error);
}

fn records(audit: &AuditQueue) -> Vec<LogRecord> {
    let options =
        AuditOptions { arguments: false, redact: Vec::new(), file: None, retention: None, bytes: 0 };
    let mut encoder = RecordEncoder::default();
    audit.take(usize::MAX).records.iter().map(|record| record.to_record(&mut encoder, &options)).collect()
}

#[test]
fn queued_bytes_are_limited() {
    let audit = AuditQueue::new(AuditQueueOptions { bytes: 64 << 10, ..OPTIONS }, None);
    // Seven are kept whole, as many more as there is room as digests, and others are lost.
    for _ in 0..300 {
        call(&audit, 8 << 10);
    }
    let queued_bytes = audit.unwritten_bytes.load(Ordering::Relaxed);
    let whole = audit.queue.lock().unwrap().iter().filter(|record| record.bytes() > 1 << 10).count();
    let taken = audit.take(usize::MAX);
    assert_eq!((whole, taken.bytes), (7, queued_bytes));
    assert!(queued_bytes <= 64 << 10 && taken.records.len() > 10, "{queued_bytes}");
    assert_eq!(audit.lost() as usize, 300 - taken.records.len());
    // There is no room until the taken records are written.
    call(&audit, 8 << 10);
    assert_eq!(audit.queue_length(), 0);
    audit.mark_written(taken.records.len(), taken.bytes, 0);
    call(&audit, 8 << 10);
    assert_eq!(audit.queue_length(), 1);
}

#[test]
fn queued_records_are_limited() {
    let audit = AuditQueue::new(AuditQueueOptions { records: 3, ..OPTIONS }, None);
    for _ in 0..5 {
        call(&audit, 10);
    }
    assert_eq!((audit.queue_length(), audit.lost()), (3, 2));
    assert_eq!((audit.discard_unwritten(), audit.lost()), (3, 5));
}

/// Records of a process that is killed are lost, and the next process reports their number.
#[tokio::test]
async fn records_of_a_killed_process_are_reported_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let queue =
        || AuditQueue::new(OPTIONS, Some(DurableCount::open(&folder.path().join("unrecorded")).unwrap()));
    let store = store().await;
    // Opens the trail as a new process does, ends it, and returns the number of lost records and what the trail reports.
    let run = async |audit: Arc<AuditQueue>| {
        let service = AuditService::start(audit.clone(), &ProcessSettings::default(), &store);
        service.stop(Duration::from_secs(30)).await;
        let bodies = store.read(AUDIT, all()).await.unwrap();
        let lost = bodies.iter().filter(|record| record.body.contains("records_lost"));
        let lost: Vec<_> =
            lost.map(|record| serde_json::from_str::<Value>(&record.body).unwrap()["name"].clone()).collect();
        (audit.lost(), lost)
    };
    let audit = queue();
    (0..5).for_each(|_| call(&audit, 10));
    assert_eq!(run(audit).await, (0, vec![]));
    let killed = queue();
    (0..3).for_each(|_| call(&killed, 10));
    drop(killed);
    assert_eq!(run(queue()).await, (3, vec!["3".into()]));
    assert_eq!(run(queue()).await, (0, vec!["3".into()]));
    // Losses of a full queue that were not reported in time.
    let full = AuditQueue::new(
        AuditQueueOptions { records: 1, ..OPTIONS },
        Some(DurableCount::open(&folder.path().join("unrecorded")).unwrap()),
    );
    (0..3).for_each(|_| call(&full, 10));
    assert_eq!(full.lost(), 2);
    drop(full);
    assert_eq!(run(queue()).await.0, 3);
}

#[test]
fn short_arguments_have_no_digest() {
    let audit = AuditQueue::new(OPTIONS, None);
    for bytes in [MAX_BYTES_WITHOUT_DIGEST, MAX_BYTES_WITHOUT_DIGEST + 1] {
        call(&audit, bytes);
    }
    let bodies = records(&audit);
    let bodies = bodies.iter().map(|record| serde_json::from_str::<Value>(&record.body).unwrap());
    let digests: Vec<_> =
        bodies.map(|body| (body["argumentsBytes"].clone(), body["argumentsDigest"].is_string())).collect();
    assert_eq!(digests, [(128.into(), false), (129.into(), true)]);
}

#[test]
fn trace_ids() {
    let check = |traceparent: &str, expected: Option<&str>| {
        let audit = AuditQueue::new(OPTIONS, None);
        let mut call = Call::tool("t", Json::null());
        call.meta.set("traceparent", Json::string(traceparent));
        audit.unknown(&call, &ToolError::new(ErrorCode::Unavailable, "Unknown tool"));
        let body: Value = serde_json::from_str(&records(&audit)[0].body).unwrap();
        assert_eq!(body["traceId"].as_str(), expected, "{traceparent}");
    };
    let id = "0af7651916cd43dd8448eb211c80319c";
    check(&format!("00-{id}-b7ad6b7169203331-01"), Some(id));
    check("00-00000000000000000000000000000000-b7ad6b7169203331-01", None);
    check("00-0af7-b7ad6b7169203331-01", None);
    check("00-zaf7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None);
    check("", None);
}

async fn store() -> Arc<dyn Store> {
    toolyard_store::open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap()
}

fn all() -> RecordQuery {
    RecordQuery { tags: Vec::new(), since: None, until: None, before: None, limit: 10_000 }
}

/// A killed process loses no record that is older than the delay of writes: documented for operators as 100 ms. After a
/// pause there is no delay, so that the trail has a call as soon as its caller can look.
#[tokio::test(start_paused = true)]
async fn record_is_written_at_once_or_after_100_ms() {
    let (audit, store) = (AuditQueue::new(OPTIONS, None), store().await);
    let service = AuditService::start(audit.clone(), &ProcessSettings::default(), &store);
    // The first write also removes old records.
    sleep(Duration::from_secs(1)).await;
    // The time stands still while the thread of the store works.
    let written = async || {
        tokio::time::resume();
        while audit.unwritten.load(Ordering::Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
    };
    call(&audit, 10);
    written().await;
    let begun = Instant::now();
    call(&audit, 10);
    sleep(Duration::from_millis(50)).await;
    assert_eq!(audit.unwritten.load(Ordering::Relaxed), 1);
    sleep(Duration::from_millis(50)).await;
    written().await;
    assert!(begun.elapsed() >= Duration::from_millis(100));
    assert_eq!(store.read(AUDIT, all()).await.unwrap().len(), 2);
    service.stop(Duration::from_secs(1)).await;
}

/// A record that arrives while earlier ones are taken in batches is written without a further one.
#[tokio::test]
async fn record_that_arrives_between_two_batches_is_written() {
    let (audit, store) = (AuditQueue::new(OPTIONS, None), store().await);
    for _ in 0..600 {
        call(&audit, 10);
    }
    let service = AuditService::start(audit.clone(), &ProcessSettings::default(), &store);
    // The first batch has been taken, and the rest of the write is known.
    while audit.queue_length() == 600 {
        tokio::task::yield_now().await;
    }
    call(&audit, 10);
    assert_eq!(audit.queue_length(), 101);
    let written = async {
        while audit.unwritten.load(Ordering::Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
    };
    let written = tokio::time::timeout(Duration::from_secs(30), written).await;
    assert!(written.is_ok(), "{} records wait", audit.unwritten.load(Ordering::Relaxed));
    assert_eq!(store.read(AUDIT, all()).await.unwrap().len(), 601);
    service.stop(Duration::from_secs(1)).await;
}

/// Returns the stored bytes of each of 10,000 calls of eight tools with 1,000 different bytes of arguments, written in
/// batches of 500.
async fn stored_bytes(arguments: usize, has_trace: bool) -> f64 {
    const CALLS: usize = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.db");
    let location = DatabaseLocation::File(file.clone());
    let open = || async { toolyard_store::open_closable(&StoreOptions::at(location.clone())).await.unwrap() };
    let size = || async { toolyard_store::describe(&location).await.unwrap().size };
    // A closed store is one file, without a write-ahead log.
    open().await.close().await;
    let size_before = size().await;
    let store = open().await;
    let audit = AuditQueue::new(AuditQueueOptions { records: CALLS, bytes: 1 << 30, arguments: false }, None);
    for number in 0..CALLS {
        let digest = Sha256::digest(number.to_be_bytes());
        let text = format!("{}{}", crate::keys::key::hex(&digest), "x".repeat(arguments));
        let mut call =
            Call::tool(format!("server_tool_{}", number % 8), Json::string(&text[..arguments - 2]));
        call.caller.principal = Some(format!("key_{}", number % 3).into());
        call.caller.session = Some(format!("session {}", number % 5).into());
        if has_trace {
            let trace = format!("00-{}-b7ad6b7169203331-01", &crate::keys::key::hex(&digest)[..32]);
            call.meta.set("traceparent", Json::string(&trace));
        }
        let mut queued = audit.queued_call(&call);
        queued.handler = Some("server".into());
        queued.outcome = "ok";
        queued.time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_800_000_000_000 + number as u64 / 5);
        queued.took =
            Duration::from_nanos(u64::from(u32::from_be_bytes(*digest.first_chunk().unwrap())) / 2000);
        audit.push(QueuedRecord::Call(Box::new(queued)));
    }
    let options =
        AuditOptions { arguments: false, redact: Vec::new(), file: None, retention: None, bytes: 0 };
    while let queued @ [_, ..] = &*audit.take(500).records {
        let mut encoder = RecordEncoder::default();
        let records = queued.iter().map(|record| record.to_record(&mut encoder, &options)).collect();
        store.append(AUDIT, records).await.unwrap();
    }
    assert_eq!(store.read(AUDIT, all()).await.unwrap().len(), CALLS);
    store.close().await;
    (size().await - size_before) as f64 / CALLS as f64
}

#[tokio::test]
async fn stored_records_are_small() {
    let check = async |arguments, has_trace, bound: f64| {
        let bytes = stored_bytes(arguments, has_trace).await;
        println!("{arguments} bytes of arguments, trace {has_trace}: {bytes:.1} bytes a record");
        assert!(bytes < bound, "{bytes}");
    };
    check(MAX_BYTES_WITHOUT_DIGEST, false, 60.0).await;
    check(1000, true, 110.0).await;
}
