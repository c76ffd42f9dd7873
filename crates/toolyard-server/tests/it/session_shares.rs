//! Session quotas: a new session replaces one of the same owner, and counts against the owner's rate.

use insta::assert_snapshot;
use toolyard_testing::wire_client::{MODERN_META, WireConnection, WireResponse};

use crate::keyed_gateway::KeyedGateway;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;

async fn open(gateway: &KeyedGateway, key: &str) -> WireResponse {
    gateway.ask(key, "POST /mcp", INITIALIZE).await
}

fn session_of(response: &WireResponse) -> String {
    response.head.header("mcp-session-id").unwrap_or_else(|| panic!("{}", response.body)).to_owned()
}

/// The status code of a ping in a session.
async fn ping(gateway: &KeyedGateway, key: &str, session: &str) -> u16 {
    let header = format!("mcp-session-id: {session}\r\n");
    gateway.ask_with(key, "POST /mcp", &header, PING).await.head.status()
}

#[tokio::test]
async fn new_sessions_close_none_of_another_key() {
    // The default share is a quarter of the sessions.
    for limits in ["{sessions: 8}", "{sessions: 100, sessionsPerOwner: 2}"] {
        let gateway = KeyedGateway::start(&format!("limits: {limits}")).await;
        let (many, one) = (gateway.key_for("tools:*").await, gateway.key_for("tools:*").await);
        let idle = session_of(&open(&gateway, &one).await);
        let mut sessions = Vec::new();
        for _ in 0..20 {
            sessions.push(session_of(&open(&gateway, &many).await));
        }
        assert_eq!(ping(&gateway, &one, &idle).await, 200, "{limits}");
        let mut left = Vec::new();
        for (number, session) in sessions.iter().enumerate() {
            if ping(&gateway, &many, session).await == 200 {
                left.push(number);
            }
        }
        assert_eq!(left, [18, 19], "{limits}");
    }
}

#[tokio::test]
async fn anonymous_loopback_client_may_use_all_sessions() {
    let gateway = KeyedGateway::start("limits: {sessions: 8}").await;
    let mut sessions = Vec::new();
    for _ in 0..8 {
        sessions.push(session_of(&open(&gateway, "").await));
    }
    for session in sessions {
        assert_eq!(ping(&gateway, "", &session).await, 200);
    }
}

#[tokio::test]
async fn sse_streams_count_against_the_session_share() {
    let gateway = KeyedGateway::start("limits: {sessions: 8}").await;
    let (many, one) = (gateway.key_for("tools:*").await, gateway.key_for("tools:*").await);
    let mut open = Vec::new();
    for (key, expected) in [(&many, 200), (&many, 200), (&many, 429), (&one, 200)] {
        let mut connection = WireConnection::open(gateway.running.address()).await;
        let request = format!("GET /sse HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n");
        connection.send(request.as_bytes()).await;
        let stream = connection.stream().await;
        assert_eq!(stream.head.status(), expected);
        open.push(stream);
    }
}

#[tokio::test]
async fn initialize_and_discover_count_against_the_rate() {
    let gateway = KeyedGateway::start("").await;
    let key = gateway.key(r#"{"name":"q","scopes":["tools:*"],"rate":"4/week"}"#).await;
    let discover = async || {
        let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: server/discover\r\n";
        let params = format!(r#"{{"_meta":{{{MODERN_META}}}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"server/discover","params":{params}}}"#);
        gateway.ask_with(&key, "POST /mcp", headers, &body).await
    };
    for _ in 0..2 {
        assert!(open(&gateway, &key).await.body.contains("serverInfo"));
        assert!(discover().await.body.contains("supportedVersions"));
    }
    let mut lines = Vec::new();
    for refused in [open(&gateway, &key).await, discover().await] {
        assert_eq!(refused.head.header("mcp-session-id"), None);
        let (body, _wait) = refused.body.split_once("retry in").unwrap();
        lines.push(format!("{} {body}", refused.head.status()));
        assert!(refused.body.contains(r#""data":{"code":"rate_limited","reason":"the key may send 4/week""#));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    200 {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"rate limit of 4/week exceeded: 
    200 {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"rate limit of 4/week exceeded: 
    "#);
}
