//! Edits of manifests while the gateway is running.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};
use toolyard_testing::manifest::{process_document, stdio_handler};
use toolyard_testing::process::is_running;
use toolyard_testing::scripted_server::ScriptedServer;
use toolyard_testing::wait::eventually;

use crate::support::gateway::TestGateway;

/// A short interval between checks of the files.
const SHORT_INTERVAL: &str = "10ms";

/// Longer than any test.
const LONG_INTERVAL: &str = "1h";

#[track_caller]
fn gateway(handlers: &[Value], check: &str) -> TestGateway {
    TestGateway::with_settings(handlers, json!({"timeouts": {"manifestCheck": check}}))
}

/// Waits until the gateway has exactly these tools.
#[track_caller]
fn wait_for_tools(gateway: &TestGateway, tools: &[&str]) {
    eventually("the list after an edit", || (gateway.tools() == tools).then_some(()));
}

#[track_caller]
fn pid(gateway: &TestGateway, tool: &str) -> u32 {
    gateway.text(tool, json!({})).parse().unwrap()
}

#[test]
fn edit_affects_only_changed_servers() {
    let [stays, goes, comes] = ["stays", "goes", "comes"].map(ScriptedServer::new);
    let gateway = gateway(&[stays.handler(), goes.handler()], SHORT_INTERVAL);
    wait_for_tools(&gateway, &["pid", "wait", "goes_pid", "goes_wait"]);
    let (stayed, gone) = (pid(&gateway, "pid"), pid(&gateway, "goes_pid"));
    gateway.edit(&[stays.handler(), comes.handler()]);
    wait_for_tools(&gateway, &["pid", "wait", "comes_pid", "comes_wait"]);
    eventually("the end of what was removed", || (!is_running(gone)).then_some(()));
    assert_eq!(pid(&gateway, "pid"), stayed);
    assert!(is_running(pid(&gateway, "comes_pid")));
}

/// Problems are reported as at startup, and the previous state stays in use until the edit is corrected.
#[test]
fn invalid_edit_is_rejected_as_a_whole() {
    let [there, new] = ["there", "new"].map(ScriptedServer::new);
    let gateway = gateway(&[there.handler()], SHORT_INTERVAL);
    let before = pid(&gateway, "pid");
    gateway.edit(&[new.handler(), stdio_handler("there", "x", &[]), json!({"name": "third", "type": "mpc"})]);
    let log = gateway
        .process
        .stderr
        .wait_for("the problems", |text| text.contains("did you mean `mcp`").then(|| text.to_owned()));
    assert!(log.contains("manifest edit rejected, nothing changed: invalid manifest"), "{log}");
    assert_eq!(gateway.tools(), ["pid", "wait"]);
    assert_eq!(pid(&gateway, "pid"), before);
    gateway.edit(&[there.handler(), new.handler()]);
    wait_for_tools(&gateway, &["pid", "wait", "new_pid", "new_wait"]);
    assert_eq!(pid(&gateway, "pid"), before);
}

/// SIGHUP applies an edit immediately, and settings that need a restart are reported.
#[test]
fn sighup_reloads_files_immediately() {
    let [first, second] = ["first", "second"].map(ScriptedServer::new);
    let gateway = gateway(&[first.handler()], LONG_INTERVAL);
    wait_for_tools(&gateway, &["pid", "wait"]);
    gateway.edit(&[second.handler()]);
    process_document(
        gateway.folder.path(),
        json!({"timeouts": {"manifestCheck": LONG_INTERVAL, "drain": "1s"}}),
    );
    gateway.process.signal(Signal::HUP);
    gateway.process.stderr.wait_for("the other half", |text| {
        text.contains("manifest edit applied: added second; removed first; 0 unchanged; restart to apply the changed `Toolyard` document").then_some(())
    });
    second.wait_for("initialize");
    wait_for_tools(&gateway, &["pid", "wait"]);
}

