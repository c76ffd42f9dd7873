//! Servers of HTTP+SSE that other people have written, behind the gateway: one on the TypeScript SDK, one on the Python
//! SDK.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::gateway::{Gateway, over};
use crate::support::peers::{self, HttpServer};
use crate::support::{eventually, message};

/// The ways to name a server of HTTP+SSE in a manifest, all of which lead to it.
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
fn everything_is_found_and_called() {
    let home = TempDir::new().unwrap();
    let server = peers::everything_over_sse(home.path());
    for (transport, endpoint) in ways(&server.url) {
        let mut handler = over("everything", transport, &endpoint);
        handler["mcpConfig"]["toolFilter"] = json!({"blocklist": ["get-env", "get-evn"]});
        let gateway = Gateway::of(&[handler]);
        let tools = gateway.tools();
        assert!(tools.contains(&"get-sum".to_owned()) && !tools.contains(&"get-env".to_owned()), "{tools:?}");
        assert_eq!(gateway.text("echo", json!({"message": transport})), format!("Echo: {transport}"));
        let warned = |log: &str| log.contains("get-evn").then_some(());
        gateway.process.stderr.wait_for("the warning of a name that means no tool", warned);
    }
}

#[test]
fn everything_tells_how_far_it_is() {
    let home = TempDir::new().unwrap();
    let server = peers::everything_over_sse(home.path());
    let gateway = Gateway::of(&[over("everything", "sse", &server.url)]);
    let mut call = message::call(1, "trigger-long-running-operation");
    call["params"]["arguments"] = json!({"duration": 0.3, "steps": 3});
    call["params"]["_meta"] = json!({"progressToken": "mine"});
    let said = gateway.post(&[message::STREAMS], &call).messages();
    let progress: Vec<_> = said.iter().filter_map(|said| said["params"]["progress"].as_u64()).collect();
    assert_eq!(progress, [1, 2, 3], "{said:?}");
    assert!(said.last().unwrap()["result"].is_object(), "{said:?}");
}

/// A server that is gone, and comes back where it was.
#[test]
fn everything_comes_back() {
    let home = TempDir::new().unwrap();
    let server = peers::everything_over_sse(home.path());
    let gateway = Gateway::of(&[over("everything", "sse", &server.url)]);
    assert_eq!(gateway.text("echo", json!({"message": "before"})), "Echo: before");
    let port = server.port();
    drop(server);
    let lost = |log: &str| log.contains("the connection is lost").then_some(());
    gateway.process.stderr.wait_for("the loss", lost);
    let _server = peers::everything_at(home.path(), "sse", "sse", port).expect("its port is still free");
    let answered =
        || gateway.call("echo", json!({"message": "after"})).body.contains("Echo: after").then_some(());
    eventually("an answer", answered);
}

fn guarded(server: &HttpServer, transport: &str, token: &str) -> Value {
    let mut handler = over("guarded", transport, &server.url);
    handler["auth"] = json!({"type": "bearer", "token": token});
    handler["mcpConfig"]["headers"] = json!({"X-Tenant": "acme"});
    handler
}

#[test]
fn python_serves_who_has_the_token() {
    let home = TempDir::new().unwrap();
    for transport in ["sse", "streamable-http"] {
        let server = peers::guarded(home.path(), transport);
        for declared in ["sse", "streamable-http"] {
            let gateway = Gateway::of(&[guarded(&server, declared, "hunter2")]);
            assert_eq!(gateway.text("greet", json!({"name": declared})), format!("Hello {declared}"));
            let log = gateway.process.stderr.text();
            assert!(!log.contains("hunter2") && !log.contains("acme"), "{log}");
        }
        let gateway = Gateway::with(
            &[guarded(&server, transport, "guess")],
            json!({"timeouts": {"firstList": "300ms"}}),
        );
        assert_eq!(gateway.tools(), [""; 0]);
        gateway.process.stderr.wait_for("the reason", |log| log.contains("401 Unauthorized").then_some(()));
    }
}
