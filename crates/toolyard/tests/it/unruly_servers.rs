//! Servers on stdio that crash, hang, or print what they should not.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::gateway::Gateway;
use crate::support::message;
use crate::support::process::is_running;
use crate::support::scripted::Scripted;

#[test]
fn a_server_that_was_killed_is_started_again() {
    let server = Scripted::new("mortal");
    let gateway = Gateway::of(&[server.handler()]);
    let first: u32 = gateway.text("pid", json!({})).parse().unwrap();
    kill_process(Pid::from_raw(first.cast_signed()).unwrap(), Signal::KILL).unwrap();
    // Its tools stay listed all the time.
    assert_eq!(gateway.tools(), ["pid", "wait"]);
    let second: u32 = eventually("a call that works", || {
        let answer = gateway.call("pid", json!({})).messages().pop()?;
        assert_eq!(gateway.tools(), ["pid", "wait"]);
        answer["result"]["content"][0]["text"].as_str()?.parse().ok()
    });
    assert_ne!(first, second);
    assert!(!is_running(first) && is_running(second));
}

#[test]
fn a_call_that_dies_with_its_server_is_answered() {
    let server = Scripted::new("mortal");
    let gateway = Gateway::of(&[server.handler()]);
    let pid: i32 = gateway.text("pid", json!({})).parse().unwrap();
    let caller = gateway.open(&[], &message::call(1, "wait"));
    eventually("the call at the server", || {
        server.received().iter().any(|message| message["params"]["name"] == "wait").then_some(())
    });
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let answer = caller.response().unwrap();
    insta::assert_snapshot!(format!("{} {}", answer.status, answer.body), @r#"200 {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"The connection to the server broke","retryable":true}}}"#);
}

/// It works like any other.
#[track_caller]
fn check_works(server: &Scripted) {
    server.open_gate();
    let gateway = Gateway::of(&[server.handler()]);
    assert_eq!(gateway.tools(), ["pid", "wait"]);
    assert_eq!(gateway.text("wait", json!({})), "The gate is open.");
}

#[test]
fn a_server_that_dies_of_an_unknown_question_is_of_the_legacy_era() {
    let server = Scripted::with_manner("fragile");
    check_works(&server);
    let methods: Vec<_> = server.received().iter().map(|message| message["method"].clone()).collect();
    assert_eq!(
        methods,
        ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"]
    );
}

/// It is not asked again what it died of before.
#[test]
fn what_a_server_died_of_is_remembered() {
    let server = Scripted::with_manner("fragile");
    let gateway = Gateway::of(&[server.handler()]);
    let pid: i32 = gateway.text("pid", json!({})).parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    eventually("another server", || {
        let answer = gateway.call("pid", json!({})).messages().pop()?;
        (answer["result"]["content"][0]["text"].as_str()? != pid.to_string()).then_some(())
    });
    let asked = |method: &str| server.received().iter().filter(|message| message["method"] == method).count();
    assert_eq!((asked("server/discover"), asked("initialize")), (1, 2));
}

/// Launchers such as `npx` first fetch a package: what was asked meanwhile is answered all at once.
#[test]
fn a_server_that_starts_slowly_is_of_its_own_era_nevertheless() {
    let server = Scripted::with_manner("late");
    let gateway = Gateway::with(&[server.handler()], json!({"timeouts": {"eraProbe": "50ms"}}));
    assert_eq!(gateway.tools(), ["pid", "wait"]);
    gateway.text("pid", json!({}));
    let call = server.wait_for("tools/call");
    assert_eq!(call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
}

#[test]
fn a_server_may_print_what_is_no_message_and_log_a_lot() {
    check_works(&Scripted::with_manner("noisy"));
}

#[test]
fn a_server_that_says_nothing_does_not_hold_up_the_list() {
    let (mute, good) = (Scripted::with_manner("mute"), Scripted::new("good"));
    let gateway =
        Gateway::with(&[mute.handler(), good.handler()], json!({"timeouts": {"firstList": "200ms"}}));
    // On a busy machine even the good one may come after the first list.
    eventually("the list", || (gateway.tools() == ["pid", "wait"]).then_some(()));
    gateway.text("pid", json!({}));
    mute.wait_for("server/discover");
}

/// Whoever asked for it is told; nobody else notices, and the server goes on.
#[test]
fn an_answer_that_is_too_long_is_that_calls_own_trouble() {
    let server = Scripted::with_manner("wordy");
    let gateway = Gateway::with(&[server.handler()], json!({"limits": {"responseBytes": "16KiB"}}));
    let before = gateway.text("pid", json!({}));
    let answer = gateway.call("wait", json!({}));
    insta::assert_snapshot!(format!("{} {}", answer.status, answer.body), @r#"
    200 {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"The server's answer is too large","retryable":false}}}
    "#);
    assert_eq!(gateway.text("pid", json!({})), before);
}

/// One that connects and ends, again and again, is as good as one that does not connect, and the status says so.
#[test]
fn a_server_that_ends_again_and_again_is_down() {
    let server = Scripted::with_manner("brief");
    let gateway = Gateway::of(&[server.handler()]);
    let reason = eventually("the end of patience", || {
        let status: Value = serde_json::from_str(&gateway.get("/api/v1/status").body).unwrap();
        let handler = &status["handlers"][0];
        (handler["phase"] == "Unavailable").then(|| handler["lastError"]["message"].clone())
    });
    assert_eq!(reason, "the connection is lost again and again");
}

/// Whoever wrote the manifest allows calls that did not come through to be made again. This one did: the server was at
/// work, though nobody listened to what it said.
#[test]
fn a_call_is_not_made_again_once_its_server_has_said_something() {
    let server = Scripted::with_manner("dying");
    let mut handler = server.handler();
    handler["retries"] = json!(2);
    let gateway = Gateway::of(&[handler]);
    let refused = gateway.call("wait", json!({})).body;
    assert!(refused.contains(r#""code":"unavailable""#), "{refused}");
    let calls = server.received().iter().filter(|message| message["method"] == "tools/call").count();
    assert_eq!(calls, 1);
}
