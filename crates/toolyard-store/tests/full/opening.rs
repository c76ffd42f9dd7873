//! Stores in files, from creation to backup.

use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use tempfile::TempDir;
use toolyard_core::store::{KeySpace, LogRecord, PutRequest, RecordQuery, StoreErrorKind};
use toolyard_store::{
    BackupError, DatabaseLocation, StoreOpenError, StoreOptions, backup, describe, open, open_closable,
    open_existing,
};

const SPACE: KeySpace = KeySpace("opening");

fn at(path: &Path) -> StoreOptions {
    StoreOptions::at(DatabaseLocation::File(path.to_owned()))
}

/// The text of an error and its causes.
pub(crate) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[tokio::test]
async fn created_files_are_private_to_the_user() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state/toolyard/toolyard.db");
    let store = open(&at(&file)).await.unwrap();
    store.put(SPACE, "key", PutRequest::always("value")).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert_eq!(mode(file.parent().unwrap().parent().unwrap()), 0o700);
    for name in ["toolyard.db", "toolyard.db-wal"] {
        assert_eq!(mode(&file.with_file_name(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn open_errors_name_location_and_remedy() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::write(file("text"), "this is not a database, however long it is. ".repeat(100)).unwrap();
    fs::create_dir(file("folder")).unwrap();
    drop(open(&at(&file("later"))).await.unwrap());
    Connection::open(file("later")).unwrap().pragma_update(None, "user_version", 99).unwrap();
    Connection::open(file("foreign")).unwrap().execute_batch("CREATE TABLE places (url)").unwrap();
    let cases = [
        (
            "text/toolyard.db",
            StoreErrorKind::Unavailable,
            "cannot create the folder DIR/text of the store: grant this user write access, or choose another file \
             with `store: {path: FILE}` in the Toolyard document: File exists (os error 17)",
        ),
        (
            "folder",
            StoreErrorKind::Unavailable,
            "cannot open the store DIR/folder for writing: grant this user write access, or choose another file with \
             `store: {path: FILE}` in the Toolyard document: Is a directory (os error 21)",
        ),
        (
            "text",
            StoreErrorKind::Unreadable,
            "cannot open the store DIR/text: restore a backup, or choose another location in `store` of the \
             Toolyard document: the store cannot be read: file is not a database",
        ),
        (
            "later",
            StoreErrorKind::Unreadable,
            "the store DIR/later has version 99, but this program supports version 3 at most: use a newer Toolyard, or \
             restore a backup from before the upgrade",
        ),
        (
            "foreign",
            StoreErrorKind::Unreadable,
            "DIR/foreign is the database of another program: choose another file with `store: {path: FILE}` in \
             the Toolyard document",
        ),
    ];
    for (name, kind, expected) in cases {
        let error = open(&at(&file(name))).await.err().unwrap();
        assert_eq!(error_chain(&error).replace(folder.path().to_str().unwrap(), "DIR"), expected);
        assert_eq!(error.kind(), kind, "{name}");
    }
    let untouched: u32 = Connection::open(file("foreign"))
        .unwrap()
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .unwrap();
    assert_eq!(untouched, 1);
}

#[tokio::test]
async fn store_is_opened_by_many_at_once() {
    let folder = TempDir::new().unwrap();
    // Connections rarely meet in the switch to a write-ahead log: some of these files see it.
    for round in 0..40 {
        let file = folder.path().join(format!("{round}.db"));
        let opened = futures_util::future::join_all((0..8).map(|_| async { open(&at(&file)).await })).await;
        for (number, store) in opened.into_iter().enumerate() {
            let key = number.to_string();
            assert!(store.unwrap().put(SPACE, &key, PutRequest::always("")).await.unwrap().is_some());
        }
    }
}

#[tokio::test]
async fn log_of_version_1_is_migrated() {
    const WORDS: &str = "SELECT count(*) FROM log_word";
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    let first = Connection::open(&file).unwrap();
    first.execute_batch(include_str!("../../migrations/sqlite/0001_tables.sql")).unwrap();
    first
        .execute_batch(
            "INSERT INTO log (space, time_ms, body) VALUES ('opening', 1, 'one'), ('opening', 2, 'two'), ('else', 1, 'other');
             INSERT INTO log_tag (space, name, value, number) VALUES
                 ('opening', 'tool', 'a', 1), ('opening', 'outcome', 'ok', 1), ('opening', 'tool', 'a', 2), ('else', 'tool', 'a', 3);
             PRAGMA user_version = 1",
        )
        .unwrap();
    drop(first);

    let store = open(&at(&file)).await.unwrap();
    let tagged = async |tags: &[(&'static str, &str)]| {
        let tags = tags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let query = RecordQuery { tags, since: None, until: None, before: None, limit: 100 };
        let records = store.read(SPACE, query).await.unwrap();
        records.into_iter().map(|record| record.body).collect::<Vec<_>>()
    };
    assert_eq!(tagged(&[("tool", "a")]).await, ["two", "one"]);
    assert_eq!(tagged(&[("tool", "a"), ("outcome", "ok")]).await, ["one"]);
    let count =
        || -> i64 { Connection::open(&file).unwrap().query_row(WORDS, [], |row| row.get(0)).unwrap() };
    assert_eq!(count(), 3);

    // A tag value goes with the last record that has it.
    let later = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
    assert_eq!(store.trim(SPACE, later(2)).await.unwrap(), 1);
    assert_eq!((tagged(&[("tool", "a")]).await, count()), (vec!["two".to_owned()], 2));
    assert_eq!(store.trim(SPACE, later(3)).await.unwrap(), 1);
    assert_eq!(count(), 1, "another space is not touched");
}

#[tokio::test]
async fn records_of_version_2_come_before_blocks() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    let second = Connection::open(&file).unwrap();
    second.execute_batch(include_str!("../../migrations/sqlite/0001_tables.sql")).unwrap();
    second.execute_batch(include_str!("../../migrations/sqlite/0002_words.sql")).unwrap();
    second
        .execute_batch(
            "INSERT INTO log (number, space, time_ms, body) VALUES (7000, 'opening', 1, '\"one\"'), (7002, 'opening', 2, '\"two\"');
             PRAGMA user_version = 2",
        )
        .unwrap();
    drop(second);

    let store = open(&at(&file)).await.unwrap();
    let later = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
    let record =
        |millis, body: &str| LogRecord { time: later(millis), tags: Vec::new(), body: body.to_owned() };
    store.append(SPACE, [record(3, "\"three\""), record(4, "\"four\"")].into()).await.unwrap();
    let page = async |before, limit| {
        let query = RecordQuery { tags: Vec::new(), since: None, until: None, before, limit };
        let records = store.read(SPACE, query).await.unwrap();
        records.into_iter().map(|record| (record.number, record.body)).collect::<Vec<_>>()
    };
    let all = [(7004, "\"four\""), (7003, "\"three\""), (7002, "\"two\""), (7000, "\"one\"")];
    let all = all.map(|(number, body)| (number, body.to_owned()));
    assert_eq!(page(None, 10).await, all);
    assert_eq!(page(Some(7004), 2).await, all[1..3]);
    assert_eq!(page(Some(7001), 2).await, all[3..]);
    assert_eq!(store.trim_to_size(SPACE, 100_000).await.unwrap(), 0);
    assert_eq!(store.trim(SPACE, later(2)).await.unwrap(), 1);
    assert_eq!(store.trim_to_size(SPACE, 0).await.unwrap(), 3);
    assert_eq!(page(None, 10).await, []);
    store.append(SPACE, [record(5, "\"five\"")].into()).await.unwrap();
    assert_eq!(page(None, 10).await, [(7005, "\"five\"".to_owned())], "a number is not used again");
}

#[tokio::test]
async fn damaged_block_is_reported_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    let store = open(&at(&file)).await.unwrap();
    let record =
        || LogRecord { time: SystemTime::now(), tags: vec![("tool", "a".into())], body: "{}".into() };
    let all = || RecordQuery { tags: Vec::new(), since: None, until: None, before: None, limit: 10 };
    for damage in ["x'00'", "substr(body, 1, length(body) - 1)", "zeroblob(100000)"] {
        store.append(SPACE, [record()].into()).await.unwrap();
        let update = format!("UPDATE log_block SET body = {damage}");
        assert_eq!(Connection::open(&file).unwrap().execute(&update, []).unwrap(), 1);
        let error = store.read(SPACE, all()).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unreadable);
        store.append(SPACE, [record()].into()).await.unwrap();
        let newest = store.read(SPACE, RecordQuery { limit: 1, ..all() }).await.unwrap();
        assert_eq!(newest.len(), 1);
        store.trim_to_size(SPACE, 0).await.unwrap();
    }
}

#[tokio::test]
async fn a_description_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state/toolyard.db");
    let location = DatabaseLocation::File(file.clone());
    let described = describe(&location).await.unwrap();
    assert_eq!((described.kind, described.version, described.size), ("sqlite", None, 0));
    assert!(!file.parent().unwrap().exists());

    drop(open(&at(&file)).await.unwrap());
    let described = describe(&location).await.unwrap();
    assert_eq!((described.version, described.supported_version), (Some(3), 3));
    assert_eq!(described.location, file.to_str().unwrap());
    assert!(described.size > 0);

    // Also of a newer version: it explains why the store cannot be opened.
    Connection::open(&file).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert_eq!(describe(&location).await.unwrap().version, Some(99));
}

