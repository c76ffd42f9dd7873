//! Calls whose user has to visit a URL first: what each era is told of that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use insta::assert_snapshot;
use toolyard_core::{Call, Code, Json, Notice, Object, ToolError};

use crate::client::{ABLE, Carrier, Client, LEGACY, MODERN};
use crate::script::text;
use crate::yard::{Ended, Setup, Yard};

const REQUIRED: &str = r#"{"code":-32042,"message":"go there","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://a.example","message":"m","x":1.10}],"y":1e0}}"#;

fn peer(error: &str) -> ToolError {
    ToolError::new(Code::ExecutionFailed, "go there").from_peer(Json::parse(error.to_owned()).unwrap())
}

/// A yard whose tool runs after so many visits.
fn yard(visits: usize) -> Yard {
    let calls = Arc::new(AtomicUsize::new(0));
    Yard::build(Setup::default(), move |_| {
        let is_enough = calls.fetch_add(1, Ordering::Relaxed) >= visits;
        async move { if is_enough { Ok(text("done")) } else { Err(peer(REQUIRED)) } }
    })
}

/// A modern client is asked, and its next request makes the call again.
#[tokio::test]
async fn a_modern_client_is_asked() {
    let mut said = Vec::new();
    for carrier in [Carrier::Pipe, Carrier::Web] {
        let yard = yard(2);
        let mut client = Client::new(&yard, carrier, MODERN, ABLE).await;
        let mut lines = vec![client.call("echo", "").await];
        for key in ["elicitation-1", "elicitation-2"] {
            let answer = format!(r#""inputResponses":{{"{key}":{{"action":"accept"}}}}"#);
            let state = client.last("requestState");
            let params = format!(r#""name":"echo","arguments":{{}},"requestState":"{state}",{answer}"#);
            lines.push(client.ask("tools/call", &params).await);
        }
        said.push(lines.join("\n"));
    }
    assert_eq!(said[0], said[1]);
    assert_snapshot!(said[0], @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"mode":"url","elicitationId":"e1","url":"https://a.example","message":"m","x":1.10}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"elicitation-2":{"method":"elicitation/create","params":{"mode":"url","elicitationId":"e1","url":"https://a.example","message":"m","x":1.10}}},"requestState":"parked.<1>"}}
    {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"done"}],"resultType":"complete"}}
    "#);
}

/// Who refuses, or cannot be asked, is not sent there, and the call is not made again.
#[tokio::test]
async fn who_does_not_go() {
    let mut lines = Vec::new();
    for answer in [r#"{"action":"decline"}"#, "{}"] {
        let yard = yard(1);
        let mut client = Client::piped(&yard, MODERN, ABLE).await;
        client.call("echo", "").await;
        let state = client.last("requestState");
        let answer = format!(r#""requestState":"{state}","inputResponses":{{"elicitation-1":{answer}}}"#);
        lines.push(client.ask("tools/call", &format!(r#""name":"echo","arguments":{{}},{answer}"#)).await);
    }
    for capabilities in ["{}", r#"{"elicitation":{}}"#] {
        lines.push(Client::piped(&yard(1), MODERN, capabilities).await.call("echo", "").await);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The user did not open the URL that this needs","data":{"code":"execution_failed","reason":"The user did not open the URL that this needs","retryable":false}}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The user did not open the URL that this needs","data":{"code":"execution_failed","reason":"The user did not open the URL that this needs","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}
    "#);
}

/// A legacy client is told as it came, and so is everybody what is no list of URLs.
#[tokio::test]
async fn what_passes() {
    let mut lines = Vec::new();
    for carrier in [Carrier::Pipe, Carrier::Web] {
        lines.push(Client::new(&yard(1), carrier, LEGACY[3], ABLE).await.call("echo", "").await);
    }
    assert!(lines.iter().all(|line| line.contains(REQUIRED)), "{lines:#?}");
    for odd in [
        r#"{"code":-32042,"message":"no data"}"#,
        r#"{"code":-32042,"message":"none","data":{"elicitations":[]}}"#,
        r#"{"code":-32042,"message":"a form","data":{"elicitations":[{"mode":"form"}]}}"#,
        r#"{"code":-32042,"message":"no object","data":{"elicitations":[7]}}"#,
    ] {
        let yard = Yard::build(Setup::default(), move |_| async move { Err(peer(odd)) });
        let said = Client::piped(&yard, MODERN, ABLE).await.call("echo", "").await;
        assert!(said.contains(odd), "{said}");
    }
}

/// Says that a visit is over, while its call runs and after it.
async fn visited(call: Call) -> Ended {
    let over = |id: &str| Notice::Other {
        method: "notifications/elicitation/complete".into(),
        params: Object::new().with("elicitationId", Json::string(id)),
    };
    call.client.notify(over("during"));
    let client = call.client.clone();
    tokio::spawn(async move {
        // Nobody wants log of a call that is over.
        while client.log_level().is_some() {
            tokio::task::yield_now().await;
        }
        client.notify(over("after"));
    });
    Ok(text("done"))
}

/// Only one revision has a word for it.
#[tokio::test]
async fn who_is_told_that_a_visit_is_over() {
    let mut lines = Vec::new();
    for carrier in [Carrier::Pipe, Carrier::Web] {
        for revision in [LEGACY[2], LEGACY[3], MODERN] {
            let yard = Yard::build(Setup::default(), visited);
            let mut client = Client::new(&yard, carrier, revision, "{}").await;
            client.request("tools/call", r#""name":"echo""#).await;
            let heard = client.hear_all(if revision == LEGACY[3] { 3 } else { 1 }).await;
            // What belongs to no request comes on a stream of its own.
            let mut heard: Vec<_> = heard.lines().collect();
            heard.sort_unstable();
            lines.push(format!("{carrier:?} {revision}\n{}", heard.join("\n")));
            crate::yard::everybody_rests().await;
            assert_eq!(client.heard_already(), "");
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
