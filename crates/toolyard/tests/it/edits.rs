//! A manifest that is edited while the gateway serves.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::gateway::{Gateway, process_document, stdio};
use crate::support::process::is_running;
use crate::support::scripted::Scripted;

/// The files are looked at this often.
const OFTEN: &str = "10ms";

/// Longer than any test takes.
const NEVER: &str = "1h";

#[track_caller]
fn gateway(handlers: &[Value], check: &str) -> Gateway {
    Gateway::with(handlers, json!({"timeouts": {"manifestCheck": check}}))
}

/// Waits until the gateway has these tools.
#[track_caller]
fn listed(gateway: &Gateway, tools: &[&str]) {
    eventually("the list after an edit", || (gateway.tools() == tools).then_some(()));
}

#[track_caller]
fn pid(gateway: &Gateway, tool: &str) -> u32 {
    gateway.text(tool, json!({})).parse().unwrap()
}

#[test]
fn servers_come_and_go_beside_others_that_stay() {
    let [stays, goes, comes] = ["stays", "goes", "comes"].map(Scripted::new);
    let gateway = gateway(&[stays.handler(), goes.handler()], OFTEN);
    listed(&gateway, &["pid", "wait", "goes_pid", "goes_wait"]);
    let (stayed, gone) = (pid(&gateway, "pid"), pid(&gateway, "goes_pid"));
    gateway.edit(&[stays.handler(), comes.handler()]);
    listed(&gateway, &["pid", "wait", "comes_pid", "comes_wait"]);
    eventually("the end of what was removed", || (!is_running(gone)).then_some(()));
    assert_eq!(pid(&gateway, "pid"), stayed);
    assert!(is_running(pid(&gateway, "comes_pid")));
}

/// What is wrong is reported as at the start, and the old state serves on, until the edit is mended.
#[test]
fn an_edit_with_problems_is_refused_as_a_whole() {
    let [there, new] = ["there", "new"].map(Scripted::new);
    let gateway = gateway(&[there.handler()], OFTEN);
    let before = pid(&gateway, "pid");
    gateway.edit(&[new.handler(), stdio("there", "x", &[]), json!({"name": "third", "type": "mpc"})]);
    let log = gateway
        .process
        .stderr
        .wait_for("the problems", |text| text.contains("did you mean `mcp`").then(|| text.to_owned()));
    assert!(log.contains("an edit is refused, and nothing changes: the manifest has problems"), "{log}");
    assert_eq!(gateway.tools(), ["pid", "wait"]);
    assert_eq!(pid(&gateway, "pid"), before);
    gateway.edit(&[there.handler(), new.handler()]);
    listed(&gateway, &["pid", "wait", "new_pid", "new_wait"]);
    assert_eq!(pid(&gateway, "pid"), before);
}

/// Who does not want to wait says so; and what an edit cannot change is said.
#[test]
fn a_hangup_has_the_files_read_at_once() {
    let [first, second] = ["first", "second"].map(Scripted::new);
    let gateway = gateway(&[first.handler()], NEVER);
    listed(&gateway, &["pid", "wait"]);
    gateway.edit(&[second.handler()]);
    process_document(gateway.folder.path(), json!({"timeouts": {"manifestCheck": NEVER, "drain": "1s"}}));
    gateway.process.signal(Signal::HUP);
    gateway.process.stderr.wait_for("the other half", |text| {
        text.contains("an edit is applied: added second; removed first; 0 not touched; what the `Toolyard` document says now takes a restart").then_some(())
    });
    second.wait_for("initialize");
    listed(&gateway, &["pid", "wait"]);
}
