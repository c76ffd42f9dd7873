//! The contract of a store, tested on each of them.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use toolyard_core::store::{
    KeySpace, LogRecord, PutRequest, RecordQuery, Store, StoredRecord, WriteCondition,
};
use toolyard_store::{DatabaseLocation, StoreOptions, open};

use toolyard_testing::postgres::PostgresServer;

#[tokio::test]
async fn sqlite_in_a_file() {
    let folder = TempDir::new().unwrap();
    let file = DatabaseLocation::File(folder.path().join("yard/toolyard.db"));
    suite(&*open(&StoreOptions::at(file)).await.unwrap()).await;
}

#[tokio::test]
async fn sqlite_in_memory() {
    suite(&*open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap()).await;
}

#[tokio::test]
async fn postgres() {
    let server = PostgresServer::start();
    suite(&*open(&StoreOptions::at(crate::postgres::location(&server))).await.unwrap()).await;
}

const A: KeySpace = KeySpace("a");
const B: KeySpace = KeySpace("b");
const C: KeySpace = KeySpace("c");

async fn suite(store: &dyn Store) {
    values(store).await;
    conditions(store).await;
    expiry(store).await;
    lists(store).await;
    revisions(store).await;
    sizes(store).await;
    blobs(store).await;
    leases(store).await;
    records(store).await;
    pages(store).await;
    trims(store).await;
    trims_to_size(store).await;
}

/// Callers may choose any text as a key.
const KEYS: [&str; 5] = ["", "plain", "with \0 in it", "Ünï/..%_\\", "\u{10FFFF}"];

async fn values(store: &dyn Store) {
    for key in KEYS {
        assert_eq!(store.get(A, key).await.unwrap(), None);
        let bytes = Bytes::from(vec![0, 255, 10]);
        let version = store.put(A, key, PutRequest::always(bytes.clone())).await.unwrap().unwrap();
        let value = store.get(A, key).await.unwrap().unwrap();
        assert_eq!((value.bytes, value.version, value.expires), (bytes, version, None));
        assert_eq!(store.get(B, key).await.unwrap(), None);
        assert!(store.delete(A, key).await.unwrap());
        assert!(!store.delete(A, key).await.unwrap());
        let again = store.put(A, key, PutRequest::always("")).await.unwrap().unwrap();
        assert_ne!(again, version, "no two values of a key have the same version");
        assert!(store.delete(A, key).await.unwrap());
    }
}

fn put(value: &'static str, condition: WriteCondition) -> PutRequest {
    PutRequest { condition, ..PutRequest::always(value) }
}

async fn conditions(store: &dyn Store) {
    let absent = put("one", WriteCondition::Absent);
    let one = store.put(A, "cas", absent.clone()).await.unwrap().unwrap();
    assert_eq!(store.put(A, "cas", absent).await.unwrap(), None);
    let two = store.put(A, "cas", put("two", WriteCondition::Version(one))).await.unwrap().unwrap();
    assert_ne!(two, one);
    for stale in [one, two + 1000, u64::MAX] {
        assert_eq!(store.put(A, "cas", put("three", WriteCondition::Version(stale))).await.unwrap(), None);
    }
    assert_eq!(store.get(A, "cas").await.unwrap().unwrap().bytes, "two");
    store.delete(A, "cas").await.unwrap();
    assert_eq!(store.put(A, "cas", put("three", WriteCondition::Version(two))).await.unwrap(), None);
}

