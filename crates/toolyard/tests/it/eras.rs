//! Servers that speak both eras, on the Python SDK and on FastMCP, and clients of both eras on the Python SDK: every tool
//! can ask its client, in the way that it knows.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::{stdio_handler, with_transport};
use toolyard_testing::peers::{self, PeerServer};
use toolyard_testing::process::run;

use crate::support::gateway::TestGateway;

const MODERN: &str = "2026-07-28";

const PYTHON: &str = "mcp_server.py";

fn fixture(name: &str) -> PathBuf {
    peers::root().join("fixtures/eras").join(name)
}

fn path_text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Servers of one family, and the folder of their files.
struct EraServers {
    folder: TempDir,
    family: &'static str,
    running: Vec<PeerServer>,
}

impl EraServers {
    fn new(family: &'static str) -> Self {
        Self { folder: TempDir::new().unwrap(), family, running: Vec::new() }
    }

    fn on_stdio(&self) -> Value {
        let (python, program) = (peers::peer("python/bin/python"), fixture(self.family));
        let folder = path_text(self.folder.path());
        handler(stdio_handler("stdio", &path_text(&python), &[&path_text(&program), "stdio", &folder]))
    }

    /// Starts a server and returns its handler. `form` is its argument, and the name of the handler.
    #[track_caller]
    fn over_http(&mut self, form: &str) -> Value {
        let (home, folder) = (self.folder.path(), path_text(self.folder.path()));
        let server = peers::python_server(home, &fixture(self.family), &[form, &folder]);
        let transport = if form == "sse" { "sse" } else { "streamable-http" };
        let handler = handler(with_transport(form, transport, &server.url));
        self.running.push(server);
        handler
    }

    /// Returns the number of lines that the tools have appended.
    fn lines(&self) -> usize {
        let path = self.folder.path().join("lines");
        std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
    }
}

fn handler(mut handler: Value) -> Value {
    handler["prefix"] = json!("always");
    handler
}

fn with_config(mut handler: Value, name: &str, value: &str) -> Value {
    handler["mcpConfig"][name] = json!(value);
    handler
}

