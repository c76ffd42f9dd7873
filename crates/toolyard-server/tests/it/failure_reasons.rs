//! The reason of a failure in `error.data.reason`: it says why, without addresses, hosts, paths and secrets.

use std::net::SocketAddr;

use insta::assert_snapshot;
use tokio::io::AsyncWriteExt;
use toolyard_testing::json;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::causes::status;
use crate::gateway::{entry, gateway_of};

/// The tool of handlers that declare it.
const DECLARED: &str = "tool: {name: t, description: T, inputSchema: {type: object}}, timeout: 2s,";

fn http(url: &str) -> String {
    format!(
        "    - {{name: h, type: http, {DECLARED} endpoint: {{url: '{url}'}}, httpConfig: {{method: POST}}}}\n"
    )
}

fn openapi(url: &str) -> String {
    let operation = r#"{"/x":{"get":{"operationId":"t","responses":{"200":{"description":"ok"}}}}}"#;
    let document = format!(
        r#"{{"openapi":"3.0.0","info":{{"title":"x","version":"1"}},"servers":[{{"url":"{url}"}}],"paths":{operation}}}"#
    );
    format!(
        "    - {{name: h, type: openapi, timeout: 2s, openAPIConfig: {{baseURL: '{url}', spec: {document}}}}}\n"
    )
}

/// The message and the reason of a call.
async fn failure(handler: &str) -> String {
    let running = gateway_of(handler, "timeouts: {firstList: 300ms}").await;
    let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
    let body = client.call("t", "{}").await.body;
    let Some(error) = json::read(&body).find("error").cloned() else { return body };
    let reason = error.get("data").get("reason").plain();
    format!("{}: {reason}", error.get("message").plain())
}

/// An address where no program listens.
fn closed() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A server that greets each connection in plain text.
async fn plain_text_server() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(b"220 hello\r\n").await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn reason_of_a_failed_request() {
    let silent = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::never());
    let rude = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::reset());
    let plain = plain_text_server().await;
    let long = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::stalled("HTTP/1.1 200 OK\r\n\r\nx"));
    let mut lines = Vec::new();
    for (name, url) in [
        ("refused", format!("http://{}", closed())),
        ("silent", format!("http://{}", silent.address)),
        ("stalled", format!("http://{}", long.address)),
        ("reset", format!("http://{}", rude.address)),
        ("no TLS", format!("https://{plain}")),
    ] {
        lines.push(format!("http, {name}: {}", failure(&http(&url)).await));
        lines.push(format!("openapi, {name}: {}", failure(&openapi(&url)).await));
    }
    assert_snapshot!(lines.join("\n"), @"
    http, refused: The tool's server cannot be reached: connection refused
    openapi, refused: The tool's server cannot be reached: connection refused
    http, silent: The tool's server did not answer in time: timed out after 2 s
    openapi, silent: The tool's server did not answer in time: timed out after 2 s
    http, stalled: The tool's server did not answer in time: timed out after 2 s
    openapi, stalled: The tool's server did not answer in time: timed out after 2 s
    http, reset: The connection to the tool's server broke: connection closed
    openapi, reset: The connection to the tool's server broke: connection closed
    http, no TLS: The tool's server cannot be reached: TLS: the server does not speak TLS
    openapi, no TLS: The tool's server cannot be reached: TLS: the server does not speak TLS
    ");
}

/// The error of a call of a handler that cannot be built, as an MCP client sees it, and that of its status.
async fn build_failure(handler: &str) -> String {
    let running = gateway_of(handler, "").await;
    let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
    let body = client.call("t", "{}").await.body;
    let error = json::read(&body).get("error").clone();
    let status = status(&running).await["handlers"][0]["lastError"]["message"].to_string();
    format!("{} {}\n  {status}", error.get("message").plain(), error.get("data").text())
}

