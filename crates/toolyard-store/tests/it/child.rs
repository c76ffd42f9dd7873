//! Another process with a store: this test binary again, which can be killed without the test.

#![expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]
#![expect(clippy::print_stdout, reason = "it is how the child says what was acknowledged")]

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use toolyard_core::store::{Put, Space, Store};
use toolyard_store::{Location, PostgresUrl, StoreOptions, open};

use crate::disk;

/// What the child does.
const PART: &str = "TOOLYARD_STORE_PART";
/// Where its store is: a URL or a path.
const PLACE: &str = "TOOLYARD_STORE_PLACE";

pub(crate) const SPACE: Space = Space("crash");

/// The command of a child with this part. It ends with the thread of the test.
pub(crate) fn command(part: &str, place: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "child::main", "--ignored", "--nocapture"]);
    command.env(PART, part).env(PLACE, place).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

#[tokio::test]
#[ignore = "it is what the processes do that other tests start"]
async fn main() {
    let place = std::env::var(PLACE).unwrap();
    match &*std::env::var(PART).unwrap() {
        "write" => write(&place).await,
        "fill" => disk::fill(Path::new(&place)).await,
        "open" => drop(open(&options(&place)).await.unwrap()),
        other => panic!("{other}?"),
    }
}

fn options(place: &str) -> StoreOptions {
    StoreOptions::at(match place.starts_with("postgres://") {
        true => Location::Postgres(PostgresUrl::parse(place).unwrap()),
        false => Location::File(place.into()),
    })
}

/// Writers at a time, so that their writes share transactions.
const WRITERS: usize = 16;

/// Writes until it is killed or the store fails, and says what was acknowledged.
async fn write(place: &str) {
    let store = open(&options(place)).await.unwrap();
    let pid = std::process::id();
    let write = async |writer: usize| {
        for number in 0_u64.. {
            let key = format!("{pid}-{writer}-{number}");
            if store.put(SPACE, &key, Put::always(value(&key))).await.is_err() {
                return;
            }
            println!("\nkept {key}");
        }
    };
    futures_util::future::join_all((0..WRITERS).map(write)).await;
}

/// Long enough that a torn one would be seen.
fn value(key: &str) -> String {
    key.repeat(50)
}

/// A child that writes.
pub(crate) struct Writing {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Writing {
    pub(crate) fn start(place: &str) -> Self {
        let mut process = command("write", place).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// Waits until so many more writes are acknowledged; adds them to a list.
    pub(crate) fn wait_for(&mut self, number: usize, kept: &mut Vec<String>) {
        let before = kept.len();
        kept.extend(acknowledged(&mut self.lines).take(number));
        assert_eq!(kept.len(), before + number, "it has ended before");
    }

    /// Kills it in the middle of its work; adds what it had said by then.
    pub(crate) fn kill(mut self, kept: &mut Vec<String>) {
        self.process.kill().unwrap();
        self.end(kept);
    }

    /// Waits for its end; adds what it had said by then.
    pub(crate) fn end(mut self, kept: &mut Vec<String>) {
        kept.extend(acknowledged(&mut self.lines));
        self.process.wait().unwrap();
    }
}

fn acknowledged(lines: &mut Lines<BufReader<ChildStdout>>) -> impl Iterator<Item = String> {
    lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("kept ").map(str::to_owned))
}

/// Everything that was acknowledged is there, and whole.
pub(crate) async fn assert_kept(store: &dyn Store, kept: &[String]) {
    for key in kept {
        let found = store.get(SPACE, key).await.unwrap();
        assert_eq!(found.map(|found| found.bytes), Some(value(key).into()), "{key} is lost");
    }
}
