//! Group commit: jobs that share a transaction.

use std::sync::mpsc;

use rusqlite::Connection;
use tokio::join;
use toolyard_core::store::{StoreError, StoreErrorKind};

use super::super::{file, migration};
use super::SqliteWriter;

fn writer() -> SqliteWriter {
    let mut connection = file::open_in_memory().unwrap();
    assert!(migration::migrate(&mut connection).is_ok());
    SqliteWriter::start(connection, 10).unwrap()
}

/// Inserts a record.
fn insert(connection: &Connection, body: &str) -> rusqlite::Result<()> {
    connection.execute("INSERT INTO log (space, time_ms, body) VALUES ('a', 0, ?1)", [body]).map(drop)
}

fn insert_then_fail(connection: &Connection) -> rusqlite::Result<()> {
    insert(connection, "half of it")?;
    connection.execute("INSERT INTO absent VALUES (1)", []).map(drop)
}

/// Succeeds, but makes the commit fail with a dangling foreign key.
fn break_commit(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE one (number INTEGER PRIMARY KEY);
         CREATE TABLE other (number INTEGER REFERENCES one (number) DEFERRABLE INITIALLY DEFERRED);
         INSERT INTO other VALUES (99)",
    )
}

async fn bodies(writer: &SqliteWriter) -> Vec<String> {
    let read = |connection: &Connection| {
        connection.prepare("SELECT body FROM log")?.query_map([], |row| row.get(0))?.collect()
    };
    writer.write(read).await.unwrap()
}

/// Writes three jobs while the thread is busy, so that they become one group.
async fn write_group(
    writer: &SqliteWriter,
    second: fn(&Connection) -> rusqlite::Result<()>,
) -> [Result<(), StoreError>; 3] {
    let (go, wait) = mpsc::channel::<()>();
    let (started_tx, started) = tokio::sync::oneshot::channel();
    let hold = writer.write(move |_| {
        started_tx.send(()).unwrap();
        // Until the sender is dropped.
        let _dropped = wait.recv();
        Ok(())
    });
    let three = async {
        started.await.unwrap();
        let release = async { drop(go) };
        let (first, second, third, ()) = join!(
            writer.write(|connection| insert(connection, "first")),
            writer.write(second),
            writer.write(|connection| insert(connection, "third")),
            release,
        );
        [first, second, third]
    };
    let (hold_outcome, three) = join!(hold, three);
    hold_outcome.unwrap();
    three
}

#[tokio::test]
async fn failed_write_does_not_fail_its_group() {
    let writer = writer();
    let [first, second, third] = write_group(&writer, insert_then_fail).await;
    assert!(first.is_ok() && third.is_ok());
    assert!(second.unwrap_err().source.to_string().contains("no such table"));
    assert_eq!(bodies(&writer).await, ["first", "third"]);
}

/// No write is acknowledged before its commit.
#[tokio::test]
async fn failed_commit_fails_all_writes_of_its_group() {
    let writer = writer();
    for outcome in write_group(&writer, break_commit).await {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unavailable);
        assert!(error.source.to_string().contains("FOREIGN KEY"), "{error:?}");
    }
    assert_eq!(bodies(&writer).await, Vec::<String>::new());
    // The next group has a transaction of its own.
    assert!(writer.write(|connection| insert(connection, "later")).await.is_ok());
}

#[tokio::test]
async fn withdrawn_write_is_not_started() {
    let writer = writer();
    let (go, wait) = mpsc::channel::<()>();
    let (started_tx, started) = tokio::sync::oneshot::channel();
    let hold = writer.write(move |_| {
        started_tx.send(()).unwrap();
        let _dropped = wait.recv();
        Ok(())
    });
    let withdrawn = async {
        started.await.unwrap();
        let write = writer.write(|connection| insert(connection, "withdrawn"));
        assert!(futures_util::FutureExt::now_or_never(write).is_none());
        drop(go);
    };
    let (hold_outcome, ()) = join!(hold, withdrawn);
    hold_outcome.unwrap();
    assert_eq!(bodies(&writer).await, Vec::<String>::new());
}
