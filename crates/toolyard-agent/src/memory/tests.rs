use std::time::Duration;

use proptest::prelude::*;
use toolyard_manifest::MemorySettings;

use super::testing::ManualStore;
use super::*;

fn namespace() -> MemoryNamespace {
    MemoryNamespace::from_text("key/abc").expect("a namespace")
}

fn key(name: &str) -> FullKey {
    FullKey { namespace: namespace(), path: format!("key/abc/{name}") }
}

async fn save(memory: &WorkingMemory, name: &str, value: &str) -> Result<(), String> {
    let path = key(name).path;
    let saved = memory.save(&namespace(), &[NewEntry::new(&path, value)]).await;
    saved.map(drop).map_err(|error| error.to_string())
}

async fn value(memory: &WorkingMemory, name: &str) -> Option<String> {
    memory.get(&key(name)).await.expect("a store").map(|(_, value)| value)
}

#[tokio::test]
async fn saved_entry_is_returned_until_replaced_or_deleted() {
    let (store, memory) = ManualStore::memory(MemorySettings::default());
    assert_eq!(value(&memory, "a").await, None);
    save(&memory, "a", "one").await.expect("room");
    save(&memory, "empty", "").await.expect("room");
    assert_eq!(value(&memory, "A").await.as_deref(), Some("one"), "whatever its case is");
    assert_eq!(value(&memory, "empty").await.as_deref(), Some(""));
    save(&memory, "A", "two").await.expect("room");
    assert_eq!(value(&memory, "a").await.as_deref(), Some("two"));
    assert_eq!(store.len(), 3, "a list of two, and two values: nothing is left of the first");
    assert!(memory.delete(&key("a")).await.expect("a store").is_some());
    assert!(memory.delete(&key("a")).await.expect("a store").is_none());
    assert_eq!((value(&memory, "a").await, store.len()), (None, 2));
}

#[tokio::test]
async fn large_value_is_returned_whole() {
    let (store, memory) = ManualStore::memory(MemorySettings::default());
    // Parts end inside characters.
    let large = "é\u{1f600}x".repeat(590_000);
    save(&memory, "large", &large).await.expect("room");
    assert!(value(&memory, "large").await == Some(large));
    assert!(store.len() > 16);
    save(&memory, "large", "small").await.expect("room");
    assert_eq!(store.len(), 2, "all parts are removed");
}

#[tokio::test]
async fn expired_entry_is_gone_and_frees_room() {
    let limits = MemorySettings { entries: 2, ..MemorySettings::default() };
    let (store, memory) = ManualStore::memory(limits);
    let (short, long) = (key("short").path, key("long").path);
    let entry =
        |path, seconds| NewEntry { ttl: Some(Duration::from_secs(seconds)), ..NewEntry::new(path, "v") };
    memory.save(&namespace(), &[entry(&short, 10), entry(&long, 1000)]).await.expect("room");
    assert!(save(&memory, "third", "v").await.is_err());
    store.pass(Duration::from_secs(11));
    let left = memory.list(&namespace()).await.expect("a store");
    assert_eq!(left.iter().map(|record| &record.key).collect::<Vec<_>>(), [&long]);
    assert_eq!(value(&memory, "short").await, None);
    save(&memory, "third", "v").await.expect("room");
    // The default time to live is five minutes.
    store.pass(Duration::from_secs(299));
    assert!(value(&memory, "third").await.is_some());
    store.pass(Duration::from_secs(1));
    assert!(value(&memory, "third").await.is_none());
    store.pass(Duration::from_secs(1000));
    assert_eq!(store.len(), 0, "the store may remove all of it");
}

#[tokio::test]
async fn total_limit_covers_all_namespaces() {
    let limits = MemorySettings { total_bytes: 12, keyless_bytes: Some(2), ..MemorySettings::default() };
    let (store, memory) = ManualStore::memory(limits);
    let other = MemoryNamespace::new("key", "other");
    let put = async |path: &str, value: &str| memory.save(&other, &[NewEntry::new(path, value)]).await;
    save(&memory, "a", "123456").await.expect("room");
    put("key/other/a", "1234").await.expect("room");
    let refused = put("key/other/b", "5").await.expect_err("no room");
    insta::assert_snapshot!(refused, @"Working memory is full: all namespaces together may hold 10 bytes. Try again later.");
    // The existing entry is unchanged, and its expiry frees room.
    assert_eq!(value(&memory, "a").await.as_deref(), Some("123456"));
    store.pass(Duration::from_secs(301));
    put("key/other/b", "1234567890").await.expect("room");
}

