//! Startup and shutdown of a gateway.

use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;
use toolyard_testing::manifest::{http_handler, stdio_handler};
use toolyard_testing::process::is_running;
use toolyard_testing::scripted_server::ScriptedServer;
use toolyard_testing::wait::eventually;
use toolyard_testing::{messages, peers};

use crate::support::gateway::TestGateway;

#[test]
fn gateway_is_healthy_while_handlers_are_down() {
    let there = ScriptedServer::new("there");
    let nobody = format!("http://127.0.0.1:{}/mcp", peers::free_port());
    let gateway = TestGateway::with_handlers(&[
        stdio_handler("missing", "no-such-program", &[]),
        stdio_handler("crashing", "false", &[]),
        http_handler("gone", &nobody),
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

/// A running call is answered, new calls are rejected, and the gateway exits successfully.
#[track_caller]
fn check_drain(signal: Signal) {
    let server = ScriptedServer::new("slow");
    let mut gateway = TestGateway::with_settings(&[server.handler()], json!({"timeouts": {"drain": "1h"}}));
    let caller = gateway.open_request(&[], &messages::tool_call(1, "wait"));
    server.wait_for("tools/call");
    gateway.process.signal(signal);
    // A connection that is opened at the start of the drain may be closed before its request is read.
    let health = eventually("draining", || gateway.health().filter(|health| health.status != 200));
    assert_eq!((health.status, &*health.body), (503, r#"{"status":"draining"}"#));
    let refused = gateway.call("pid", json!({}));
    let body: serde_json::Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!((refused.status, &body["id"], &body["error"]["code"]), (200, &json!(1), &json!(-32603)));
    assert_eq!(body["error"]["data"]["code"], "unavailable", "{body}");
    server.open_gate();
    assert_eq!(caller.response().unwrap().result()["content"][0]["text"], "The gate is open.");
    assert_eq!(gateway.process.wait().code(), Some(0));
}

/// After running out of file descriptors, the gateway serves again once connections close.
#[test]
fn gateway_recovers_from_lack_of_file_descriptors() {
    let folder = TempDir::new().unwrap();
    let mut command = peers::command("sh", folder.path());
    command.args(["-c", "ulimit -n 40; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_toolyard"), "serve"]);
    let gateway = TestGateway::start(folder, &mut command);
    let callers: Vec<_> = (0..100).map(|_| TcpStream::connect(gateway.address).unwrap()).collect();
    gateway
        .process
        .stderr
        .wait_for("a failed accept", |text| text.contains("cannot accept connections").then_some(()));
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
fn drain_timeout_limits_running_calls() {
    let server = ScriptedServer::new("slow");
    let mut gateway = TestGateway::with_settings(&[server.handler()], json!({"timeouts": {"drain": "50ms"}}));
    let caller = gateway.open_request(&[], &messages::tool_call(1, "wait"));
    server.wait_for("tools/call");
    gateway.process.signal(Signal::TERM);
    assert!(caller.response().is_none());
    assert_eq!(gateway.process.wait().code(), Some(0));
}

#[test]
fn open_stream_does_not_delay_shutdown() {
    let server = ScriptedServer::new("any");
    let mut gateway = TestGateway::with_settings(&[server.handler()], json!({"timeouts": {"drain": "1h"}}));
    let (headers, listen) = messages::stateless_request("subscriptions/listen", json!({"notifications": {}}));
    let mut stream = gateway.open_request(&headers, &listen);
    stream.wait_for("notifications/subscriptions/acknowledged");
    gateway.process.signal(Signal::TERM);
    assert_eq!(stream.response().unwrap().result()["resultType"], "complete");
    assert_eq!(gateway.process.wait().code(), Some(0));
}

#[test]
fn child_processes_end_with_the_gateway() {
    let (one, other) = (ScriptedServer::new("child"), ScriptedServer::new("grandchild"));
    let mut gateway = TestGateway::with_handlers(&[one.handler(), other.handler_below_shell()]);
    let pids = ["pid", "grandchild_pid"].map(|tool| gateway.text(tool, json!({})).parse().unwrap());
    assert!(pids.into_iter().all(is_running));
    gateway.process.signal(Signal::TERM);
    assert_eq!(gateway.process.wait().code(), Some(0));
    eventually("the end of the servers", || (!pids.into_iter().any(is_running)).then_some(()));
}
