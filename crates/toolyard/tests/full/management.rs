//! Servers that agents list, call, add and remove: with third-party clients and servers, after a restart, and with two
//! gateways on one database.

use std::path::Path;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::{http_handler, stdio_handler};
use toolyard_testing::postgres::PostgresServer;
use toolyard_testing::process::{is_running, run};
use toolyard_testing::scripted_server::script;
use toolyard_testing::wait::eventually;
use toolyard_testing::{http, peers};

use crate::support::gateway::{TestGateway, toolyard};

const LIST: &str = "mcp_list_services";
const DETAILS: &str = "mcp_get_service_details";
const INVOKE: &str = "mcp_invoke_tool";
const REGISTER: &str = "mcp_register_server";
const UNREGISTER: &str = "mcp_unregister_server";

/// Returns process settings with only these built-in tools.
fn process(mcp: Value) -> Value {
    let off = json!({"enabled": false});
    let names = ["scripts", "memory", "results", "guides", "skills", "search"];
    let mut builtins: Value = names.map(|name| (name.to_owned(), off.clone())).into_iter().collect();
    builtins["mcp"] = mcp;
    json!({"builtins": builtins, "timeouts": {"connect": "50s", "firstList": "50s", "eraProbe": "30s", "keyCheck": "200ms"}})
}

fn allow_list() -> Value {
    process(json!({"allow": {
        "commands": ["mcp-server-memory"],
        "hosts": ["127.0.0.1"],
        "env": ["MEMORY_FILE_PATH"],
    }}))
}

fn clock() -> Value {
    stdio_handler("clock", "mcp-server-time", &["--local-timezone", "UTC"])
}

