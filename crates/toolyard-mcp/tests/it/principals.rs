//! Isolation of principals: state of one is invisible to others.

use http::{HeaderMap, Method, header};
use insta::assert_snapshot;

use crate::client::{ABLE, Client, LEGACY, MODERN, ROOTS, Transport, asking, tool_params};
use crate::test_gateway::TestGateway;
use crate::web::{Exchange, request};

/// A client over HTTP with this principal.
async fn client_of(gateway: &TestGateway, revision: &'static str, principal: &'static str) -> Client {
    let mut client = Client::uninitialized(gateway, Transport::Web, revision, ABLE).await;
    if !principal.is_empty() {
        client.web().set_principal(principal);
    }
    if revision != MODERN {
        client.initialize().await;
    }
    client
}

/// A state and a task of one principal are unknown for others.
#[tokio::test]
async fn suspended_calls_and_tasks_are_bound_to_principals() {
    let gateway = TestGateway::new();
    let mut alice = client_of(&gateway, MODERN, "alice").await;
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
        let mut other = client_of(&gateway, MODERN, principal).await;
        for (method, params) in [
            ("tools/call", &retry),
            ("tasks/get", &task),
            ("tasks/cancel", &task),
            ("subscriptions/listen", &listen),
        ] {
            lines.push(format!("{principal} {}", other.request(method, params).await));
        }
    }
    assert_snapshot!(lines.join("\n"), @r#"
    bob {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid or expired `params.requestState`"}}
    bob {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"unknown `params.taskId`"}}
    bob {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"unknown `params.taskId`"}}
    bob {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":4},"notifications":{}}}
     {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid or expired `params.requestState`"}}
     {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"unknown `params.taskId`"}}
     {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"unknown `params.taskId`"}}
     {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":4},"notifications":{}}}
    "#);
    let mut again = client_of(&gateway, MODERN, "alice").await;
    assert!(again.request("tools/call", &retry).await.contains("complete"));
    assert!(again.request("tasks/get", &task).await.contains("input_required"));
}

/// A session is bound to its principal.
#[tokio::test]
async fn sessions_are_bound_to_principals() {
    let gateway = TestGateway::new();
    let mut alice = client_of(&gateway, LEGACY[3], "alice").await;
    alice.call("ask", &asking(&[ROOTS])).await;
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#;
    alice.web().set_principal("bob");
    let mut received = vec![alice.request("ping", "").await];
    for (method, body) in [(Method::POST, answer), (Method::GET, ""), (Method::DELETE, "")] {
        received.push(format!("{method} {}", alice.web().status(method.clone(), body).await));
    }
    assert_snapshot!(received.join("\n"), @r#"
    404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"}}
    POST 404
    GET 404
    DELETE 404
    "#);
    alice.web().set_principal("alice");
    alice.answer(0, "{}").await;
    assert!(alice.receive().await.contains("result"));
}

/// A stream of HTTP+SSE is bound to its principal.
#[tokio::test]
async fn sse_streams_are_bound_to_principals() {
    let gateway = TestGateway::new();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    headers.insert("x-principal", "alice".parse().unwrap());
    let mut stream = Exchange::begin(gateway.address(), request(Method::GET, "/sse", &headers, "")).await;
    let path = String::from_utf8(stream.event().await.unwrap().data.to_vec()).unwrap();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut statuses = Vec::new();
    for principal in ["bob", "", "alice"] {
        headers.insert("x-principal", principal.parse().unwrap());
        let posted = Exchange::begin(gateway.address(), request(Method::POST, &path, &headers, ping)).await;
        statuses.push(posted.response.status().as_u16());
    }
    assert_eq!(statuses, [404, 404, 202]);
    assert_eq!(stream.event().await.unwrap().data, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}
