//! How a gateway begins and ends.

use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::support::gateway::{Gateway, over_http, stdio};
use crate::support::message;
use crate::support::process::is_running;
use crate::support::scripted::Scripted;
use crate::support::{eventually, peers};

#[test]
fn it_is_healthy_while_handlers_are_down() {
    let there = Scripted::new("there");
    let nobody = format!("http://127.0.0.1:{}/mcp", peers::free_port());
    let gateway = Gateway::of(&[
        stdio("missing", "no-such-program", &[]),
        stdio("crashing", "false", &[]),
        over_http("gone", &nobody),
        there.handler(),
    ]);
    assert_eq!(gateway.tools(), ["pid", "wait"]);
    let health = gateway.health().unwrap();
    assert_eq!((health.status, &*health.body), (200, r#"{"status":"ok"}"#));
    let greeting = gateway
        .process
        .stdout
        .wait_for("what was found", |text| text.contains("mcpServers").then(|| text.to_owned()));
    assert!(greeting.contains("  there: pid, wait\n"), "{greeting}");
    assert!(greeting.contains("  missing: unavailable (cannot start \"no-such-program\": "), "{greeting}");
}

/// A call that runs is answered, others are sent away, and then the gateway ends well.
#[track_caller]
fn check_drain(signal: Signal) {
    let server = Scripted::new("slow");
    let mut gateway = Gateway::with(&[server.handler()], json!({"timeouts": {"drain": "1h"}}));
    let caller = gateway.open(&[], &message::call(1, "wait"));
    server.wait_for("tools/call");
    gateway.process.signal(signal);
    // A connection that is opened just when draining begins may be closed before its request is read.
    let health = eventually("draining", || gateway.health().filter(|health| health.status != 200));
    assert_eq!((health.status, &*health.body), (503, r#"{"status":"draining"}"#));
    assert_eq!(gateway.call("pid", json!({})).status, 503);
    server.open_gate();
    assert_eq!(caller.response().unwrap().result()["content"][0]["text"], "The gate is open.");
    assert_eq!(gateway.process.wait().code(), Some(0));
}

/// More callers than the system lets it have open files, who then leave: the next one is served.
#[test]
fn it_recovers_when_it_was_out_of_files() {
    let folder = TempDir::new().unwrap();
    let mut command = peers::command("sh", folder.path());
    command.args(["-c", "ulimit -n 40; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_toolyard"), "serve"]);
    let gateway = Gateway::start(folder, &mut command);
    let callers: Vec<_> = (0..100).map(|_| TcpStream::connect(gateway.address).unwrap()).collect();
    gateway
        .process
        .stderr
        .wait_for("a failed accept", |text| text.contains("cannot accept a connection").then_some(()));
    drop(callers);
    assert_eq!(gateway.health().unwrap().status, 200);
}

#[test]
fn sigterm_drains() {
    check_drain(Signal::TERM);
}

#[test]
fn sigint_drains() {
    check_drain(Signal::INT);
}

#[test]
fn a_call_that_does_not_end_is_not_waited_for_longer_than_drain() {
    let server = Scripted::new("slow");
    let mut gateway = Gateway::with(&[server.handler()], json!({"timeouts": {"drain": "50ms"}}));
    let caller = gateway.open(&[], &message::call(1, "wait"));
    server.wait_for("tools/call");
    gateway.process.signal(Signal::TERM);
    assert!(caller.response().is_none());
    assert_eq!(gateway.process.wait().code(), Some(0));
}

#[test]
fn an_open_stream_is_ended_and_does_not_hold_up_the_end() {
    let server = Scripted::new("any");
    let mut gateway = Gateway::with(&[server.handler()], json!({"timeouts": {"drain": "1h"}}));
    let (headers, listen) = message::modern("subscriptions/listen", json!({"notifications": {}}));
    let mut stream = gateway.open(&headers, &listen);
    stream.wait_for("notifications/subscriptions/acknowledged");
    gateway.process.signal(Signal::TERM);
    assert_eq!(stream.response().unwrap().result()["resultType"], "complete");
    assert_eq!(gateway.process.wait().code(), Some(0));
}

#[test]
fn children_end_with_it() {
    let (one, other) = (Scripted::new("child"), Scripted::new("grandchild"));
    let mut gateway = Gateway::of(&[one.handler(), other.handler_in_a_shell()]);
    let pids = ["pid", "grandchild_pid"].map(|tool| gateway.text(tool, json!({})).parse().unwrap());
    assert!(pids.into_iter().all(is_running));
    gateway.process.signal(Signal::TERM);
    assert_eq!(gateway.process.wait().code(), Some(0));
    eventually("the end of the servers", || (!pids.into_iter().any(is_running)).then_some(()));
}
