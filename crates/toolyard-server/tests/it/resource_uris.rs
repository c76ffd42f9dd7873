//! Resources whose URI does not identify their server: several servers have it, or none lists it.

use std::net::SocketAddr;

use insta::assert_snapshot;
use toolyard_server::keys::record;
use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream, UpstreamEra};
use toolyard_testing::wire_client::{ClientMode, MODERN_META, WireClient, WireConnection, post};

use crate::catalog_server::{CatalogServer, ERAS, ask, clients, list_text};
use crate::gateway::{gateway, manifest, started_on};
use crate::keyed_gateway::memory;

/// A server whose resource content is the requested URI.
fn server(era: UpstreamEra, name: &'static str) -> CatalogServer {
    CatalogServer::new(era, move |request: &ReceivedRequest| match &*request.method() {
        "completion/complete" => {
            let reference = request.params().get("ref").text();
            let completion =
                format!(r#"{{"values":[{}]}}"#, serde_json::json!(format!("{name} {reference}")));
            ScriptedReply::result(request, &format!(r#"{{"completion":{completion}}}"#))
        }
        "resources/read" => {
            let uri = request.params().get("uri").text();
            let contents = format!(r#"{{"uri":{uri},"text":"{name}","vendor":1.10}},{{"text":"?"}},7"#);
            let rest = r#""resultType":"complete","ttlMs":0,"cacheScope":"public""#;
            ScriptedReply::result(request, &format!(r#"{{"contents":[{contents}],{rest}}}"#))
        }
        _ => ScriptedReply::result(request, "{}"),
    })
}

/// Resources of two servers with equal URIs get distinct URIs, and each is read from its own server.
#[tokio::test]
async fn equal_uris_of_two_servers_are_distinct() {
    let mut answers = Vec::new();
    for era in ERAS {
        let (one, two) = (TestUpstream::start(server(era, "1")), TestUpstream::start(server(era, "2")));
        let running = gateway(&[("one", one.address, ""), ("two", two.address, "")], "").await;
        let mut lines = Vec::new();
        let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
        for list in [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")] {
            lines.push(list_text(&mut client, list).await);
        }
        for uri in
            ["res://one", "two+res://one", "doc://7/x", "two+doc://7/x", "one+res://one", "two+x:y", "x:y"]
        {
            lines.push(ask(&mut client, "resources/read", &format!(r#""uri":"{uri}","x":1.10"#)).await.body);
        }
        for uri in ["doc://{id}/x", "two+doc://{id}/x", "two+doc://7/x"] {
            let params = format!(r#""ref":{{"type":"ref/resource","uri":"{uri}","x":1}},"argument":{{}}"#);
            lines.push(ask(&mut client, "completion/complete", &params).await.body);
        }
        answers.push(
            lines.join("\n").replace(r#","resultType":"complete","ttlMs":0,"cacheScope":"public""#, ""),
        );
    }
    assert_eq!(answers[0], answers[1]);
    assert_snapshot!(answers[0], @r#"
    [{"uri":"res://one","name":"One","size":48e0,"vendor":{"b":1,"a":[]}},{"uri":"two+res://one","name":"One","size":48e0,"vendor":{"b":1,"a":[]}}]
    [{"uriTemplate":"doc://{id}/x","name":"Documents","vendor":1.10},{"uriTemplate":"two+doc://{id}/x","name":"Documents","vendor":1.10}]
    {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"res://one","text":"1","vendor":1.10},{"text":"?"},7]}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"two+res://one","text":"2","vendor":1.10},{"text":"?"},7]}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"doc://7/x","text":"1","vendor":1.10},{"text":"?"},7]}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"two+doc://7/x","text":"2","vendor":1.10},{"text":"?"},7]}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"one+res://one","text":"1","vendor":1.10},{"text":"?"},7]}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"two+x:y","text":"2","vendor":1.10},{"text":"?"},7]}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"Resource not found","data":{"uri":"x:y","code":"resource_not_found","retryable":false}}}
    {"jsonrpc":"2.0","id":7,"result":{"completion":{"values":["1 {\"type\":\"ref/resource\",\"uri\":\"doc://{id}/x\",\"x\":1}"]}}}
    {"jsonrpc":"2.0","id":7,"result":{"completion":{"values":["2 {\"type\":\"ref/resource\",\"uri\":\"doc://{id}/x\",\"x\":1}"]}}}
    {"jsonrpc":"2.0","id":7,"result":{"completion":{"values":["2 {\"type\":\"ref/resource\",\"uri\":\"doc://7/x\",\"x\":1}"]}}}
    "#);
}

