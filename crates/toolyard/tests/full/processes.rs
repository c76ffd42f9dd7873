//! Processes of handlers: they all end with the gateway, and none brings it down.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use toolyard_process::{ProcessSpawner, ProcessTable, ProgramSpec};
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::process::{is_running, run};
use toolyard_testing::process_tree::{ProcessTree, kill};
use toolyard_testing::scripted_server::ScriptedServer;
use toolyard_testing::wait::eventually;
use toolyard_testing::{messages, peers};

use crate::support::gateway::TestGateway;

/// A shell that starts the server and three children: a plain one, one that has left its group, session and parent, and
/// one that does so and ignores signals. Shell and child ignore signals, too.
const ESCAPING_CHILDREN: &str = "trap '' TERM INT HUP; sleep 1000 & (setsid sleep 1000 &); \
    (setsid sh -c 'trap \"\" TERM; while :; do sleep 1000; done' &); SERVER; exit $?";

/// A launcher such as `npx`, which starts the server as its child and waits.
const LAUNCHER: &str =
    "require('child_process').spawn('mcp-server-everything', {stdio: 'inherit'}).on('exit', process.exit)";

/// No process survives the gateway, however it ends.
#[track_caller]
fn check_nothing_is_left(end: Signal) {
    let server = ScriptedServer::new("unruly");
    let mut handlers = [
        server.handler_from_script(ESCAPING_CHILDREN),
        stdio_handler("launched", "node", &["-e", LAUNCHER]),
        stdio_handler("time", "mcp-server-time", &[]),
    ];
    let families = handlers.each_mut().map(ProcessTree::mark);
    let mut gateway = TestGateway::with_handlers(&handlers);
    assert_eq!(gateway.tools().len(), 2 + 13 + 2);
    // Includes the supervisors; the one that ignores signals has a shell as parent.
    for (family, size) in families.iter().zip([7, 3, 2]) {
        eventually("all processes of a handler", || (family.members().len() >= size).then_some(()));
    }
    gateway.process.signal(end);
    gateway.process.wait();
    for family in &families {
        eventually("the end of all of them", || family.members().is_empty().then_some(()));
    }
}

#[test]
fn nothing_is_left_after_sigterm() {
    check_nothing_is_left(Signal::TERM);
}

#[test]
fn nothing_is_left_after_sigint() {
    check_nothing_is_left(Signal::INT);
}

/// An abort, as after a panic or another fatal error.
#[test]
fn nothing_is_left_after_an_abort() {
    check_nothing_is_left(Signal::ABORT);
}

#[test]
fn nothing_is_left_after_sigkill() {
    check_nothing_is_left(Signal::KILL);
}

/// Processes that fork continuously.
#[test]
fn multiplying_processes_are_killed() {
    const BREEDER: &str =
        "trap '' TERM; (setsid sh -c 'while :; do sleep 1000 & sleep 0.02; done' &); SERVER; exit";
    // Each process starts another one and exits.
    const RUNNER: &str = "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
        while True:\n  if os.fork(): os._exit(0)\n  os.setsid()";
    let server = ScriptedServer::new("breeder");
    let mut handlers =
        [server.handler_from_script(BREEDER), stdio_handler("runner", "python", &["-c", RUNNER])];
    let families = handlers.each_mut().map(ProcessTree::mark);
    let mut gateway = TestGateway::with_handlers(&handlers);
    eventually("many processes", || (families[0].members().len() >= 20).then_some(()));
    gateway.process.signal(Signal::KILL);
    gateway.process.wait();
    for family in &families {
        eventually("the end of all of them", || family.members().is_empty().then_some(()));
    }
}

/// The running call fails at once, even if another process holds the pipes of the server; the next one succeeds.
#[track_caller]
fn check_death(script: &str, victim: &str) {
    let server = ScriptedServer::new("mortal");
    let mut handler = server.handler_from_script(script);
    let family = ProcessTree::mark(&mut handler);
    // Only the end of the process can end the call.
    handler["timeout"] = "1h".into();
    let gateway = TestGateway::with_handlers(&[handler]);
    let pid = gateway.text("pid", json!({}));
    let caller = gateway.open_request(&[], &messages::tool_call(1, "wait"));
    eventually("the call at the server", || {
        server.received().iter().any(|message| message["params"]["name"] == "wait").then_some(())
    });
    kill(family.member_named(victim));
    let answer = caller.response().unwrap().messages().remove(0);
    assert_eq!(answer["error"]["data"]["code"], "unavailable", "{answer}");
    assert_ne!(gateway.text("pid", json!({})), pid);
}

