//! Servers on stdio that crash, hang or print invalid output.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::messages;
use toolyard_testing::process::is_running;
use toolyard_testing::scripted_server::{ScriptedServer, script};
use toolyard_testing::wait::eventually;

use crate::support::gateway::TestGateway;

#[test]
fn killed_server_restarts() {
    let server = ScriptedServer::new("mortal");
    let gateway = TestGateway::with_handlers(&[server.handler()]);
    let first: u32 = gateway.text("pid", json!({})).parse().unwrap();
    kill_process(Pid::from_raw(first.cast_signed()).unwrap(), Signal::KILL).unwrap();
    // Its tools remain listed.
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
fn call_fails_when_its_server_dies() {
    let server = ScriptedServer::new("mortal");
    let gateway = TestGateway::with_handlers(&[server.handler()]);
    let pid: i32 = gateway.text("pid", json!({})).parse().unwrap();
    let caller = gateway.open_request(&[], &messages::tool_call(1, "wait"));
    eventually("the call at the server", || {
        server.received().iter().any(|message| message["params"]["name"] == "wait").then_some(())
    });
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let answer = caller.response().unwrap();
    insta::assert_snapshot!(format!("{} {}", answer.status, answer.body), @r#"200 {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The connection to the server broke","data":{"code":"unavailable","reason":"process ended by signal 9","retryable":true}}}"#);
}

/// Checks that the server works.
#[track_caller]
fn check_works(server: &ScriptedServer) {
    server.open_gate();
    let gateway = TestGateway::with_handlers(&[server.handler()]);
    assert_eq!(gateway.tools(), ["pid", "wait"]);
    assert_eq!(gateway.text("wait", json!({})), "The gate is open.");
}

#[test]
fn server_that_exits_on_unknown_request_is_legacy() {
    let server = ScriptedServer::with_mode("fragile");
    check_works(&server);
    let methods: Vec<_> = server.received().iter().map(|message| message["method"].clone()).collect();
    assert_eq!(
        methods,
        ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"]
    );
}

/// The gateway does not repeat the request that ended the server.
#[test]
fn fatal_request_is_not_repeated() {
    let server = ScriptedServer::with_mode("fragile");
    let gateway = TestGateway::with_handlers(&[server.handler()]);
    let pid: i32 = gateway.text("pid", json!({})).parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    eventually("another server", || {
        let answer = gateway.call("pid", json!({})).messages().pop()?;
        (answer["result"]["content"][0]["text"].as_str()? != pid.to_string()).then_some(())
    });
    let received_count =
        |method: &str| server.received().iter().filter(|message| message["method"] == method).count();
    assert_eq!((received_count("server/discover"), received_count("initialize")), (1, 2));
}

/// Launchers such as `npx` first download a package, and early requests are answered all at once. A server that speaks both
/// eras has opened a session by then, and is started again.
#[test]
fn slow_start_does_not_change_the_era() {
    for (mode, starts) in [("late", 1), ("modern", 1), ("dual", 2)] {
        let server = ScriptedServer::with_mode(mode);
        let settings = json!({"timeouts": {"eraProbe": "50ms"}});
        let gateway = TestGateway::with_settings(&[server.handler()], settings);
        assert_eq!(gateway.tools(), ["pid", "wait"], "{mode}");
        gateway.text("pid", json!({}));
        let call = server.wait_for("tools/call");
        let version = &call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version, "2026-07-28", "{mode}");
        let received = server.received();
        let probes = received.iter().filter(|message| message["method"] == "server/discover").count();
        assert_eq!(probes, starts, "{mode}");
    }
}

/// The manifest prescribes the era of a server that starts slowly: there is no time limit but that of connecting.
#[test]
fn slow_server_of_a_prescribed_era_is_awaited() {
    let server = ScriptedServer::with_mode("good");
    let mut handler = server.handler_from_script("sleep 0.3; SERVER");
    handler["mcpConfig"]["era"] = json!("modern");
    let gateway = TestGateway::with_settings(&[handler], json!({"timeouts": {"eraProbe": "1ms"}}));
    let reason = eventually("the answer", || {
        let status: Value = gateway.get("/api/v1/status").body.parse().ok()?;
        Some(status["handlers"][0]["lastError"]["message"].clone()).filter(Value::is_string)
    });
    insta::assert_snapshot!(reason.as_str().unwrap(), @"the server does not speak MCP 2026-07-28, which the manifest prescribes: remove `era: modern`");
    server.wait_for("server/discover");
}

/// Servers of several SDKs speak the same revision if they are probed for a moment only as if they have all the time.
#[test]
fn era_of_foreign_servers_does_not_depend_on_their_speed() {
    let handlers = [
        stdio_handler("everything", "mcp-server-everything", &["stdio"]),
        stdio_handler("time", "mcp-server-time", &[]),
        stdio_handler("forms", "python", &[script("forms_server.py").to_str().unwrap()]),
    ];
    let revisions = |probe: &str| {
        let gateway = TestGateway::with_settings(&handlers, json!({"timeouts": {"eraProbe": probe}}));
        eventually("all servers", || {
            let status: Value = gateway.get("/api/v1/status").body.parse().ok()?;
            let of = |handler: &Value| Some(handler["protocol"].as_str()?.to_owned());
            let ready = status["handlers"].as_array()?.iter().filter(|handler| handler["phase"] == "Ready");
            ready.map(of).collect::<Option<Vec<_>>>().filter(|all| all.len() == handlers.len())
        })
    };
    let patient = revisions("30s");
    assert!(patient.contains(&"MCP 2026-07-28".to_owned()), "{patient:?}");
    assert_eq!(revisions("1ms"), patient);
}

#[test]
fn invalid_output_and_long_logs_are_tolerated() {
    check_works(&ScriptedServer::with_mode("noisy"));
}

#[test]
fn silent_server_does_not_delay_the_list() {
    let (mute, good) = (ScriptedServer::with_mode("mute"), ScriptedServer::new("good"));
    let gateway = TestGateway::with_settings(
        &[mute.handler(), good.handler()],
        json!({"timeouts": {"firstList": "200ms"}}),
    );
    // On a busy machine, even the good server may connect after the first list.
    eventually("the list", || (gateway.tools() == ["pid", "wait"]).then_some(()));
    gateway.text("pid", json!({}));
    mute.wait_for("server/discover");
}

/// Only the caller receives an error, and the server keeps running.
#[test]
fn oversized_response_fails_only_its_call() {
    let server = ScriptedServer::with_mode("wordy");
    let gateway =
        TestGateway::with_settings(&[server.handler()], json!({"limits": {"responseBytes": "16KiB"}}));
    let before = gateway.text("pid", json!({}));
    let answer = gateway.call("wait", json!({}));
    insta::assert_snapshot!(format!("{} {}", answer.status, answer.body), @r#"
    200 {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The server's answer is too large","data":{"code":"execution_failed","reason":"answer larger than 16384 bytes","retryable":false}}}
    "#);
    assert_eq!(gateway.text("pid", json!({})), before);
}

/// A server that connects and exits repeatedly is reported as down.
#[test]
fn repeatedly_exiting_server_is_down() {
    let server = ScriptedServer::with_mode("brief");
    let gateway = TestGateway::with_handlers(&[server.handler()]);
    let reason = eventually("the end of patience", || {
        let status: Value = serde_json::from_str(&gateway.get("/api/v1/status").body).unwrap();
        let handler = &status["handlers"][0];
        (handler["phase"] == "Unavailable").then(|| handler["lastError"]["message"].clone())
    });
    assert_eq!(reason, "the connection is lost repeatedly: process exited with status 1");
}

/// Retries are enabled for calls that did not reach the server. This one did: the server was working, although its
/// output was not read.
#[test]
fn call_is_not_retried_after_server_output() {
    let server = ScriptedServer::with_mode("dying");
    let mut handler = server.handler();
    handler["retries"] = json!(2);
    let gateway = TestGateway::with_handlers(&[handler]);
    let refused = gateway.call("wait", json!({})).body;
    let data = r#""data":{"code":"unavailable","reason":"process exited with status 1","#;
    assert!(refused.contains(data), "{refused}");
    let calls = server.received().iter().filter(|message| message["method"] == "tools/call").count();
    assert_eq!(calls, 1);
}
