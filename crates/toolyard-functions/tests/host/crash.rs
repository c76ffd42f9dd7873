//! Consistency after a gateway is killed during publications. The gateway is this test binary.

#![expect(clippy::print_stdout, reason = "it is how the child says what was acknowledged")]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use tempfile::TempDir;
use toolyard_functions::{FunctionHost, VersionBump, VersionSelector};
use toolyard_store::open;
use toolyard_testing::process::bound_to_thread;

use crate::scripted::{host, project};
use toolyard_testing::postgres::PostgresServer;

const PLACE: &str = "TOOLYARD_FUNCTIONS_PLACE";

/// Number of kills, and number of versions before each.
const KILLS: [usize; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20];

/// Number of concurrent writers, so that a kill interrupts them at different points.
const WRITERS: usize = 4;

#[tokio::test]
async fn sqlite_is_consistent_after_a_kill() {
    let folder = TempDir::new().unwrap();
    kill_again_and_again(folder.path().join("toolyard.db").to_str().unwrap()).await;
}

#[tokio::test]
async fn postgres_is_consistent_after_a_kill() {
    let server = PostgresServer::start();
    kill_again_and_again(&server.url()).await;
}

#[tokio::test]
#[ignore = "it is what the processes do that other tests start"]
async fn main() {
    let store = open(&crate::at(&std::env::var(PLACE).unwrap())).await.unwrap();
    let host = host(&store);
    futures_util::future::join_all((0..WRITERS).map(|writer| publish(&host, writer))).await;
}

/// Publishes until it is killed, and prints the acknowledged versions.
async fn publish(host: &FunctionHost, writer: usize) {
    let id = format!("f{writer}");
    for number in 0_u64.. {
        let source = format!("{} {number}", std::process::id()).repeat(500);
        let draft = host.save_draft(&id, &project(&source)).await.unwrap().draft.unwrap();
        let published = host.publish(&id, VersionBump::Patch, Some(&draft.digest)).await.unwrap();
        println!("\nkept {id} {} {}", published.version, draft.digest);
    }
}

fn start(place: &str) -> (Child, BufReader<ChildStdout>) {
    let mut command = bound_to_thread(std::env::current_exe().unwrap());
    command.args(["--exact", "crash::main", "--ignored", "--nocapture"]).env(PLACE, place);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

async fn kill_again_and_again(place: &str) {
    let mut acknowledged = Vec::new();
    for versions in KILLS {
        let (mut child, out) = start(place);
        let mut lines = out
            .lines()
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("kept ").map(str::to_owned));
        // Later each time, to kill it at different points.
        acknowledged.extend(lines.by_ref().take(versions));
        child.kill().unwrap();
        acknowledged.extend(lines);
        child.wait().unwrap();
        // Checked each time, because the next gateway could hide faults of this one.
        let store = open(&crate::at(place)).await.unwrap();
        assert_whole(&host(&store), &acknowledged).await;
    }
    let host = host(&open(&crate::at(place)).await.unwrap());
    for function in host.list().await.unwrap() {
        host.publish(&function.id, VersionBump::Major, None).await.unwrap();
    }
}

/// Checks that all acknowledged versions exist, and that all versions can be loaded.
async fn assert_whole(host: &FunctionHost, acknowledged: &[String]) {
    assert!(!acknowledged.is_empty());
    for line in acknowledged {
        let [id, version, digest] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}?") };
        let details = host.show_version(id, version.parse().unwrap()).await.unwrap();
        assert_eq!(details.digest, digest, "{line}");
    }
    for function in host.list().await.unwrap() {
        assert_eq!(function.problem, None);
        let details = host.show(&function.id).await.unwrap();
        for version in &details.published {
            host.resolve(&function.id, VersionSelector::Exact(version.version)).await.unwrap();
        }
        host.resolve(&function.id, VersionSelector::Draft).await.unwrap();
    }
}
