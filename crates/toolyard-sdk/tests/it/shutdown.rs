//! Shutdown of servers on every transport.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use toolyard_core::{Call, Json};
use toolyard_sdk::axum::Router;
use toolyard_sdk::{Server, ServerOptions};

use crate::support::{Peer, serve_routes};

/// A server whose tool `wait` notifies that it has started, and ends on a notification.
fn server() -> (Server, Arc<Notify>, Arc<Notify>) {
    let (started, may_end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let wait = {
        let (started, may_end) = (started.clone(), may_end.clone());
        async move || {
            started.notify_one();
            may_end.notified().await;
            "done"
        }
    };
    let server = Server::new("test", "1.0.0").tool("wait", "", wait).unwrap();
    (server.tool("open", "", || "open").unwrap(), started, may_end)
}

#[tokio::test]
async fn pipe_ends_after_its_calls() {
    let (server, started, may_end) = server();
    let handle = server.handle();
    let mut peer = Peer::initialized(server).await;
    let id = peer.start("tools/call", json!({"name": "wait"})).await;
    started.notified().await;
    handle.stop();
    may_end.notify_one();
    assert_eq!(peer.answer(id).await["content"][0]["text"], "done");
    peer.wait_for_end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn drain_limits_the_wait_for_calls() {
    let (server, started, _may_end) = server();
    let options = ServerOptions { drain: Duration::from_secs(3), ..ServerOptions::default() };
    let server = server.options(options);
    let handle = server.handle();
    let mut peer = Peer::initialized(server).await;
    peer.start("tools/call", json!({"name": "wait"})).await;
    started.notified().await;
    let start = tokio::time::Instant::now();
    handle.stop();
    peer.wait_for_end().await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 3);
}

/// Sends a request and reads the response while `more` returns `true`.
async fn ask(
    address: std::net::SocketAddr,
    request: &str,
    more: impl Fn(&str) -> bool,
) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    while more(&response) {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).await.unwrap();
        assert_ne!(length, 0, "{response}");
        response.push_str(std::str::from_utf8(&piece[..length]).unwrap());
    }
    (stream, response)
}

fn post(address: std::net::SocketAddr, body: &str) -> String {
    let length = body.len();
    let headers = "Content-Type: application/json\r\nAccept: application/json, text/event-stream";
    format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\n{headers}\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// Like an application that waits for its connections on shutdown.
#[tokio::test]
async fn routes_let_their_application_shut_down() {
    let (server, started, may_end) = server();
    let handle = server.handle();
    let app = Router::new().merge(server.into_router());
    let (stop, stopped) = oneshot::channel::<()>();
    let (address, serving) = serve_routes(app, async { drop(stopped.await) }).await;
    let get = format!("GET /sse HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let (mut stream, _) = ask(address, &get, |response| !response.contains("sessionId=")).await;
    let call = post(address, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}"#);
    let (mut running, _) = ask(address, &call, |_| false).await;
    started.notified().await;

    handle.stop();
    let open = post(address, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open"}}"#);
    let (_, refused) = ask(address, &open, |response| !response.contains("}}}")).await;
    assert!(refused.starts_with("HTTP/1.1 200"), "{refused}");
    assert!(refused.contains(r#""data":{"code":"unavailable","#), "{refused}");
    drop(stop);
    // The stream ends, and its connection with the last request.
    let mut rest = Vec::new();
    while !rest.ends_with(b"0\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut rest).await.unwrap(), 0, "it ends without its last chunk");
    }
    may_end.notify_one();
    let mut answer = String::new();
    running.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("done"), "{answer}");
    serving.await.unwrap();
}

#[tokio::test]
async fn listening_server_stops() {
    let (server, ..) = server();
    let handle = server.handle();
    let running = server.listen("127.0.0.1:0").await.unwrap();
    let address = running.address();
    let get = format!("GET /sse HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let (mut stream, _) = ask(address, &get, |response| !response.contains("sessionId=")).await;
    handle.stop();
    stream.read_to_string(&mut String::new()).await.unwrap();
    running.stop().await;
}

#[tokio::test]
async fn stopped_backend_refuses_calls() {
    let (server, ..) = server();
    let handle = server.handle();
    let backend = server.into_backend();
    assert!(backend.call(Call::tool("open", Json::null())).await.is_ok());
    handle.stop();
    let refused = backend.call(Call::tool("open", Json::null())).await.unwrap_err();
    assert_eq!(refused.to_string(), "The server has ended");
}