#[tokio::test]
async fn expired_values_are_removed_in_time() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    let store = open(&at(&file)).await.unwrap();
    let past = PutRequest { expires: Some(SystemTime::UNIX_EPOCH), ..PutRequest::always("") };
    store.put(SPACE, "first", past.clone()).await.unwrap();
    store.put(SPACE, "second", past).await.unwrap();
    let stored_keys = || -> Vec<String> {
        let connection = Connection::open(&file).unwrap();
        let mut keys = connection.prepare("SELECT key FROM kv").unwrap();
        keys.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    // The first value was removed by the sweep of its own write, the first of all; the next sweep is a minute later.
    assert_eq!(stored_keys(), ["second"]);
    drop(store);
    let store = open(&at(&file)).await.unwrap();
    store.put(SPACE, "third", PutRequest::always("")).await.unwrap();
    assert_eq!(stored_keys(), ["third"]);
}

/// The copy is a snapshot: of the values that one writer wrote in order, it has a prefix.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_is_consistent_under_writes() {
    let folder = TempDir::new().unwrap();
    let location = DatabaseLocation::File(folder.path().join("toolyard.db"));
    let store = open(&StoreOptions::at(location.clone())).await.unwrap();
    let copied = AtomicBool::new(false);
    let write = async {
        let mut number = 0;
        while !copied.load(Ordering::Relaxed) {
            store.put(SPACE, &format!("{number:09}"), PutRequest::always(vec![0; 5000])).await.unwrap();
            number += 1;
        }
        number
    };
    let copies: Vec<PathBuf> = (0..5).map(|number| folder.path().join(format!("copy-{number}"))).collect();
    let copy = async {
        let mut lengths = Vec::new();
        for to in &copies {
            let size = backup(&location, to).await.unwrap();
            assert_eq!(size, fs::metadata(to).unwrap().len());
            let copy = open(&at(to)).await.unwrap();
            let entries = copy.list(SPACE, "", None, usize::MAX).await.unwrap();
            assert!(entries.iter().enumerate().all(|(number, (key, _))| *key == format!("{number:09}")));
            lengths.push(entries.len());
        }
        copied.store(true, Ordering::Relaxed);
        lengths
    };
    let (count, lengths) = tokio::join!(write, copy);
    assert!(lengths.is_sorted() && lengths[0] < lengths[4] && lengths[4] <= count, "{lengths:?} {count}");
    let mode = fs::metadata(&copies[0]).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);

    let again = backup(&location, &copies[0]).await.unwrap_err();
    assert!(matches!(again, BackupError::Exists(_)), "{again:?}");
}

