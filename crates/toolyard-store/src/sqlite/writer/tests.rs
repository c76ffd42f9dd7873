//! What shares a transaction, and what does not.

use std::sync::mpsc;

use rusqlite::Connection;
use tokio::join;
use toolyard_core::store::{StoreError, Trouble};

use super::super::{file, migration};
use super::Writer;

fn writer() -> Writer {
    let mut connection = file::in_memory().unwrap();
    assert!(migration::migrate(&mut connection).is_ok());
    Writer::start(connection, 10).unwrap()
}

/// Adds a record, and fails or not.
fn add(connection: &Connection, body: &str) -> rusqlite::Result<()> {
    connection.execute("INSERT INTO log (space, time_ms, body) VALUES ('a', 0, ?1)", [body]).map(drop)
}

fn fail(connection: &Connection) -> rusqlite::Result<()> {
    add(connection, "half of it")?;
    connection.execute("INSERT INTO absent VALUES (1)", []).map(drop)
}

/// Is done, but makes the commit fail: what it refers to is not there.
fn spoil(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE one (number INTEGER PRIMARY KEY);
         CREATE TABLE other (number INTEGER REFERENCES one (number) DEFERRABLE INITIALLY DEFERRED);
         INSERT INTO other VALUES (99)",
    )
}

async fn bodies(writer: &Writer) -> Vec<String> {
    let read = |connection: &Connection| {
        connection.prepare("SELECT body FROM log")?.query_map([], |row| row.get(0))?.collect()
    };
    writer.write(read).await.unwrap()
}

/// Writes three while the thread is busy, so that they become one group.
async fn group(
    writer: &Writer,
    second: fn(&Connection) -> rusqlite::Result<()>,
) -> [Result<(), StoreError>; 3] {
    let (go, wait) = mpsc::channel::<()>();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let hold = writer.write(move |_| {
        begin.send(()).unwrap();
        // Until it is dropped.
        let _dropped = wait.recv();
        Ok(())
    });
    let three = async {
        begun.await.unwrap();
        let release = async { drop(go) };
        let (first, second, third, ()) = join!(
            writer.write(|connection| add(connection, "first")),
            writer.write(second),
            writer.write(|connection| add(connection, "third")),
            release,
        );
        [first, second, third]
    };
    let (held, three) = join!(hold, three);
    held.unwrap();
    three
}

#[tokio::test]
async fn one_that_fails_does_not_fail_the_others() {
    let writer = writer();
    let [first, second, third] = group(&writer, fail).await;
    assert!(first.is_ok() && third.is_ok());
    assert!(second.unwrap_err().source.to_string().contains("no such table"));
    assert_eq!(bodies(&writer).await, ["first", "third"]);
}

/// Nobody is told that something is kept before it is committed.
#[tokio::test]
async fn a_commit_that_fails_is_told_to_all_that_share_it() {
    let writer = writer();
    for outcome in group(&writer, spoil).await {
        let error = outcome.unwrap_err();
        assert_eq!(error.trouble, Trouble::Unavailable);
        assert!(error.source.to_string().contains("FOREIGN KEY"), "{error:?}");
    }
    assert_eq!(bodies(&writer).await, Vec::<String>::new());
    // The next group is another one.
    assert!(writer.write(|connection| add(connection, "later")).await.is_ok());
}

#[tokio::test]
async fn what_nobody_waits_for_is_not_begun() {
    let writer = writer();
    let (go, wait) = mpsc::channel::<()>();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let hold = writer.write(move |_| {
        begin.send(()).unwrap();
        let _dropped = wait.recv();
        Ok(())
    });
    let withdrawn = async {
        begun.await.unwrap();
        let write = writer.write(|connection| add(connection, "withdrawn"));
        assert!(futures_util::FutureExt::now_or_never(write).is_none());
        drop(go);
    };
    let (held, ()) = join!(hold, withdrawn);
    held.unwrap();
    assert_eq!(bodies(&writer).await, Vec::<String>::new());
}
