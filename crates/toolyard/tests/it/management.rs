//! Servers that agents see, call, add and remove: by clients of other people, with servers of other people, after a restart,
//! and by two gateways on one database.

use std::path::Path;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::gateway::{Gateway, over_http, stdio, toolyard};
use crate::support::postgres::Server;
use crate::support::process::{is_running, run};
use crate::support::scripted::script;
use crate::support::{eventually, http, peers};

const LIST: &str = "mcp_list_services";
const DETAILS: &str = "mcp_get_service_details";
const INVOKE: &str = "mcp_invoke_tool";
const REGISTER: &str = "mcp_register_server";
const UNREGISTER: &str = "mcp_unregister_server";

/// A process with these tools and no others of the gateway's own.
fn process(mcp: Value) -> Value {
    let off = json!({"enabled": false});
    let names = ["scripts", "memory", "results", "guides", "skills", "search"];
    let mut builtins: Value = names.map(|name| (name.to_owned(), off.clone())).into_iter().collect();
    builtins["mcp"] = mcp;
    json!({"builtins": builtins, "timeouts": {"connect": "50s", "firstList": "50s", "eraProbe": "30s", "keyCheck": "200ms"}})
}

fn allowed() -> Value {
    process(json!({"allow": {
        "commands": ["mcp-server-memory"],
        "hosts": ["127.0.0.1"],
        "env": ["MEMORY_FILE_PATH"],
    }}))
}

fn clock() -> Value {
    stdio("clock", "mcp-server-time", &["--local-timezone", "UTC"])
}