#[tokio::test]
async fn failed_backup_leaves_no_file() {
    let folder = TempDir::new().unwrap();
    let location = DatabaseLocation::File(folder.path().join("toolyard.db"));
    let to = folder.path().join("copy");
    let absent = backup(&location, &to).await.unwrap_err();
    assert!(matches!(absent, BackupError::Open(StoreOpenError::Database { .. })), "{absent:?}");
    assert!(!folder.path().join("toolyard.db").exists());

    drop(open(&StoreOptions::at(location.clone())).await.unwrap());
    let nowhere = backup(&location, &folder.path().join("absent/copy")).await.unwrap_err();
    assert!(matches!(nowhere, BackupError::Write { .. }), "{nowhere:?}");
    let files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(files.into_iter().all(|name| name.to_str().unwrap().starts_with("toolyard.db")));

    assert!(matches!(backup(&DatabaseLocation::Memory, &to).await, Err(BackupError::Memory)));
}

#[tokio::test]
async fn open_existing_creates_no_store() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("in/toolyard.db");
    let missing = open_existing(&at(&file)).await.map(drop).unwrap_err();
    assert!(
        matches!(&missing, StoreOpenError::Missing { location } if Path::new(location) == file),
        "{missing}"
    );
    assert!(!file.parent().unwrap().exists());
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, "").unwrap();
    assert!(open_existing(&at(&file)).await.is_err(), "an empty file is no store yet");
    open(&at(&file)).await.unwrap();
    assert!(open_existing(&at(&file)).await.is_ok());
}

