//! What a disk does to a store in a file.

#![expect(clippy::print_stdout, reason = "it is how the child says how far it came")]

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rusqlite::Connection;
use tempfile::TempDir;
use toolyard_core::store::{Put, Space, Store, StoreError, Trouble};
use toolyard_store::{Location, StoreOptions, open};

use crate::child::{self, Writing};

const SPACE: Space = Space("disk");

/// In the middle of its writes, with SIGKILL, several times on one file.
#[tokio::test]
async fn a_killed_writer_loses_nothing_that_was_acknowledged() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    let mut kept = Vec::new();
    for round in 0..5 {
        let mut writing = Writing::start(file.to_str().unwrap());
        writing.wait_for(200 + 171 * round, &mut kept);
        writing.kill(&mut kept);
        let store = open(&StoreOptions::at(Location::File(file.clone()))).await.unwrap();
        child::assert_kept(&*store, &kept).await;
    }
    let check: String =
        Connection::open(&file).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

/// A file system of its own with two MiB, which only the child sees.
#[test]
fn a_full_disk_is_said_and_survived() {
    let folder = TempDir::new().unwrap();
    let child = child::command("fill", folder.path().to_str().unwrap());
    let mut unshare = child_of("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    unshare.arg("mount -t tmpfs -o size=2m tmpfs \"$0\" && exec \"$@\"").arg(folder.path());
    unshare.arg(child.get_program()).args(child.get_args());
    unshare.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = unshare.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    for step in ["full", "read", "room"] {
        assert!(said.contains(&format!("\nfill: {step}\n")), "{step}: {said}");
    }
}

#[expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]
fn child_of(program: &str) -> std::process::Command {
    std::process::Command::new(program)
}

/// What the child does in the file system of its own.
pub(crate) async fn fill(folder: &Path) {
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![1; 512 << 10]).unwrap();
    let file = folder.join("toolyard.db");
    let store = open(&StoreOptions::at(Location::File(file))).await.unwrap();
    let blob = |fill: usize| Bytes::from(vec![u8::try_from(fill % 256).unwrap(); 32 << 10]);
    let mut kept = 0;
    let full = loop {
        match store.put_blob(SPACE, &kept.to_string(), blob(kept)).await {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full.trouble, Trouble::Full, "{full:?}");
    println!("\nfill: full");
    for number in 0..kept {
        let found = store.get_blob(SPACE, &number.to_string()).await.unwrap();
        assert!(found.unwrap() == blob(number), "{number}");
    }
    println!("\nfill: read");
    std::fs::remove_file(ballast).unwrap();
    for number in kept..kept + 3 {
        store.put_blob(SPACE, &number.to_string(), blob(number)).await.unwrap();
    }
    assert!(store.get_blob(SPACE, "0").await.unwrap().unwrap() == blob(0));
    println!("\nfill: room");
}

async fn put(store: &dyn Store) -> Result<Option<u64>, StoreError> {
    store.put(SPACE, "key", Put::always("value")).await
}

#[tokio::test]
async fn a_locked_file_is_said_soon_and_survived() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    let options = StoreOptions { queue: 1, ..StoreOptions::at(Location::File(file.clone())) };
    let store = open(&options).await.unwrap();
    put(&*store).await.unwrap();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();

    let asked = Instant::now();
    assert_eq!(put(&*store).await.unwrap_err().trouble, Trouble::Unavailable);
    assert!(asked.elapsed() < Duration::from_secs(10));
    // Who reads does not mind.
    assert_eq!(store.get(SPACE, "key").await.unwrap().unwrap().bytes, "value");

    // One is tried and one waits; there is no room for more.
    let all = futures_util::future::join_all((0..10).map(|_| put(&*store))).await;
    let troubles: Vec<_> = all.into_iter().map(|put| put.unwrap_err().trouble).collect();
    let busy = troubles.iter().filter(|trouble| **trouble == Trouble::Busy).count();
    assert!((8..10).contains(&busy), "{troubles:?}");

    other.execute_batch("ROLLBACK").unwrap();
    assert!(put(&*store).await.unwrap().is_some());
}
