//! Another process with a store: this test binary again, so that a test can kill it.

#![expect(clippy::print_stdout, reason = "the child reports acknowledged writes on its output")]

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use toolyard_core::store::{KeySpace, PutRequest, Store};
use toolyard_store::{DatabaseLocation, PostgresUrl, StoreOptions, open};
use toolyard_testing::process::bound_to_thread;

use crate::disk;

/// The role of the child.
const ROLE: &str = "TOOLYARD_STORE_ROLE";
/// The location of its store: a URL or a path.
const LOCATION: &str = "TOOLYARD_STORE_LOCATION";

pub(crate) const SPACE: KeySpace = KeySpace("crash");

/// The command of a child with this role. The child ends with the thread of the test.
pub(crate) fn command(role: &str, location: &str) -> Command {
    let mut command = bound_to_thread(std::env::current_exe().unwrap());
    command.args(["--exact", "child::main", "--ignored", "--nocapture"]);
    command.env(ROLE, role).env(LOCATION, location).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

#[tokio::test]
#[ignore = "the entry point of the processes that other tests start"]
async fn main() {
    let location = std::env::var(LOCATION).unwrap();
    match &*std::env::var(ROLE).unwrap() {
        "write" => write(&location).await,
        "fill" => disk::fill(Path::new(&location)).await,
        "open" => drop(open(&options(&location)).await.unwrap()),
        other => panic!("{other}?"),
    }
}

fn options(location: &str) -> StoreOptions {
    StoreOptions::at(match location.starts_with("postgres://") {
        true => DatabaseLocation::Postgres(PostgresUrl::parse(location).unwrap()),
        false => DatabaseLocation::File(location.into()),
    })
}

/// Number of concurrent writers, so that their writes share transactions.
const WRITERS: usize = 16;

/// Writes until the process is killed or the store fails; prints the acknowledged keys.
async fn write(location: &str) {
    let store = open(&options(location)).await.unwrap();
    let pid = std::process::id();
    let write = async |writer: usize| {
        for number in 0_u64.. {
            let key = format!("{pid}-{writer}-{number}");
            if store.put(SPACE, &key, PutRequest::always(value(&key))).await.is_err() {
                return;
            }
            println!("\nacknowledged {key}");
        }
    };
    futures_util::future::join_all((0..WRITERS).map(write)).await;
}

/// A value that is long enough to show a torn write.
fn value(key: &str) -> String {
    key.repeat(50)
}

/// A child that writes.
pub(crate) struct WriterProcess {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl WriterProcess {
    pub(crate) fn start(location: &str) -> Self {
        let mut process = command("write", location).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// Waits for `count` more acknowledged writes, and adds their keys to `keys`.
    pub(crate) fn wait_for(&mut self, count: usize, keys: &mut Vec<String>) {
        let before = keys.len();
        keys.extend(acknowledged(&mut self.lines).take(count));
        assert_eq!(keys.len(), before + count, "the child ended early");
    }

    /// Kills the child during its writes, and adds the keys that it acknowledged before.
    pub(crate) fn kill(mut self, keys: &mut Vec<String>) {
        self.process.kill().unwrap();
        self.finish(keys);
    }

    /// Waits for the end of the child, and adds the keys that it acknowledged before.
    pub(crate) fn finish(mut self, keys: &mut Vec<String>) {
        keys.extend(acknowledged(&mut self.lines));
        self.process.wait().unwrap();
    }
}

fn acknowledged(lines: &mut Lines<BufReader<ChildStdout>>) -> impl Iterator<Item = String> {
    lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("acknowledged ").map(str::to_owned))
}

/// Asserts that every acknowledged value is stored, and complete.
pub(crate) async fn assert_stored(store: &dyn Store, keys: &[String]) {
    for key in keys {
        let value_at_key = store.get(SPACE, key).await.unwrap();
        assert_eq!(value_at_key.map(|found| found.bytes), Some(value(key).into()), "{key} is lost");
    }
}