async fn expiry(store: &dyn Store) {
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let future = SystemTime::UNIX_EPOCH + Duration::from_millis(99_999_999_999_123);
    let put =
        |expires, condition| PutRequest { expires: Some(expires), condition, ..PutRequest::always("x") };
    store.put(A, "stays", put(future, WriteCondition::Always)).await.unwrap().unwrap();
    assert_eq!(store.get(A, "stays").await.unwrap().unwrap().expires, Some(future));

    let gone = store.put(A, "gone", put(past, WriteCondition::Always)).await.unwrap().unwrap();
    assert_eq!(store.get(A, "gone").await.unwrap(), None);
    assert_eq!(names(store, "", None, 10).await, ["stays"]);
    let before = store.revision(A).await.unwrap();
    assert_eq!(store.put(A, "gone", put(past, WriteCondition::Version(gone))).await.unwrap(), None);
    assert!(!store.delete(A, "gone").await.unwrap());
    assert_eq!(store.revision(A).await.unwrap(), before, "expiry is no change");

    store.put(A, "gone", put(past, WriteCondition::Always)).await.unwrap().unwrap();
    let anew = store.put(A, "gone", put(future, WriteCondition::Absent)).await.unwrap();
    assert!(anew.is_some_and(|anew| anew != gone));
    for key in ["stays", "gone"] {
        assert!(store.delete(A, key).await.unwrap());
    }
}

async fn names(store: &dyn Store, prefix: &str, after: Option<&str>, limit: usize) -> Vec<String> {
    store.list(A, prefix, after, limit).await.unwrap().into_iter().map(|(key, _)| key).collect()
}

async fn lists(store: &dyn Store) {
    // In byte order, whatever the locale.
    let sorted = ["A", "Z", "a", "a/1", "a/2", "a/\0", "a/ä", "b", "ä", "\u{10FFFF}", "\u{10FFFF}x"];
    let mut expected = sorted;
    expected.sort_unstable();
    for key in sorted {
        store.put(A, key, PutRequest::always(key)).await.unwrap();
        store.put(B, key, PutRequest::always("other")).await.unwrap();
    }
    assert_eq!(names(store, "", None, 100).await, expected);
    assert_eq!(names(store, "", None, 0).await, Vec::<String>::new());
    assert_eq!(names(store, "a/", None, 100).await, ["a/\0", "a/1", "a/2", "a/ä"]);
    assert_eq!(names(store, "a/", None, 2).await, ["a/\0", "a/1"]);
    assert_eq!(names(store, "a/", Some("a/1"), 2).await, ["a/2", "a/ä"]);
    assert_eq!(names(store, "a/", Some("Z"), 1).await, ["a/\0"]);
    assert_eq!(names(store, "a/", Some("b"), 1).await, Vec::<String>::new());
    assert_eq!(names(store, "\u{10FFFF}", None, 9).await, ["\u{10FFFF}", "\u{10FFFF}x"]);
    for (key, value) in store.list(A, "", None, 100).await.unwrap() {
        assert_eq!(value.bytes, key);
        store.delete(A, &key).await.unwrap();
    }
}

async fn revisions(store: &dyn Store) {
    let unknown = KeySpace("nobody's");
    assert_eq!(store.revision(unknown).await.unwrap(), 0);
    let start = store.revision(A).await.unwrap();
    store.put(A, "r", PutRequest::always("1")).await.unwrap();
    let put = store.revision(A).await.unwrap();
    assert!(put > start);
    // Refused puts, deletes of absent keys and changes of other spaces are no changes.
    assert_eq!(store.put(A, "r", self::put("2", WriteCondition::Absent)).await.unwrap(), None);
    store.delete(A, "absent").await.unwrap();
    store.put(B, "r", PutRequest::always("1")).await.unwrap();
    assert_eq!(store.revision(A).await.unwrap(), put);
    store.delete(A, "r").await.unwrap();
    assert!(store.revision(A).await.unwrap() > put);
}

async fn sizes(store: &dyn Store) {
    let sized = KeySpace("sized");
    assert_eq!(store.size(sized).await.unwrap(), 0);
    store.put(sized, "a", PutRequest::always(vec![0; 300_000])).await.unwrap();
    store.put(sized, "b", PutRequest::always("1234567")).await.unwrap();
    store.put(KeySpace("other"), "b", PutRequest::always("12")).await.unwrap();
    assert_eq!(store.size(sized).await.unwrap(), 300_007);
    let expires = Some(SystemTime::now() - Duration::from_secs(1));
    store.put(sized, "a", PutRequest { expires, ..PutRequest::always("gone") }).await.unwrap();
    store.put(sized, "b", PutRequest::always("")).await.unwrap();
    assert_eq!(store.size(sized).await.unwrap(), 0);
}

