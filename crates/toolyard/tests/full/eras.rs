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

/// Both eras, one client after the other.
const BOTH: &str = "legacy,2026-07-28";

const PYTHON: &str = "mcp_server.py";

const FASTMCP: &str = "fastmcp_server.py";

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

    /// Starts a server and returns a handler for each name. `form` is its argument.
    #[track_caller]
    fn over_http<const N: usize>(&mut self, form: &str, names: [&str; N]) -> [Value; N] {
        let (home, folder) = (self.folder.path(), path_text(self.folder.path()));
        let server = peers::python_server(home, &fixture(self.family), &[form, &folder]);
        let transport = if form == "sse" { "sse" } else { "streamable-http" };
        let handlers = names.map(|name| handler(with_transport(name, transport, &server.url)));
        self.running.push(server);
        handlers
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

fn with_era(mut handler: Value, era: &str) -> Value {
    handler["mcpConfig"]["era"] = json!(era);
    handler
}

/// Runs clients that call these tools one after the other, and returns their reports. `target` is the URL or the command
/// of a gateway.
#[track_caller]
fn run_clients(target: &str, modes: &str, tools: &[String]) -> Vec<Value> {
    let home = TempDir::new().unwrap();
    let mut client = peers::command(peers::peer("python/bin/python"), home.path());
    let ended = run(client.arg(fixture("client.py")).args([target, modes, &json!(tools).to_string()]));
    assert_eq!(ended.code, 0, "{ended}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn call(gateway: &TestGateway, modes: &str, tools: &[&str]) -> Vec<Value> {
    run_clients(&gateway.url(), modes, &tools.iter().map(|tool| (*tool).to_owned()).collect::<Vec<_>>())
}

/// Calls a tool of each kind as a client, and compares every answer and every question.
#[track_caller]
fn check_clients(target: &str, modes: &str) {
    // A client without a session needs a process for each call that asks.
    const ON_STDIO: [&str; 4] = ["all_kinds", "by_hand", "progress", "log"];
    const OVER_HTTP: [&str; 6] = ["elicit", "sample", "roots", "by_hand", "progress", "log"];
    // HTTP+SSE has no modern era, and no answer of that era.
    const OVER_SSE: [&str; 5] = ["elicit", "sample", "roots", "progress", "log"];
    let handlers = [("stdio", &ON_STDIO[..]), ("http", &OVER_HTTP), ("sse", &OVER_SSE)];
    let tools = |(handler, tools): (&str, &[&str])| {
        tools.iter().map(|tool| format!("{handler}_{tool}")).collect::<Vec<_>>()
    };
    let tools = handlers.map(tools).concat();
    let reports = run_clients(target, modes, &tools);
    assert_eq!(reports.len(), tools.len() * modes.split(',').count(), "{reports:?}");
    for report in reports {
        let name = report["tool"].as_str().unwrap();
        let answer = |text: &str, asked: Value, progress: Value, log: Value| {
            let mode = &report["mode"];
            json!({
                "mode": mode, "tool": name, "text": text, "failed": false,
                "asked": asked, "progress": progress, "log": log,
            })
        };
        let expected = match name.split_once('_').unwrap().1 {
            "all_kinds" => {
                let asked = json!(["Who are you?", "Who are you?", "roots"]);
                answer("Alice Alice Alice", asked, json!([]), json!([]))
            }
            "roots" => answer("Alice", json!(["roots"]), json!([]), json!([])),
            "progress" => answer("All steps are done.", json!([]), json!([1.0, 2.0, 3.0]), json!([])),
            "log" => answer("Logged.", json!([]), json!([]), json!(["a message"])),
            _ => answer("Alice", json!(["Who are you?"]), json!([]), json!([])),
        };
        assert_eq!(report, expected, "{target}");
    }
}

/// Returns the handlers of a server with every transport, in the default configuration.
#[track_caller]
fn all_transports(servers: &mut EraServers) -> [Value; 3] {
    let ([http], [sse]) = (servers.over_http("http", ["http"]), servers.over_http("sse", ["sse"]));
    [servers.on_stdio(), http, sse]
}

#[track_caller]
fn check_http_clients(family: &'static str) {
    let mut servers = EraServers::new(family);
    let gateway = TestGateway::with_handlers(&all_transports(&mut servers));
    check_clients(&gateway.url(), BOTH);
    check_clients(&gateway.url().replace("/mcp", "/sse"), "legacy");
}

#[track_caller]
fn check_stdio_clients(family: &'static str) {
    let mut servers = EraServers::new(family);
    let (folder, _) = TestGateway::command(&all_transports(&mut servers), json!({}));
    let file = |name: &str| path_text(&folder.path().join(name));
    let program = env!("CARGO_BIN_EXE_toolyard");
    let command = json!([program, "stdio", "-f", file("registry.json"), "-f", file("process.json")]);
    check_clients(&command.to_string(), BOTH);
}

#[test]
fn server_on_the_python_sdk_asks_clients_over_http() {
    check_http_clients(PYTHON);
}

#[test]
fn server_on_the_python_sdk_asks_clients_on_stdio() {
    check_stdio_clients(PYTHON);
}

#[test]
fn server_on_fastmcp_asks_clients_over_http() {
    check_http_clients(FASTMCP);
}

#[test]
fn server_on_fastmcp_asks_clients_on_stdio() {
    check_stdio_clients(FASTMCP);
}

const CALL_AGAIN: &str = "Call it again";

/// A tool that changes something before it asks runs once for each call of the client. `failure` is the member of the
/// report with the text of the failure.
#[track_caller]
fn check_effect(family: &'static str, failure: &str) {
    let mut servers = EraServers::new(family);
    let gateway = TestGateway::with_handlers(&servers.over_http("http", ["session", "single"]));
    // A session uses the legacy era from the first call on.
    assert_eq!(call(&gateway, "legacy", &["session_append"])[0]["text"], "Alice");
    assert_eq!(servers.lines(), 1);
    let reports = call(&gateway, MODERN, &["single_append", "single_append"]);
    let text = reports[0][failure].as_str().unwrap();
    assert!(text.contains(CALL_AGAIN) && text.contains("2026-07-28"), "{reports:?}");
    // The error has said so: the next call uses the other era.
    assert_eq!([&reports[0]["asked"], &reports[1]["text"]], [&json!([]), &json!("Alice")], "{reports:?}");
    assert_eq!(servers.lines(), 3);
}

#[test]
fn call_of_the_python_sdk_with_an_effect_is_not_repeated() {
    check_effect(PYTHON, "error");
}

#[test]
fn call_of_fastmcp_with_an_effect_is_not_repeated() {
    check_effect(FASTMCP, "text");
}

/// The SDK for Python cannot convert `input_required` for a session, and FastMCP does not.
#[track_caller]
fn check_input_required(family: &'static str) {
    let mut servers = EraServers::new(family);
    let gateway = TestGateway::with_handlers(&servers.over_http("http", ["session", "single"]));
    let reports =
        call(&gateway, "legacy", &["session_append_by_hand", "session_append_by_hand", "session_elicit"]);
    let text = reports[0]["error"].as_str().unwrap();
    assert!(text.contains(CALL_AGAIN) && text.contains("input_required"), "{text}");
    assert_eq!([&reports[1]["text"], &reports[2]["text"]], ["Alice"; 2], "{reports:?}");
    // What one client has shown holds for all.
    for report in call(&gateway, "2026-07-28,legacy", &["single_append_by_hand"]) {
        assert_eq!(report["text"], "Alice", "{report}");
    }
}

#[test]
fn tool_of_the_python_sdk_that_answers_input_required_becomes_modern() {
    check_input_required(PYTHON);
}

#[test]
fn tool_of_fastmcp_that_answers_input_required_becomes_modern() {
    check_input_required(FASTMCP);
}

/// A server whose legacy era has no sessions cannot ask in it either, so that it stays modern.
#[test]
fn server_without_sessions_stays_modern() {
    let mut servers = EraServers::new(PYTHON);
    let gateway = TestGateway::with_handlers(&servers.over_http("stateless", ["stateless"]));
    for reports in call(&gateway, BOTH, &["stateless_append_by_hand", "stateless_elicit"]).chunks(2) {
        assert_eq!(reports[0]["text"], "Alice", "{reports:?}");
        let text = reports[1]["error"].as_str().unwrap();
        assert!(text.contains("elicitation/create") && !text.contains(CALL_AGAIN), "{text}");
    }
}

#[test]
fn ordinary_failure_passes_unchanged() {
    let mut servers = EraServers::new(FASTMCP);
    let gateway = TestGateway::with_handlers(&servers.over_http("http", ["http"]));
    for report in call(&gateway, BOTH, &["http_fail", "http_fail"]) {
        assert_eq!(report["text"], "Error calling tool 'fail': The disk is full.", "{report}");
    }
}

/// The state of a session is in one process, and the stateless calls share another one.
#[test]
fn session_uses_one_process() {
    let servers = EraServers::new(PYTHON);
    let gateway = TestGateway::with_handlers(&[servers.on_stdio()]);
    let tools = ["stdio_process", "stdio_elicit", "stdio_process", "stdio_log", "stdio_process"];
    let reports = call(&gateway, BOTH, &tools);
    let processes = |reports: &[Value]| [0, 2, 4].map(|at: usize| reports[at]["text"].clone());
    let [legacy, modern] = [&reports[..5], &reports[5..]].map(processes);
    for [first, second, third] in [&legacy, &modern] {
        assert_eq!([first, first], [second, third]);
    }
    assert_ne!(legacy[0], modern[0]);
}

#[test]
fn era_of_the_manifest_takes_precedence() {
    let mut servers = EraServers::new(PYTHON);
    let [legacy, modern] = servers.over_http("http", ["legacy", "modern"]);
    let gateway = TestGateway::with_handlers(&[with_era(legacy, "legacy"), with_era(modern, "modern")]);
    let tools = ["legacy_append", "legacy_append_by_hand", "modern_elicit", "modern_by_hand"];
    for reports in call(&gateway, BOTH, &tools).chunks(4) {
        assert_eq!(reports[0]["text"], "Alice", "{reports:?}");
        assert_eq!(reports[1]["error"], "Handler returned an invalid result", "{reports:?}");
        let text = reports[2]["error"].as_str().unwrap();
        assert!(text.contains("elicitation/create") && !text.contains(CALL_AGAIN), "{text}");
        assert_eq!(reports[3]["text"], "Alice", "{reports:?}");
    }
}

#[test]
fn legacy_server_is_not_used_as_a_modern_one() {
    let handler = stdio_handler("memory", "mcp-server-memory", &[]);
    let gateway = TestGateway::with_settings(
        &[with_era(handler, "modern")],
        json!({"timeouts": {"firstList": "300ms"}}),
    );
    gateway.process.stderr.wait_for("the reason", |log| log.contains("remove `era: modern`").then_some(()));
}