/// Neither kind of caller pushes out the other, and what is pushed out leaves nothing behind.
#[tokio::test]
async fn callers_without_a_key_push_out_only_each_other() {
    let limits = MemorySettings {
        total_bytes: 30_000,
        keyless_bytes: Some(10_000),
        keyless_address_bytes: Some(4_000),
        ..MemorySettings::default()
    };
    let (store, memory) = ManualStore::memory(limits);
    save(&memory, "a", &"k".repeat(20_000)).await.expect("room");
    assert!(save(&memory, "b", "k").await.is_err(), "the rest belongs to callers without a key");
    let put = async |owner: usize, address: &str, bytes: usize| {
        let namespace = MemoryNamespace::new("session", &format!("{owner:016x}"));
        let (path, value) = (format!("{namespace}/notes"), "v".repeat(bytes));
        let saved =
            memory.save_with(address, &namespace, &[NewEntry::new(&path, &value)], RoomPolicy::Refuse).await;
        store.pass(Duration::from_secs(1));
        saved.map(drop).map_err(|error| error.to_string())
    };
    let left = async || {
        let mut left = Vec::new();
        for owner in 0..20 {
            let namespace = MemoryNamespace::new("session", &format!("{owner:016x}"));
            let key = FullKey { path: format!("{namespace}/notes"), namespace };
            if memory.get(&key).await.expect("a store").is_some() {
                left.push(owner);
            }
        }
        left
    };
    for owner in 0..3 {
        put(owner, "192.0.2.1", 1_500).await.expect("room");
    }
    assert_eq!(left().await, [1, 2], "an address has a part");
    for (owner, address) in [(3, "192.0.2.2"), (4, "192.0.2.3"), (5, "192.0.2.4"), (6, "192.0.2.5")] {
        put(owner, address, 1_500).await.expect("room");
    }
    assert_eq!(left().await, [2, 3, 4, 5, 6], "the address with most of it makes room");
    insta::assert_snapshot!(put(7, "192.0.2.6", 4_000).await.expect_err("no room"), @"Working memory is full: callers without a key may hold 4000 bytes from one address, and this needs 4286. Ask the tool for less.");
    // An entry that replaces another, and a deleted one, leave room for others.
    for _ in 0..5 {
        put(7, "192.0.2.6", 2_000).await.expect("room");
    }
    let before = left().await;
    let namespace = MemoryNamespace::new("session", &format!("{:016x}", 7));
    let key = FullKey { path: format!("{namespace}/notes"), namespace };
    assert!(memory.delete(&key).await.expect("a store").is_some());
    put(8, "192.0.2.6", 2_000).await.expect("room");
    assert_eq!(left().await, before.iter().map(|owner| owner + usize::from(*owner == 7)).collect::<Vec<_>>());
    assert_eq!(value(&memory, "a").await.map(|value| value.len()), Some(20_000));
    store.pass(Duration::from_secs(400));
    assert_eq!((left().await, store.len()), (Vec::new(), 0), "nothing is left in the store");
}

#[tokio::test]
async fn time_to_live_is_limited() {
    let (_, memory) = ManualStore::memory(MemorySettings::default());
    let path = key("a").path;
    let entry = NewEntry { ttl: Some(Duration::MAX), ..NewEntry::new(&path, "v") };
    let saved = memory.save(&namespace(), &[entry]).await.expect("room");
    assert_eq!(saved[0].left(memory.now()), memory.limits().longest_ttl);
}

#[tokio::test]
async fn refused_save_changes_nothing() {
    let limits = MemorySettings { entries: 3, bytes: 100, value_bytes: 60, ..MemorySettings::default() };
    let (store, memory) = ManualStore::memory(limits);
    save(&memory, "a", &"x".repeat(50)).await.expect("room");
    let before = store.len();
    let mut errors = vec![
        save(&memory, "b", &"x".repeat(61)).await.expect_err("a value that is too long"),
        save(&memory, "b", &"x".repeat(60)).await.expect_err("too many bytes"),
    ];
    // A save stores all entries or none.
    let paths: Vec<_> = (0..3).map(|n| key(&n.to_string()).path).collect();
    let entries: Vec<_> = paths.iter().map(|path| NewEntry::new(path, "")).collect();
    errors.push(memory.save(&namespace(), &entries).await.expect_err("too many entries").to_string());
    let label = "x".repeat(200);
    let entry = NewEntry { category: Some(&label), ..NewEntry::new(&paths[0], "") };
    errors.push(memory.save(&namespace(), &[entry]).await.expect_err("a long category").to_string());
    assert_eq!(store.len(), before);
    // A replaced entry does not count twice.
    save(&memory, "a", &"y".repeat(60)).await.expect("room");
    store.go_away();
    errors.push(save(&memory, "a", "").await.expect_err("no store"));
    insta::assert_snapshot!(errors.join("\n"));
}

