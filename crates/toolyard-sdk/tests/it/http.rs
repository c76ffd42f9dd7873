//! Servers over HTTP, in another application, and as a backend.

use std::net::SocketAddr;

use serde_json::json;
use tokio::net::TcpStream;
use toolyard_core::{Call, Json, Outcome};
use toolyard_sdk::client::Client;
use toolyard_sdk::{Error, Server, ServerOptions};
use toolyard_testing::wire_client::WireConnection;

use crate::support::serve_routes;

fn server() -> Server {
    Server::new("door", "1.0.0").tool("open", "Opens the door.", || "open").unwrap()
}

/// Sends a `GET` request.
async fn get(address: SocketAddr, path: &str) -> WireConnection {
    let mut connection = WireConnection::open(address).await;
    connection.send(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).await;
    connection
}

#[tokio::test]
async fn server_listens_until_it_is_stopped() {
    let server = server();
    let handle = server.handle();
    let running = server.listen("127.0.0.1:0").await.unwrap();
    let address = running.address();
    let health = get(address, "/health").await.response().await.unwrap();
    assert_eq!(health.body, r#"{"status":"ok"}"#);
    let client = Client::connect(&running.url()).await.unwrap();
    assert_eq!(client.tools()[0].name, "open");
    assert_eq!(client.call::<_, String>("open", &json!({})).await.unwrap(), "open");
    drop(client);
    running.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
    assert!(!handle.remove_tool("open"), "the server is gone");
}

#[tokio::test]
async fn address_open_to_other_machines_needs_consent() {
    let refused = server().listen("0.0.0.0:0").await.unwrap_err();
    assert!(matches!(refused, Error::Unauthenticated(_)), "{refused}");
    let options = ServerOptions { allow_unauthenticated: true, ..ServerOptions::default() };
    let running = server().options(options).listen("0.0.0.0:0").await.unwrap();
    running.stop().await;
    let refused = server().listen("no such address").await.unwrap_err();
    assert_eq!(refused.to_string(), "cannot listen on no such address");
}

#[tokio::test]
async fn router_is_nested_in_another_application() {
    let server = server();
    let handle = server.handle();
    let app = axum::Router::new().nest("/tools/door", server.into_router());
    let (address, serving) = serve_routes(app, std::future::pending()).await;
    let client = Client::connect(&format!("http://{address}/tools/door/mcp")).await.unwrap();
    assert_eq!(client.call::<_, String>("open", &json!({})).await.unwrap(), "open");
    let mut stream = get(address, "/tools/door/sse").await.stream().await;
    let endpoint = stream.event().await.unwrap();
    assert!(endpoint.starts_with("event: endpoint\ndata: /tools/door/message?sessionId="), "{endpoint}");
    assert!(handle.remove_tool("open"), "the routes keep the server alive");
    serving.abort();
}

#[tokio::test]
async fn backend_answers_in_the_same_process() {
    let backend = server().into_backend();
    let catalog = backend.catalog().borrow().clone();
    assert_eq!(&*catalog.tools[0].name, "open");
    let Outcome::Done(output) = backend.call(Call::tool("open", Json::null())).await.unwrap() else {
        panic!()
    };
    assert_eq!(output.body.to_json().as_text(), r#"{"content":[{"type":"text","text":"open"}]}"#);
}
