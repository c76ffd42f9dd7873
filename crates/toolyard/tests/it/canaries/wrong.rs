//! What is said where something is wrong from the start: a manifest, a certificate, the store.

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::planted::write;
use super::servers::Server;
use super::yard::Yard;
use crate::support::gateway::{Gateway, stdio, toolyard};
use crate::support::peers::free_port;
use crate::support::process::run;

/// The command line, where the gateway does not start, or has no store.
#[test]
fn no_secret_is_in_what_is_wrong() {
    let mut yard = Yard::default();
    let folder = tempfile::tempdir().unwrap();
    let start = |yard: &mut Yard, what: &str, handlers: &[Value], process: Value| {
        let (home, mut serve) = Gateway::command(handlers, process);
        serve.envs(yard.environment.iter().cloned()).env("TOOLYARD_LOG", "trace");
        let ended = run(serve.args(["--listen", "127.0.0.1:0"]));
        assert!(ended.code != 0 && ended.stderr.contains(what), "{ended}");
        yard.saw(what, ended.to_string());
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
            yard.saw(what, run(command.envs(yard.environment.iter().cloned())).to_string());
        }
    };

    let garbage = yard.secret("tls-key");
    let key = write(&folder.path().join("server.key"), &format!("-----BEGIN PRIVATE KEY-----\n{garbage}\n"));
    let cert = write(&folder.path().join("server.crt"), "-----BEGIN CERTIFICATE-----\n");
    let handlers = [stdio("x", "true", &[])];
    start(&mut yard, "certificate", &handlers, json!({"tls": {"certFile": cert, "keyFile": key}}));

    let bad = |yard: &mut Yard| {
        let mcp = |more: Value| json!({"transport": "streamable-http", "endpoint": "http://a/mcp", "headers": more});
        json!({"name": "bad", "type": "mcp", "auth": {"type": "bearer", "token": yard.reference("a-token")},
            "mcpConfig": mcp(json!({"X-Key": format!("a\n{}", yard.secret("header"))}))})
    };
    let url = format!("http://me:{}@host/", yard.reference("user-info"));
    let handlers = [
        bad(&mut yard),
        json!({"name": "url", "type": "mcp", "mcpConfig": {"transport": "sse", "endpoint": url}}),
        json!({"name": "basic", "type": "mcp", "auth": {"type": "basic", "token": yard.secret("no-password")},
            "mcpConfig": {"transport": "sse", "endpoint": "http://a/"}}),
        json!({"name": "spaced", "type": "mcp", "auth": {"type": "bearer", "token": format!("a {}", yard.secret("spaced"))},
            "mcpConfig": {"transport": "sse", "endpoint": "http://a/"}}),
    ];
    let process = json!({
        "store": {"url": format!("mysql://me:{}@db/x", yard.secret("bad-store"))},
        "telemetry": {"otlp": {"endpoint": format!("http://me:{}@host/", yard.secret("bad-otlp")),
            "headers": {"x-key": format!("a\n{}", yard.secret("bad-otlp-header"))}}},
    });
    start(&mut yard, "the manifest has problems", &handlers, process);
    yard.assert_kept();
}

/// A server that is asked by the command line, and repeats the key that it is shown.
#[test]
fn no_secret_is_in_what_is_said_of_a_server_that_refuses() {
    let (mut yard, server, home) = (Yard::default(), Server::start(), TempDir::new().unwrap());
    let [by_variable, by_file] = ["key-variable", "key-file"].map(|place| yard.secret(place));
    let file = write(&home.path().join("key"), &by_file);
    for manner in ["refusing", "strange", "broken"] {
        let ask = |more: &[&str]| {
            let mut tools = toolyard(home.path());
            tools.args(["tools", "--url", &format!("http://{}/{manner}", server.address)]).args(more);
            let ended = run(tools.env("TOOLYARD_KEY", &by_variable));
            assert_eq!(ended.code, 1, "{ended}");
            ended.to_string()
        };
        yard.saw("tools", ask(&[]));
        yard.saw("tools with a file", ask(&["--key-file", &file]));
    }
    yard.assert_kept();
}

/// A database that refuses: the gateway serves, and says why it keeps nothing.
#[test]
fn no_secret_is_in_what_is_said_of_the_store() {
    let mut yard = Yard::default();
    for (what, rest) in [("down", ""), ("unresolved", "@no.such.host.invalid")] {
        let host = if rest.is_empty() { format!("@127.0.0.1:{}", free_port()) } else { rest.to_owned() };
        let password = yard.reference(&format!("store-{what}"));
        let process = json!({"allowUnauthenticated": true, "store": {"url": format!("postgres://me:{password}{host}/x")}});
        let (home, mut command) = Gateway::command(&[stdio("x", "true", &[])], process);
        command.envs(yard.environment.iter().cloned()).env("TOOLYARD_LOG", "trace");
        let mut gateway = Gateway::start(home, &mut command);
        for path in ["/api/v1/status", "/api/v1/keys", "/api/v1/audit", "/metrics"] {
            yard.saw(path, gateway.get(path).body);
        }
        gateway.process.signal(Signal::TERM);
        gateway.process.wait();
        let log = gateway.process.stderr.text();
        assert!(log.contains("store"), "{log}");
        yard.saw("the log", log);
        let mut check = toolyard(gateway.folder.path());
        check.args(["store", "status", "-f"]).arg(gateway.folder.path().join("process.json"));
        yard.saw("store status", run(check.envs(yard.environment.iter().cloned())).to_string());
    }
    yard.assert_kept();
}
