//! Workers that are killed in calls: calls of an idempotent tool are answered, those of another one run at most once.
//!
//! Gateway and workers are processes on a real broker. Each worker writes the ids of the calls that it runs to a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::brokers::{BrokerProgram, MessageBroker};
use toolyard_testing::http;
use toolyard_testing::manifest::{process_document, registry_document, stdio_handler};
use toolyard_testing::peers;
use toolyard_testing::process::{RunningProgram, run};
use toolyard_testing::scripted_server::script;
use toolyard_testing::wait::until;

use crate::support::gateway::{TestGateway, toolyard};

const CALLERS: usize = 12;
const CALLS: usize = 20;
const WORKERS: usize = 3;
const KILLS: usize = 4;

/// Settings of the bus. NATS delivers the messages of a dead worker again after `ackWait`.
fn bus(broker: &MessageBroker) -> Value {
    json!({
        "url": broker.url(),
        "ackWait": "1s",
        "reconnectDelay": "100ms",
        "redeliveries": 10,
        "worker": {"announceInterval": "500ms", "concurrentCalls": 8},
    })
}

/// A worker, its home, and the file with the ids of its calls.
struct Worker {
    process: RunningProgram,
    folder: TempDir,
}

impl Worker {
    fn start(broker: &MessageBroker) -> Self {
        let folder = TempDir::new().unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let (python, server) = (peers::peer("python/bin/python"), script("recording_server.py"));
        let args = [text(&server), text(&folder.path().join("ran")), "0.05".to_owned()];
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let handler = stdio_handler("recording", &text(&python), &args);
        let mut command = toolyard(folder.path());
        command.args(["worker", "-f"]).arg(registry_document(folder.path(), &[handler]));
        command.arg("-f").arg(process_document(folder.path(), json!({"bus": bus(broker)})));
        Self { process: RunningProgram::start(&mut command), folder }
    }

    /// Waits until it has run a call.
    fn wait_for_call(&self) {
        until("a call of the worker", || self.folder.path().join("ran").exists());
    }
}

/// The end of a call: the code of its error, or none.
struct EndedCall {
    id: String,
    error: Option<String>,
}

fn call(gateway: &TestGateway, tool: &str, id: &str) -> EndedCall {
    let line = format!("POST /api/v1/tools/{tool}/call");
    let response =
        http::send_with_key(gateway.address, "", &line, &json!({"arguments": {"id": id}}).to_string());
    let body: Value = serde_json::from_str(&response.body).unwrap();
    let error = match response.status {
        200 => None,
        _ => Some(body["code"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()),
    };
    EndedCall { id: format!("{tool} {id}"), error }
}

fn check(kind: BrokerProgram) {
    let broker = MessageBroker::start(kind);
    let handler = json!({"name": "workers", "type": "bus", "timeout": "20s"});
    let gateway = Arc::new(TestGateway::with_settings(&[handler], json!({"bus": bus(&broker)})));
    let mut workers: Vec<_> = (0..WORKERS).map(|_| Worker::start(&broker)).collect();
    until("the tools", || gateway.tools() == ["once", "repeat"]);
    let (ended, done) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (gateway, ended, done) = (gateway.clone(), ended.clone(), done.clone());
            std::thread::spawn(move || {
                for number in 0..CALLS {
                    let tool = if (caller + number) % 2 == 0 { "repeat" } else { "once" };
                    let call = call(&gateway, tool, &format!("{caller}-{number}"));
                    ended.lock().unwrap().push(call);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let mut killed = Vec::new();
    for kill in 0..KILLS {
        // Each has calls then, as there are more callers than one worker runs calls of.
        let victim = &workers[kill % WORKERS];
        victim.wait_for_call();
        until("calls", || done.load(Ordering::Relaxed) >= (kill + 1) * CALLERS * CALLS / (KILLS + 4));
        victim.process.signal(Signal::KILL);
        killed.push(std::mem::replace(&mut workers[kill % WORKERS], Worker::start(&broker)));
        killed.last_mut().unwrap().process.wait();
    }
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    let mut runs = BTreeMap::<String, usize>::new();
    for worker in workers.iter().chain(&killed) {
        let ran = std::fs::read_to_string(worker.folder.path().join("ran")).unwrap_or_default();
        ran.lines().for_each(|id| *runs.entry(id.to_owned()).or_default() += 1);
    }
    let dead = dead_letters(&broker);
    report(kind, &ended.lock().unwrap(), &runs, dead);
}

fn dead_letters(broker: &MessageBroker) -> usize {
    let home = TempDir::new().unwrap();
    let mut command = toolyard(home.path());
    command.args([
        "bus",
        "dead",
        "--output",
        "json",
        "--topic",
        "tool.invoke.group.toolyard",
        "--limit",
        "1000",
    ]);
    let page: Value = serde_json::from_str(&run(command.args(["--bus", &broker.url()])).stdout).unwrap();
    page["messages"].as_array().unwrap().len()
}

/// Prints a table of counts, and checks them.
fn report(kind: BrokerProgram, ended: &[EndedCall], runs: &BTreeMap<String, usize>, dead: usize) {
    println!("{kind:?}, {WORKERS} workers, {KILLS} times one killed in calls");
    println!(
        "{:<7}{:>6}{:>10}{:>12}{:>12}{:>10}  errors",
        "tool", "sent", "answered", "classified", "never ran", "ran twice"
    );
    for tool in ["repeat", "once"] {
        let calls: Vec<_> = ended.iter().filter(|call| call.id.starts_with(tool)).collect();
        let runs_of = |call: &EndedCall| runs.get(&call.id).copied().unwrap_or_default();
        let answered = calls.iter().filter(|call| call.error.is_none()).count();
        let never = calls.iter().filter(|call| runs_of(call) == 0).count();
        let twice = calls.iter().filter(|call| runs_of(call) > 1).count();
        let mut errors = BTreeMap::<_, usize>::new();
        for code in calls.iter().filter_map(|call| call.error.as_deref()) {
            *errors.entry(code).or_default() += 1;
        }
        let classified: usize = errors.values().sum();
        println!(
            "{tool:<7}{:>6}{answered:>10}{classified:>12}{never:>12}{twice:>10}  {errors:?}",
            calls.len()
        );
        assert_eq!((calls.len(), answered + classified), (CALLERS * CALLS / 2, CALLERS * CALLS / 2));
        for call in &calls {
            let runs = runs_of(call);
            match (&call.error, tool) {
                (None, "once") => assert_eq!(runs, 1, "{}", call.id),
                (Some(_), "once") => assert!(runs <= 1, "{} ran {runs} times", call.id),
                (None, _) => assert!(runs >= 1, "{} was answered and has not run", call.id),
                (Some(code), _) => panic!("{} is idempotent, and ended with {code}", call.id),
            }
        }
    }
    println!("dead letters {dead}");
    assert_eq!(dead, 0, "no call was delivered too often");
}

#[test]
fn calls_survive_killed_workers_on_rabbitmq() {
    check(BrokerProgram::RabbitMq);
}

#[test]
fn calls_survive_killed_workers_on_nats() {
    check(BrokerProgram::Nats);
}
