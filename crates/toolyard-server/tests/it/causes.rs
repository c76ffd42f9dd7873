//! Causes of failures in the status: exit status, output, certificate, DNS, refused, missing credentials.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::Value;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{ReceivedRequest, ReservedAddress, ScriptedReply, TestUpstream};
use toolyard_testing::wire_client::WireConnection;

use crate::gateway::{call, entry, gateway_of};

/// The status of a gateway.
pub(crate) async fn status(running: &RunningGateway) -> Value {
    let mut connection = WireConnection::open(running.address()).await;
    connection.send(b"GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    serde_json::from_str(&connection.response().await.unwrap().body).unwrap()
}

/// Waits until the handlers in the status are as expected, and returns them.
pub(crate) async fn until(
    running: &RunningGateway,
    what: &str,
    holds: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let start = std::time::Instant::now();
    loop {
        let status = status(running).await;
        let handlers = status["handlers"].as_array().unwrap();
        if holds(handlers) {
            return handlers.clone();
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no {what}: {handlers:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the only handler has failed with this code.
async fn until_code(running: &RunningGateway, code: &str) {
    until(running, code, |handlers| handlers[0]["lastError"]["code"] == code).await;
}

/// Waits for the last failure of the only handler, and returns its code, message and output.
async fn failure(running: &RunningGateway) -> String {
    let handlers = until(running, "failure", |handlers| handlers[0]["lastError"].is_object()).await;
    let handler = &handlers[0];
    let error = &handler["lastError"];
    let output = error["output"].as_array().cloned().unwrap_or_default();
    let lines = output.iter().map(|line| format!(" | {}", line.as_str().unwrap()));
    let (code, message) = (error["code"].as_str().unwrap(), error["message"].as_str().unwrap());
    format!("{} {code}: {message}{}", handler["phase"].as_str().unwrap(), lines.collect::<String>())
}

const QUICK: &str = "timeouts: {firstList: 0s, connect: 2s, eraProbe: 200ms}";

async fn mcp(config: &str) -> String {
    failure(&gateway_of(&entry("h", "", config), QUICK).await).await
}

async fn program(script: &str) -> String {
    mcp(&format!(
        "transport: stdio, command: sh, args: ['-c', '{script}'], env: {{KEY: hunter2hunter2, N: '7'}}"
    ))
    .await
}

#[tokio::test]
async fn failed_program_tells_its_exit_and_its_last_lines() {
    let lines = [
        program("echo one >&2; echo two >&2; echo bad key $KEY >&2; echo N is $N >&2; exit 3").await,
        program("echo dying >&2; kill -9 $$").await,
        program("echo waiting for a login >&2; exec sleep 1000").await,
        mcp("transport: stdio, command: /no/such/program").await,
        mcp("transport: stdio, command: /no/such/npx, args: [server]").await,
        mcp("transport: stdio, command: sh, workDir: /no/such/folder").await,
    ];
    assert_snapshot!(lines.join("\n"), @r#"
    Unavailable process_exited: process exited with status 3 | two | bad key [REDACTED] | N is [REDACTED]
    Unavailable process_killed: process ended by signal 9 | dying
    Unavailable timeout: connecting to the server timed out after 2 s | waiting for a login
    Unavailable program_not_found: cannot start "/no/such/program": No such file or directory (os error 2)
    Unavailable program_not_found: cannot start "/no/such/npx": No such file or directory (os error 2); it comes with Node.js (packages `nodejs` and `npm` of Debian and Ubuntu)
    Unavailable program_not_started: cannot enter the working directory "/no/such/folder": there is no such folder
    "#);
}

#[tokio::test]
async fn failed_connection_tells_its_reason() {
    let status = |status: u16, headers: &'static str| {
        TestUpstream::start(move |_: &ReceivedRequest| ScriptedReply::http(status, headers, ""))
    };
    let http = |address: std::net::SocketAddr| {
        format!("transport: streamable-http, endpoint: 'http://{address}/mcp'")
    };
    let closed = ReservedAddress::new().address();
    let [missing, refused] = [(); 2].map(|()| status(401, "www-authenticate: Bearer realm=\"x\"\r\n"));
    let (forbidden, other) = (status(403, ""), status(500, ""));
    let lines = [
        mcp(&http(closed)).await.replace(&closed.to_string(), "CLOSED"),
        mcp(&http(missing.address)).await,
        mcp(&format!("{}, headers: {{Authorization: Bearer hunter2}}", http(refused.address))).await,
        mcp(&http(forbidden.address)).await,
        mcp(&http(other.address)).await,
    ];
    assert_snapshot!(lines.join("\n"), @"
    Unavailable connection_refused: the server cannot be reached: connection refused
    Unavailable unauthorized: HTTP status 401: the header `Authorization: Bearer ...` is missing
    Unavailable unauthorized: HTTP status 401: the server refused the `Authorization` header; it accepts the scheme Bearer
    Unavailable forbidden: the server answered with HTTP status 403 Forbidden
    Unavailable http_status: the server answered with HTTP status 500 Internal Server Error
    ");
    // The resolver of a machine without a network has other words.
    let unknown = mcp("transport: streamable-http, endpoint: 'http://no-such-host.invalid/mcp'").await;
    assert!(unknown.starts_with("Unavailable dns: the server cannot be reached: DNS: "), "{unknown}");
}

const TOOL: &str = "tool: {name: t, description: T, inputSchema: {type: object}}";

#[tokio::test]
async fn service_that_cannot_be_reached_is_unavailable_until_it_can() {
    let reserved = ReservedAddress::new();
    let address = reserved.address();
    drop(reserved);
    let handler = format!("    - {{name: h, type: http, {TOOL}, endpoint: {{url: 'http://{address}'}}}}\n");
    let running = gateway_of(&handler, QUICK).await;
    until(&running, "ready service", |handlers| handlers[0]["phase"] == "Ready").await;
    call(&running, "t", "{}").await.unwrap_err();
    until(&running, "unavailable service", |handlers| handlers[0]["phase"] == "Unavailable").await;
    assert_snapshot!(failure(&running).await, @"Unavailable connection_refused: the server cannot be reached: connection refused");
    let _server = ReservedAddress::at(address).start(|_: &ReceivedRequest| ScriptedReply::json("{}"));
    let handlers = until(&running, "available service", |handlers| handlers[0]["phase"] == "Ready").await;
    assert_eq!(handlers[0]["lastError"]["code"], "connection_refused");
}

#[tokio::test]
async fn failing_service_is_unavailable_while_its_breaker_is_open() {
    let server = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::http(500, "", ""));
    let address = server.address;
    let handler = format!("    - {{name: h, type: http, {TOOL}, endpoint: {{url: 'http://{address}'}}}}\n");
    let running = gateway_of(&handler, QUICK).await;
    let _failed = call(&running, "t", "{}").await;
    assert_snapshot!(failure(&running).await, @"Ready http_status: HTTP status 500");
    for _ in 0..4 {
        let _failed = call(&running, "t", "{}").await;
    }
    until_code(&running, "breaker_open").await;
    until(&running, "unavailable service", |handlers| handlers[0]["phase"] == "Unavailable").await;
}

#[tokio::test]
async fn missing_credentials_of_a_service_are_reported() {
    let server = TestUpstream::start(|_: &ReceivedRequest| {
        ScriptedReply::http(401, "www-authenticate: Basic realm=\"x\"\r\n", "")
    });
    let address = server.address;
    let handler = format!("    - {{name: h, type: http, {TOOL}, endpoint: {{url: 'http://{address}'}}}}\n");
    let running = gateway_of(&handler, QUICK).await;
    let _failed = call(&running, "t", "{}").await;
    assert_snapshot!(failure(&running).await, @"Ready unauthorized: HTTP status 401: the header `Authorization: Basic ...` is missing");
}

#[tokio::test]
async fn probe_detects_a_failing_service_without_calls() {
    let server = TestUpstream::start(|request: &ReceivedRequest| {
        let is_probe = request.text().starts_with("GET /healthz ");
        ScriptedReply::http(if is_probe { 503 } else { 200 }, "", "")
    });
    let address = server.address;
    let handler = format!(
        "    - {{name: h, type: http, {TOOL}, endpoint: {{url: 'http://{address}/x'}}, httpConfig: {{probe: {{interval: 1s, path: /healthz}}}}}}\n"
    );
    let running = gateway_of(&handler, QUICK).await;
    until(&running, "unavailable service", |handlers| handlers[0]["phase"] == "Unavailable").await;
    assert_snapshot!(failure(&running).await, @"Unavailable http_status: HTTP status 503");
}