async fn blobs(store: &dyn Store) {
    let large = Bytes::from(vec![7; 3 << 20]);
    for name in KEYS {
        assert_eq!(store.get_blob(A, name).await.unwrap(), None);
        store.put_blob(A, name, Bytes::new()).await.unwrap();
        assert_eq!(store.get_blob(A, name).await.unwrap(), Some(Bytes::new()));
        store.put_blob(A, name, large.clone()).await.unwrap();
        assert!(store.get_blob(A, name).await.unwrap().unwrap() == large);
        assert_eq!(store.get_blob(B, name).await.unwrap(), None);
        assert!(store.delete_blob(A, name).await.unwrap());
        assert!(!store.delete_blob(A, name).await.unwrap());
    }
}

async fn leases(store: &dyn Store) {
    let long = Duration::from_secs(3600);
    let first = store.acquire("work", "me", long).await.unwrap().unwrap();
    assert_eq!(store.acquire("work", "me", Duration::MAX).await.unwrap(), Some(first), "prolonged");
    assert_eq!(store.acquire("work", "you", long).await.unwrap(), None);
    assert!(store.acquire("other work", "you", long).await.unwrap().is_some());
    store.release("work", "you").await.unwrap();
    assert_eq!(store.acquire("work", "you", long).await.unwrap(), None, "it is not yours to release");
    store.release("work", "me").await.unwrap();
    let second = store.acquire("work", "you", Duration::ZERO).await.unwrap().unwrap();
    assert!(second > first);
    // The lease has expired.
    let third = store.acquire("work", "me", Duration::ZERO).await.unwrap().unwrap();
    assert!(third > second);
    assert!(store.acquire("work", "me", long).await.unwrap().is_some_and(|late| late > third));
    store.forget("work", "you").await.unwrap();
    assert_eq!(store.acquire("work", "you", long).await.unwrap(), None, "it is not yours to forget");
    store.forget("work", "me").await.unwrap();
    let anew = store.acquire("work", "you", long).await.unwrap();
    assert_eq!(anew, Some(first), "a forgotten name begins anew");
}