/// Returns the transcript of the Python SDK for these calls in sequence.
#[track_caller]
fn client_transcript(gateway: &TestGateway, home: &Path, mode: &str, calls: &[(&str, Value)]) -> String {
    let steps: Vec<_> = calls.iter().map(|(tool, arguments)| json!([tool, arguments])).collect();
    let mut client = peers::command(peers::peer("python/bin/python"), home);
    client.arg(script("client.py")).args([&gateway.url(), mode, &json!(steps).to_string()]);
    let ended = run(&mut client);
    assert_eq!(ended.code, 0, "{ended}");
    let seen: Value = serde_json::from_str(&ended.stdout).unwrap();
    let texts = seen["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    let lines =
        calls.iter().zip(texts).map(|((tool, arguments), text)| format!("> {tool} {arguments}\n{text}"));
    lines.collect::<Vec<_>>().join("\n\n")
}

/// Restarts a gateway after a clean stop.
#[track_caller]
fn restarted(gateway: TestGateway) -> TestGateway {
    let TestGateway { mut process, folder, .. } = gateway;
    process.signal(Signal::TERM);
    assert!(process.wait().success());
    let mut command = toolyard(folder.path());
    let files = ["registry.json", "process.json"].map(|file| folder.path().join(file));
    command.args(["serve", "-f"]).arg(&files[0]).arg("-f").arg(&files[1]);
    TestGateway::start(folder, &mut command)
}

/// Returns the ids of the processes of a handler.
#[track_caller]
fn pids(gateway: &TestGateway, handler: &str) -> Vec<u32> {
    let handlers: Value = serde_json::from_str(&gateway.get("/api/v1/handlers").body).unwrap();
    let of = |found: &&Value| found["name"] == handler;
    let handler_status =
        handlers["handlers"].as_array().unwrap().iter().find(of).cloned().unwrap_or_default();
    let processes = handler_status["processes"].as_array().cloned().unwrap_or_default();
    processes.iter().map(|process| u32::try_from(process["pid"].as_u64().unwrap()).unwrap()).collect()
}

#[test]
fn third_party_client_manages_third_party_servers() {
    let home = TempDir::new().unwrap();
    let everything = peers::everything(home.path());
    let gateway = TestGateway::with_settings(&[clock()], allow_list());
    let memory_file = home.path().join("memory.json");
    let memory = json!({
        "server_name": "Memory",
        "command": "mcp-server-memory",
        "env": {"MEMORY_FILE_PATH": memory_file},
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
    let seen = client_transcript(&gateway, home.path(), "legacy", &calls);
    let hidden = [(everything.url.as_str(), "URL"), (memory_file.to_str().unwrap(), "FILE")];
    let normalized = hidden.iter().fold(seen, |text, (from, to)| text.replace(from, to));
    assert_snapshot!("added", normalized);
    let origins = |gateway: &TestGateway| -> Vec<String> {
        let handlers: Value = serde_json::from_str(&gateway.get("/api/v1/handlers").body).unwrap();
        let line = |handler: &Value| format!("{} {}", handler["name"], handler["origin"]);
        handlers["handlers"].as_array().unwrap().iter().map(line).collect()
    };
    let expected =
        [r#""builtins" "manifest""#, r#""clock" "manifest""#, r#""all" "runtime""#, r#""memory" "runtime""#];
    let mut origins_seen = origins(&gateway);
    origins_seen[2..].sort();
    assert_eq!(origins_seen, expected);
    // Headers and variables of a server are not disclosed.
    assert!(!gateway.get("/api/v1/status").body.contains("memory.json"));
    let first = pids(&gateway, "memory");
    assert!(!first.is_empty());

    let gateway = restarted(gateway);
    assert!(!first.into_iter().any(is_running));
    assert_eq!(origins(&gateway), expected);
    // The server restarts asynchronously.
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
    let called = client_transcript(&gateway, home.path(), "2026-07-28", to_call);
    let second = pids(&gateway, "memory");
    let removed = client_transcript(&gateway, home.path(), "2026-07-28", to_remove);
    assert_snapshot!("removed", format!("{called}\n\n{removed}"));
    eventually("the servers have ended", || (!second.iter().any(|pid| is_running(*pid))).then_some(()));
    let gateway = restarted(gateway);
    assert_eq!(origins(&gateway), expected[..2]);
}

#[test]
fn invalid_input_is_explained_to_third_party_client() {
    let home = TempDir::new().unwrap();
    let gateway = TestGateway::with_settings(&[clock()], allow_list());
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
    assert_snapshot!(client_transcript(&gateway, home.path(), "legacy", &calls));
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
fn gateway_cannot_register_itself() {
    let gateway = TestGateway::with_settings(&[clock()], allow_list());
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://{}/mcp", gateway.address);
        assert_eq!(
            gateway.text(REGISTER, json!({"server_name": "x", "url": url})),
            "Failed to register server 'x': the URL is that of this gateway itself"
        );
    }
    assert_eq!(gateway.tools().len(), 7, "nothing was added");
}

#[test]
fn registration_requires_an_allow_list() {
    let home = TempDir::new().unwrap();
    let gateway = TestGateway::with_settings(&[clock()], process(json!({})));
    let calls = [(REGISTER, json!({"server_name": "memory", "command": "mcp-server-memory"}))];
    assert_snapshot!(client_transcript(&gateway, home.path(), "legacy", &calls), @r#"
    > mcp_register_server {"server_name":"memory","command":"mcp-server-memory"}
    Failed to register server 'memory': no server may be added at run time: the operator allows none. This line of the gateway's configuration would allow it: `builtins: {mcp: {allow: {commands: ["mcp-server-memory"]}}}`
    "#);
}

/// A model that cannot add servers is not shown how.
#[test]
fn registration_is_listed_with_an_allow_list_only() {
    let listed = |mcp: Value| {
        let gateway = TestGateway::with_settings(&[clock()], mcp);
        gateway.tools().contains(&REGISTER.to_owned())
    };
    assert_eq!([listed(process(json!({}))), listed(allow_list())], [false, true]);
}

/// The error output tells why, without the values that were given.
#[test]
fn error_output_of_a_failed_server_is_shown() {
    let settings = process(json!({"allow": {"commands": ["sh"], "env": ["API_TOKEN", "PIN"]}}));
    let gateway = TestGateway::with_settings(&[clock()], settings);
    let script = r#"printf '\033[31mno access with %s and %s\n' "$API_TOKEN" "$PIN" >&2; exit 3"#;
    let text = gateway.text(
        REGISTER,
        json!({
            "server_name": "broken",
            "command": "sh",
            "arguments": ["-c", script],
            "env": {"API_TOKEN": "tok-3141592653", "PIN": "7"},
        }),
    );
    let (reason, output) = text.split_once(". The last lines of its error output:").unwrap_or((&text, ""));
    assert!(reason.starts_with("Failed to register server 'broken': the server failed to start"), "{text}");
    // The program may be started more than once.
    let lines: Vec<_> = output.trim().lines().map(str::trim).collect();
    assert!(!lines.is_empty(), "{text}");
    assert!(lines.iter().all(|line| *line == "[31mno access with [REDACTED] and [REDACTED]"), "{text}");
}

/// Calls a tool with a key and returns its text.
#[track_caller]
fn call(gateway: &TestGateway, key: &str, tool: &str, arguments: &Value) -> String {
    let line = format!("POST /api/v1/tools/{tool}/call");
    let body = json!({"arguments": arguments}).to_string();
    let response = http::send_with_key(gateway.address, key, &line, &body);
    let answer: Value = serde_json::from_str(&response.body).unwrap();
    let text = &answer["content"][0]["text"];
    text.as_str().map_or_else(|| answer["detail"].to_string(), str::to_owned)
}

#[test]
fn key_sees_only_permitted_tools() {
    let home = TempDir::new().unwrap();
    let everything = peers::everything(home.path());
    let gateway = TestGateway::with_settings(&[clock(), http_handler("all", &everything.url)], allow_list());
    let key_settings = json!({"name": "k", "scopes": ["tools:builtins/*", "tools:clock/get_*", "rest"]});
    let headers = [("Content-Type", "application/json")];
    let made = http::send(gateway.address, "POST /api/v1/keys", &headers, &key_settings.to_string());
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
fn two_gateways_share_registered_servers() {
    let home = TempDir::new().unwrap();
    let everything = peers::everything(home.path());
    let database = PostgresServer::start();
    let mut spec = allow_list();
    spec["store"] = json!({"url": database.url()});
    let [one, other] = [(); 2].map(|()| TestGateway::with_settings(&[clock()], spec.clone()));
    let all = json!({"server_name": "all", "url": everything.url});
    assert_eq!(
        one.text(REGISTER, all.clone()),
        "Server 'all' registered successfully. 13 tool(s) available."
    );
    let echo = json!({"server_name": "all", "tool_name": "echo", "arguments": {"message": "there"}});
    eventually("the other gateway has it", || other.tools().contains(&"all_echo".to_owned()).then_some(()));
    assert_eq!(other.text(INVOKE, echo), "Echo: there");
    let registered = other.text(REGISTER, all);
    assert_eq!(
        registered,
        "Failed to register server 'all': the name is in use, and a server cannot be replaced: choose another name"
    );
    assert_eq!(other.text(UNREGISTER, json!({"server_name": "all"})), "Server 'all' removed successfully.");
    eventually("the first gateway has it no more", || {
        (!one.tools().contains(&"all_echo".to_owned())).then_some(())
    });
}
