//! Hundreds of third-party servers behind one gateway, replayed from their recorded `tools/list` results.

use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::corpora::corpus;
use toolyard_testing::manifest::http_handler;
use toolyard_testing::peers;
use toolyard_testing::process::RunningProgram;
use toolyard_testing::wait::{LIMIT, eventually};

use crate::support::gateway::TestGateway;

/// Number of servers, of three thousand recorded ones.
pub(crate) const SERVERS: usize = 450;

/// RecordedServers servers that respond.
pub(crate) struct RecordedServers {
    address: String,
    _servers: RunningProgram,
    _folder: TempDir,
}

/// Returns this number of recorded servers, if there are recordings.
pub(crate) fn recorded_servers(servers: usize) -> Option<RecordedServers> {
    let script = corpus("mcp/replay_http.py", "the recorded servers")?;
    let (port, folder) = (peers::free_port(), TempDir::new().unwrap());
    let mut python = peers::command(peers::peer("python/bin/python"), folder.path());
    let servers =
        RunningProgram::start(python.arg(script).args([&port.to_string(), "--max", &servers.to_string()]));
    servers.stdout.wait_for("the servers", |text| text.contains(" servers, ").then_some(()));
    Some(RecordedServers { address: format!("127.0.0.1:{port}"), _servers: servers, _folder: folder })
}

impl RecordedServers {
    /// Returns the handler of a server.
    pub(crate) fn handler(&self, number: usize) -> Value {
        http_handler(&format!("s{number}"), &format!("http://{}/s/{number}/mcp", self.address))
    }
}

/// Returns the processor time of a process in milliseconds and its memory in MiB.
fn cost(pid: u32) -> (u64, u64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    ((ticks(11) + ticks(12)) * 10, kib / 1024)
}

#[track_caller]
fn status(gateway: &TestGateway) -> Value {
    serde_json::from_str(&gateway.get("/api/v1/status").body).unwrap()
}

/// Waits until this number of handlers is ready and returns the status.
#[track_caller]
fn wait_for_ready(gateway: &TestGateway, count: usize) -> Value {
    eventually("all servers", || {
        let status = status(gateway);
        let ready =
            status["handlers"].as_array().unwrap().iter().filter(|one| one["phase"] == "Ready").count();
        (ready == count).then_some(status)
    })
}

#[test]
fn many_servers() {
    let Some(recorded) = recorded_servers(SERVERS + 1) else { return };
    let mut handlers: Vec<Value> = (0..SERVERS).map(|number| recorded.handler(number)).collect();

    let start = Instant::now();
    let limit = format!("{}s", LIMIT.as_secs());
    let process = json!({"timeouts": {"manifestCheck": "10ms", "firstList": limit, "connect": limit}});
    let gateway = TestGateway::with_settings(&handlers, process);
    let before = wait_for_ready(&gateway, SERVERS);
    let started = start.elapsed();
    let (cpu, memory) = cost(gateway.process.id());
    let tools = gateway.tools();
    let tools_before = before["discoveredToolsCount"].as_u64().unwrap();
    assert_eq!(tools.len() as u64, tools_before);
    println!(
        "start: {SERVERS} servers with {tools_before} tools in {started:.1?}, {cpu} ms of processor time, {memory} MiB"
    );
    println!("list: {} characters", before["list"]["characters"]);
    assert!(tools.iter().all(|name| toolyard_core::names::is_legal(name)));
    assert_eq!(tools.iter().collect::<std::collections::HashSet<_>>().len(), tools.len(), "names are unique");

    // A call of one tool of each server reaches that server.
    let entries = before["discoveredTools"].as_array().unwrap();
    let (calling, (cpu_before, _)) = (Instant::now(), cost(gateway.process.id()));
    let mut calls = 0;
    for number in (0..SERVERS).step_by(10) {
        let handler = format!("s{number}");
        let Some(tool) = entries.iter().find(|tool| tool["handlerName"] == *handler) else { continue };
        let answer = gateway.call(tool["name"].as_str().unwrap(), json!({})).body;
        assert!(answer.contains("tool") || answer.contains("Invalid arguments"), "{answer}");
        calls += 1;
    }
    let cpu = cost(gateway.process.id()).0 - cpu_before;
    println!("calls: {calls} one after the other in {:.1?}, {cpu} ms of processor time", calling.elapsed());

    // An edit that adds a server does not affect the others: names and times stay the same.
    handlers.push(recorded.handler(SERVERS));
    let (editing, (cpu_before, _)) = (Instant::now(), cost(gateway.process.id()));
    gateway.edit(&handlers);
    let after = wait_for_ready(&gateway, SERVERS + 1);
    let cpu = cost(gateway.process.id()).0 - cpu_before;
    println!("edit: one more in {:.1?}, {cpu} ms of processor time", editing.elapsed());
    let of = |status: &Value| status["handlers"].as_array().unwrap()[..SERVERS].to_vec();
    assert_eq!(of(&before), of(&after));
    assert_eq!(gateway.tools()[..tools.len()], tools);
    println!("end: {} MiB", cost(gateway.process.id()).1);
}
