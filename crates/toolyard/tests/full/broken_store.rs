//! Failing stores: calls continue, lost audit records are counted and logged, and recorded once the store is back.

use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::peers;
use toolyard_testing::postgres::PostgresServer;
use toolyard_testing::scripted_server::ScriptedServer;
use toolyard_testing::wait::eventually;

use crate::support::gateway::TestGateway;

/// Value of `limits.queuedRecords`.
const QUEUE: usize = 10;

fn process(store: Value) -> Value {
    json!({"allowUnauthenticated": true, "store": store, "limits": {"queuedRecords": QUEUE}})
}

/// Returns the number of lost records from the metrics.
#[track_caller]
fn lost_records(gateway: &TestGateway) -> u64 {
    let page = gateway.get("/metrics").body;
    let counts =
        page.lines().filter(|line| !line.starts_with('#') && line.contains("audit") && line.contains("lost"));
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).map(|count| count as u64).sum()
}

/// Returns the actions in the audit trail with their objects, newest first, or `None` while it cannot be read.
fn trail_actions(gateway: &TestGateway) -> Option<Vec<(String, String)>> {
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
fn call(gateway: &TestGateway) {
    assert!(!gateway.text("pid", json!({})).is_empty());
}

/// Disrupts the store, calls until records are lost, repairs the store and checks the audit trail.
#[track_caller]
fn check(gateway: &TestGateway, disrupt: impl FnOnce(), repair: impl FnOnce()) {
    call(gateway);
    eventually("the first record", || trail_actions(gateway).filter(|trail| trail.len() == 1));
    disrupt();
    eventually("records are lost", || {
        call(gateway);
        (lost_records(gateway) > 0).then_some(())
    });
    gateway
        .process
        .stderr
        .wait_for("the outage", |log| log.contains("cannot write the audit trail").then_some(()));
    repair();
    let lost_in_trail = eventually("the audit trail counts the lost records", || {
        trail_actions(gateway)?.into_iter().find(|(action, _)| action == "records_lost")
    });
    assert!(lost_in_trail.1.parse::<u64>().unwrap() > 0, "{lost_in_trail:?}");
    gateway
        .process
        .stderr
        .wait_for("the loss", |log| log.contains("the audit trail is incomplete").then_some(()));
    // The trail is complete from now on.
    let before = trail_actions(gateway).unwrap().len();
    call(gateway);
    eventually("the next record", || trail_actions(gateway).filter(|trail| trail.len() > before));
}

#[test]
fn database_outage_is_recorded() {
    let (mut server, tool) = (PostgresServer::start(), ScriptedServer::new("tool"));
    let gateway = TestGateway::with_settings(&[tool.handler()], process(json!({"url": server.url()})));
    let server = std::cell::RefCell::new(&mut server);
    check(&gateway, || server.borrow_mut().kill(), || server.borrow_mut().run(&[]));
}

/// A file system of 2 MiB that only the gateway sees.
#[test]
fn full_disk_is_recorded() {
    let (tool, disk) = (ScriptedServer::new("tool"), TempDir::new().unwrap());
    let store = json!({"path": disk.path().join("toolyard.db")});
    let (folder, serve) = TestGateway::command(&[tool.handler()], process(store));
    let mut command = peers::command("unshare", folder.path());
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    command.arg("mount -t tmpfs -o size=2m tmpfs \"$0\" && exec \"$@\"").arg(disk.path());
    command.arg(serve.get_program()).args(serve.get_args());
    command.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let gateway = TestGateway::start(folder, &mut command);
    // The path in the mount namespace of the gateway.
    let ballast =
        PathBuf::from(format!("/proc/{}/root{}/ballast", gateway.process.id(), disk.path().display()));
    let fill = || {
        let _full = std::fs::write(&ballast, vec![1; 4 << 20]);
    };
    check(&gateway, fill, || std::fs::remove_file(&ballast).unwrap());
}

/// A killed gateway loses only the records of the last 100 ms.
#[test]
fn killed_gateway_loses_no_written_record() {
    let (tool, folder) = (ScriptedServer::new("tool"), TempDir::new().unwrap());
    let store = json!({"path": folder.path().join("toolyard.db")});
    let mut expected = 0;
    for _ in 0..3 {
        let mut gateway = TestGateway::with_settings(&[tool.handler()], process(store.clone()));
        // Earlier records, also of killed gateways.
        assert_eq!(trail_actions(&gateway).unwrap().len(), expected);
        for _ in 0..5 {
            call(&gateway);
            expected += 1;
            // The next call comes after the write, so that there are several blocks.
            eventually("the record", || trail_actions(&gateway).filter(|trail| trail.len() == expected));
        }
        gateway.process.signal(Signal::KILL);
        gateway.process.wait();
    }
    let gateway = TestGateway::with_settings(&[tool.handler()], process(store));
    assert_eq!(trail_actions(&gateway).unwrap().len(), expected);
}
