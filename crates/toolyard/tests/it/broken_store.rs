//! A store in trouble: calls that need none go on, what is lost of the audit trail is counted and said, and the trail
//! itself tells of it as soon as the store is well.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::eventually;
use crate::support::gateway::Gateway;
use crate::support::peers;
use crate::support::postgres::Server;
use crate::support::scripted::Scripted;

/// Records that may wait: `limits.queuedRecords`.
const QUEUE: usize = 10;

fn process(store: Value) -> Value {
    json!({"allowUnauthenticated": true, "store": store, "limits": {"queuedRecords": QUEUE}})
}

/// How many records were lost, as the metrics have it.
#[track_caller]
fn lost(gateway: &Gateway) -> u64 {
    let page = gateway.get("/metrics").body;
    let counts =
        page.lines().filter(|line| !line.starts_with('#') && line.contains("audit") && line.contains("lost"));
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).map(|count| count as u64).sum()
}

/// The actions in the trail, with what they are about, newest first; `None` while it cannot be read.
fn trail(gateway: &Gateway) -> Option<Vec<(String, String)>> {
    let page = gateway.get("/api/v1/audit?limit=1000");
    let page: Value = serde_json::from_str(&page.body).ok()?;
    let text = |record: &Value, member: &str| record[member].as_str().unwrap_or_default().to_owned();
    Some(
        page["records"]
            .as_array()?
            .iter()
            .map(|record| (text(record, "action"), text(record, "name")))
            .collect(),
    )
}

#[track_caller]
fn call(gateway: &Gateway) {
    assert!(!gateway.text("pid", json!({})).is_empty());
}

/// Breaks the store of a gateway, calls until records are lost, mends it, and holds the trail to what was said.
#[track_caller]
fn check(gateway: &Gateway, break_it: impl FnOnce(), mend: impl FnOnce()) {
    call(gateway);
    eventually("the first record", || trail(gateway).filter(|trail| trail.len() == 1));
    break_it();
    eventually("records are lost", || {
        call(gateway);
        (lost(gateway) > 0).then_some(())
    });
    gateway
        .process
        .stderr
        .wait_for("the trouble", |log| log.contains("the audit trail cannot be written").then_some(()));
    mend();
    let told = eventually("the trail tells of what is missing", || {
        trail(gateway)?.into_iter().find(|(action, _)| action == "records_lost")
    });
    assert!(told.1.parse::<u64>().unwrap() > 0, "{told:?}");
    gateway
        .process
        .stderr
        .wait_for("the loss", |log| log.contains("the audit trail is not complete").then_some(()));
    // From now on it is complete again.
    let before = trail(gateway).unwrap().len();
    call(gateway);
    eventually("the next record", || trail(gateway).filter(|trail| trail.len() > before));
}

#[test]
fn a_database_that_is_gone_for_a_while() {
    let (mut server, tool) = (Server::start(), Scripted::new("tool"));
    let gateway = Gateway::with(&[tool.handler()], process(json!({"url": server.url()})));
    let server = std::cell::RefCell::new(&mut server);
    check(&gateway, || server.borrow_mut().kill(), || server.borrow_mut().run(&[]));
}

/// A file system of its own with two MiB, which only the gateway sees.
#[test]
fn a_disk_that_is_full_for_a_while() {
    let (tool, disk) = (Scripted::new("tool"), TempDir::new().unwrap());
    let store = json!({"path": disk.path().join("toolyard.db")});
    let (folder, serve) = Gateway::command(&[tool.handler()], process(store));
    let mut command = peers::command("unshare", folder.path());
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    command.arg("mount -t tmpfs -o size=2m tmpfs \"$0\" && exec \"$@\"").arg(disk.path());
    command.arg(serve.get_program()).args(serve.get_args());
    command.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let gateway = Gateway::start(folder, &mut command);
    // As the gateway sees it.
    let ballast =
        PathBuf::from(format!("/proc/{}/root{}/ballast", gateway.process.id(), disk.path().display()));
    let fill = || {
        let _full = std::fs::write(&ballast, vec![1; 4 << 20]);
    };
    check(&gateway, fill, || std::fs::remove_file(&ballast).unwrap());
}