/// Saves a result of two chunks with an outline, and returns whether there was room.
async fn save_result(
    memory: &WorkingMemory,
    run: &str,
    length: usize,
    ttl: u64,
    room: RoomPolicy,
) -> Result<(), String> {
    let base = chunk_keys::base_of_run(&namespace(), "t", run);
    let paths =
        [chunk_keys::chunk_key(&base, 0), chunk_keys::chunk_key(&base, 1), chunk_keys::index_key(&base)];
    let value = "x".repeat(length);
    let entry = |(number, path)| NewEntry {
        category: Some("tool-result"),
        ttl: Some(Duration::from_secs(ttl)),
        chunks: (number == 2).then_some(2),
        place: (number < 2).then(|| ChunkPlace { number, ..ChunkPlace::default() }),
        ..NewEntry::new(path, &value)
    };
    let entries: Vec<_> = (0..).zip(paths.iter().map(String::as_str)).map(entry).collect();
    let saved = memory.save_with("", &namespace(), &entries, room).await;
    saved.map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn new_result_replaces_those_that_expire_first() {
    /// Saves two notes and results with their times to live, and returns the names of what is left.
    async fn check(limits: MemorySettings, runs: &[(&str, usize, u64)], expected: &[&str]) {
        let (store, memory) = ManualStore::memory(limits);
        save(&memory, "note", "n").await.expect("room");
        save(&memory, "tool-t-a-chunk7", "a note under the key of a chunk").await.expect("room");
        for (run, length, ttl) in runs {
            let _full = save_result(&memory, run, *length, *ttl, RoomPolicy::DropResults).await;
        }
        let records = memory.list(&namespace()).await.expect("a store");
        let names: Vec<_> = records.iter().filter_map(|record| record.key.strip_prefix("key/abc/")).collect();
        assert_eq!(names[..2], ["note", "tool-t-a-chunk7"]);
        let bases: Vec<_> =
            names[2..].chunks(3).filter_map(|chunks| chunk_keys::base_of(chunks[2])).collect();
        assert_eq!(bases, expected, "{runs:?}");
        assert_eq!(store.len(), 1 + names.len(), "no value is left behind");
    }
    let entries = |entries| MemorySettings { entries, ..MemorySettings::default() };
    check(entries(8), &[("a", 1, 60), ("b", 1, 30)], &["tool-t-a", "tool-t-b"]).await;
    check(entries(8), &[("a", 1, 60), ("b", 1, 30), ("c", 1, 90)], &["tool-t-a", "tool-t-c"]).await;
    check(entries(8), &[("a", 1, 30), ("b", 1, 60), ("c", 1, 10), ("d", 1, 10)], &["tool-t-b", "tool-t-d"])
        .await;
    // Nothing is dropped for a result that does not fit anyway.
    check(entries(4), &[("a", 1, 60)], &[]).await;
    let bytes = |bytes| MemorySettings { bytes, ..MemorySettings::default() };
    check(bytes(5_000), &[("a", 500, 60), ("b", 500, 30), ("c", 1_000, 90)], &["tool-t-a", "tool-t-c"]).await;
    check(bytes(5_000), &[("a", 500, 60), ("b", 500, 30), ("c", 1_500, 90)], &["tool-t-c"]).await;
    check(bytes(5_000), &[("a", 500, 60), ("b", 500, 30), ("c", 5_000, 90)], &["tool-t-a", "tool-t-b"]).await;
    // A note is refused instead.
    let (_, memory) = ManualStore::memory(entries(3));
    save_result(&memory, "a", 1, 60, RoomPolicy::Refuse).await.expect("room");
    assert!(save_result(&memory, "b", 1, 60, RoomPolicy::Refuse).await.is_err());
    assert!(save(&memory, "note", "n").await.is_err());
}

#[tokio::test]
async fn entry_with_a_lost_value_is_absent() {
    let (store, memory) = ManualStore::memory(MemorySettings::default());
    save(&memory, "a", "one").await.expect("room");
    store.lose_values();
    assert_eq!(value(&memory, "a").await, None);
}

#[tokio::test]
async fn list_covers_accessible_namespaces_only() {
    let (_, memory) = ManualStore::memory(MemorySettings::default());
    for owner in 0..40 {
        let namespace = MemoryNamespace::new("patrol", &format!("{owner:02}"));
        let path = format!("{namespace}/found");
        memory.save(&namespace, &[NewEntry::new(&path, "v")]).await.expect("room");
    }
    let list = async |prefix: &str, end: &str, limit: usize| {
        let reaches = |namespace: &MemoryNamespace| namespace.as_str().ends_with(end);
        memory.list_all(prefix, reaches, limit).await.expect("a store").len()
    };
    assert_eq!(list("patrol/", "", 1000).await, 40);
    assert_eq!(list("Patrol/", "7", 1000).await, 4);
    assert_eq!(list("patrol/3", "", 1000).await, 10);
    assert_eq!(list("patrol/", "", 25).await, 25);
    assert_eq!(list("session/", "", 1000).await, 0);
}

#[tokio::test]
async fn search_filters_and_ranks_entries() {
    let (store, memory) = ManualStore::memory(MemorySettings::default());
    let entries = [
        ("weekly_report", "sales went up, sales were good", Some("notes/work"), "sales,2026"),
        ("shopping", "milk and a report on cheese", Some("notes"), "home"),
        ("invoice-7", "{\"total\": 12}", None, "sales"),
    ];
    for (name, text, category, tags) in entries {
        let tags: Vec<_> = tags.split(',').map(str::to_owned).collect();
        let path = key(name).path;
        memory
            .save(&namespace(), &[NewEntry { category, tags: &tags, ..NewEntry::new(&path, text) }])
            .await
            .expect("room");
        store.pass(Duration::from_secs(1));
    }
    let search = async |query: &str, category: Option<&str>, tags: &[&str]| {
        let query = search::MemorySearch {
            query: query.to_owned(),
            category: category.map(str::to_owned),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        };
        let records = memory.list(&namespace()).await.expect("a store");
        let runner = blocking::BlockingRunner::new(1, Duration::from_secs(5));
        let hits = query.among(&memory, &runner, records).await.expect("a store");
        hits.iter()
            .map(|hit| hit.record.key.rsplit('/').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    // Without words the newest come first, otherwise the best.
    assert_eq!(search("", None, &[]).await, ["invoice-7", "shopping", "weekly_report"]);
    assert_eq!(search("report sales", None, &[]).await, ["weekly_report", "invoice-7", "shopping"]);
    assert_eq!(search("REPORT", None, &[]).await, ["shopping", "weekly_report"]);
    assert_eq!(search("nothing of that", Some("notes"), &["home"]).await, Vec::<String>::new());
    assert_eq!(search("", Some("Notes"), &[]).await, ["shopping", "weekly_report"]);
    assert_eq!(search("", Some("note"), &[]).await, Vec::<String>::new());
    assert_eq!(search("", None, &["Sales", "2026"]).await, ["weekly_report"]);
    assert_eq!(search("12", None, &[]).await, ["invoice-7"]);
}

#[derive(Debug, Clone)]
enum MemoryStep {
    Save(u8, usize, u64),
    Delete(u8),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<MemoryStep>> {
    let step = prop_oneof![
        4 => (0_u8..12, 0_usize..400, 1_u64..60).prop_map(|(key, length, ttl)| MemoryStep::Save(key, length, ttl)),
        1 => (0_u8..12).prop_map(MemoryStep::Delete),
        1 => (1_u64..30).prop_map(MemoryStep::Pass),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A namespace respects its limits, every listed entry has its value, and nothing else remains in the store.
    #[test]
    fn limits_hold_for_any_sequence_of_changes(steps in steps()) {
        let limits = MemorySettings { entries: 6, bytes: 1000, ..MemorySettings::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (store, memory) = ManualStore::memory(limits);
            for step in steps {
                match step {
                    MemoryStep::Save(name, length, ttl) => {
                        let (path, value) = (key(&name.to_string()).path, "v".repeat(length));
                        let entry = NewEntry { ttl: Some(Duration::from_secs(ttl)), ..NewEntry::new(&path, &value) };
                        let _full = memory.save(&namespace(), &[entry]).await;
                    }
                    MemoryStep::Delete(name) => drop(memory.delete(&key(&name.to_string())).await),
                    MemoryStep::Pass(seconds) => store.pass(Duration::from_secs(seconds)),
                }
                let records = memory.list(&namespace()).await.expect("a store");
                assert!(records.len() <= 6 && records.iter().map(|record| record.bytes).sum::<usize>() <= 1000);
                for record in &records {
                    assert_eq!(memory.value(record).await.expect("a store").map(|value| value.len()), Some(record.bytes));
                }
                assert!(store.len() <= records.len() + 1, "orphaned values");
            }
        });
    }
}
