//! A gateway whose MCP servers and scripts are in other processes, on real brokers.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::brokers::{BrokerProgram, MessageBroker};
use toolyard_testing::http;
use toolyard_testing::manifest::{process_document, registry_document, stdio_handler};
use toolyard_testing::peers;
use toolyard_testing::process::{RunningProgram, run};
use toolyard_testing::scripted_server::{ScriptedServer, script};
use toolyard_testing::wait::eventually;

use crate::support::gateway::{TestGateway, toolyard};
use crate::support::otlp::{CollectedSpan, SpanCollector};

const LIST: &str = "mcp_list_services";
const DETAILS: &str = "mcp_get_service_details";
const INVOKE: &str = "mcp_invoke_tool";
const REGISTER: &str = "mcp_register_server";
const UNREGISTER: &str = "mcp_unregister_server";

/// A W3C trace context and its trace id.
const TRACE_PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Returns settings of built-in tools with only these groups.
pub(crate) fn only(groups: &[(&str, Value)]) -> Value {
    let off = json!({"enabled": false});
    let names = ["scripts", "memory", "results", "guides", "skills", "search", "mcp"];
    let mut builtins: Value = names.map(|name| (name.to_owned(), off.clone())).into_iter().collect();
    for (name, settings) in groups {
        builtins[name] = settings.clone();
    }
    builtins
}

/// Starts a command, with its first options, that takes requests from the bus, and waits until it has connected.
#[track_caller]
pub(crate) fn on_bus(
    command: &str,
    broker: &MessageBroker,
    home: &Path,
    handlers: &[Value],
    spec: Value,
) -> RunningProgram {
    let mut process = toolyard(home);
    process.args(command.split(' ')).arg("-f").arg(registry_document(home, handlers));
    process.arg("-f").arg(process_document(home, spec)).env("TOOLYARD_BUS", broker.url());
    let process = RunningProgram::start(&mut process);
    process.stdout.wait_for("the banner", |text| text.contains("is taking").then_some(()));
    process
        .stderr
        .wait_for("the connection", |text| text.contains("connected to the message bus").then_some(()));
    process
}

#[track_caller]
pub(crate) fn stop(mut process: RunningProgram) {
    process.signal(Signal::TERM);
    assert_eq!(process.wait().code(), Some(0), "{}", process.stderr.text());
}

/// Starts a gateway that has no servers and runs no scripts itself.
#[track_caller]
fn gateway(broker: &MessageBroker, handlers: &[Value]) -> TestGateway {
    TestGateway::with_settings(handlers, gateway_settings(broker))
}

fn gateway_settings(broker: &MessageBroker) -> Value {
    let builtins = only(&[("scripts", json!({"runner": "bus"})), ("mcp", json!({"bridge": true}))]);
    json!({"bus": {"url": broker.url(), "source": "agent-7"}, "builtins": builtins})
}

fn bridge_settings(file: &Path) -> Value {
    let mcp =
        json!({"file": file, "allow": {"commands": ["mcp-server-memory"], "env": ["MEMORY_FILE_PATH"]}});
    json!({
        "bus": {"bridge": {"agents": ["agent-7"]}},
        "builtins": only(&[("mcp", mcp)]),
        "timeouts": {"connect": "50s", "firstList": "50s", "eraProbe": "30s"},
        "logs": {"format": "json", "filter": "info,toolyard_server=debug"},
    })
}

fn scripts_settings() -> Value {
    json!({"sandbox": {"isolation": "best-effort"}, "builtins": only(&[("scripts", json!({}))])})
}

fn clock() -> Value {
    stdio_handler("clock", "mcp-server-time", &["--local-timezone", "UTC"])
}

/// Waits until the gateway lists these servers of the bridge.
#[track_caller]
fn until_listed(gateway: &TestGateway, expected: &[&str]) {
    eventually("the servers of the bridge", || {
        let servers: Value = serde_json::from_str(&gateway.text(LIST, json!({}))).unwrap();
        let names: Vec<_> =
            servers.as_array().unwrap().iter().map(|server| server["serverName"].as_str().unwrap()).collect();
        (names == expected).then_some(())
    });
}