#[test]
fn killed_server_is_restarted() {
    check_death("exec SERVER", "python");
}

#[test]
fn killed_server_with_held_pipes_is_restarted() {
    check_death("sleep 1000 & (trap '' TERM; exec setsid sleep 1000) & exec SERVER", "python");
}

#[test]
fn killed_launcher_is_restarted() {
    check_death("SERVER; exit $?", "sh");
}

#[test]
fn killed_supervisor_is_restarted() {
    check_death("exec SERVER", "ty-supervisor");
}

/// A terminal sends SIGINT to the whole process group. It does not reach the servers, so that running calls are
/// answered.
#[test]
fn interrupt_from_terminal_drains() {
    let server = ScriptedServer::new("slow");
    let (folder, mut command) =
        TestGateway::command(&[server.handler()], json!({"timeouts": {"drain": "1h"}}));
    let mut gateway = TestGateway::start(folder, command.process_group(0));
    let caller = gateway.open_request(&[], &messages::tool_call(1, "wait"));
    server.wait_for("tools/call");
    kill_process_group(Pid::from_raw(gateway.process.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    eventually("draining", || gateway.health().filter(|health| health.status == 503));
    server.open_gate();
    assert_eq!(caller.response().unwrap().result()["content"][0]["text"], "The gate is open.");
    assert_eq!(gateway.process.wait().code(), Some(0));
}

/// Returns a handler whose program is not a server.
fn script(name: &str, script: &str) -> Value {
    stdio_handler(name, "sh", &["-c", script])
}

#[test]
fn repeated_exits_back_off() {
    let folder = TempDir::new().unwrap();
    let starts = folder.path().join("starts");
    let gateway = TestGateway::with_handlers(&[script(
        "crashing",
        &format!("date +%s%N >> {}; exit 1", starts.display()),
    )]);
    // Two starts per attempt: the program may have exited because of an unknown request.
    let times = eventually("seven starts", || {
        let text = std::fs::read_to_string(&starts).ok()?;
        let times: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        (times.len() >= 7).then_some(times)
    });
    let pause = |from: usize| (times[from + 1] - times[from]) / 1_000_000;
    assert!(pause(1) >= 250 && pause(3) >= 500 && pause(5) >= 1000, "{times:?}");
    drop(gateway);
}

#[test]
fn last_stderr_of_a_server_is_logged() {
    let script = script("failing", "echo 'the key is missing' >&2; exit 3");
    let gateway = TestGateway::with_handlers(&[script]);
    gateway.process.stderr.wait_for("why it ended", |log| log.contains("the key is missing").then_some(()));
}

#[test]
fn idle_server_is_stopped_until_the_next_call() {
    let server = ScriptedServer::new("idle");
    let mut handler = server.handler_from_script(ESCAPING_CHILDREN);
    let family = ProcessTree::mark(&mut handler);
    let gateway = TestGateway::with_settings(&[handler], json!({"timeouts": {"processIdle": "50ms"}}));
    assert_eq!(gateway.tools(), ["pid", "wait"]);
    for _ in 0..2 {
        eventually("its end", || family.members().is_empty().then_some(()));
        assert_eq!(gateway.tools(), ["pid", "wait"]);
        gateway.text("pid", json!({}));
    }
    // A server with a long call is not idle.
    let caller = gateway.open_request(&[], &messages::tool_call(1, "wait"));
    eventually("the call at the server", || {
        server.received().iter().any(|message| message["params"]["name"] == "wait").then_some(())
    });
    gateway.text("pid", json!({}));
    server.open_gate();
    assert_eq!(caller.response().unwrap().result()["content"][0]["text"], "The gate is open.");
}

#[test]
fn process_count_is_limited() {
    let (one, other) = (ScriptedServer::new("one"), ScriptedServer::new("other"));
    let gateway =
        TestGateway::with_settings(&[one.handler(), other.handler()], json!({"limits": {"processes": 1}}));
    let remaining = gateway
        .process
        .stdout
        .wait_for("what was found", |text| text.contains("mcpServers").then(|| text.to_owned()));
    assert!(remaining.contains("unavailable (too many running programs (at most 1))"), "{remaining}");
    assert!(remaining.contains(": pid, wait\n"), "{remaining}");
}

#[test]
fn process_memory_is_limited() {
    let eat = |mib: u32| format!("import sys; x = b'x' * ({mib} << 20); print('fits', file=sys.stderr)");
    let check = |mib: u32, expected: &str| {
        let args = ["-c", &eat(mib)];
        let limits = json!({"limits": {"processMemoryBytes": "256MiB"}});
        let gateway = TestGateway::with_settings(&[stdio_handler("hungry", "python", &args)], limits);
        gateway.process.stderr.wait_for(expected, |log| log.contains(expected).then_some(()));
    };
    check(100, "fits");
    check(300, "MemoryError");
}

/// Other open files come from the process that started the gateway.
#[test]
fn program_inherits_no_files() {
    // Without the descriptor of this listing.
    const COUNT: &str = "import os, sys; print('has', len(os.listdir('/proc/self/fd')) - 1, file=sys.stderr)";
    let ours = run(peers::command("python", Path::new("/")).args(["-c", COUNT])).stderr;
    let (one, other) = (ScriptedServer::new("one"), stdio_handler("curious", "python", &["-c", COUNT]));
    let gateway = TestGateway::with_handlers(&[one.handler(), other]);
    gateway.text("pid", json!({}));
    gateway.process.stderr.wait_for("as many files", |log| log.contains(ours.trim()).then_some(()));
}

/// Returns the numbers of open files and of children, including zombies, of a process.
fn open_files_and_children(pid: u32) -> (usize, usize) {
    let process = Path::new("/proc").join(pid.to_string());
    let files = std::fs::read_dir(process.join("fd")).unwrap().count();
    let threads = std::fs::read_dir(process.join("task")).unwrap().flatten();
    let children =
        threads.map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    (files, children.map(|list| list.split_whitespace().count()).sum())
}

#[tokio::test]
async fn running_processes_are_listed_with_descendants() {
    let processes = ProcessTable::new(ProcessSpawner::supervised_by(env!("CARGO_BIN_EXE_toolyard")), 10);
    let script = "sleep 1000 & (setsid sleep 1000 &); echo; wait";
    let args = vec!["-c".into(), script.into()];
    let program = ProgramSpec { command: "sh".into(), args, ..ProgramSpec::default() };
    let (child, mut pipes) = processes.start(&"family".into(), &program).await.unwrap();
    pipes.stdout.read_exact(&mut [0; 1]).await.unwrap();
    let process = processes.list().remove(0);
    assert_eq!((&*process.name, process.restarts, process.processes), ("family", 0, 3), "{process:?}");
    assert!(process.memory_bytes.unwrap() > 0 && is_running(process.pid), "{process:?}");
    child.shut_down(Duration::ZERO).await;
    assert!(processes.list().is_empty() && !is_running(process.pid));
    // The memory of all three processes.
    assert_eq!(pipes.stdout.read(&mut [0; 1]).await.unwrap(), 0);
}

#[test]
fn hundred_server_cycles_leak_nothing() {
    let handlers: Vec<_> = (0..100)
        .map(|number| {
            stdio_handler(&format!("demo-{number}"), env!("CARGO_BIN_EXE_toolyard"), &["demo-server"])
        })
        .collect();
    let gateway = TestGateway::with_settings(&handlers, json!({"timeouts": {"processIdle": "3s"}}));
    assert_eq!(gateway.tools().len(), 300);
    let pid = gateway.process.id();
    let (files, _) = open_files_and_children(pid);
    assert!(files >= 400, "three pipes and a socket for each: {files}");
    eventually("the end of all", || (open_files_and_children(pid).1 == 0).then_some(()));
    // Files that do not belong to servers, such as the listener.
    eventually("closed files", || (open_files_and_children(pid).0 < 40).then_some(()));
    assert_eq!(gateway.text("demo-42_echo", json!({"text": "again"})), "again");
}
