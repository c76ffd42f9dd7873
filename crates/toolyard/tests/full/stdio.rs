//! `toolyard stdio`, started by third-party clients and by a raw one.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::peers;
use toolyard_testing::process::{RunningProgram, is_running, run};
use toolyard_testing::scripted_server::{ScriptedServer, script};
use toolyard_testing::wait::eventually;

use crate::support::gateway::{TestGateway, toolyard};

/// The manifest of a gateway with one server.
struct GatewayFiles {
    server: ScriptedServer,
    folder: TempDir,
}

/// A raw client.
struct RawClient {
    process: RunningProgram,
    input: Option<std::io::PipeWriter>,
}

impl GatewayFiles {
    #[track_caller]
    fn new() -> Self {
        Self::of(ScriptedServer::new("there"))
    }

    #[track_caller]
    fn of(server: ScriptedServer) -> Self {
        let (folder, _) =
            TestGateway::command(&[server.handler()], json!({"timeouts": {"manifestCheck": "10ms"}}));
        Self { server, folder }
    }

    fn args(&self) -> Vec<String> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        ["stdio", "-f", &path("registry.json"), "-f", &path("process.json")].map(str::to_owned).to_vec()
    }

    /// Returns a program without arguments, because some clients support none.
    fn program(&self) -> PathBuf {
        let path = self.folder.path().join("server");
        let command = format!("exec '{}' '{}'", env!("CARGO_BIN_EXE_toolyard"), self.args().join("' '"));
        fs::write(&path, format!("#!/bin/sh\n{command}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    #[track_caller]
    fn start(&self) -> RawClient {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = toolyard(self.folder.path());
        let process = RunningProgram::start_with(command.args(self.args()), Stdio::from(reader));
        RawClient { process, input: Some(writer) }
    }
}

impl RawClient {
    #[track_caller]
    fn send(&mut self, id: u32, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request and returns its result.
    #[track_caller]
    fn request(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.send(id, method, params);
        self.process.stdout.wait_for("the answer", |text| {
            let messages = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            messages.into_iter().find(|message| message["id"] == id).map(|message| message["result"].clone())
        })
    }

    #[track_caller]
    fn call(&mut self, id: u32, tool: &str) -> String {
        let result = self.request(id, "tools/call", json!({"name": tool}));
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn initialize(&mut self) {
        let client = json!({"name": "raw", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        assert_eq!(self.request(0, "initialize", params)["serverInfo"]["name"], "toolyard");
    }
}

#[test]
fn started_by_python() {
    let site = GatewayFiles::new();
    for mode in ["legacy", "2026-07-28"] {
        let mut python = peers::command(peers::peer("python/bin/python"), site.folder.path());
        python.arg(script("client.py")).arg(site.program()).arg(mode);
        let ended = run(python.arg(r#"[["pid", {}]]"#));
        assert_eq!(ended.code, 0, "{ended}");
        let seen: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(seen["tools"], json!(["pid", "wait"]));
    }
}

#[test]
fn started_by_the_inspector() {
    let site = GatewayFiles::new();
    for era in ["legacy", "modern"] {
        let mut inspector = peers::command("mcp-inspector", site.folder.path());
        inspector.args(["--cli", "-q", "--format", "json", "--protocol-era", era]);
        inspector.arg(site.program()).args(["--transport", "stdio", "--method", "tools/list"]);
        let ended = run(&mut inspector);
        assert_eq!(ended.code, 0, "{ended}");
        let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
        let tools = answer["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(), ["pid", "wait"]);
    }
}

/// Running calls finish first, and standard output contains only messages.
#[test]
fn gateway_exits_at_end_of_input() {
    let site = GatewayFiles::new();
    let mut client = site.start();
    client.initialize();
    let pid = client.call(1, "pid").parse().unwrap();
    client.send(2, "tools/call", json!({"name": "wait"}));
    site.server.wait_for("tools/call");
    client.input = None;
    site.server.open_gate();
    assert_eq!(client.process.wait().code(), Some(0));
    let printed = client.process.stdout.text();
    let ids: Vec<_> =
        printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].take()).collect();
    assert_eq!(ids, [0, 1, 2], "{printed}");
    eventually("the end of the server", || (!is_running(pid)).then_some(()));
}

#[test]
fn gateway_exits_on_signal() {
    let site = GatewayFiles::new();
    let mut client = site.start();
    client.initialize();
    let pid = client.call(1, "pid").parse().unwrap();
    client.process.signal(Signal::TERM);
    assert_eq!(client.process.wait().code(), Some(0));
    eventually("the end of the server", || (!is_running(pid)).then_some(()));
}

#[test]
fn edit_is_applied() {
    let (site, new) = (GatewayFiles::new(), ScriptedServer::new("new"));
    let mut client = site.start();
    client.initialize();
    toolyard_testing::manifest::registry_document(
        site.folder.path(),
        &[site.server.handler(), new.handler()],
    );
    let mut id = 1;
    eventually("the list after the edit", || {
        id += 1;
        let list = client.request(id, "tools/list", json!({}));
        (list["tools"].as_array().unwrap().len() == 4).then_some(())
    });
}

/// Standard input carries the protocol.
#[test]
fn manifest_from_standard_input_is_refused() {
    let ended = run(toolyard(std::path::Path::new("/")).args(["stdio", "-f", "-"]));
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (2, "error: cannot read a manifest from standard input: it carries the protocol\n")
    );
}

/// Notifications that the specification does not have pass from a server to a client, both on standard input and output.
#[test]
fn vendor_notification_passes_between_pipes() {
    let files = GatewayFiles::of(ScriptedServer::with_mode("vendor"));
    let mut client = files.start();
    client.request(1, "initialize", toolyard_testing::messages::initialize_params());
    client.request(2, "tools/call", json!({"name": "wait", "arguments": {}}));
    let text = client.process.stdout.text();
    let messages: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let news = messages.iter().position(|message| message["method"] == "notifications/vendor/news");
    let news = news.unwrap_or_else(|| panic!("no notification in {messages:?}"));
    assert_eq!((&messages[news]["params"], &messages[news]["x-trace"]), (&json!({"a": 1.0}), &json!([1])));
    assert_eq!(messages[news + 1]["id"], 2, "{messages:?}");
}
