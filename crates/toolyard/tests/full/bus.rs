//! `toolyard worker` and `toolyard bus`, with brokers and clients in Python.

use std::path::Path;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use toolyard_testing::brokers::{BrokerProgram, MessageBroker};
use toolyard_testing::peers;
use toolyard_testing::process::{RunningProgram, run};
use toolyard_testing::scripted_server::script;

use crate::support::gateway::toolyard;

/// Starts a worker with the tools of the demo, and waits until a call reaches it.
fn worker(broker: &MessageBroker, home: &Path) -> RunningProgram {
    // The URL is in the environment, where other users do not see its password.
    let mut command = toolyard(home);
    let worker = RunningProgram::start(command.arg("worker").env("TOOLYARD_BUS", broker.url()));
    worker.stdout.wait_for("the banner", |text| text.contains("is taking calls from").then_some(()));
    worker
        .stderr
        .wait_for("the connection", |text| text.contains("connected to the message bus").then_some(()));
    worker
}

/// Runs a client with these calls, again until the worker has subscribed.
fn call(client: &str, broker: &MessageBroker, calls: &[&str]) -> String {
    let home = TempDir::new().unwrap();
    toolyard_testing::wait::eventually("an answer", || {
        let mut python = peers::command(peers::peer("bus/bin/python"), home.path());
        let result = run(python.arg(script(client)).arg(broker.url()).args(calls));
        (result.code == 0).then_some(result.stdout)
    })
}

fn check(kind: BrokerProgram, client: &str) -> String {
    let (broker, home) = (MessageBroker::start(kind), TempDir::new().unwrap());
    let mut worker = worker(&broker, home.path());
    let answers = call(client, &broker, &["add", r#"{"a": 1, "b": 2}"#, "subtract", "{}"]);
    let contents = answers.lines().map(|line| {
        let answer: Value = serde_json::from_str(line).unwrap();
        let record = answer.as_array().unwrap().last().unwrap();
        format!("{} {}\n", answer[0].as_str().unwrap(), record.get("content").unwrap_or(&record["code"]))
    });
    let mut shown: String = contents.collect();
    call(client, &broker, &["-", r#"{"toolCallId": "#]);
    // The password is that of the broker, which no output shows.
    let dead =
        || run(toolyard(home.path()).args(["bus", "dead", "--output", "json", "--bus", &broker.url()]));
    let message = toolyard_testing::wait::eventually("a dead letter", || {
        let page: Value = serde_json::from_str(&dead().stdout).unwrap();
        page["messages"].get(0).cloned()
    });
    shown += &format!("{} {} {}\n", message["topic"], message["reason"], message["body"]);
    let text = run(toolyard(home.path()).args(["bus", "dead", "--bodies", "--bus", &broker.url()]));
    assert!(
        text.stdout.contains(r#"EOF while parsing"#) && text.stdout.contains(r#"{"toolCallId": "#),
        "{text}"
    );
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code(), Some(0));
    let logged = worker.stderr.text();
    assert!(!logged.contains("guest:guest"), "{logged}");
    shown
}

#[test]
fn worker_on_rabbitmq_answers_pika() {
    assert_snapshot!(check(BrokerProgram::RabbitMq, "bus_pika.py"), @r#"
    RockBot.Tools.ToolInvokeResponse "3"
    RockBot.Tools.ToolError "tool_not_found"
    "tool.invoke" "the body is no RockBot.Tools.ToolInvokeRequest: EOF while parsing a value at line 1 column 15" null
    "#);
}

#[test]
fn worker_on_nats_answers_nats_py() {
    assert_snapshot!(check(BrokerProgram::Nats, "bus_nats.py"), @r#"
    RockBot.Tools.ToolInvokeResponse "3"
    RockBot.Tools.ToolError "tool_not_found"
    "tool.invoke" "the body is no RockBot.Tools.ToolInvokeRequest: EOF while parsing a value at line 1 column 15" null
    "#);
}

#[test]
fn worker_without_a_broker_names_the_remedy() {
    let home = TempDir::new().unwrap();
    assert_snapshot!(run(toolyard(home.path()).arg("worker")), @"
    --- stderr
    error: no message bus: give its URL by `--bus`, or set `bus.url` in the manifest
    --- exit status 2
    ");
    assert_snapshot!(run(toolyard(home.path()).args(["worker", "--bus", "http://me:hunter2@a"])), @"
    --- stderr
    error: cannot use the URL of `--bus`: this is not the URL of a message broker: expected a URL such as amqp://broker.example.com:5672 (RabbitMQ) or nats://broker.example.com:4222 (NATS)
    --- exit status 1
    ");
}
