//! Stores in files, from their making to their backup.

use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use tempfile::TempDir;
use toolyard_core::store::{Put, Query, Space, Trouble};
use toolyard_store::{BackupError, Location, OpenError, StoreOptions, backup, describe, open, open_existing};

const SPACE: Space = Space("opening");

fn at(path: &Path) -> StoreOptions {
    StoreOptions::at(Location::File(path.to_owned()))
}

/// An error and its causes.
pub(crate) fn said(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[tokio::test]
async fn what_is_made_is_its_users_alone() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state/toolyard/toolyard.db");
    let store = open(&at(&file)).await.unwrap();
    store.put(SPACE, "key", Put::always("value")).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert_eq!(mode(file.parent().unwrap().parent().unwrap()), 0o700);
    for name in ["toolyard.db", "toolyard.db-wal"] {
        assert_eq!(mode(&file.with_file_name(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn what_cannot_be_opened_says_where_and_what_to_do() {
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
            Trouble::Unavailable,
            "cannot make the folder DIR/text for the store: let this user write there, or name another file \
             with `store: {path: FILE}` in the Toolyard document: File exists (os error 17)",
        ),
        (
            "folder",
            Trouble::Unavailable,
            "cannot open the store DIR/folder for writing: let this user write it, or name another file with \
             `store: {path: FILE}` in the Toolyard document: Is a directory (os error 21)",
        ),
        (
            "text",
            Trouble::Unreadable,
            "cannot open the store DIR/text: restore a backup, or name another place in `store` of the \
             Toolyard document: the store cannot be read: file is not a database",
        ),
        (
            "later",
            Trouble::Unreadable,
            "the store DIR/later is of version 99, and this program knows version 2: use a later Toolyard, or \
             restore the backup that was made before",
        ),
        (
            "foreign",
            Trouble::Unreadable,
            "DIR/foreign is the database of another program: name another file with `store: {path: FILE}` in \
             the Toolyard document",
        ),
    ];
    for (name, trouble, expected) in cases {
        let error = open(&at(&file(name))).await.err().unwrap();
        assert_eq!(said(&error).replace(folder.path().to_str().unwrap(), "DIR"), expected);
        assert_eq!(error.trouble(), trouble, "{name}");
    }
    let untouched: u32 = Connection::open(file("foreign"))
        .unwrap()
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .unwrap();
    assert_eq!(untouched, 1);
}

#[tokio::test]
async fn many_open_one_at_once() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    let opened = futures_util::future::join_all((0..8).map(|_| async { open(&at(&file)).await })).await;
    for (number, store) in opened.into_iter().enumerate() {
        let key = number.to_string();
        assert!(store.unwrap().put(SPACE, &key, Put::always("")).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_log_of_the_first_version_goes_on() {
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
        let query = Query { tags, since: None, until: None, before: None, limit: 100 };
        let kept = store.read(SPACE, query).await.unwrap();
        kept.into_iter().map(|kept| kept.body).collect::<Vec<_>>()
    };
    assert_eq!(tagged(&[("tool", "a")]).await, ["two", "one"]);
    assert_eq!(tagged(&[("tool", "a"), ("outcome", "ok")]).await, ["one"]);
    let count =
        || -> i64 { Connection::open(&file).unwrap().query_row(WORDS, [], |row| row.get(0)).unwrap() };
    assert_eq!(count(), 3);

    // What nobody says any more goes with the last record that said it.
    let later = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
    assert_eq!(store.trim(SPACE, later(2)).await.unwrap(), 1);
    assert_eq!((tagged(&[("tool", "a")]).await, count()), (vec!["two".to_owned()], 2));
    assert_eq!(store.trim(SPACE, later(3)).await.unwrap(), 1);
    assert_eq!(count(), 1, "another space is not touched");
}

#[tokio::test]
async fn a_description_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state/toolyard.db");
    let location = Location::File(file.clone());
    let described = describe(&location).await.unwrap();
    assert_eq!((described.kind, described.version, described.size), ("sqlite", None, 0));
    assert!(!file.parent().unwrap().exists());

    drop(open(&at(&file)).await.unwrap());
    let described = describe(&location).await.unwrap();
    assert_eq!((described.version, described.newest), (Some(2), 2));
    assert_eq!(described.location, file.to_str().unwrap());
    assert!(described.size > 0);

    // Of a later one too: that is what somebody wants to know who cannot open it.
    Connection::open(&file).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert_eq!(describe(&location).await.unwrap().version, Some(99));
}

#[tokio::test]
async fn expired_values_are_removed_in_time() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    let store = open(&at(&file)).await.unwrap();
    let past = Put { expires: Some(SystemTime::UNIX_EPOCH), ..Put::always("") };
    store.put(SPACE, "first", past.clone()).await.unwrap();
    store.put(SPACE, "second", past).await.unwrap();
    let kept = || -> Vec<String> {
        let connection = Connection::open(&file).unwrap();
        let mut keys = connection.prepare("SELECT key FROM kv").unwrap();
        keys.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    // The first was swept by its own write, which is the first one of all; there is no other within a minute.
    assert_eq!(kept(), ["second"]);
    drop(store);
    let store = open(&at(&file)).await.unwrap();
    store.put(SPACE, "third", Put::always("")).await.unwrap();
    assert_eq!(kept(), ["third"]);
}

/// The copy is the store as it was at one moment: of what one writer wrote in a row, a beginning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_made_while_others_write() {
    let folder = TempDir::new().unwrap();
    let location = Location::File(folder.path().join("toolyard.db"));
    let store = open(&StoreOptions::at(location.clone())).await.unwrap();
    let copied = AtomicBool::new(false);
    let write = async {
        let mut number = 0;
        while !copied.load(Ordering::Relaxed) {
            store.put(SPACE, &format!("{number:09}"), Put::always(vec![0; 5000])).await.unwrap();
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
            let kept = copy.list(SPACE, "", None, usize::MAX).await.unwrap();
            assert!(kept.iter().enumerate().all(|(number, (key, _))| *key == format!("{number:09}")));
            lengths.push(kept.len());
        }
        copied.store(true, Ordering::Relaxed);
        lengths
    };
    let (written, lengths) = tokio::join!(write, copy);
    assert!(lengths.is_sorted() && lengths[0] < lengths[4] && lengths[4] <= written, "{lengths:?} {written}");
    let mode = fs::metadata(&copies[0]).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);

    let again = backup(&location, &copies[0]).await.unwrap_err();
    assert!(matches!(again, BackupError::Exists(_)), "{again:?}");
}

#[tokio::test]
async fn a_backup_that_fails_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let location = Location::File(folder.path().join("toolyard.db"));
    let to = folder.path().join("copy");
    let absent = backup(&location, &to).await.unwrap_err();
    assert!(matches!(absent, BackupError::Open(OpenError::Database { .. })), "{absent:?}");
    assert!(!folder.path().join("toolyard.db").exists());

    drop(open(&StoreOptions::at(location.clone())).await.unwrap());
    let nowhere = backup(&location, &folder.path().join("absent/copy")).await.unwrap_err();
    assert!(matches!(nowhere, BackupError::Write { .. }), "{nowhere:?}");
    let files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(files.into_iter().all(|name| name.to_str().unwrap().starts_with("toolyard.db")));

    assert!(matches!(backup(&Location::Memory, &to).await, Err(BackupError::Memory)));
}

#[tokio::test]
async fn only_what_is_there_is_opened_without_making_it() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("in/toolyard.db");
    let missing = open_existing(&at(&file)).await.map(drop).unwrap_err();
    assert!(matches!(&missing, OpenError::Missing { location } if Path::new(location) == file), "{missing}");
    assert!(!file.parent().unwrap().exists());
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, "").unwrap();
    assert!(open_existing(&at(&file)).await.is_err(), "an empty file is no store yet");
    open(&at(&file)).await.unwrap();
    assert!(open_existing(&at(&file)).await.is_ok());
}

/// What was written a moment ago is in the log of changes beside the file.
#[tokio::test]
async fn the_size_is_that_of_everything() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    let store = open(&at(&file)).await.unwrap();
    store.put(SPACE, "key", Put::always(vec![0; 100_000])).await.unwrap();
    let bytes = |name: &str| fs::metadata(folder.path().join(name)).unwrap().len();
    let size = describe(&Location::File(file)).await.unwrap().size;
    assert!(size >= bytes("toolyard.db-wal") + 100_000, "{size}");
}
