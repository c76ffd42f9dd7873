//! The programs of handlers: none outlives the gateway, and none takes it down.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use toolyard_process::{Processes, Program, Spawner};

use crate::support::family::{Family, kill};
use crate::support::gateway::{Gateway, stdio};
use crate::support::message;
use crate::support::process::{is_running, run};
use crate::support::scripted::Scripted;
use crate::support::{eventually, peers};

/// A shell that starts the server, and beside it a child, one that has left its group, its session and its parent,
/// and one that does so and ignores signals. Neither do shell and child listen to signals.
const UNRULY: &str = "trap '' TERM INT HUP; sleep 1000 & (setsid sleep 1000 &); \
    (setsid sh -c 'trap \"\" TERM; while :; do sleep 1000; done' &); SERVER; exit $?";

/// A launcher such as `npx`, which starts the server as its child and waits.
const LAUNCHER: &str =
    "require('child_process').spawn('mcp-server-everything', {stdio: 'inherit'}).on('exit', process.exit)";

/// However the gateway ends, it leaves nothing behind.
#[track_caller]
fn check_nothing_is_left(end: Signal) {
    let server = Scripted::new("unruly");
    let mut handlers = [
        server.handler_of_a_script(UNRULY),
        stdio("launched", "node", &["-e", LAUNCHER]),
        stdio("time", "mcp-server-time", &[]),
    ];
    let families = handlers.each_mut().map(Family::of);
    let mut gateway = Gateway::of(&handlers);
    assert_eq!(gateway.tools().len(), 2 + 13 + 2);
    // With the supervisor of each; the sleeping one that ignores signals has a shell above it.
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

/// How a panic ends a process where it does, and other grave errors.
#[test]
fn nothing_is_left_after_an_abort() {
    check_nothing_is_left(Signal::ABORT);
}

#[test]
fn nothing_is_left_after_sigkill() {
    check_nothing_is_left(Signal::KILL);
}

/// Some always look as if they had just come.
#[test]
fn nothing_is_left_of_those_that_multiply() {
    const BREEDER: &str =
        "trap '' TERM; (setsid sh -c 'while :; do sleep 1000 & sleep 0.02; done' &); SERVER; exit";
    // Each starts another and ends.
    const RUNNER: &str = "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
        while True:\n  if os.fork(): os._exit(0)\n  os.setsid()";
    let server = Scripted::new("breeder");
    let mut handlers = [server.handler_of_a_script(BREEDER), stdio("runner", "python", &["-c", RUNNER])];
    let families = handlers.each_mut().map(Family::of);
    let mut gateway = Gateway::of(&handlers);
    eventually("many processes", || (families[0].members().len() >= 20).then_some(()));
    gateway.process.signal(Signal::KILL);
    gateway.process.wait();
    for family in &families {
        eventually("the end of all of them", || family.members().is_empty().then_some(()));
    }
}

/// The call that a server was at fails at once, whoever holds the server's pipes; the next one works.
#[track_caller]
fn check_death(script: &str, victim: &str) {
    let server = Scripted::new("mortal");
    let mut handler = server.handler_of_a_script(script);
    let family = Family::of(&mut handler);
    // Only the end of the process can be what ends the call.
    handler["timeout"] = "1h".into();
    let gateway = Gateway::of(&[handler]);
    let pid = gateway.text("pid", json!({}));
    let caller = gateway.open(&[], &message::call(1, "wait"));
    eventually("the call at the server", || {
        server.received().iter().any(|message| message["params"]["name"] == "wait").then_some(())
    });
    kill(family.one(victim));
    let answer = caller.response().unwrap().messages().remove(0);
    assert_eq!(answer["error"]["data"]["code"], "unavailable", "{answer}");
    assert_ne!(gateway.text("pid", json!({})), pid);
}

#[test]
fn a_server_that_is_killed() {
    check_death("exec SERVER", "python");
}

#[test]
fn a_server_that_is_killed_while_its_children_hold_its_pipes() {
    check_death("sleep 1000 & (trap '' TERM; exec setsid sleep 1000) & exec SERVER", "python");
}

#[test]
fn a_launcher_that_is_killed() {
    check_death("SERVER; exit $?", "sh");
}

#[test]
fn a_supervisor_that_is_killed() {
    check_death("exec SERVER", "ty-supervisor");
}

/// A terminal sends an interrupt to the whole group of the gateway. The servers are not told, so that calls that
/// run are answered.
#[test]
fn an_interrupt_from_a_terminal_drains() {
    let server = Scripted::new("slow");
    let (folder, mut command) = Gateway::command(&[server.handler()], json!({"timeouts": {"drain": "1h"}}));
    let mut gateway = Gateway::start(folder, command.process_group(0));
    let caller = gateway.open(&[], &message::call(1, "wait"));
    server.wait_for("tools/call");
    kill_process_group(Pid::from_raw(gateway.process.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    eventually("draining", || gateway.health().filter(|health| health.status == 503));
    server.open_gate();
    assert_eq!(caller.response().unwrap().result()["content"][0]["text"], "The gate is open.");
    assert_eq!(gateway.process.wait().code(), Some(0));
}

/// A program without a server in it.
fn script(name: &str, script: &str) -> Value {
    stdio(name, "sh", &["-c", script])
}

#[test]
fn a_server_that_ends_again_and_again_is_started_less_and_less_often() {
    let folder = TempDir::new().unwrap();
    let starts = folder.path().join("starts");
    let gateway = Gateway::of(&[script("crashing", &format!("date +%s%N >> {}; exit 1", starts.display()))]);
    // Two for each attempt: it may have died of a question that it did not know.
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
fn the_last_words_of_a_server_are_in_the_log() {
    let script = script("failing", "echo 'the key is missing' >&2; exit 3");
    let gateway = Gateway::of(&[script]);
    gateway.process.stderr.wait_for("why it ended", |log| log.contains("the key is missing").then_some(()));
}

#[test]
fn a_server_that_nobody_calls_is_ended_until_somebody_does() {
    let server = Scripted::new("idle");
    let mut handler = server.handler_of_a_script(UNRULY);
    let family = Family::of(&mut handler);
    let gateway = Gateway::with(&[handler], json!({"timeouts": {"processIdle": "50ms"}}));
    assert_eq!(gateway.tools(), ["pid", "wait"]);
    for _ in 0..2 {
        eventually("its end", || family.members().is_empty().then_some(()));
        assert_eq!(gateway.tools(), ["pid", "wait"]);
        gateway.text("pid", json!({}));
    }
    // However long a call takes, it is one.
    let caller = gateway.open(&[], &message::call(1, "wait"));
    eventually("the call at the server", || {
        server.received().iter().any(|message| message["params"]["name"] == "wait").then_some(())
    });
    gateway.text("pid", json!({}));
    server.open_gate();
    assert_eq!(caller.response().unwrap().result()["content"][0]["text"], "The gate is open.");
}

#[test]
fn there_is_a_limit_of_programs() {
    let (one, other) = (Scripted::new("one"), Scripted::new("other"));
    let gateway = Gateway::with(&[one.handler(), other.handler()], json!({"limits": {"processes": 1}}));
    let found = gateway
        .process
        .stdout
        .wait_for("what was found", |text| text.contains("mcpServers").then(|| text.to_owned()));
    assert!(found.contains("unavailable (as many programs run as may run: 1)"), "{found}");
    assert!(found.contains(": pid, wait\n"), "{found}");
}

#[test]
fn there_is_a_limit_of_memory() {
    let eat = |mib: u32| format!("import sys; x = b'x' * ({mib} << 20); print('fits', file=sys.stderr)");
    let check = |mib: u32, expected: &str| {
        let args = ["-c", &eat(mib)];
        let limits = json!({"limits": {"processMemoryBytes": "256MiB"}});
        let gateway = Gateway::with(&[stdio("hungry", "python", &args)], limits);
        gateway.process.stderr.wait_for(expected, |log| log.contains(expected).then_some(()));
    };
    check(100, "fits");
    check(300, "MemoryError");
}

/// What else it has open, it got from whoever started the gateway.
#[test]
fn a_program_gets_no_files_of_the_gateway() {
    // Without the one that is read here.
    const COUNT: &str = "import os, sys; print('has', len(os.listdir('/proc/self/fd')) - 1, file=sys.stderr)";
    let ours = run(peers::command("python", Path::new("/")).args(["-c", COUNT])).stderr;
    let (one, other) = (Scripted::new("one"), stdio("curious", "python", &["-c", COUNT]));
    let gateway = Gateway::of(&[one.handler(), other]);
    gateway.text("pid", json!({}));
    gateway.process.stderr.wait_for("as many files", |log| log.contains(ours.trim()).then_some(()));
}

/// What a process has open, and its children, those included that have ended and were not taken note of.
fn possessions(pid: u32) -> (usize, usize) {
    let process = Path::new("/proc").join(pid.to_string());
    let files = std::fs::read_dir(process.join("fd")).unwrap().count();
    let threads = std::fs::read_dir(process.join("task")).unwrap().flatten();
    let children =
        threads.map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    (files, children.map(|list| list.split_whitespace().count()).sum())
}

#[tokio::test]
async fn those_that_run_are_listed_with_all_that_they_started() {
    let processes = Processes::new(Spawner::supervised_by(env!("CARGO_BIN_EXE_toolyard")), 10);
    let script = "sleep 1000 & (setsid sleep 1000 &); echo; wait";
    let args = vec!["-c".into(), script.into()];
    let program = Program { command: "sh".into(), args, ..Program::default() };
    let (child, mut pipes) = processes.start(&"family".into(), &program).await.unwrap();
    pipes.stdout.read_exact(&mut [0; 1]).await.unwrap();
    let listed = processes.list().remove(0);
    assert_eq!((&*listed.name, listed.restarts, listed.processes), ("family", 0, 3), "{listed:?}");
    assert!(listed.memory_bytes.unwrap() > 0 && is_running(listed.pid), "{listed:?}");
    child.end(Duration::ZERO).await;
    assert!(processes.list().is_empty() && !is_running(listed.pid));
    // All three held it.
    assert_eq!(pipes.stdout.read(&mut [0; 1]).await.unwrap(), 0);
}

#[test]
fn a_hundred_servers_come_and_go() {
    let handlers: Vec<_> = (0..100)
        .map(|number| stdio(&format!("demo-{number}"), env!("CARGO_BIN_EXE_toolyard"), &["demo-server"]))
        .collect();
    let gateway = Gateway::with(&handlers, json!({"timeouts": {"processIdle": "3s"}}));
    assert_eq!(gateway.tools().len(), 300);
    let pid = gateway.process.id();
    let (files, _) = possessions(pid);
    assert!(files >= 400, "three pipes and a socket for each: {files}");
    eventually("the end of all", || (possessions(pid).1 == 0).then_some(()));
    // What does not come from servers, such as the listener.
    eventually("closed files", || (possessions(pid).0 < 40).then_some(()));
    assert_eq!(gateway.text("demo-42_echo", json!({"text": "again"})), "again");
}
