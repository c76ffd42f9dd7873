//! The budget of bytes in flight.

use tokio::join;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, WireClient, WireConnection, WireResponse, post};

use crate::gateway::gateway;

const KIB: usize = 1 << 10;

fn small(request: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::result(request, r#"{"content":[]}"#)
}

/// A result of this size.
fn sized<const SIZE: usize>(request: &ReceivedRequest) -> ScriptedReply {
    let text = "x".repeat(SIZE);
    ScriptedReply::result(request, &format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#))
}

/// A request with a body of this size. It is not a call, since the audit trail would hold the bytes of a call for a
/// moment.
fn ping(size: usize) -> String {
    let text = "x".repeat(size);
    format!(r#"{{"jsonrpc":"2.0","id":"mine","method":"ping","params":{{"a":"{text}"}}}}"#)
}

async fn ask(address: std::net::SocketAddr, request: &[u8]) -> WireResponse {
    let mut connection = WireConnection::open(address).await;
    connection.send(request).await;
    connection.response().await.expect("a response")
}

#[tokio::test]
async fn unfinished_bodies_stay_within_the_budget() {
    let upstream = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], small));
    let running = gateway(&[("h", upstream.address, "")], "limits: {bytesInFlight: 1MiB}").await;
    let address = running.address();
    let mcp = post("", &ping(300 * KIB));
    // The gateway reads this request and refuses it.
    let body = format!(r#"{{"unknown":"{}"}}"#, "x".repeat(300 * KIB));
    let head = format!("host: localhost\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
    let rest = format!("POST /api/v1/tools/t/call HTTP/1.1\r\n{head}\r\n\r\n{body}");
    let request = post("", &ping(100));
    assert!(ask(address, &mcp).await.body.contains(r#""result":{"#));
    assert_eq!(ask(address, rest.as_bytes()).await.head.status(), 400);

    let (refused, refused_by_rest) = loop {
        let mut unfinished = Vec::new();
        for _ in 0..2 {
            let mut connection = WireConnection::open(address).await;
            let whole = post("", &ping(600 * KIB));
            connection.send(&whole[..405 * KIB]).await;
            unfinished.push(connection);
        }
        // The gateway reads them at once on an idle machine; on a busy one the request is sent again.
        for _ in 0..20 {
            let small = ask(address, &request).await;
            assert!(small.body.contains(r#""result":{"#), "a small request is served: {}", small.body);
        }
        let (by_mcp, by_rest, small) =
            join!(ask(address, &mcp), ask(address, rest.as_bytes()), ask(address, &request));
        assert!(small.body.contains(r#""result":{"#), "a small request is served: {}", small.body);
        if !by_mcp.body.contains(r#""result":{"#) && by_rest.head.status() != 400 {
            break (by_mcp, by_rest);
        }
    };
    assert_eq!(refused.head.status(), 200);
    let start = r#"{"jsonrpc":"2.0","id":"mine","error":{"code":-32603,"#;
    assert!(refused.body.starts_with(start), "{}", refused.body);
    assert!(refused.body.contains(r#""code":"unavailable""#), "{}", refused.body);
    let by_rest = &refused_by_rest.head;
    assert_eq!((by_rest.status(), by_rest.header("retry-after")), (503, Some("1")));

    while !ask(address, &mcp).await.body.contains(r#""result":{"#) {}
    assert_eq!(ask(address, rest.as_bytes()).await.head.status(), 400);
    running.stop().await;
}

#[tokio::test]
async fn answers_return_their_budget() {
    let upstream =
        TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], sized::<{ 600 * KIB }>));
    let running = gateway(&[("h", upstream.address, "")], "limits: {bytesInFlight: 1MiB}").await;
    for mode in [ClientMode::Modern, ClientMode::Bare] {
        let mut client = WireClient::new(running.address(), mode).await;
        for _ in 0..5 {
            let answer = client.call("t", "{}").await;
            assert!(answer.body.contains(r#""result":{"#), "{}", &answer.body[..200]);
        }
    }
    running.stop().await;
}

#[tokio::test]
async fn answer_beyond_the_budget_fails_its_call() {
    for era in [UpstreamEra::Modern, UpstreamEra::Legacy] {
        let upstream = TestUpstream::start(ScriptedUpstream::new(era, &[TOOL], sized::<{ 1100 * KIB }>));
        let running = gateway(&[("h", upstream.address, "")], "limits: {bytesInFlight: 1MiB}").await;
        let mut client = WireClient::new(running.address(), ClientMode::Modern).await;
        let answer = client.call("t", "{}").await;
        assert_eq!(answer.head.status(), 200);
        assert!(answer.body.contains("no memory left"), "{}", &answer.body[..200]);
        running.stop().await;
    }
}

/// A stdio server: `big` answers with more than the system buffers, and `echo` with little. The id stands last.
const STDIO_SERVER: &str = r#"
import json, sys
tool = lambda name: {"name": name, "inputSchema": {"type": "object"}}
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [tool("big"), tool("echo")]}
    elif method == "tools/call":
        text = "x" * (6 << 20) if params["name"] == "big" else "hi"
        result = {"content": [{"type": "text", "text": text}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"result": result, "jsonrpc": "2.0", "id": request["id"]}), flush=True)
"#;

#[tokio::test]
async fn unread_answers_of_one_key_do_not_block_other_keys_at_a_stdio_server() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.py");
    std::fs::write(&script, STDIO_SERVER).unwrap();
    let store = crate::keyed_gateway::memory().await;
    let options = toolyard_server::GatewayOptions {
        store: Some(store.clone()),
        ..toolyard_server::GatewayOptions::default()
    };
    let config = format!("transport: stdio, command: python3, args: ['{}']", script.display());
    let manifest = crate::gateway::manifest_of(
        &crate::gateway::entry("s", "", &config),
        "limits: {bytesInFlight: 64MiB}",
    );
    let running = crate::gateway::started_with(&manifest, &options).await;
    let key = async |name: &str| {
        let new_key =
            serde_json::from_value(serde_json::json!({"name": name, "scopes": ["tools:*", "rest"]}));
        toolyard_server::keys::record::create(&*store, new_key.unwrap()).await.unwrap().1.reveal()
    };
    let (greedy, other) = (key("a").await, key("b").await);
    let request = |tool: &str, key: &str| {
        let params = format!(r#"{{"name":"{tool}","arguments":{{}}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        post(&format!("authorization: Bearer {key}\r\n"), &body)
    };
    let mut unread = Vec::new();
    for _ in 0..20 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(running.address()).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, &request("big", &greedy)).await.unwrap();
        unread.push(stream);
    }
    // These calls wait behind the other answers in the same pipe. If those waited for their readers, they would time out.
    for _ in 0..5 {
        let echo = ask(running.address(), &request("echo", &other)).await;
        assert!(echo.body.contains(r#""hi""#), "{}", echo.body);
    }
    let refused = ask(running.address(), &request("big", &greedy)).await;
    let beginning = &refused.body[..refused.body.len().min(300)];
    assert!(refused.body.contains("limits.bytesInFlight"), "{beginning}");
    let big = ask(running.address(), &request("big", &other)).await;
    assert!(big.body.contains("xxx"), "{}", big.body);
    drop(unread);
    while !ask(running.address(), &request("big", &greedy)).await.body.contains("xxx") {}
    running.stop().await;
}