/// Runs a client that calls these tools one after the other, and returns its reports. `target` is the URL or the command
/// of a gateway.
#[track_caller]
fn run_client(target: &str, mode: &str, tools: &[String]) -> Vec<Value> {
    let home = TempDir::new().unwrap();
    let mut client = peers::command(peers::peer("python/bin/python"), home.path());
    let ended = run(client.arg(fixture("client.py")).args([target, mode, &json!(tools).to_string()]));
    assert_eq!(ended.code, 0, "{ended}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn call(gateway: &TestGateway, mode: &str, tools: &[&str]) -> Vec<Value> {
    run_client(&gateway.url(), mode, &tools.iter().map(|tool| (*tool).to_owned()).collect::<Vec<_>>())
}

/// Calls a tool of each kind as a client, and compares every answer and every question.
#[track_caller]
fn check_client(target: &str, mode: &str, handlers: &[&str]) {
    const TOOLS: [&str; 7] = ["elicit", "sample", "roots", "by_hand", "progress", "log", "process"];
    let tool = |handler: &&str| TOOLS.map(|tool| format!("{handler}_{tool}"));
    let tools: Vec<String> = handlers.iter().flat_map(tool).collect();
    for report in run_client(target, mode, &tools) {
        let name = report["tool"].as_str().unwrap();
        let (handler, tool) = name.split_once('_').unwrap();
        let answer = |text: &str, asked: Value, progress: Value, log: Value| json!({"tool": name, "text": text, "failed": false, "asked": asked, "progress": progress, "log": log});
        let expected = match tool {
            "roots" => answer("Alice", json!(["roots"]), json!([]), json!([])),
            // HTTP+SSE has no modern era, and no answer of that era.
            "by_hand" if handler == "sse" => continue,
            "progress" => answer("All steps are done.", json!([]), json!([1.0, 2.0, 3.0]), json!([])),
            "log" => answer("Logged.", json!([]), json!([]), json!(["a message"])),
            "process" => continue,
            _ => answer("Alice", json!(["Who are you?"]), json!([]), json!([])),
        };
        assert_eq!(report, expected, "{target} {mode}");
    }
}

/// Every client with every transport to the server, in the default configuration.
#[track_caller]
fn check_family(family: &'static str) {
    let mut servers = EraServers::new(family);
    let handlers = [servers.on_stdio(), servers.over_http("http"), servers.over_http("sse")];
    let names = ["stdio", "http", "sse"];
    let gateway = TestGateway::with_handlers(&handlers);
    check_client(&gateway.url(), "legacy", &names);
    check_client(&gateway.url(), MODERN, &names);
    check_client(&gateway.url().replace("/mcp", "/sse"), "legacy", &names);
    drop(gateway);
    let (folder, _) = TestGateway::command(&handlers, json!({}));
    let file = |name: &str| path_text(&folder.path().join(name));
    let program = env!("CARGO_BIN_EXE_toolyard");
    let command = json!([program, "stdio", "-f", file("registry.json"), "-f", file("process.json")]);
    check_client(&command.to_string(), "legacy", &names);
    check_client(&command.to_string(), MODERN, &names);
}

#[test]
fn server_on_the_python_sdk_asks_every_client() {
    check_family(PYTHON);
}

#[test]
fn server_on_fastmcp_asks_every_client() {
    check_family("fastmcp_server.py");
}

const CALL_AGAIN: &str = "Call it again";

/// A tool that changes something before it asks runs once for each call of the client.
#[test]
fn call_with_an_effect_is_not_repeated() {
    for (family, failure) in [(PYTHON, "error"), ("fastmcp_server.py", "text")] {
        let mut servers = EraServers::new(family);
        let gateway = TestGateway::with_handlers(&[servers.over_http("http")]);
        // A session uses the legacy era from the first call on.
        assert_eq!(call(&gateway, "legacy", &["http_append"])[0]["text"], "Alice");
        assert_eq!(servers.lines(), 1);
        let gateway = TestGateway::with_handlers(&[servers.over_http("http")]);
        let failed = &call(&gateway, MODERN, &["http_append"])[0];
        let text = failed[failure].as_str().unwrap();
        assert!(text.contains(CALL_AGAIN) && text.contains("2026-07-28"), "{failed}");
        assert_eq!((servers.lines(), &failed["asked"]), (2, &json!([])), "{failed}");
        // Its error has said so: the next call uses the other era.
        assert_eq!(call(&gateway, MODERN, &["http_append"])[0]["text"], "Alice");
        assert_eq!(servers.lines(), 3);
    }
}

/// The SDK for Python cannot convert `input_required` for a session, and FastMCP does not.
#[test]
fn tool_that_answers_input_required_becomes_modern() {
    for family in [PYTHON, "fastmcp_server.py"] {
        let mut servers = EraServers::new(family);
        let gateway = TestGateway::with_handlers(&[servers.over_http("http")]);
        let reports =
            call(&gateway, "legacy", &["http_append_by_hand", "http_append_by_hand", "http_elicit"]);
        let text = reports[0]["error"].as_str().unwrap();
        assert!(text.contains(CALL_AGAIN) && text.contains("input_required"), "{text}");
        assert_eq!([&reports[1]["text"], &reports[2]["text"]], ["Alice"; 2], "{reports:?}");
        // What one client has shown holds for all.
        let gateway = TestGateway::with_handlers(&[servers.over_http("http")]);
        for mode in [MODERN, "legacy"] {
            assert_eq!(call(&gateway, mode, &["http_append_by_hand"])[0]["text"], "Alice", "{mode}");
        }
    }
}

/// A server whose legacy era has no sessions cannot ask in it either, so that it stays modern.
#[test]
fn server_without_sessions_stays_modern() {
    let mut servers = EraServers::new(PYTHON);
    let gateway = TestGateway::with_handlers(&[servers.over_http("stateless")]);
    for mode in ["legacy", MODERN] {
        let reports = call(&gateway, mode, &["stateless_append_by_hand", "stateless_elicit"]);
        assert_eq!(reports[0]["text"], "Alice", "{mode}");
        let text = reports[1]["error"].as_str().unwrap();
        assert!(text.contains("elicitation/create") && !text.contains(CALL_AGAIN), "{text}");
    }
}

#[test]
fn ordinary_failure_passes_unchanged() {
    let mut servers = EraServers::new("fastmcp_server.py");
    let gateway = TestGateway::with_handlers(&[servers.over_http("http")]);
    for mode in ["legacy", MODERN] {
        for report in call(&gateway, mode, &["http_fail", "http_fail"]) {
            assert_eq!(report["text"], "Error calling tool 'fail': The disk is full.", "{mode}");
        }
    }
}

/// The state of a session is in one process, and the stateless calls share another one.
#[test]
fn session_uses_one_process() {
    let servers = EraServers::new(PYTHON);
    let gateway = TestGateway::with_handlers(&[servers.on_stdio()]);
    let processes = |mode| {
        let reports = call(
            &gateway,
            mode,
            &["stdio_process", "stdio_elicit", "stdio_process", "stdio_log", "stdio_process"],
        );
        [0, 2, 4].map(|at: usize| reports[at]["text"].as_str().unwrap().to_owned())
    };
    let [legacy, modern] = ["legacy", MODERN].map(processes);
    for [first, second, third] in [&legacy, &modern] {
        assert_eq!([first, first], [second, third]);
    }
    assert_ne!(legacy[0], modern[0]);
}

#[test]
fn era_of_the_manifest_takes_precedence() {
    let mut servers = EraServers::new(PYTHON);
    let legacy = with_config(servers.over_http("http"), "era", "legacy");
    let gateway = TestGateway::with_handlers(&[legacy]);
    for mode in ["legacy", MODERN] {
        let reports = call(&gateway, mode, &["http_append", "http_append_by_hand"]);
        assert_eq!(reports[0]["text"], "Alice", "{mode}");
        assert_eq!(reports[1]["error"], "Handler returned an invalid result", "{mode}");
    }
    let modern = with_config(servers.over_http("http"), "era", "modern");
    let gateway = TestGateway::with_handlers(&[modern]);
    for mode in ["legacy", MODERN] {
        let reports = call(&gateway, mode, &["http_elicit", "http_by_hand"]);
        let text = reports[0]["error"].as_str().unwrap();
        assert!(text.contains("elicitation/create") && !text.contains(CALL_AGAIN), "{text}");
        assert_eq!(reports[1]["text"], "Alice", "{mode}");
    }
}

#[test]
fn legacy_server_is_not_used_as_a_modern_one() {
    let handler = stdio_handler("memory", "mcp-server-memory", &[]);
    let gateway = TestGateway::with_settings(
        &[with_config(handler, "era", "modern")],
        json!({"timeouts": {"firstList": "300ms"}}),
    );
    gateway.process.stderr.wait_for("the reason", |log| log.contains("remove `era: modern`").then_some(()));
}