#[track_caller]
fn servers_and_scripts_are_elsewhere(kind: BrokerProgram) {
    let broker = MessageBroker::start(kind);
    let gateway = gateway(&broker, &[]);
    let (bridge_home, scripts_home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = bridge_home.path().join("mcp.json");
    let settings = bridge_settings(&file);
    let bridge = on_bus("bridge", &broker, bridge_home.path(), &[clock()], settings.clone());
    let metrics_at = SocketAddr::from((Ipv4Addr::LOCALHOST, peers::free_port()));
    let command = format!("scripts-manager --listen {metrics_at}");
    let manager = on_bus(&command, &broker, scripts_home.path(), &[clock()], scripts_settings());

    until_listed(&gateway, &["clock"]);
    let details = gateway.text(DETAILS, json!({"server_name": "Clock", "tool_name": "convert_time"}));
    let details: Value = serde_json::from_str(&details).unwrap();
    assert!(details[0]["parametersSchema"].as_str().unwrap().contains("target_timezone"), "{details}");
    let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Kolkata"});
    let call = json!({"server_name": "CLOCK", "tool_name": "convert_time", "arguments": noon});
    let params = json!({"name": INVOKE, "arguments": call, "_meta": {"traceparent": TRACE_PARENT}});
    let converted = gateway.request("tools/call", params).result();
    assert!(converted["content"][0]["text"].as_str().unwrap().contains("17:30"), "{converted}");
    // The call at the bridge is part of the trace of the client.
    bridge.stderr.wait_for("the call", |text| {
        let is_of_call = |line: &&str| line.contains("call ended") && line.contains(TRACE_ID);
        text.lines().find(is_of_call).map(drop)
    });
    let unknown = gateway.call(INVOKE, json!({"server_name": "clock", "tool_name": "now"}));
    assert!(unknown.body.contains("'now'"), "{}", unknown.body);

    let script =
        json!({"script": "import os\nprint(6 * 7, os.environ['ROCKBOT_INPUT'])", "input_data": "in"});
    let ran = eventually("the manager", || {
        let params = json!({
            "name": "execute_python_script",
            "arguments": script.clone(),
            "_meta": {"traceparent": TRACE_PARENT},
        });
        let result = gateway.request("tools/call", params).result();
        (result["isError"] != true).then_some(result)
    });
    assert_eq!(ran["content"][0]["text"].as_str().unwrap().trim_end(), "42 in", "{ran}");
    manager.stderr.wait_for("the script", |text| {
        text.lines().find(|line| line.contains("script ended") && line.contains(TRACE_ID)).map(drop)
    });
    let failed = gateway.call("execute_python_script", json!({"script": "raise SystemExit(3)"})).result();
    assert!(failed["content"][0]["text"].as_str().unwrap().starts_with("Script failed (exit 3)"), "{failed}");
    let slow = gateway
        .call("execute_python_script", json!({"script": "while True: pass", "timeout_seconds": 1}))
        .result();
    assert!(slow["content"][0]["text"].as_str().unwrap().starts_with("Script failed (exit -1)"), "{slow}");

    let metrics = http::open_request(metrics_at, "GET /metrics", &[], "").response().unwrap().body;
    for (status, scripts) in [("ok", 1), ("tool_error", 2)] {
        let line = format!(
            r#"toolyard_tool_invocations_total{{status="{status}",tool_name="execute_python_script"}} {scripts}"#
        );
        assert!(metrics.lines().any(|found| found == line), "{line} is not in {metrics}");
    }

    added_server_is_in_the_file(&gateway, bridge, &broker, bridge_home.path(), &settings);
    let status: Value = serde_json::from_str(&gateway.get("/api/v1/status").body).unwrap();
    assert!(!status.to_string().contains("mcp-server"), "the gateway has no servers: {status}");
    stop(manager);
}

/// Adds a server through the gateway, and restarts the bridge.
#[track_caller]
fn added_server_is_in_the_file(
    gateway: &TestGateway,
    bridge: RunningProgram,
    broker: &MessageBroker,
    home: &Path,
    settings: &Value,
) {
    let file = home.join("mcp.json");
    let memory = home.join("memory.json");
    let server = json!({
        "server_name": "Memory",
        "command": "mcp-server-memory",
        "env": {"MEMORY_FILE_PATH": memory},
    });
    let registered = gateway.text(REGISTER, server);
    assert!(registered.starts_with("Server 'memory' registered successfully."), "{registered}");
    until_listed(gateway, &["clock", "memory"]);
    let refused = gateway.text(REGISTER, json!({"server_name": "x", "command": "sh"}));
    assert!(refused.contains("the command 'sh' is not allowed"), "{refused}");
    let mut written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written["mcpServers"]["memory"]["addedAtRunTime"], true, "{written}");
    let read = json!({"server_name": "memory", "tool_name": "read_graph", "arguments": {}});
    assert!(gateway.text(INVOKE, read.clone()).contains("entities"));

    // The operator adds a server by hand.
    written["mcpServers"]["clock-2"] =
        json!({"command": "mcp-server-time", "allowedTools": ["convert_time"]});
    fs::write(&file, written.to_string()).unwrap();
    until_listed(gateway, &["clock", "clock-2", "memory"]);
    let kept = gateway.text(UNREGISTER, json!({"server_name": "clock-2"}));
    assert!(kept.contains("configured by the operator"), "{kept}");

    stop(bridge);
    let bridge = on_bus("bridge", broker, home, &[clock()], settings.clone());
    eventually("the restarted server", || {
        gateway.text(INVOKE, read.clone()).contains("entities").then_some(())
    });
    assert_eq!(
        gateway.text(UNREGISTER, json!({"server_name": "MEMORY"})),
        "Server 'memory' removed successfully."
    );
    until_listed(gateway, &["clock", "clock-2"]);
    assert!(!fs::read_to_string(&file).unwrap().contains("memory"));
    stop(bridge);
}

