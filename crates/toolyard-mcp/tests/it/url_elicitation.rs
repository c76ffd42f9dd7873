//! Calls that need a URL elicitation first, in each era.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use insta::assert_snapshot;
use toolyard_core::{Call, ClientNotification, ErrorCode, Json, Object, ToolError};

use crate::client::{ABLE, Client, LEGACY, MODERN, Transport};
use crate::script::text;
use crate::test_gateway::{Ended, Setup, TestGateway};

const REQUIRED: &str = r#"{"code":-32042,"message":"go there","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://a.example","message":"m","x":1.10}],"y":1e0}}"#;

fn peer(error: &str) -> ToolError {
    ToolError::new(ErrorCode::ExecutionFailed, "go there").from_peer(Json::parse(error.to_owned()).unwrap())
}

/// A gateway whose tool runs after this many URL elicitations.
fn gateway(visits: usize) -> TestGateway {
    let calls = Arc::new(AtomicUsize::new(0));
    TestGateway::build(Setup::default(), move |_| {
        let is_enough = calls.fetch_add(1, Ordering::Relaxed) >= visits;
        async move { if is_enough { Ok(text("done")) } else { Err(peer(REQUIRED)) } }
    })
}

/// A modern client gets the elicitation, and its next request repeats the call.
#[tokio::test]
async fn modern_client_gets_the_elicitation() {
    let mut outputs = Vec::new();
    for transport in [Transport::Pipe, Transport::Web] {
        let gateway = gateway(2);
        let mut client = Client::new(&gateway, transport, MODERN, ABLE).await;
        let mut lines = vec![client.call("echo", "").await];
        for key in ["elicitation-1", "elicitation-2"] {
            let answer = format!(r#""inputResponses":{{"{key}":{{"action":"accept"}}}}"#);
            let state = client.last("requestState");
            let params = format!(r#""name":"echo","arguments":{{}},"requestState":"{state}",{answer}"#);
            lines.push(client.request("tools/call", &params).await);
        }
        outputs.push(lines.join("\n"));
    }
    assert_eq!(outputs[0], outputs[1]);
    assert_snapshot!(outputs[0], @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"mode":"url","elicitationId":"e1","url":"https://a.example","message":"m","x":1.10}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"elicitation-2":{"method":"elicitation/create","params":{"mode":"url","elicitationId":"e1","url":"https://a.example","message":"m","x":1.10}}},"requestState":"parked.<1>"}}
    {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"done"}],"resultType":"complete"}}
    "#);
}

/// A refusal, or a missing capability, fails the call without a repetition.
#[tokio::test]
async fn refused_url_fails_the_call() {
    let mut lines = Vec::new();
    for answer in [r#"{"action":"decline"}"#, "{}"] {
        let gateway = gateway(1);
        let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
        client.call("echo", "").await;
        let state = client.last("requestState");
        let answer = format!(r#""requestState":"{state}","inputResponses":{{"elicitation-1":{answer}}}"#);
        lines
            .push(client.request("tools/call", &format!(r#""name":"echo","arguments":{{}},{answer}"#)).await);
    }
    for capabilities in ["{}", r#"{"elicitation":{}}"#] {
        lines.push(Client::on_pipe(&gateway(1), MODERN, capabilities).await.call("echo", "").await);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The user did not open the required URL","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The user did not open the required URL","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}
    "#);
}

/// A legacy client gets the error unchanged, and so does every client for an invalid list of URLs.
#[tokio::test]
async fn legacy_client_gets_the_error_unchanged() {
    let mut lines = Vec::new();
    for transport in [Transport::Pipe, Transport::Web] {
        lines.push(Client::new(&gateway(1), transport, LEGACY[3], ABLE).await.call("echo", "").await);
    }
    assert!(lines.iter().all(|line| line.contains(REQUIRED)), "{lines:#?}");
    for odd in [
        r#"{"code":-32042,"message":"no data"}"#,
        r#"{"code":-32042,"message":"none","data":{"elicitations":[]}}"#,
        r#"{"code":-32042,"message":"a form","data":{"elicitations":[{"mode":"form"}]}}"#,
        r#"{"code":-32042,"message":"no object","data":{"elicitations":[7]}}"#,
    ] {
        let gateway = TestGateway::build(Setup::default(), move |_| async move { Err(peer(odd)) });
        let outputs = Client::on_pipe(&gateway, MODERN, ABLE).await.call("echo", "").await;
        assert!(outputs.contains(odd), "{outputs}");
    }
}

/// Reports the completion of elicitations during and after the call.
async fn visited(call: Call) -> Ended {
    let over = |id: &str| ClientNotification::Other {
        method: "notifications/elicitation/complete".into(),
        body: Object::new().with("elicitationId", Json::string(id)).into(),
    };
    call.client.notify(over("during"));
    let client = call.client.clone();
    tokio::spawn(async move {
        // The log level is unset once the call has ended.
        while client.log_level().is_some() {
            tokio::task::yield_now().await;
        }
        client.notify(over("after"));
    });
    Ok(text("done"))
}

/// Only 2025-11-25 has the notification.
#[tokio::test]
async fn completion_reaches_2025_11_25_clients_only() {
    let mut lines = Vec::new();
    for transport in [Transport::Pipe, Transport::Web] {
        for revision in [LEGACY[2], LEGACY[3], MODERN] {
            let gateway = TestGateway::build(Setup::default(), visited);
            let mut client = Client::new(&gateway, transport, revision, "{}").await;
            client.send_request("tools/call", r#""name":"echo""#).await;
            let received = client.receive_many(if revision == LEGACY[3] { 3 } else { 1 }).await;
            // Messages that belong to no request come on another stream.
            let mut received: Vec<_> = received.lines().collect();
            received.sort_unstable();
            lines.push(format!("{transport:?} {revision}\n{}", received.join("\n")));
            crate::test_gateway::let_tasks_settle().await;
            assert_eq!(client.received_so_far(), "");
        }
    }
    assert_snapshot!(lines.join("\n"), @r#"
    Pipe 2025-06-18
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}
    Pipe 2025-11-25
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}
    {"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"after"}}
    {"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"during"}}
    Pipe 2026-07-28
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}],"resultType":"complete"}}
    Web 2025-06-18
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}
    Web 2025-11-25
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}
    {"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"after"}}
    {"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"during"}}
    Web 2026-07-28
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}],"resultType":"complete"}}
    "#);
}
