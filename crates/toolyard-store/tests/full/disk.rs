//! Failures of the disk under a store in a file.

#![expect(clippy::print_stdout, reason = "the child reports its progress on its output")]

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rusqlite::Connection;
use tempfile::TempDir;
use toolyard_core::store::{KeySpace, PutRequest, Store, StoreError, StoreErrorKind};
use toolyard_store::{DatabaseLocation, StoreOptions, open};

use crate::child::{self, WriterProcess};

const SPACE: KeySpace = KeySpace("disk");

/// Kills the process with SIGKILL during its writes, several times on one file.
#[tokio::test]
async fn killed_writer_loses_no_acknowledged_write() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    let mut keys = Vec::new();
    for round in 0..5 {
        let mut writer = WriterProcess::start(file.to_str().unwrap());
        writer.wait_for(200 + 171 * round, &mut keys);
        writer.kill(&mut keys);
        let store = open(&StoreOptions::at(DatabaseLocation::File(file.clone()))).await.unwrap();
        child::assert_stored(&*store, &keys).await;
    }
    let check: String =
        Connection::open(&file).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

/// Mounts a file system of two MiB, which only the child sees.
#[test]
fn full_disk_is_reported_and_survived() {
    let folder = TempDir::new().unwrap();
    let child = child::command("fill", folder.path().to_str().unwrap());
    let mut unshare = command_of("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    unshare.arg("mount -t tmpfs -o size=2m tmpfs \"$0\" && exec \"$@\"").arg(folder.path());
    unshare.arg(child.get_program()).args(child.get_args());
    unshare.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = unshare.output().unwrap();
    let output = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{output}{}", String::from_utf8_lossy(&ended.stderr));
    for step in ["full", "read", "room"] {
        assert!(output.contains(&format!("\nfill: {step}\n")), "{step}: {output}");
    }
}

#[expect(clippy::disallowed_methods, reason = "tests start programs of their own")]
fn command_of(program: &str) -> std::process::Command {
    std::process::Command::new(program)
}

/// The part of the child, in its own file system.
pub(crate) async fn fill(folder: &Path) {
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![1; 512 << 10]).unwrap();
    let file = folder.join("toolyard.db");
    let store = open(&StoreOptions::at(DatabaseLocation::File(file))).await.unwrap();
    let blob = |fill: usize| Bytes::from(vec![u8::try_from(fill % 256).unwrap(); 32 << 10]);
    let mut count = 0;
    let full = loop {
        match store.put_blob(SPACE, &count.to_string(), blob(count)).await {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind, StoreErrorKind::Full, "{full:?}");
    println!("\nfill: full");
    for number in 0..count {
        let blob_at_name = store.get_blob(SPACE, &number.to_string()).await.unwrap();
        assert!(blob_at_name.unwrap() == blob(number), "{number}");
    }
    println!("\nfill: read");
    std::fs::remove_file(ballast).unwrap();
    for number in count..count + 3 {
        store.put_blob(SPACE, &number.to_string(), blob(number)).await.unwrap();
    }
    assert!(store.get_blob(SPACE, "0").await.unwrap().unwrap() == blob(0));
    println!("\nfill: room");
}

async fn put(store: &dyn Store) -> Result<Option<u64>, StoreError> {
    store.put(SPACE, "key", PutRequest::always("value")).await
}

#[tokio::test]
async fn locked_file_is_reported_soon_and_survived() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    let options = StoreOptions { queue: 1, ..StoreOptions::at(DatabaseLocation::File(file.clone())) };
    let store = open(&options).await.unwrap();
    put(&*store).await.unwrap();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();

    let start = Instant::now();
    assert_eq!(put(&*store).await.unwrap_err().kind, StoreErrorKind::Unavailable);
    assert!(start.elapsed() < Duration::from_secs(10));
    // Reads still work.
    assert_eq!(store.get(SPACE, "key").await.unwrap().unwrap().bytes, "value");

    // One put runs and one waits in the queue; the others are refused.
    let all = futures_util::future::join_all((0..10).map(|_| put(&*store))).await;
    let kinds: Vec<_> = all.into_iter().map(|put| put.unwrap_err().kind).collect();
    let busy = kinds.iter().filter(|kind| **kind == StoreErrorKind::Busy).count();
    assert!((8..10).contains(&busy), "{kinds:?}");

    other.execute_batch("ROLLBACK").unwrap();
    assert!(put(&*store).await.unwrap().is_some());
}