#[test]
fn servers_and_scripts_are_in_other_processes_on_rabbitmq() {
    servers_and_scripts_are_elsewhere(BrokerProgram::RabbitMq);
}

#[test]
fn servers_and_scripts_are_in_other_processes_on_nats() {
    servers_and_scripts_are_elsewhere(BrokerProgram::Nats);
}

/// Returns settings that send the spans of a process to a collector.
fn exporting(collector: &SpanCollector, process: &str, mut settings: Value) -> Value {
    settings["telemetry"] = json!({"otlp": {"endpoint": collector.endpoint(process), "protocol": "http"}});
    settings
}

/// Starts two workers, a bridge, a scripts manager and a gateway. A client of another project calls a tool of each at the
/// gateway, and the calls of another client are one trace.
#[track_caller]
fn client_calls_tools_of_each_process(kind: BrokerProgram) {
    let (broker, collector) = (MessageBroker::start(kind), SpanCollector::start());
    let homes = [(); 4].map(|()| TempDir::new().unwrap());
    let [first, second, bridge_home, scripts_home] = homes.each_ref().map(TempDir::path);
    let server = ScriptedServer::new("server");
    let traced = |process: &str, settings: Value| exporting(&collector, process, settings);
    let of_group =
        |group: &str| traced(group, json!({"bus": {"worker": {"group": group, "sharedTopic": false}}}));
    let memory = stdio_handler("memory", "mcp-server-memory", &[]);
    let processes = [
        on_bus("worker", &broker, first, &[server.handler()], of_group("first")),
        on_bus("worker", &broker, second, &[memory], of_group("second")),
        on_bus(
            "bridge",
            &broker,
            bridge_home,
            &[clock()],
            traced("bridge", bridge_settings(&bridge_home.join("mcp.json"))),
        ),
        on_bus("scripts-manager", &broker, scripts_home, &[], traced("scripts", scripts_settings())),
    ];
    let workers = json!({"name": "workers", "type": "bus"});
    let gateway = TestGateway::with_settings(&[workers], traced("gateway", gateway_settings(&broker)));
    until_listed(&gateway, &["workers", "clock"]);
    eventually("the tools of both workers", || {
        let tools = gateway.tools();
        ["pid", "read_graph"].iter().all(|tool| tools.iter().any(|name| name == tool)).then_some(())
    });
    let zones = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Kolkata"});
    let calls = [
        ("pid", json!({})),
        ("read_graph", json!({})),
        (INVOKE, json!({"server_name": "clock", "tool_name": "convert_time", "arguments": zones})),
        ("execute_python_script", json!({"script": "print(6 * 7)"})),
    ];
    let steps: Vec<_> = calls.iter().map(|(tool, arguments)| json!([tool, arguments])).collect();
    let home = TempDir::new().unwrap();
    let mut client = peers::command(peers::peer("python/bin/python"), home.path());
    client.arg(script("client.py")).args([&gateway.url(), "legacy", &json!(steps).to_string()]);
    let ended = run(&mut client);
    assert_eq!(ended.code, 0, "{ended}");
    let seen: Value = serde_json::from_str(&ended.stdout).unwrap();
    let text = |number: usize| seen["texts"][number].as_str().unwrap();
    assert!(text(0).parse::<u32>().is_ok(), "{seen}");
    assert!(text(1).contains("entities"), "{seen}");
    assert!(text(2).contains("17:30"), "{seen}");
    assert_eq!(text(3).trim_end(), "42", "{seen}");
    for (tool, arguments) in calls {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"traceparent": TRACE_PARENT}});
        let result = gateway.request("tools/call", params).result();
        assert!(result["isError"] != true, "{result}");
    }
    // Spans are exported at the end of a process.
    processes.into_iter().chain([gateway.process]).for_each(stop);
    trace_is_one_tree(&collector.trace(TRACE_ID));
}

