//! Whom clients act for: what was begun for one of them is nobody else's.

use http::{HeaderMap, Method, header};
use insta::assert_snapshot;

use crate::client::{ABLE, Carrier, Client, LEGACY, MODERN, ROOTS, asking, tool_params};
use crate::web::{Exchange, request};
use crate::yard::Yard;

/// A client on the web that acts for somebody.
async fn acting_for(yard: &Yard, revision: &'static str, principal: &'static str) -> Client {
    let mut client = Client::silent(yard, Carrier::Web, revision, ABLE).await;
    if !principal.is_empty() {
        client.web().act_for(principal);
    }
    if revision != MODERN {
        client.initialize().await;
    }
    client
}

/// A state that was given to one, and a task, are nothing in the hands of another.
#[tokio::test]
async fn parked_calls_and_tasks() {
    let yard = Yard::new();
    let mut alice = acting_for(&yard, MODERN, "alice").await;
    let arguments = asking(&[ROOTS]);
    alice.call("ask", &arguments).await;
    let state = alice.last("requestState");
    let answers = format!(r#""inputResponses":{{"roots-1":{{}}}},"requestState":"{state}""#);
    let retry = format!("{},{answers}", tool_params("ask", &arguments));
    alice.call("may", &arguments).await;
    let task = format!(r#""taskId":"{}""#, alice.last("taskId"));
    let listen = format!(r#""notifications":{{"taskIds":["{}"]}}"#, alice.last("taskId"));
    let mut lines = Vec::new();
    for principal in ["bob", ""] {
        let mut other = acting_for(&yard, MODERN, principal).await;
        for (method, params) in [
            ("tools/call", &retry),
            ("tasks/get", &task),
            ("tasks/cancel", &task),
            ("subscriptions/listen", &listen),
        ] {
            lines.push(format!("{principal} {}", other.ask(method, params).await));
        }
    }
    assert_snapshot!(lines.join("\n"), @r#"
    bob {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params.requestState` is unknown here, or too old"}}
    bob {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    bob {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    bob {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":4},"notifications":{}}}
     {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params.requestState` is unknown here, or too old"}}
     {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
     {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
     {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":4},"notifications":{}}}
    "#);
    let mut again = acting_for(&yard, MODERN, "alice").await;
    assert!(again.ask("tools/call", &retry).await.contains("complete"));
    assert!(again.ask("tasks/get", &task).await.contains("input_required"));
}

/// A session is for who opened it.
#[tokio::test]
async fn sessions() {
    let yard = Yard::new();
    let mut alice = acting_for(&yard, LEGACY[3], "alice").await;
    alice.call("ask", &asking(&[ROOTS])).await;
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#;
    alice.web().act_for("bob");
    let mut heard = vec![alice.ask("ping", "").await];
    for (method, body) in [(Method::POST, answer), (Method::GET, ""), (Method::DELETE, "")] {
        heard.push(format!("{method} {}", alice.web().status(method.clone(), body).await));
    }
    assert_snapshot!(heard.join("\n"), @r#"
    404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"}}
    POST 404
    GET 404
    DELETE 404
    "#);
    alice.web().act_for("alice");
    alice.answer(0, "{}").await;
    assert!(alice.hear().await.contains("result"));
}

/// So is a stream of HTTP+SSE.
#[tokio::test]
async fn streams() {
    let yard = Yard::new();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    headers.insert("x-principal", "alice".parse().unwrap());
    let mut stream = Exchange::begin(yard.address(), request(Method::GET, "/sse", &headers, "")).await;
    let path = String::from_utf8(stream.event().await.unwrap().data.to_vec()).unwrap();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut statuses = Vec::new();
    for principal in ["bob", "", "alice"] {
        headers.insert("x-principal", principal.parse().unwrap());
        let posted = Exchange::begin(yard.address(), request(Method::POST, &path, &headers, ping)).await;
        statuses.push(posted.response.status().as_u16());
    }
    assert_eq!(statuses, [404, 404, 202]);
    assert_eq!(stream.event().await.unwrap().data, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}
