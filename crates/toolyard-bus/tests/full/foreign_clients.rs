//! Clients in Python that know only the documented forms: of tools, of tools of a bridge, and of scripts.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use insta::assert_snapshot;
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use toolyard_bus::worker::{BusWorker, WorkerPrincipal};
use toolyard_core::{Caller, ToolError};
use toolyard_testing::scripted_server::script;
use toolyard_testing::{peers, process};

use crate::mcp::BridgeCase;
use crate::scripts::ScriptsCase;
use crate::support::{BusBody, CountingBackend, TestBroker, gateway, within};

struct AnyTool;

impl WorkerPrincipal for AnyTool {
    fn caller(&self) -> BoxFuture<'_, Result<Caller, ToolError>> {
        ready(Ok(Caller { principal: Some("bus".into()), ..Caller::default() })).boxed()
    }
}

/// Runs a client against a worker, a bridge and a scripts manager with the default names, and returns its output.
async fn run(body: BusBody, name: &'static str, sender: &str) -> String {
    let broker = TestBroker::start(body);
    let bus = toolyard_bus::connect(&broker.settings).unwrap();
    let worker =
        BusWorker::start(bus, gateway(CountingBackend::new()), Arc::new(AnyTool), &broker.settings).unwrap();
    assert!(within("the worker", worker.subscribed()).await);
    let _bridge = BridgeCase::start(broker.same(), "forecast now time_forecast").await;
    let _scripts = ScriptsCase::start(broker.same()).await;
    let url = broker.server.as_ref().unwrap().url();
    let text = format!(r#"{{"text": "from {sender}"}}"#);
    let result = spawn_blocking(move || {
        let home = TempDir::new().unwrap();
        let mut python = peers::command(peers::peer("bus/bin/python"), home.path());
        let of_worker = ["read", &*text, "unknown", "{}", "read", r#"{"text": 1}"#];
        let of_bridge = ["Time/forecast", &*text, "weather/now", "{}"];
        let scripts = ["script", "print(1)", "script", "fail", "script", " "];
        let calls = of_worker.iter().chain(&of_bridge).chain(&scripts);
        process::run(python.arg(script(name)).arg(url).args(calls))
    });
    let result = result.await.unwrap();
    assert_eq!((result.code, &*result.stderr), (0, ""), "{result}");
    result.stdout
}

#[tokio::test]
async fn pika_invokes_tools() {
    assert_snapshot!(run(BusBody::RabbitMq, "bus_pika.py", "pika").await, @r#"
    ["RockBot.Tools.ToolInvokeResponse", "application/json", "toolyard", "tool-output", {"toolName": "read", "content": "read from pika by bus 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "isError": false}]
    ["RockBot.Tools.ToolError", "application/json", "toolyard", "tool-output", {"toolName": "unknown", "code": "tool_not_found", "message": "Tool 'unknown' is not registered.", "isRetryable": false}]
    ["RockBot.Tools.ToolError", "application/json", "toolyard", "tool-output", {"toolName": "read", "code": "invalid_arguments", "message": "Invalid arguments: /text: value is not of type \"string\"", "isRetryable": false}]
    ["RockBot.Tools.ToolInvokeResponse", "application/json", "toolyard", "tool-output", {"toolName": "forecast", "content": "forecast of time got {\"text\":\"from pika\"}", "isError": false}]
    ["RockBot.Tools.ToolError", "application/json", "toolyard", "tool-output", {"toolName": "now", "code": "tool_not_found", "message": "Tool 'now' is not registered.", "isRetryable": false}]
    ["RockBot.Scripts.ScriptInvokeResponse", "application/json", "toolyard", "tool-output", {"output": "in in 20s with []", "stderr": "warned", "exitCode": 0, "isSuccess": true, "elapsedMs": 1234}]
    ["RockBot.Scripts.ScriptInvokeResponse", "application/json", "toolyard", "tool-output", {"output": "", "stderr": "warned", "exitCode": 3, "isSuccess": false, "elapsedMs": 1234}]
    ["RockBot.Scripts.ScriptInvokeResponse", "application/json", "toolyard", "tool-output", {"output": null, "stderr": "script: is empty; expected Python source", "exitCode": 126, "isSuccess": false, "elapsedMs": 0}]
    "#);
}

#[tokio::test]
async fn nats_py_invokes_tools() {
    assert_snapshot!(run(BusBody::Nats, "bus_nats.py", "nats-py").await, @r#"
    ["RockBot.Tools.ToolInvokeResponse", "toolyard", "tool-output", {"toolName": "read", "content": "read from nats-py by bus 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "isError": false}]
    ["RockBot.Tools.ToolError", "toolyard", "tool-output", {"toolName": "unknown", "code": "tool_not_found", "message": "Tool 'unknown' is not registered.", "isRetryable": false}]
    ["RockBot.Tools.ToolError", "toolyard", "tool-output", {"toolName": "read", "code": "invalid_arguments", "message": "Invalid arguments: /text: value is not of type \"string\"", "isRetryable": false}]
    ["RockBot.Tools.ToolInvokeResponse", "toolyard", "tool-output", {"toolName": "forecast", "content": "forecast of time got {\"text\":\"from nats-py\"}", "isError": false}]
    ["RockBot.Tools.ToolError", "toolyard", "tool-output", {"toolName": "now", "code": "tool_not_found", "message": "Tool 'now' is not registered.", "isRetryable": false}]
    ["RockBot.Scripts.ScriptInvokeResponse", "toolyard", "tool-output", {"output": "in in 20s with []", "stderr": "warned", "exitCode": 0, "isSuccess": true, "elapsedMs": 1234}]
    ["RockBot.Scripts.ScriptInvokeResponse", "toolyard", "tool-output", {"output": "", "stderr": "warned", "exitCode": 3, "isSuccess": false, "elapsedMs": 1234}]
    ["RockBot.Scripts.ScriptInvokeResponse", "toolyard", "tool-output", {"output": null, "stderr": "script: is empty; expected Python source", "exitCode": 126, "isSuccess": false, "elapsedMs": 0}]
    "#);
}