/// Checks that each span of the trace is a descendant of the client's, and that every process has its part.
#[track_caller]
fn trace_is_one_tree(spans: &[CollectedSpan]) {
    let ids: BTreeSet<&str> = spans.iter().map(|span| &*span.id).collect();
    let client = TRACE_PARENT.split('-').nth(2).unwrap();
    for span in spans {
        assert!(
            ids.contains(&*span.parent) || span.parent == client,
            "{span:?} is not connected: {spans:#?}"
        );
    }
    // From each process on, the parents lead through the gateway to the client.
    let by_id = |id: &str| spans.iter().find(|span| span.id == id);
    let mut paths = BTreeSet::new();
    for span in spans {
        let mut path = vec![&*span.process];
        let mut parent = by_id(&span.parent);
        while let Some(span) = parent {
            path.push(&span.process);
            parent = by_id(&span.parent);
        }
        path.dedup();
        paths.insert(path);
    }
    let expected = [
        vec!["bridge", "gateway"],
        vec!["first", "gateway"],
        vec!["gateway"],
        vec!["scripts", "gateway"],
        vec!["second", "gateway"],
    ];
    assert!(paths.iter().eq(&expected), "{paths:?} {spans:#?}");
}

#[test]
fn client_calls_tools_of_each_process_on_rabbitmq() {
    client_calls_tools_of_each_process(BrokerProgram::RabbitMq);
}

#[test]
fn client_calls_tools_of_each_process_on_nats() {
    client_calls_tools_of_each_process(BrokerProgram::Nats);
}

#[test]
fn scripts_manager_refuses_to_send_its_scripts_on() {
    let home = TempDir::new().unwrap();
    let spec = json!({"builtins": only(&[("scripts", json!({"runner": "bus"}))])});
    let mut command = toolyard(home.path());
    command.args(["scripts-manager", "--bus", "nats://127.0.0.1:1", "-f"]);
    let ended = run(command.arg(process_document(home.path(), spec)));
    assert_eq!(ended.code, 2, "{ended}");
    assert!(ended.stderr.contains("set `builtins.scripts.runner` to `local` or `kubernetes`"), "{ended}");
}
