//! No secret comes out of the gateway, wherever it was put in: a different one stands in every place where a secret can,
//! everything is driven that can be, well and badly, and none of it is in anything that was said.
//!
//! What a server answers to a call is the caller's, and so is its own JSON-RPC error: these are no outputs of ours.

mod debug;
mod plant;
mod planted;
mod servers;
mod wrong;
mod yard;

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use self::planted::{over_http, plain_http, process, programs};
use self::servers::Server;
use self::yard::Yard;
use crate::support::eventually;
use crate::support::gateway::{Gateway, toolyard};
use crate::support::http::{self, Response};
use crate::support::message::STREAMS;
use crate::support::process::run;

/// A gateway that is asked for things by the bearer of a key.
struct Asked<'a> {
    gateway: &'a Gateway,
    key: &'a str,
}

impl Asked<'_> {
    #[track_caller]
    fn ask(&self, line: &str, body: &str) -> Response {
        let shown = format!("Bearer {}", self.key);
        let headers = [("Authorization", &*shown), ("Content-Type", "application/json"), STREAMS];
        let headers = if self.key.is_empty() { &headers[1..] } else { &headers };
        http::open(self.gateway.address, line, headers, body).response().expect("an answer")
    }

    fn get(&self, path: &str) -> Response {
        self.ask(&format!("GET {path}"), "")
    }

    /// Calls a tool on both doors.
    fn call(&self, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.ask("POST /mcp", &message.to_string());
        let body = json!({"arguments": arguments}).to_string();
        self.ask(&format!("POST /api/v1/tools/{tool}/call"), &body);
    }
}

const TOOLS: [&str; 14] = [
    "over_http_ok",
    "over_http_fail",
    "open_ok",
    "open_fail",
    "chatty_ok",
    "chatty_fail",
    "plain_ok",
    "plain_hidden",
    "plain_broken",
    "plain_slow",
    "plain_unfit",
    "plain_gone",
    "nobody",
    "plain_ok",
];

#[track_caller]
fn drive(format: &str) {
    let (mut yard, server, collector) = (Yard::default(), Server::start(), Server::start());
    let folder = tempfile::tempdir().unwrap();
    let mut handlers = over_http(&mut yard, folder.path(), &server);
    handlers.extend(plain_http(&mut yard, &server));
    handlers.extend(programs(&mut yard));
    let document = process(&mut yard, folder.path(), &collector);
    let (home, mut command) = Gateway::command(&handlers, document.clone());
    command
        .envs(yard.environment.iter().cloned())
        .env("TOOLYARD_LOG", "trace")
        .args(["--log-format", format]);
    let gateway = Gateway::start(home, &mut command);

    // An edit that is refused, of which the fault stands where a secret does.
    let mut bad = handlers.clone();
    bad[0]["mcpConfig"]["headers"] = json!({"X-Key": format!("line\n{}", yard.secret("bad-header"))});
    bad[0]["auth"]["token"] = json!(format!("two words {}", yard.secret("bad-token")));
    bad[1]["mcpConfig"]["endpoint"] = json!(format!("http://me:{}@host/", yard.secret("user-info")));
    bad[2]["mcpConfig"]["endpoint"] = json!(format!("htp://host/{}", yard.secret("bad-url")));
    gateway.edit(&bad);
    gateway.process.stderr.wait_for("the refusal", |text| text.contains("an edit is refused").then_some(()));
    let doctor = |arguments: &[&str]| {
        let mut doctor = toolyard(gateway.folder.path());
        doctor.args(["doctor", "--url", &gateway.url()]).args(arguments);
        run(&mut doctor).to_string()
    };
    yard.saw("doctor", doctor(&[]));
    yard.saw("doctor as JSON", doctor(&["--output", "json"]));
    // A key, whose text only its maker sees.
    let open = Asked { gateway: &gateway, key: "" };
    let made = open.ask("POST /api/v1/keys", r#"{"name":"k","scopes":["tools:*","rest","admin","metrics"]}"#);
    let made: Value = serde_json::from_str(&made.body).unwrap();
    let key = made["key"].as_str().unwrap().to_owned();
    yard.canaries.watch("gateway-key", key.rsplit('_').next().unwrap());
    let asked = Asked { gateway: &gateway, key: &key };
    let wrong = yard.secret("wrong-key");
    eventually("the key is known", || (open.get("/api/v1/status").status == 401).then_some(()));
    let refused = Asked { gateway: &gateway, key: &wrong }.get("/api/v1/status");
    yard.saw("a refusal", refused.body);

    let arguments = json!({"secret": yard.secret("argument"), "number": 1});
    let unfit = json!({"secret": [yard.secret("unfit-argument")]});
    for tool in TOOLS {
        asked.call(tool, &arguments);
    }
    asked.call("plain_ok", &unfit);
    let trial = json!({"arguments": {"secret": "s", "number": 1}}).to_string();
    for handler in ["plain-ok", "plain-gone", "plain-slow", "plain-hidden"] {
        let report = asked.ask(&format!("POST /api/v1/handlers/{handler}/test"), &trial);
        yard.saw("a trial", report.body);
    }

    for (what, path) in [
        ("the status", "/api/v1/status"),
        ("the handlers", "/api/v1/handlers"),
        ("the tools", "/api/v1/tools"),
        ("the keys", "/api/v1/keys"),
        ("the metrics", "/metrics"),
    ] {
        let response = asked.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        yard.saw(what, response.body);
    }
    for command in [
        &["key", "list"][..],
        &["audit"],
        &["tools"],
        &["doctor"],
        &["call", "plain_unfit"],
        &["test", "plain-gone"],
    ] {
        let mut toolyard = toolyard(gateway.folder.path());
        toolyard.args(command).args(["--url", &gateway.url()]).env("TOOLYARD_KEY", &key);
        yard.saw(command[0], run(&mut toolyard).to_string());
    }
    let audit = eventually("the trail", || {
        let page = asked.get("/api/v1/audit?limit=1000").body;
        page.contains("invalid_arguments").then_some(page)
    });
    yard.saw("the audit trail", audit);
    finish(yard, gateway, folder.path(), &collector);
}

fn finish(mut yard: Yard, mut gateway: Gateway, folder: &Path, collector: &Server) {
    gateway.process.signal(Signal::TERM);
    assert!(gateway.process.wait().success());
    let log = gateway.process.stderr.text();
    // Nothing is proven by a log in which nothing of it happened.
    for said in ["go away", "starting with", "not connected", "a call failed", "an edit is refused"] {
        assert!(log.contains(said), "{said}");
    }
    yard.saw("the log", log);
    yard.saw("standard output", gateway.process.stdout.text());
    yard.saw("the file of the trail", std::fs::read(folder.join("audit.jsonl")).unwrap());
    let sent = collector.received.lock().unwrap().clone();
    assert!(String::from_utf8_lossy(&sent).contains("tools/call over_http_fail"));
    yard.saw("telemetry", sent);
    yard.assert_kept();
}

#[test]
fn no_secret_is_in_what_a_gateway_says_to_people() {
    drive("human");
}

#[test]
fn no_secret_is_in_what_a_gateway_says_to_programs() {
    drive("json");
}