/// Writes a file in place, as some editors do, and stops after each part.
fn save_in_parts(path: &Path, parts: &[&str], mut after_each: impl FnMut()) {
    let mut file = std::fs::File::create(path).unwrap();
    after_each();
    for part in parts {
        file.write_all(part.as_bytes()).unwrap();
        after_each();
    }
}

#[test]
fn partially_saved_file_loses_no_handler() {
    let there = ScriptedServer::new("there");
    let gateway = gateway(&[there.handler()], SHORT_INTERVAL);
    let before = pid(&gateway, "pid");
    let path = gateway.folder.path().join("registry.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let (half, rest) = text.split_at(text.len() / 2);
    // Slowly: each part is read as a complete file.
    let mut refusals = 0;
    save_in_parts(&path, &["# The tools of the team.\n", half], || {
        refusals += 1;
        gateway.process.stderr.wait_for("the refusal", |text| {
            (text.matches("manifest edit rejected, nothing changed").count() >= refusals).then_some(())
        });
        assert_eq!(pid(&gateway, "pid"), before);
    });
    // Fast and repeatedly.
    let saved = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..50 {
                save_in_parts(&path, &["# The tools of the team.\n", half, rest], std::thread::yield_now);
            }
            saved.store(true, Ordering::Relaxed);
        });
        while !saved.load(Ordering::Relaxed) {
            assert_eq!(pid(&gateway, "pid"), before);
        }
    });
    gateway.process.stderr.wait_for("the end", |text| text.contains("manifest edit applied").then_some(()));
    assert_eq!(pid(&gateway, "pid"), before);
}

/// The `mcp.json` of an agent on a data volume: servers come and go while the gateway runs, and an invalid edit changes
/// nothing.
#[test]
fn edits_of_an_imported_client_file_are_applied() {
    let [stays, comes] = ["stays", "comes"].map(ScriptedServer::new);
    let (folder, mut command) =
        TestGateway::command(&[], json!({"timeouts": {"manifestCheck": SHORT_INTERVAL}}));
    let path = folder.path().join("mcp.json");
    let save = |text: &str| {
        // Replaced as a whole, as programs do that write such files.
        let new = path.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &path).unwrap();
    };
    let save_servers = |servers: &[&ScriptedServer]| {
        let entries = servers.iter().map(|server| {
            let handler = server.handler();
            let (name, config) = (handler["name"].as_str().unwrap().to_owned(), &handler["mcpConfig"]);
            (name, json!({"command": config["command"], "args": config["args"]}))
        });
        save(&json!({"mcpServers": entries.collect::<serde_json::Map<_, _>>()}).to_string());
    };
    save_servers(&[&stays]);
    let gateway = TestGateway::start(folder, command.arg("--import").arg(&path));
    wait_for_tools(&gateway, &["pid", "wait"]);
    let stayed = pid(&gateway, "pid");
    save_servers(&[&stays, &comes]);
    wait_for_tools(&gateway, &["pid", "wait", "comes_pid", "comes_wait"]);
    save(r#"{"mcpServers": {"stays": "#);
    gateway
        .process
        .stderr
        .wait_for("the refusal", |log| log.contains("manifest edit rejected, nothing changed").then_some(()));
    assert_eq!(pid(&gateway, "pid"), stayed);
    save_servers(&[&stays]);
    wait_for_tools(&gateway, &["pid", "wait"]);
    assert_eq!(pid(&gateway, "pid"), stayed);
    save_servers(&[]);
    wait_for_tools(&gateway, &[]);
    gateway.process.stderr.wait_for("the warning", |log| {
        log.contains("this file has no enabled server with a supported transport").then_some(())
    });
    save_servers(&[&comes]);
    eventually("the tools of a new server", || (gateway.tools().len() == 2).then_some(()));
}

#[test]
fn an_empty_list_removes_all_handlers() {
    let there = ScriptedServer::new("there");
    let gateway = gateway(&[there.handler()], SHORT_INTERVAL);
    wait_for_tools(&gateway, &["pid", "wait"]);
    gateway.edit(&[]);
    wait_for_tools(&gateway, &[]);
}
