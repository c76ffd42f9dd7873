//! The gateway discloses no secret. Every place that accepts a secret has a different canary; the tests drive all
//! interfaces, successfully and with errors, and search all output for the canaries.
//!
//! Results and JSON-RPC errors of servers belong to the caller and are not output of the gateway.

mod canary;
mod debug;
mod manifest_with_secrets;
mod reflecting_server;
mod secret_tracker;
mod startup_errors;

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use toolyard_testing::http;
use toolyard_testing::http::HttpResponse;
use toolyard_testing::messages::ACCEPT_STREAMS;
use toolyard_testing::process::run;
use toolyard_testing::wait::eventually;

use self::manifest_with_secrets::{over_http, plain_http, process, programs};
use self::reflecting_server::ReflectingServer;
use self::secret_tracker::SecretTracker;
use crate::support::gateway::{TestGateway, toolyard};

/// A client with a key.
struct AuthorizedClient<'a> {
    gateway: &'a TestGateway,
    key: &'a str,
}

impl AuthorizedClient<'_> {
    #[track_caller]
    fn request(&self, line: &str, body: &str) -> HttpResponse {
        let authorization = format!("Bearer {}", self.key);
        let headers =
            [("Authorization", &*authorization), ("Content-Type", "application/json"), ACCEPT_STREAMS];
        let headers = if self.key.is_empty() { &headers[1..] } else { &headers };
        http::open_request(self.gateway.address, line, headers, body).response().expect("an answer")
    }

    fn get(&self, path: &str) -> HttpResponse {
        self.request(&format!("GET {path}"), "")
    }

    /// Calls a tool by MCP and by REST.
    fn call(&self, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.request("POST /mcp", &message.to_string());
        let body = json!({"arguments": arguments}).to_string();
        self.request(&format!("POST /api/v1/tools/{tool}/call"), &body);
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
    let (mut secrets, server, collector) =
        (SecretTracker::default(), ReflectingServer::start(), ReflectingServer::start());
    let folder = tempfile::tempdir().unwrap();
    let mut handlers = over_http(&mut secrets, folder.path(), &server);
    handlers.extend(plain_http(&mut secrets, &server));
    handlers.extend(programs(&mut secrets));
    let document = process(&mut secrets, folder.path(), &collector);
    let (home, mut command) = TestGateway::command(&handlers, document.clone());
    command
        .envs(secrets.environment.iter().cloned())
        .env("TOOLYARD_LOG", "trace")
        .args(["--log-format", format]);
    let gateway = TestGateway::start(home, &mut command);

    reject_edit(&gateway, &handlers, &mut secrets);
    let doctor = |arguments: &[&str]| {
        let mut doctor = toolyard(gateway.folder.path());
        doctor.args(["doctor", "--url", &gateway.url()]).args(arguments);
        run(&mut doctor).to_string()
    };
    secrets.record("doctor", doctor(&[]));
    secrets.record("doctor as JSON", doctor(&["--output", "json"]));
    // A new key, whose text only its creator sees.
    let open = AuthorizedClient { gateway: &gateway, key: "" };
    let made =
        open.request("POST /api/v1/keys", r#"{"name":"k","scopes":["tools:*","rest","admin","metrics"]}"#);
    let made: Value = serde_json::from_str(&made.body).unwrap();
    let key = made["key"].as_str().unwrap().to_owned();
    secrets.canaries.watch("gateway-key", key.rsplit('_').next().unwrap());
    let client = AuthorizedClient { gateway: &gateway, key: &key };
    let wrong = secrets.secret("wrong-key");
    eventually("the key is known", || (open.get("/api/v1/status").status == 401).then_some(()));
    let refused = AuthorizedClient { gateway: &gateway, key: &wrong }.get("/api/v1/status");
    secrets.record("a refusal", refused.body);

    let arguments = json!({"secret": secrets.secret("argument"), "number": 1});
    let unfit = json!({"secret": [secrets.secret("unfit-argument")]});
    for tool in TOOLS {
        client.call(tool, &arguments);
    }
    client.call("plain_ok", &unfit);
    drive_builtins(&client, &mut secrets);
    drive_agents(&client, &mut secrets, &collector);
    let trial = json!({"arguments": {"secret": "s", "number": 1}}).to_string();
    for handler in ["plain-ok", "plain-gone", "plain-slow", "plain-hidden"] {
        let report = client.request(&format!("POST /api/v1/handlers/{handler}/test"), &trial);
        secrets.record("a trial", report.body);
    }

    for (what, path) in [
        ("the status", "/api/v1/status"),
        ("the handlers", "/api/v1/handlers"),
        ("the tools", "/api/v1/tools"),
        ("the keys", "/api/v1/keys"),
        ("the manifest", "/api/v1/manifest"),
        ("the agents", "/api/v1/agents"),
        ("working memory", "/api/v1/memory"),
        ("the bus", "/api/v1/bus"),
        ("the metrics", "/metrics"),
    ] {
        let response = client.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        secrets.record(what, response.body);
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
        secrets.record(command[0], run(&mut toolyard).to_string());
    }
    let audit = eventually("the trail", || {
        let page = client.get("/api/v1/audit?limit=1000").body;
        (page.contains("invalid_arguments") && page.contains("task_fired")).then_some(page)
    });
    secrets.record("the audit trail", audit);
    finish(secrets, gateway, folder.path(), &collector);
}

/// Writes an invalid edit with the fault in the place of a secret, and waits for its refusal.
fn reject_edit(gateway: &TestGateway, handlers: &[Value], secrets: &mut SecretTracker) {
    let mut bad = handlers.to_vec();
    bad[0]["mcpConfig"]["headers"] = json!({"X-Key": format!("line\n{}", secrets.secret("bad-header"))});
    bad[0]["auth"]["token"] = json!(format!("two words {}", secrets.secret("bad-token")));
    bad[1]["mcpConfig"]["endpoint"] = json!(format!("http://me:{}@host/", secrets.secret("user-info")));
    bad[2]["mcpConfig"]["endpoint"] = json!(format!("htp://host/{}", secrets.secret("bad-url")));
    gateway.edit(&bad);
    let is_rejected = |text: &str| text.contains("manifest edit rejected").then_some(());
    gateway.process.stderr.wait_for("the refusal", is_rejected);
}

/// Calls the tools of OpenRouter, whose errors quote the request, and lets a task send a webhook.
fn drive_builtins(client: &AuthorizedClient<'_>, secrets: &mut SecretTracker) {
    for tool in ["get_credits", "list_models"] {
        let result = client.request(&format!("POST /api/v1/tools/{tool}/call"), "{}").body;
        assert!(result.contains("with status 403: GET /quoting/"), "{result}");
        secrets.record(tool, result);
    }
    client.call("schedule_task", &json!({"name": "t", "cron": "* * * * * *", "description": "Go."}));
    let list = eventually("the task fires", || {
        let list = client.request("POST /api/v1/tools/list_scheduled_tasks/call", "{}").body;
        list.contains("failed: the webhook answered with status 401").then_some(list)
    });
    secrets.record("the list of tasks", list);
}

/// Starts a task whose changes are notified to a URL that refuses them, and sends a notification with a wrong token.
fn drive_agents(client: &AuthorizedClient<'_>, secrets: &mut SecretTracker, server: &ReflectingServer) {
    let push = json!({
        "url": format!("http://{}/broken/{}", server.address, secrets.secret("push-path")),
        "token": secrets.secret("push-token"),
        "authentication": {"scheme": "Bearer", "credentials": secrets.secret("push-credentials")},
    });
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"number": 1}}]});
    let params = json!({"message": message, "configuration": {"taskPushNotificationConfig": push}});
    let send = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
    let task = client.request("POST /a2a", &send.to_string()).body;
    let id = serde_json::from_str::<Value>(&task).unwrap()["result"]["task"]["id"].clone();
    assert!(id.is_string(), "{task}");
    let bad = json!({"taskId": id, "url": format!("ftp://host/{}", secrets.secret("bad-push-path"))});
    let bad = json!({"jsonrpc": "2.0", "id": 1, "method": "CreateTaskPushNotificationConfig", "params": bad});
    secrets.record("a refused URL", client.request("POST /a2a", &bad.to_string()).body);
    secrets.record("the agent card", client.get("/.well-known/agent-card.json").body);
    let forged = secrets.secret("notification-token");
    let forged = AuthorizedClient { gateway: client.gateway, key: &forged };
    let refused = forged.request("POST /a2a/notifications", "{}");
    assert_eq!(refused.status, 401, "{}", refused.body);
    secrets.record("a refused notification", refused.body);
}

fn finish(mut secrets: SecretTracker, mut gateway: TestGateway, folder: &Path, collector: &ReflectingServer) {
    gateway.process.signal(Signal::TERM);
    assert!(gateway.process.wait().success());
    let log = gateway.process.stderr.text();
    // The log must contain the events, or the test proves nothing.
    for said in [
        "go away",
        "starting with",
        "failed to connect",
        "a call failed",
        "manifest edit rejected",
        "cannot use an agent card",
        "a URL is no longer notified",
    ] {
        assert!(log.contains(said), "{said}");
    }
    secrets.record("the log", log);
    secrets.record("standard output", gateway.process.stdout.text());
    secrets.record("the file of the trail", std::fs::read(folder.join("audit.jsonl")).unwrap());
    let sent = collector.received.lock().unwrap().clone();
    assert!(String::from_utf8_lossy(&sent).contains("tools/call over_http_fail"));
    secrets.record("telemetry", sent);
    secrets.assert_no_leaks();
}

#[test]
fn text_output_contains_no_secret() {
    drive("human");
}

#[test]
fn json_output_contains_no_secret() {
    drive("json");
}
