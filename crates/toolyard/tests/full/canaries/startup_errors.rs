//! Errors at startup, of manifests, certificates and stores, contain no secret.

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::peers::free_port;
use toolyard_testing::process::run;

use super::manifest_with_secrets::write;
use super::reflecting_server::ReflectingServer;
use super::secret_tracker::SecretTracker;
use crate::support::gateway::{TestGateway, toolyard};

/// Runs commands whose gateway cannot start or has no store.
#[test]
fn startup_errors_contain_no_secret() {
    let mut secrets = SecretTracker::default();
    let folder = tempfile::tempdir().unwrap();
    let start = |secrets: &mut SecretTracker, what: &str, handlers: &[Value], process: Value| {
        let (home, mut serve) = TestGateway::command(handlers, process);
        serve.envs(secrets.environment.iter().cloned()).env("TOOLYARD_LOG", "trace");
        let ended = run(serve.args(["--listen", "127.0.0.1:0"]));
        assert!(ended.code != 0 && ended.stderr.contains(what), "{ended}");
        secrets.record(what, ended.to_string());
        for (command, output) in [("check", "text"), ("check", "json"), ("store", "text")] {
            let mut command = match command {
                "check" => {
                    let mut check = toolyard(home.path());
                    check.args(["check", "--output", output]).arg(home.path().join("registry.json"));
                    check.arg(home.path().join("process.json"));
                    check
                }
                _ => {
                    let mut store = toolyard(home.path());
                    store.args(["store", "status", "-f"]).arg(home.path().join("process.json"));
                    store
                }
            };
            secrets.record(what, run(command.envs(secrets.environment.iter().cloned())).to_string());
        }
    };

    let garbage = secrets.secret("tls-key");
    let key = write(&folder.path().join("server.key"), &format!("-----BEGIN PRIVATE KEY-----\n{garbage}\n"));
    let cert = write(&folder.path().join("server.crt"), "-----BEGIN CERTIFICATE-----\n");
    let handlers = [stdio_handler("x", "true", &[])];
    start(&mut secrets, "certificate", &handlers, json!({"tls": {"certFile": cert, "keyFile": key}}));

    let bad = |secrets: &mut SecretTracker| {
        let mcp = |more: Value| json!({"transport": "streamable-http", "endpoint": "http://a/mcp", "headers": more});
        json!({"name": "bad", "type": "mcp", "auth": {"type": "bearer", "token": secrets.reference("a-token")},
            "mcpConfig": mcp(json!({"X-Key": format!("a\n{}", secrets.secret("header"))}))})
    };
    let url = format!("http://me:{}@host/", secrets.reference("user-info"));
    let handlers = [
        bad(&mut secrets),
        json!({"name": "url", "type": "mcp", "mcpConfig": {"transport": "sse", "endpoint": url}}),
        json!({"name": "basic", "type": "mcp", "auth": {"type": "basic", "token": secrets.secret("no-password")},
            "mcpConfig": {"transport": "sse", "endpoint": "http://a/"}}),
        json!({"name": "spaced", "type": "mcp", "auth": {"type": "bearer", "token": format!("a {}", secrets.secret("spaced"))},
            "mcpConfig": {"transport": "sse", "endpoint": "http://a/"}}),
    ];
    let process = json!({
        "store": {"url": format!("mysql://me:{}@db/x", secrets.secret("bad-store"))},
        "telemetry": {"otlp": {"endpoint": format!("http://me:{}@host/", secrets.secret("bad-otlp")),
            "headers": {"x-key": format!("a\n{}", secrets.secret("bad-otlp-header"))}}},
    });
    start(&mut secrets, "invalid manifest", &handlers, process);
    secrets.assert_no_leaks();
}

/// A server that repeats the key that a command sends.
#[test]
fn refusals_of_servers_contain_no_secret() {
    let (mut secrets, server, home) =
        (SecretTracker::default(), ReflectingServer::start(), TempDir::new().unwrap());
    let [by_variable, by_file] = ["key-variable", "key-file"].map(|place| secrets.secret(place));
    let file = write(&home.path().join("key"), &by_file);
    for manner in ["refusing", "strange", "broken"] {
        let ask = |more: &[&str]| {
            let mut tools = toolyard(home.path());
            tools.args(["tools", "--url", &format!("http://{}/{manner}", server.address)]).args(more);
            let ended = run(tools.env("TOOLYARD_KEY", &by_variable));
            assert_eq!(ended.code, 1, "{ended}");
            ended.to_string()
        };
        secrets.record("tools", ask(&[]));
        secrets.record("tools with a file", ask(&["--key-file", &file]));
    }
    secrets.assert_no_leaks();
}

/// A database that refuses the connection: the gateway runs and logs the reason.
#[test]
fn store_errors_contain_no_secret() {
    let mut secrets = SecretTracker::default();
    for (what, rest) in [("down", ""), ("unresolved", "@no.such.host.invalid")] {
        let host = if rest.is_empty() { format!("@127.0.0.1:{}", free_port()) } else { rest.to_owned() };
        let password = secrets.reference(&format!("store-{what}"));
        let process = json!({"allowUnauthenticated": true, "store": {"url": format!("postgres://me:{password}{host}/x")}});
        let (home, mut command) = TestGateway::command(&[stdio_handler("x", "true", &[])], process);
        command.envs(secrets.environment.iter().cloned()).env("TOOLYARD_LOG", "trace");
        let mut gateway = TestGateway::start(home, &mut command);
        for path in ["/api/v1/status", "/api/v1/keys", "/api/v1/audit", "/metrics"] {
            secrets.record(path, gateway.get(path).body);
        }
        gateway.process.signal(Signal::TERM);
        gateway.process.wait();
        let output = gateway.process.stdout.text();
        assert!(output.contains("The store cannot be used: "), "{output}");
        secrets.record("the output", output);
        let log = gateway.process.stderr.text();
        assert!(log.contains("store"), "{log}");
        secrets.record("the log", log);
        let mut check = toolyard(gateway.folder.path());
        check.args(["store", "status", "-f"]).arg(gateway.folder.path().join("process.json"));
        secrets.record("store status", run(check.envs(secrets.environment.iter().cloned())).to_string());
    }
    secrets.assert_no_leaks();
}