/// Recent writes are still in the write-ahead log beside the file.
#[tokio::test]
async fn size_includes_the_write_ahead_log() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    let store = open(&at(&file)).await.unwrap();
    store.put(SPACE, "key", PutRequest::always(vec![0; 100_000])).await.unwrap();
    let bytes = |name: &str| fs::metadata(folder.path().join(name)).unwrap().len();
    let size = describe(&DatabaseLocation::File(file)).await.unwrap().size;
    assert!(size >= bytes("toolyard.db-wal") + 100_000, "{size}");
}

/// The names of the files in the folder of a store.
fn files(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn closed_store_is_one_file() {
    let folder = TempDir::new().unwrap();
    let options = at(&folder.path().join("toolyard.db"));
    let [first, second] = [open_closable(&options).await.unwrap(), open_closable(&options).await.unwrap()];
    first.put(SPACE, "first", PutRequest::always("1")).await.unwrap();
    assert_eq!(files(&folder), ["toolyard.db", "toolyard.db-shm", "toolyard.db-wal"]);
    first.close().await;
    let refused = first.put(SPACE, "late", PutRequest::always("")).await.unwrap_err();
    assert_eq!(refused.kind, StoreErrorKind::Unavailable);
    first.get(SPACE, "first").await.unwrap_err();
    // The second store goes on, with all values.
    assert_eq!(&*second.get(SPACE, "first").await.unwrap().unwrap().bytes, b"1");
    second.put(SPACE, "second", PutRequest::always("2")).await.unwrap();
    second.close().await;
    second.close().await;
    assert_eq!(files(&folder), ["toolyard.db"]);
    let third = open_closable(&options).await.unwrap();
    assert_eq!(&*third.get(SPACE, "second").await.unwrap().unwrap().bytes, b"2");
    third.close().await;
}
