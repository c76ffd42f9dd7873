//! Third-party HTTP+SSE servers behind the gateway: one on the TypeScript SDK, one on the Python SDK.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::with_transport;
use toolyard_testing::peers::PeerServer;
use toolyard_testing::wait::eventually;
use toolyard_testing::{messages, peers};

use crate::support::gateway::TestGateway;

/// Returns the forms of an HTTP+SSE server in a manifest.
fn ways(stream: &str) -> [(&'static str, String); 4] {
    let bare = stream.strip_suffix("/sse").unwrap().to_owned();
    [
        ("sse", stream.to_owned()),
        ("streamable-http", stream.to_owned()),
        ("sse", bare.clone()),
        ("streamable-http", bare),
    ]
}

#[test]
fn everything_server_is_listed_and_called() {
    let home = TempDir::new().unwrap();
    let server = peers::everything_over_sse(home.path());
    for (transport, endpoint) in ways(&server.url) {
        let mut handler = with_transport("everything", transport, &endpoint);
        handler["mcpConfig"]["toolFilter"] = json!({"blocklist": ["get-env", "get-evn"]});
        let gateway = TestGateway::with_handlers(&[handler]);
        let tools = gateway.tools();
        assert!(tools.contains(&"get-sum".to_owned()) && !tools.contains(&"get-env".to_owned()), "{tools:?}");
        assert_eq!(gateway.text("echo", json!({"message": transport})), format!("Echo: {transport}"));
        let warned = |log: &str| log.contains("get-evn").then_some(());
        gateway.process.stderr.wait_for("the warning of a name that means no tool", warned);
    }
}

#[test]
fn everything_server_sends_progress() {
    let home = TempDir::new().unwrap();
    let server = peers::everything_over_sse(home.path());
    let gateway = TestGateway::with_handlers(&[with_transport("everything", "sse", &server.url)]);
    let mut call = messages::tool_call(1, "trigger-long-running-operation");
    call["params"]["arguments"] = json!({"duration": 0.3, "steps": 3});
    call["params"]["_meta"] = json!({"progressToken": "mine"});
    let messages = gateway.post(&[messages::ACCEPT_STREAMS], &call).messages();
    let progress: Vec<_> =
        messages.iter().filter_map(|messages| messages["params"]["progress"].as_u64()).collect();
    assert_eq!(progress, [1, 2, 3], "{messages:?}");
    assert!(messages.last().unwrap()["result"].is_object(), "{messages:?}");
}

/// A server that stops and restarts at the same address.
#[test]
fn everything_server_reconnects() {
    let home = TempDir::new().unwrap();
    let server = peers::everything_over_sse(home.path());
    let gateway = TestGateway::with_handlers(&[with_transport("everything", "sse", &server.url)]);
    assert_eq!(gateway.text("echo", json!({"message": "before"})), "Echo: before");
    let port = server.port();
    drop(server);
    let lost = |log: &str| log.contains("connection lost").then_some(());
    gateway.process.stderr.wait_for("the loss", lost);
    let _server = peers::everything_at(home.path(), "sse", "sse", port).expect("its port is still free");
    let answered =
        || gateway.call("echo", json!({"message": "after"})).body.contains("Echo: after").then_some(());
    eventually("an answer", answered);
}

fn guarded(server: &PeerServer, transport: &str, token: &str) -> Value {
    let mut handler = with_transport("guarded", transport, &server.url);
    handler["auth"] = json!({"type": "bearer", "token": token});
    handler["mcpConfig"]["headers"] = json!({"X-Tenant": "acme"});
    handler
}

#[test]
fn python_server_accepts_the_token() {
    let home = TempDir::new().unwrap();
    for transport in ["sse", "streamable-http"] {
        let server = peers::guarded(home.path(), transport);
        for declared in ["sse", "streamable-http"] {
            let gateway = TestGateway::with_handlers(&[guarded(&server, declared, "hunter2")]);
            assert_eq!(gateway.text("greet", json!({"name": declared})), format!("Hello {declared}"));
            let log = gateway.process.stderr.text();
            assert!(!log.contains("hunter2") && !log.contains("acme"), "{log}");
        }
        let gateway = TestGateway::with_settings(
            &[guarded(&server, transport, "guess")],
            json!({"timeouts": {"firstList": "300ms"}}),
        );
        assert_eq!(gateway.tools(), [""; 0]);
        gateway
            .process
            .stderr
            .wait_for("the reason", |log| log.contains("HTTP status 401: the server refused").then_some(()));
    }
}