/// A subscriber of one of them gets its updates, with the advertised URI.
#[tokio::test]
async fn update_names_the_advertised_uri() {
    for era in ERAS {
        let (first, second) = (server(era, "1"), server(era, "2"));
        let (one, two) = (TestUpstream::start(first.clone()), TestUpstream::start(second.clone()));
        let running = gateway(&[("one", one.address, ""), ("two", two.address, "")], "").await;
        let filter = r#""notifications":{"resourceSubscriptions":["two+res://one"]}"#;
        let mut stream = WireClient::new(running.address(), ClientMode::Modern)
            .await
            .open("subscriptions/listen", &format!(r#"{{{filter},"_meta":{{{MODERN_META}}}}}"#))
            .await;
        assert!(stream.message().await.unwrap().contains("acknowledged"));
        // The resource may have changed before the gateway subscribed to it.
        assert!(stream.message().await.unwrap().contains(r#""uri":"two+res://one""#));
        first.say("notifications/resources/updated", r#"{"uri":"res://one","of":1}"#);
        second.say("notifications/resources/updated", r#"{"uri":"res://one/part","of":2.0}"#);
        let message = stream.message().await.unwrap();
        assert!(message.contains(r#""uri":"two+res://one/part","of":2.0"#), "{message}");
    }
}

/// A server may have more than it lists: the gateway asks it for an unlisted URI if it is the only candidate.
#[tokio::test]
async fn unlisted_uri_is_read_from_the_only_candidate() {
    let capable = |capabilities| server(UpstreamEra::Legacy, "1").with_capabilities(capabilities);
    let mut lines = Vec::new();
    for (name, capabilities) in [("resources", r#"{"resources":{}}"#), ("none", r#"{"tools":{}}"#)] {
        let upstream = TestUpstream::start(capable(capabilities));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        for client in &mut clients(&running).await[1..] {
            let read = ask(client, "resources/read", r#""uri":"res://other""#).await.body;
            lines.push(format!("{name}, {:?}: {read}", client.mode));
        }
    }
    assert_snapshot!(lines.join("\n"), @r#"
    resources, Bare: {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"res://other","text":"1","vendor":1.10},{"text":"?"},7],"resultType":"complete","ttlMs":0,"cacheScope":"public"}}
    resources, Modern: {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"res://other","text":"1","vendor":1.10},{"text":"?"},7],"resultType":"complete","ttlMs":0,"cacheScope":"public"}}
    none, Bare: {"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"Resource not found","data":{"uri":"res://other","code":"resource_not_found","retryable":false}}}
    none, Modern: {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Resource not found","data":{"uri":"res://other","code":"resource_not_found","retryable":false}}}
    "#);
}

/// Makes a request with a key, and in a session if one is given; returns the kind of the outcome.
async fn ask_with_key(at: SocketAddr, key: &str, session: &str, method: &str, params: &str) -> &'static str {
    let session = if session.is_empty() { String::new() } else { format!("mcp-session-id: {session}\r\n") };
    let headers = format!("authorization: Bearer {key}\r\n{session}");
    let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
    let mut connection = WireConnection::open(at).await;
    connection.send(&post(&headers, &body)).await;
    let body = connection.response().await.unwrap().body;
    match body.contains("\"error\"") {
        true => assert!(body.contains("not found"), "{body}"),
        false => return "found",
    }
    "not found"
}

/// A key for some resources of a server cannot access others by any method that takes a URI.
#[tokio::test]
async fn key_cannot_leave_its_resource_scope() {
    let capabilities = r#"{"resources":{"subscribe":true},"completions":{}}"#;
    let upstream = TestUpstream::start(server(UpstreamEra::Legacy, "1").with_capabilities(capabilities));
    let store = memory().await;
    let running = started_on(&store, &manifest(&[("h", upstream.address, "")], "")).await;
    let new_key = r#"{"name":"k","scopes":["tools:res://open/*","tools:h+res://open/*"]}"#;
    let new_key = serde_json::from_str(new_key).unwrap();
    let key = record::create(&*store, new_key).await.unwrap().1.reveal();
    let at = running.address();
    let mut connection = WireConnection::open(at).await;
    let open = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    connection.send(&post(&format!("authorization: Bearer {key}\r\n"), open)).await;
    let opened = connection.response().await.unwrap();
    let session = opened.head.header("mcp-session-id").unwrap();
    let cases = [
        ("res://open/a", "found"),
        ("res://open/a/b..c", "found"),
        ("res://secret/a", "not found"),
        ("res://open/../secret/a", "not found"),
        ("res://open/..", "not found"),
        ("res://open/./../secret/a", "not found"),
        ("res://open/%2e%2e/secret/a", "not found"),
        ("res://open/.%2E%2Fsecret/a", "not found"),
        ("res://open/%252e%252e%252fsecret/a", "not found"),
        (r"res://open/..\\secret/a", "not found"),
        ("res://open/..;/secret/a", "not found"),
        ("h+res://open/../secret/a", "not found"),
    ];
    for (uri, expected) in cases {
        let reference = format!(r#"{{"ref":{{"type":"ref/resource","uri":"{uri}"}},"argument":{{}}}}"#);
        let named = format!(r#"{{"uri":"{uri}"}}"#);
        let requests = [
            ("resources/read", &named),
            ("resources/subscribe", &named),
            ("completion/complete", &reference),
        ];
        for (method, params) in requests {
            assert_eq!(ask_with_key(at, &key, session, method, params).await, expected, "{method} {uri}");
        }
    }
}