fn unix_seconds(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn record(seconds: u64, tags: &[(&'static str, &str)]) -> LogRecord {
    let tags: Vec<_> = tags.iter().map(|(name, value)| (*name, (*value).to_owned().into())).collect();
    LogRecord { time: unix_seconds(seconds), tags, body: format!("{{\"n\":{seconds}}}") }
}

fn query(tags: &[(&'static str, &str)]) -> RecordQuery {
    let tags = tags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    RecordQuery { tags, since: None, until: None, before: None, limit: 100 }
}

/// The seconds of the records that match a query.
async fn matching_seconds(store: &dyn Store, query: RecordQuery) -> Vec<u64> {
    let records = store.read(A, query).await.unwrap();
    assert!(records.is_sorted_by_key(|record| std::cmp::Reverse(record.number)));
    records
        .iter()
        .map(|record| {
            let seconds = record.time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
            assert_eq!(record.body, format!("{{\"n\":{seconds}}}"));
            seconds
        })
        .collect()
}

async fn records(store: &dyn Store) {
    store.append(A, [].into()).await.unwrap();
    assert_eq!(matching_seconds(store, query(&[])).await, Vec::<u64>::new());
    let search = ("tool", "search");
    let odd = ("caller", "with \0 in it");
    store
        .append(A, [record(1, &[search, odd]), record(2, &[search, search]), record(3, &[odd])].into())
        .await
        .unwrap();
    store.append(A, [record(4, &[])].into()).await.unwrap();
    store.append(B, [record(5, &[search])].into()).await.unwrap();
    assert_eq!(matching_seconds(store, query(&[])).await, [4, 3, 2, 1]);
    assert_eq!(matching_seconds(store, query(&[search])).await, [2, 1]);
    assert_eq!(matching_seconds(store, query(&[odd])).await, [3, 1]);
    assert_eq!(matching_seconds(store, query(&[odd, search])).await, [1]);
    assert_eq!(matching_seconds(store, query(&[search, search])).await, [2, 1]);
    for absent in [("tool", "searc"), ("caller", "search")] {
        assert_eq!(matching_seconds(store, query(&[absent])).await, Vec::<u64>::new());
        assert_eq!(matching_seconds(store, query(&[search, absent])).await, Vec::<u64>::new());
    }
    let between = |tags: &[_]| RecordQuery {
        since: Some(unix_seconds(2)),
        until: Some(unix_seconds(4)),
        ..query(tags)
    };
    assert_eq!(matching_seconds(store, between(&[])).await, [3, 2]);
    assert_eq!(matching_seconds(store, between(&[odd])).await, [3]);
}

async fn pages(store: &dyn Store) {
    for tags in [&[][..], &[("tool", "search")]] {
        let all = store.read(A, query(tags)).await.unwrap();
        let mut paged: Vec<StoredRecord> = Vec::new();
        loop {
            let before = paged.last().map(|last| last.number);
            let page = store.read(A, RecordQuery { before, limit: 1, ..query(tags) }).await.unwrap();
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(paged, all);
    }
    let late = RecordQuery { before: Some(u64::MAX), ..query(&[]) };
    assert_eq!(matching_seconds(store, late).await.len(), 4);
}

async fn trims(store: &dyn Store) {
    // More than one batch.
    let many = (0..2500).map(|_| record(0, &[("tool", "many")])).collect();
    store.append(A, many).await.unwrap();
    assert_eq!(store.trim(A, unix_seconds(3)).await.unwrap(), 2502);
    assert_eq!(store.trim(A, unix_seconds(3)).await.unwrap(), 0);
    assert_eq!(matching_seconds(store, query(&[])).await, [4, 3]);
    assert_eq!(matching_seconds(store, query(&[("tool", "search")])).await, Vec::<u64>::new());
    let other = store.read(B, query(&[("tool", "search")])).await.unwrap();
    assert_eq!(other.len(), 1, "another space is not touched");
}

async fn trims_to_size(store: &dyn Store) {
    const BYTES: u64 = 40_000;
    // Digests: they cannot be compressed.
    let digest = |number: u64| format!("{:x}", Bytes::copy_from_slice(&Sha256::digest(number.to_be_bytes())));
    let mut appended = 0;
    for _ in 0..10 {
        let records = (0..300).map(|_| {
            appended += 1;
            let body = format!("{{\"n\":{appended},\"digest\":\"{}\"}}", digest(appended));
            LogRecord { time: unix_seconds(appended), tags: Vec::new(), body }
        });
        store.append(C, records.collect()).await.unwrap();
    }
    assert_eq!(store.trim_to_size(C, u64::MAX).await.unwrap(), 0);
    let removed = store.trim_to_size(C, BYTES).await.unwrap();
    let rest = store.read(C, RecordQuery { limit: 5000, ..query(&[]) }).await.unwrap();
    let times: Vec<_> = rest.iter().map(|record| record.time).collect();
    let newest: Vec<_> = (removed + 1..=appended).rev().map(unix_seconds).collect();
    assert_eq!(times, newest, "the oldest are removed");
    // At least 32 bytes for each digest.
    assert!((100..1250).contains(&rest.len()), "{} records", rest.len());
    assert_eq!(store.trim_to_size(C, BYTES).await.unwrap(), 0);
    assert_eq!(store.trim_to_size(C, 0).await.unwrap(), rest.len() as u64);
}
