//! Services that fail and return: phases of the handler and of the gateway, with the cause.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use insta::assert_snapshot;
use serde_json::Value;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{ReceivedRequest, ReservedAddress, ScriptedReply, TestUpstream};

use crate::causes::{status, until};
use crate::gateway::{call, gateway_of};

const TOOL: &str = "tool: {name: NAME, description: T, inputSchema: {type: object}}";

fn http(name: &str, address: std::net::SocketAddr) -> String {
    let tool = TOOL.replace("NAME", name);
    format!("    - {{name: {name}, type: http, {tool}, endpoint: {{url: 'http://{address}/x'}}}}\n")
}

/// A service that answers with the current status.
fn service(status: &Arc<AtomicU16>) -> TestUpstream {
    let status = status.clone();
    TestUpstream::start(move |_: &ReceivedRequest| {
        ScriptedReply::http(status.load(Ordering::SeqCst), "", "{}")
    })
}

/// The phase of the gateway and its handlers, with the number of available tools and the last failures.
async fn phases(running: &RunningGateway) -> String {
    let status = status(running).await;
    let handler = |handler: &Value| {
        let error = &handler["lastError"];
        let failure = match error.is_object() && handler["phase"] != "Ready" {
            true => format!(" {}: {}", error["code"].as_str().unwrap(), error["message"].as_str().unwrap()),
            false => String::new(),
        };
        format!("{} {}{failure}", handler["name"].as_str().unwrap(), handler["phase"].as_str().unwrap())
    };
    let handlers = status["handlers"].as_array().unwrap().iter().map(handler);
    let available = &status["availableToolsCount"];
    format!("{} {available}; {}", status["phase"].as_str().unwrap(), handlers.collect::<Vec<_>>().join("; "))
}

/// The first failure opens no breaker: the connection is what fails, and what is checked.
#[tokio::test]
async fn gateway_fails_with_its_only_service_and_recovers_with_it() {
    let reserved = ReservedAddress::new();
    let address = reserved.address();
    drop(reserved);
    let running = gateway_of(&http("t", address), "").await;
    assert_snapshot!(phases(&running).await, @"Ready 1; t Ready");
    call(&running, "t", "{}").await.unwrap_err();
    until(&running, "unavailable service", |handlers| handlers[0]["phase"] == "Unavailable").await;
    assert_snapshot!(phases(&running).await, @"Failed 0; t Unavailable connection_refused: the server cannot be reached: connection refused");
    let _server = ReservedAddress::at(address).start(|_: &ReceivedRequest| ScriptedReply::json("{}"));
    until(&running, "available service", |handlers| handlers[0]["phase"] == "Ready").await;
    assert_snapshot!(phases(&running).await, @"Ready 1; t Ready");
    call(&running, "t", "{}").await.unwrap();
}

/// The breaker stays open for 30 s, of which the gateway knows without a call.
#[tokio::test]
async fn gateway_is_degraded_while_a_breaker_is_open_and_recovers() {
    let answer = Arc::new(AtomicU16::new(500));
    let (good, bad) = (service(&Arc::new(AtomicU16::new(200))), service(&answer));
    let running = gateway_of(&(http("good", good.address) + &http("bad", bad.address)), "").await;
    for _ in 0..5 {
        let _failed = call(&running, "bad", "{}").await;
    }
    until(&running, "unavailable service", |handlers| handlers[1]["phase"] == "Unavailable").await;
    assert_snapshot!(phases(&running).await, @"Degraded 1; good Ready; bad Unavailable breaker_open: several calls in a row have failed; the last one: HTTP status 500");
    let refused = call(&running, "bad", "{}").await.unwrap_err();
    assert_snapshot!(refused.to_string(), @"The tool failed several times in a row, and is left alone for a while");
    answer.store(200, Ordering::SeqCst);
    until(&running, "available service", |handlers| handlers[1]["phase"] == "Ready").await;
    assert_snapshot!(phases(&running).await, @"Ready 2; good Ready; bad Ready");
    call(&running, "bad", "{}").await.unwrap();
}

/// The path of a probe is one of the host, whatever the path of the base URL is.
#[tokio::test]
async fn probe_of_an_openapi_handler_asks_its_health_path() {
    let answer = Arc::new(AtomicU16::new(503));
    let server = service(&answer);
    let operation = r#"{"/pets":{"get":{"operationId":"pets","responses":{"200":{"description":"ok"}}}}}"#;
    let address = server.address;
    let document = format!(
        r#"{{"openapi":"3.0.0","info":{{"title":"x","version":"1"}},"servers":[{{"url":"http://{address}/api/v2"}}],"paths":{operation}}}"#
    );
    let check = async |base: &str| {
        answer.store(503, Ordering::SeqCst);
        let probe = "probe: {interval: 1s, path: '/healthz?deep=1'}";
        let handler = format!(
            "    - {{name: h, type: openapi, openAPIConfig: {{{base} {probe}, spec: {document}}}}}\n"
        );
        let before = server.now(|log| log.requests.len());
        let running = gateway_of(&handler, "").await;
        until(&running, "unavailable service", |handlers| handlers[0]["phase"] == "Unavailable").await;
        let failed = phases(&running).await;
        answer.store(204, Ordering::SeqCst);
        until(&running, "available service", |handlers| handlers[0]["phase"] == "Ready").await;
        let line = server.now(|log| log.requests[before].text().lines().next().unwrap().to_owned());
        format!("{line}\n{failed}\n{}", phases(&running).await)
    };
    let described = check("").await;
    assert_snapshot!(described, @"
    GET /healthz?deep=1 HTTP/1.1
    Failed 0; h Unavailable http_status: HTTP status 503
    Ready 1; h Ready
    ");
    assert_eq!(check(&format!("baseURL: 'http://{address}/other',")).await, described);
}