/// Another call fails like this one until the manifest or its file is mended.
#[tokio::test]
async fn handler_that_cannot_be_built_is_not_retryable() {
    let handler = |kind: &str, endpoint: &str, config: &str| {
        format!("    - {{name: h, type: {kind}, {DECLARED} endpoint: {{url: '{endpoint}'}}, {config}}}\n")
    };
    let http = handler("http", "https://127.0.0.1:9", "httpConfig: {tlsCAPath: /missing.pem}");
    let grpc = handler("grpc", "127.0.0.1:9", "grpcConfig: {tls: true, tlsCAPath: /missing.pem}");
    let lines = [build_failure(&http).await, build_failure(&grpc).await];
    assert_snapshot!(lines.join("\n"), @r#"
    The handler of this tool cannot be used {"code":"execution_failed","reason":"the handler cannot be used; its status has the cause","retryable":false}
      "tlsCAPath: cannot read /missing.pem: I/O error: No such file or directory (os error 2)"
    The handler of this tool cannot be used {"code":"execution_failed","reason":"the handler cannot be used; its status has the cause","retryable":false}
      "tlsCAPath: cannot use /missing.pem: I/O error: No such file or directory (os error 2)"
    "#);
}

#[tokio::test]
async fn reason_of_a_failed_mcp_server() {
    let upstream = |call: fn(&ReceivedRequest) -> ScriptedReply| {
        TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], call))
    };
    let mut lines = Vec::new();
    for (name, script) in [
        ("silent", (|_| ScriptedReply::never()) as fn(&ReceivedRequest) -> ScriptedReply),
        ("reset", |_| ScriptedReply::reset()),
        ("500", |_| ScriptedReply::http(500, "", "at /srv/secret")),
        ("401", |_| ScriptedReply::http(401, "", "")),
        ("no message", |_| ScriptedReply::json("oops")),
    ] {
        let upstream = upstream(script);
        let endpoint = format!("transport: streamable-http, endpoint: 'http://{}/mcp'", upstream.address);
        lines.push(format!("{name}: {}", failure(&entry("h", "timeout: 300ms,", &endpoint)).await));
    }
    assert_snapshot!(lines.join("\n"), @"
    silent: The tool did not answer in time: timed out after 300 ms
    reset: The connection to the server broke: connection closed
    500: The server failed to answer: HTTP status 500
    401: The server refused the request: HTTP status 401
    no message: The server's answer is malformed: the answer is not an MCP message
    ");
}

/// A server that is lost after it has listed its tools.
#[tokio::test]
async fn reason_of_a_lost_mcp_server() {
    for sse in [false, true] {
        let upstream = match sse {
            false => TestUpstream::start(ScriptedUpstream::new(
                UpstreamEra::Modern,
                &[TOOL],
                |r: &ReceivedRequest| ScriptedReply::result(r, "{}"),
            )),
            true => {
                let sessions = crate::sse_upstream::SseSessions::default();
                TestUpstream::start(crate::sse_upstream::SseServer::new(&sessions, crate::sse_upstream::good))
            }
        };
        let transport = if sse { "sse" } else { "streamable-http" };
        let path = if sse { "sse" } else { "mcp" };
        let endpoint = format!("transport: {transport}, endpoint: 'http://{}/{path}'", upstream.address);
        let running = gateway_of(&entry("h", "timeout: 5s,", &endpoint), "").await;
        let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
        client.call("t", "{}").await;
        upstream.stop().await;
        let mut reason = String::new();
        for _ in 0..20 {
            let error = json::read(&client.call("t", "{}").await.body).get("error").clone();
            reason = error.get("data").get("reason").plain();
            if reason == "connection refused" {
                break;
            }
        }
        assert_eq!(reason, "connection refused", "{transport}");
    }
}

/// A program that ends: the reason has its status.
#[tokio::test]
async fn reason_of_an_ended_process() {
    let config = "transport: stdio, command: sh, args: ['-c', 'exit 1']";
    let running = gateway_of(&entry("h", "", config), "timeouts: {firstList: 300ms}").await;
    // The tool is unknown until the first list, so that the status of the handler has the reason.
    let mut connection = toolyard_testing::wire_client::WireConnection::open(running.address()).await;
    connection.send(b"GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let status = connection.response().await.unwrap().body;
    assert!(status.contains("process exited with status 1"), "{status}");
}
