//! `toolyard doctor`.

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::http_handler;
use toolyard_testing::peers;
use toolyard_testing::process::RunningProgram;
use toolyard_testing::scripted_server::ScriptedServer;

use super::toolyard_with;
use crate::support::gateway::{TestGateway, toolyard};

/// Runs the command and replaces values that differ between runs.
#[track_caller]
fn doctor(gateway: &TestGateway, names: &[(&str, String)]) -> String {
    let output = toolyard_with(&["doctor", "--url", &gateway.url()]).to_string();
    let output = names.iter().fold(output, |output, (word, random)| output.replace(random, word));
    // Times, and the memory of a server.
    let words = output.split_inclusive([' ', '\n']).scan("", |last, word| {
        let is_random = matches!(last.trim(), "since" | "at" | "memory:");
        *last = word;
        let end = word.trim_start_matches(|c: char| !c.is_whitespace());
        Some(if is_random { format!("...{end}") } else { word.to_owned() })
    });
    words.collect()
}

#[test]
fn handler_that_is_down_is_reported() {
    let there = ScriptedServer::new("there");
    let nobody = format!("127.0.0.1:{}", peers::free_port());
    let handlers = [there.handler(), http_handler("gone", &format!("http://{nobody}/mcp?key=SECRET"))];
    let gateway = TestGateway::with_handlers(&handlers);
    assert_eq!(gateway.tools(), ["pid", "wait"]);
    let python = peers::peer("python/bin/python").to_str().unwrap().to_owned();
    let random = [("PYTHON", python), ("NOBODY", nobody)];
    assert_snapshot!(doctor(&gateway, &random), @"
    Toolyard 0.1.0: Degraded. 1 of 2 handlers ready, 2 of 2 tools available.

      ok    there  2 tools, MCP 2025-11-25, stdio://PYTHON, since ...
      DOWN  gone   0 tools, mcp, http://NOBODY/mcp, since ...
            the server cannot be reached: connection refused
            remedy: start the server, or correct the port

    The list of 2 tools takes 172 characters, about 40 tokens of a model's context.
    Running processes: 1, private memory: ... MiB, restarts: 0.
    --- exit status 1
    ");
}

/// A valid name may be too long for some clients.
#[test]
fn long_tool_name_is_reported() {
    let there = ScriptedServer::new("a-handler-whose-name-is-about-as-long-as-names-can-be");
    let other = ScriptedServer::new("there");
    let gateway = TestGateway::with_handlers(&[other.handler(), there.handler()]);
    let tools = gateway.tools();
    let renamed = toolyard_with(&["doctor", "--url", &gateway.url()]).to_string();
    let long = renamed.lines().find(|line| line.contains("`mcp__toolyard__`")).unwrap();
    assert_eq!(long.matches(&tools[2]).count(), 1, "{long}");
    assert!(!long.contains(" wait"), "{long}");
}

#[test]
fn starting_handler_is_waited_for() {
    let folder = TempDir::new().unwrap();
    let start = folder.path().join("start");
    let script = format!(
        "until [ -e {} ]; do sleep 0.01; done; exec {} demo-server",
        start.display(),
        env!("CARGO_BIN_EXE_toolyard")
    );
    let late = json!({
        "name": "late", "type": "mcp",
        "mcpConfig": {"transport": "stdio", "command": "sh", "args": ["-c", script]},
    });
    let gateway = TestGateway::with_settings(&[late], json!({"timeouts": {"firstList": "1ms"}}));
    let waiting =
        RunningProgram::start(toolyard(folder.path()).args(["doctor", "--wait", "--url", &gateway.url()]));
    let now = toolyard_with(&["doctor", "--url", &gateway.url()]);
    assert!(now.code == 0 && now.stdout.contains("  wait  late"), "{now}");
    std::fs::write(start, "").unwrap();
    waiting.stdout.wait_for("the ready handler", |text| text.contains("  ok    late").then_some(()));
}

#[test]
fn for_programs() {
    let there = ScriptedServer::new("there");
    let gateway = TestGateway::with_handlers(&[there.handler()]);
    gateway.tools();
    let output = toolyard_with(&["doctor", "--output", "json", "--url", &gateway.url()]);
    let status: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, &status["phase"]), (0, &json!("Ready")));
    assert_eq!(status["handlers"][0]["processes"][0]["processes"], 1);
}

/// The available layers depend on the machine; the configured isolation does not.
#[test]
fn sandbox_report() {
    let there = ScriptedServer::new("there");
    let gateway = TestGateway::with_settings(&[there.handler()], json!({"sandbox": {"isolation": "none"}}));
    let result = toolyard_with(&["doctor", "--sandbox", "--url", &gateway.url()]).to_string();
    assert_snapshot!(result, @"
    isolation `none`, level `none`: functions and scripts can run

    supervisor      enforced
    cgroup memory   not enforced: isolation is disabled
    cgroup cpu      not enforced: isolation is disabled
    cgroup pids     not enforced: isolation is disabled
    namespaces      not enforced: isolation is disabled
    landlock        not enforced: isolation is disabled
    seccomp         not enforced: isolation is disabled
    uids            not enforced: isolation is disabled
    --- exit status 0
    ");
}

/// Only the search tools, with and without tools to find.
#[test]
fn token_report() {
    let off = json!({"enabled": false});
    let say = |search: Value| {
        let there = ScriptedServer::new("there");
        let builtins = json!({"scripts": off, "memory": off, "guides": off, "skills": off, "mcp": off, "search": search});
        let gateway = TestGateway::with_settings(&[there.handler()], json!({"builtins": builtins}));
        gateway.tools();
        toolyard_with(&["doctor", "--tokens", "--url", &gateway.url()]).to_string()
    };
    assert_snapshot!(say(json!({"budget": 300})), @"
    Size of the list of tools for MCP clients, in tokens (estimator: bytes/4.4):

      all          5 tools       320 tokens
      search       3 tools       281 tokens
    * auto         3 tools       281 tokens

    * in use; `auto` means `all` up to 300 tokens (`builtins.search`)

    All tools, by handler:

      builtins       3 tools       281 tokens
        search       3 tools       281 tokens
      there          2 tools        39 tokens
    --- exit status 0
    ");
    assert_snapshot!(say(json!({"enabled": false})), @"
    Size of the list of tools for MCP clients, in tokens (estimator: bytes/4.4):

    * all          2 tools        40 tokens

    Clients get all tools: tool search is not enabled (`builtins.search`).

    All tools, by handler:

      there       2 tools        39 tokens
    --- exit status 0
    ");
}

#[test]
fn token_report_as_json() {
    let there = ScriptedServer::new("there");
    let gateway = TestGateway::with_handlers(&[there.handler()]);
    gateway.tools();
    let result = toolyard_with(&["doctor", "--tokens", "--output", "json", "--url", &gateway.url()]);
    assert_snapshot!(result.to_string(), @r#"
    {"estimator":"bytes/4.4","disclosure":"all","lists":[{"disclosure":"all","tools":2,"tokens":40}],"handlers":[{"name":"there","tools":2,"tokens":39}]}
    --- exit status 0
    "#);
}

#[test]
fn doctor_without_gateway() {
    let url = format!("http://127.0.0.1:{}/mcp", peers::free_port());
    let output = toolyard_with(&["doctor", "--url", &url]).to_string().replace(&url, "URL");
    assert_snapshot!(output, @"
    --- stderr
    error: request to URL failed: cannot connect: tcp connect error: Connection refused (os error 111)
    --- exit status 1
    ");
}
