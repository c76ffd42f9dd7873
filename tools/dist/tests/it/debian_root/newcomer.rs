//! The first hour of a newcomer on a machine with Node.js, Python and uv, whose caches are empty: the servers of three
//! clients (`fixtures/newcomer` is the home) behind the gateway of the package and of the image, and the pages of
//! `docs/start`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toolyard_testing::http::{self, SentRequest};
use toolyard_testing::messages::{ACCEPT_STREAMS, initialize_params};
use toolyard_testing::pages::PageSession;
use toolyard_testing::peers;
use toolyard_testing::process::{self, RunningProgram};

use crate::machine::{Machine, SessionUser};
use crate::release_files::{make, printed};

/// A call of each server, as arguments of `toolyard call`, and a part of its result.
const CALLS: [(&str, &str, &str); 12] = [
    ("everything", "echo message=hello", "Echo: hello"),
    ("filesystem", "read_text_file path=$HOME/documents/note.txt", "A note of the newcomer."),
    ("memory", "read_graph", "\"entities\": []"),
    (
        "thinking",
        "sequentialthinking thought=yes thoughtNumber=1 totalThoughts=1 nextThoughtNeeded=false",
        "\"thoughtHistoryLength\": 1",
    ),
    ("fetch", "fetch url=$TOOLYARD_URL/health raw=true", r#"{"status":"ok"}"#),
    ("clock", "days_in_month date=2028-02-01", "29"),
    ("codecs", "base64 input=yard action=encode", "eWFyZA=="),
    ("budget", "get-budget-data", "Default Budget"),
    ("calculator", "calculate expression='6*7'", "42"),
    (
        "time",
        "time_convert_time source_timezone=UTC time=12:00 target_timezone=Asia/Tokyo",
        "\"time_difference\": \"+9.0h\"",
    ),
    ("sqlite", "list_tables", "[]"),
    ("statistics", "median numbers='[1, 5, 3]'", "3"),
];

/// The quick starts, and the users that follow them.
const PAGES: [(&str, SessionUser); 5] = [
    ("editor-servers", SessionUser::Newcomer),
    ("api", SessionUser::Newcomer),
    ("team", SessionUser::Newcomer),
    ("python-tool", SessionUser::Root),
    ("rust-tool", SessionUser::Newcomer),
];

/// Blocks of [`PAGES`] that are not run, and the reasons.
const NOT_RUN: [(&str, &str); 1] = [("cargo build ", "the build of the tests has built it")];

#[test]
fn newcomer_gets_twelve_servers_and_quick_starts() {
    let release = make("deb,runtimes-image");
    let image = Machine::with_image(&release);
    check_versions(&image);
    check_servers(&image);
    let package = Machine::with_package(&release);
    check_servers(&package);
    for (page, user) in PAGES {
        check_page(&package, page, user);
    }
}

/// Checks that the launchers of servers are there.
fn check_versions(machine: &Machine) {
    let versions = "for program in node npm npx python3 uv uvx toolyard; do $program --version || exit; done";
    printed(&mut machine.shell(SessionUser::Newcomer, "", versions));
}

/// Imports the servers of three clients, serves them to a client that connects early, and calls each.
#[track_caller]
fn check_servers(machine: &Machine) {
    let fixtures = peers::root().join("fixtures/newcomer");
    printed(Command::new("cp").arg("--recursive").arg(fixtures).arg(machine.home()));
    let address: SocketAddr = format!("127.0.0.1:{}", peers::free_port()).parse().unwrap();
    let shell = |script: &str| {
        let url = format!("set -eu; export TOOLYARD_URL=http://{address}\n");
        machine.shell(SessionUser::Newcomer, "newcomer", &(url + script))
    };
    let imported = output(shell("toolyard init --yes"));
    assert!(imported.contains("\n  12 servers: everything, "), "{imported}");
    let serve = RunningProgram::start(&mut shell(&format!("exec toolyard serve --listen {address}")));
    serve.stdout.wait_for("the address", |text| text.contains("is serving MCP on").then_some(()));
    EarlyClient::connect(address).wait_for_tools();
    let health = output(shell("toolyard doctor --wait"));
    let is_ready = |name: &str| health.lines().any(|line| line.starts_with(&format!("  ok    {name} ")));
    assert!(CALLS.iter().all(|(handler, ..)| is_ready(handler)), "{health}");
    let calls = CALLS.map(|(handler, call, _)| format!("echo '## {handler}'; toolyard call {call}\n"));
    let results = output(shell(&calls.concat()));
    let result = |handler: &str| results.split("## ").find(|result| result.lines().next() == Some(handler));
    for (handler, call, expected) in CALLS {
        let result = result(handler).unwrap_or_default();
        assert!(result.contains(expected), "{call}\n{result}");
    }
}

/// Runs a quick start in an empty home.
#[track_caller]
fn check_page(machine: &Machine, page: &str, user: SessionUser) {
    let folder = machine.home().join(page);
    let examples = folder.join("target/debug/examples");
    std::fs::create_dir_all(&examples).unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_xtask-dist")).with_file_name("examples");
    std::fs::copy(built.join("reverse"), examples.join("reverse")).unwrap();
    let shell = |script: &str| machine.shell(user, page, script);
    PageSession::new(&folder, &shell, &NOT_RUN).run(&format!("docs/start/{page}.md"));
}

/// Runs a command of the newcomer that has to succeed, and returns what it prints, notes included.
#[track_caller]
fn output(mut command: Command) -> String {
    let result = process::run(&mut command);
    assert_eq!(result.code, 0, "{result}");
    result.to_string()
}

/// An MCP client that connects before the servers are installed.
struct EarlyClient {
    address: SocketAddr,
    session: String,
    notifications: SentRequest,
}

impl EarlyClient {
    #[track_caller]
    fn connect(address: SocketAddr) -> Self {
        let initialize = request("initialize", initialize_params());
        let response = http::send(address, "POST /mcp", &headers(""), &initialize);
        let session = response.header("mcp-session-id").unwrap().to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        http::send(address, "POST /mcp", &headers(&session), &initialized);
        let notifications = http::open_request(address, "GET /mcp", &headers(&session), "");
        Self { address, session, notifications }
    }

    /// Lists the tools after every change until those of all servers are there.
    #[track_caller]
    fn wait_for_tools(mut self) {
        let tool = |call: &str| call.split(' ').next().unwrap().to_owned();
        loop {
            let list = request("tools/list", json!({}));
            let result = http::send(self.address, "POST /mcp", &headers(&self.session), &list).result();
            let tools = result["tools"].as_array().unwrap();
            if CALLS.iter().all(|(_, call, _)| tools.iter().any(|found| found["name"] == tool(call))) {
                return;
            }
            self.notifications.skip_through("notifications/tools/list_changed");
        }
    }
}

fn request(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn headers(session: &str) -> Vec<(&str, &str)> {
    let mut headers = vec![("Content-Type", "application/json"), ACCEPT_STREAMS];
    if !session.is_empty() {
        headers.push(("Mcp-Session-Id", session));
    }
    headers
}