/// What a client of the Python SDK reads of these calls, one after the other.
#[track_caller]
fn read(gateway: &Gateway, home: &Path, mode: &str, calls: &[(&str, Value)]) -> String {
    let asked: Vec<_> = calls.iter().map(|(tool, arguments)| json!([tool, arguments])).collect();
    let mut client = peers::command(peers::peer("python/bin/python"), home);
    client.arg(script("client.py")).args([&gateway.url(), mode, &json!(asked).to_string()]);
    let ended = run(&mut client);
    assert_eq!(ended.code, 0, "{ended}");
    let seen: Value = serde_json::from_str(&ended.stdout).unwrap();
    let texts = seen["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    let lines =
        calls.iter().zip(texts).map(|((tool, arguments), text)| format!("> {tool} {arguments}\n{text}"));
    lines.collect::<Vec<_>>().join("\n\n")
}

/// The same gateway again, after the first one has ended.
#[track_caller]
fn restarted(gateway: Gateway) -> Gateway {
    let Gateway { mut process, folder, .. } = gateway;
    process.signal(Signal::TERM);
    assert!(process.wait().success());
    let mut command = toolyard(folder.path());
    let files = ["registry.json", "process.json"].map(|file| folder.path().join(file));
    command.args(["serve", "-f"]).arg(&files[0]).arg("-f").arg(&files[1]);
    Gateway::start(folder, &mut command)
}

/// The ids of the processes of a handler.
#[track_caller]
fn pids(gateway: &Gateway, handler: &str) -> Vec<u32> {
    let handlers: Value = serde_json::from_str(&gateway.get("/api/v1/handlers").body).unwrap();
    let of = |found: &&Value| found["name"] == handler;
    let found = handlers["handlers"].as_array().unwrap().iter().find(of).cloned().unwrap_or_default();
    let processes = found["processes"].as_array().cloned().unwrap_or_default();
    processes.iter().map(|process| u32::try_from(process["pid"].as_u64().unwrap()).unwrap()).collect()
}

#[test]
fn a_foreign_client_adds_calls_and_removes_servers_of_other_people() {
    let home = TempDir::new().unwrap();
    let everything = peers::everything(home.path());
    let gateway = Gateway::with(&[clock()], allowed());
    let kept = home.path().join("memory.json");
    let memory = json!({
        "server_name": "Memory",
        "command": "mcp-server-memory",
        "env": {"MEMORY_FILE_PATH": kept},
        "display_name": "Knowledge",
        "description": "Remembers people and things.",
    });
    let ann = json!({"entities": [{"name": "Ann", "entityType": "person", "observations": ["is here"]}]});
    let calls = [
        (LIST, json!({})),
        (REGISTER, memory),
        (REGISTER, json!({"name": "all", "type": "http", "url": everything.url})),
        (LIST, json!({})),
        (DETAILS, json!({"server_name": "clock", "tool_name": "convert_time"})),
        (INVOKE, json!({"server_name": "MEMORY", "tool_name": "create_entities", "arguments": ann})),
        (INVOKE, json!({"server_name": "all", "tool_name": "echo", "arguments": {"message": "over HTTP"}})),
        (INVOKE, json!({"server_name": "all", "tool_name": "get-sum", "arguments": "{\"a\": 2, \"b\": 3}"})),
        ("all_echo", json!({"message": "by the name that callers have for it"})),
    ];
    let seen = read(&gateway, home.path(), "legacy", &calls);
    let hidden = [(everything.url.as_str(), "URL"), (kept.to_str().unwrap(), "FILE")];
    let shown = hidden.iter().fold(seen, |text, (from, to)| text.replace(from, to));
    assert_snapshot!("added", shown);
    let origins = |gateway: &Gateway| -> Vec<String> {
        let handlers: Value = serde_json::from_str(&gateway.get("/api/v1/handlers").body).unwrap();
        let line = |handler: &Value| format!("{} {}", handler["name"], handler["origin"]);
        handlers["handlers"].as_array().unwrap().iter().map(line).collect()
    };
    let expected =
        [r#""builtins" "manifest""#, r#""clock" "manifest""#, r#""all" "runtime""#, r#""memory" "runtime""#];
    let mut found = origins(&gateway);
    found[2..].sort();
    assert_eq!(found, expected);
    // What a server was given is nobody's business.
    assert!(!gateway.get("/api/v1/status").body.contains("memory.json"));
    let first = pids(&gateway, "memory");
    assert!(!first.is_empty());

    let gateway = restarted(gateway);
    assert!(!first.into_iter().any(is_running));
    assert_eq!(origins(&gateway), expected);
    // It is started again, which nobody waits for.
    eventually("the program of `memory`", || (!pids(&gateway, "memory").is_empty()).then_some(()));
    let calls = [
        (
            INVOKE,
            json!({"server_name": "memory", "tool_name": "open_nodes", "arguments": {"names": ["Ann"]}}),
        ),
        (INVOKE, json!({"server_name": "all", "tool_name": "echo", "arguments": {"message": "again"}})),
        (UNREGISTER, json!({"server_name": "Memory"})),
        (UNREGISTER, json!({"name": "all"})),
        (LIST, json!({})),
    ];
    let (to_call, to_remove) = calls.split_at(2);
    let called = read(&gateway, home.path(), "2026-07-28", to_call);
    let second = pids(&gateway, "memory");
    let removed = read(&gateway, home.path(), "2026-07-28", to_remove);
    assert_snapshot!("removed", format!("{called}\n\n{removed}"));
    eventually("the servers have ended", || (!second.iter().any(|pid| is_running(*pid))).then_some(()));
    let gateway = restarted(gateway);
    assert_eq!(origins(&gateway), expected[..2]);
}

#[test]
fn what_a_foreign_client_reads_of_bad_input() {
    let home = TempDir::new().unwrap();
    let gateway = Gateway::with(&[clock()], allowed());
    let noon = json!({"source_timezone": "UTC", "time": "12:00"});
    let calls = [
        (DETAILS, json!({})),
        (DETAILS, json!({"server_name": "nothing"})),
        (DETAILS, json!({"server_name": "clock", "tool_name": "now"})),
        (INVOKE, json!({"server_name": "clock"})),
        (INVOKE, json!({"server_name": "nothing", "tool_name": "convert_time"})),
        (INVOKE, json!({"server_name": "clock", "tool_name": "convert_time", "arguments": noon})),
        (INVOKE, json!({"server_name": "clock", "tool_name": "convert_time", "arguments": "noon"})),
        (INVOKE, json!({"server_name": "clock", "tool_name": "mcp_invoke_tool"})),
        (REGISTER, json!({"command": "mcp-server-memory"})),
        (REGISTER, json!({"server_name": "x"})),
        (REGISTER, json!({"server_name": "My Server", "command": "mcp-server-memory"})),
        (REGISTER, json!({"server_name": "clock", "command": "mcp-server-memory"})),
        (REGISTER, json!({"server_name": "x", "command": "sh", "arguments": ["-c", "id"]})),
        (
            REGISTER,
            json!({"server_name": "x", "command": "mcp-server-memory", "env": {"NODE_OPTIONS": "-r x"}}),
        ),
        (REGISTER, json!({"server_name": "x", "url": "http://169.254.169.254/latest/meta-data"})),
        (REGISTER, json!({"server_name": "x", "url": "http://127.0.0.1:1/mcp"})),
        (UNREGISTER, json!({"server_name": "clock"})),
        (UNREGISTER, json!({"server_name": "nothing"})),
        (UNREGISTER, json!({})),
    ];
    assert_snapshot!(read(&gateway, home.path(), "legacy", &calls));
    for (tool, arguments) in calls {
        assert_eq!(gateway.call(tool, arguments.clone()).result()["isError"], true, "{tool} {arguments}");
    }
    let of_the_tool = json!({"server_name": "clock", "tool_name": "convert_time", "arguments": noon});
    let mut inspector = peers::command("mcp-inspector", home.path());
    inspector.args([
        "--cli",
        "-q",
        "--format",
        "json",
        "--transport",
        "http",
        "--server-url",
        &gateway.url(),
    ]);
    inspector.args([
        "--method",
        "tools/call",
        "--tool-name",
        INVOKE,
        "--tool-args-json",
        &of_the_tool.to_string(),
    ]);
    let ended = run(&mut inspector);
    assert!(ended.stdout.contains("target_timezone"), "{ended}");
    assert_eq!(gateway.tools().len(), 7, "nothing was added");
}

#[test]
fn a_gateway_is_no_server_of_itself() {
    let gateway = Gateway::with(&[clock()], allowed());
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://{}/mcp", gateway.address);
        assert_eq!(
            gateway.text(REGISTER, json!({"server_name": "x", "url": url})),
            "Failed to register server 'x': that is this gateway itself"
        );
    }
    assert_eq!(gateway.tools().len(), 7, "nothing was added");
}

#[test]
fn without_a_list_of_what_is_allowed_nothing_is_added() {
    let home = TempDir::new().unwrap();
    let gateway = Gateway::with(&[clock()], process(json!({})));
    let calls = [(REGISTER, json!({"server_name": "memory", "command": "mcp-server-memory"}))];
    assert_snapshot!(read(&gateway, home.path(), "legacy", &calls), @r#"
    > mcp_register_server {"server_name":"memory","command":"mcp-server-memory"}
    Failed to register server 'memory': no server may be added at run time: the operator has not said which ones may be (`builtins.mcp.allow` of the gateway)
    "#);
}

/// Calls a tool with a key, and gives what it answers.
#[track_caller]
fn call(gateway: &Gateway, key: &str, tool: &str, arguments: &Value) -> String {
    let bearer = format!("Bearer {key}");
    let headers = [("Content-Type", "application/json"), ("Authorization", &*bearer)];
    let line = format!("POST /api/v1/tools/{tool}/call");
    let body = json!({"arguments": arguments}).to_string();
    let answer: Value =
        serde_json::from_str(&http::send(gateway.address, &line, &headers, &body).body).unwrap();
    let text = &answer["content"][0]["text"];
    text.as_str().map_or_else(|| answer["detail"].to_string(), str::to_owned)
}

#[test]
fn what_a_key_may_not_use_does_not_exist_for_it() {
    let home = TempDir::new().unwrap();
    let everything = peers::everything(home.path());
    let gateway = Gateway::with(&[clock(), over_http("all", &everything.url)], allowed());
    let wanted = json!({"name": "k", "scopes": ["tools:builtins/*", "tools:clock/get_*", "rest"]});
    let headers = [("Content-Type", "application/json")];
    let made = http::send(gateway.address, "POST /api/v1/keys", &headers, &wanted.to_string());
    let made: Value = serde_json::from_str(&made.body).unwrap();
    let key = made["key"].as_str().unwrap();
    let calls = [
        (LIST, json!({})),
        (DETAILS, json!({"server_name": "all"})),
        (DETAILS, json!({"server_name": "clock", "tool_name": "convert_time"})),
        (INVOKE, json!({"server_name": "all", "tool_name": "echo", "arguments": {"message": "x"}})),
        (INVOKE, json!({"server_name": "clock", "tool_name": "convert_time"})),
        (UNREGISTER, json!({"server_name": "all"})),
    ];
    let seen = calls
        .map(|(tool, arguments)| format!("> {tool} {arguments}\n{}", call(&gateway, key, tool, &arguments)));
    assert_snapshot!(seen.join("\n\n"));
    let now =
        json!({"server_name": "clock", "tool_name": "get_current_time", "arguments": {"timezone": "UTC"}});
    assert!(call(&gateway, key, INVOKE, &now).contains("UTC"));
}

#[test]
fn two_gateways_on_one_postgresql_share_servers_that_were_added() {
    let home = TempDir::new().unwrap();
    let everything = peers::everything(home.path());
    let database = Server::start();
    let mut spec = allowed();
    spec["store"] = json!({"url": database.url()});
    let [one, other] = [(); 2].map(|()| Gateway::with(&[clock()], spec.clone()));
    let all = json!({"server_name": "all", "url": everything.url});
    assert_eq!(
        one.text(REGISTER, all.clone()),
        "Server 'all' registered successfully. 13 tool(s) available."
    );
    let echo = json!({"server_name": "all", "tool_name": "echo", "arguments": {"message": "there"}});
    eventually("the other gateway has it", || other.tools().contains(&"all_echo".to_owned()).then_some(()));
    assert_eq!(other.text(INVOKE, echo), "Echo: there");
    let taken = other.text(REGISTER, all);
    assert_eq!(
        taken,
        "Failed to register server 'all': the name is in use, and a server cannot be replaced: choose another name"
    );
    assert_eq!(other.text(UNREGISTER, json!({"server_name": "all"})), "Server 'all' removed successfully.");
    eventually("the first gateway has it no more", || {
        (!one.tools().contains(&"all_echo".to_owned())).then_some(())
    });
}
