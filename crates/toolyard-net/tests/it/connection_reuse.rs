//! Connections of the client: which requests share one, and what a closed one means.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use toolyard_net::client::{HttpClient, RequestError};

const SIZED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
const EMPTY: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
const LAST: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\nbody";
const OPEN_END: &str = "HTTP/1.1 200 OK\r\n\r\nbody";

/// A server that sends one response to each request, and closes a connection after some of them.
struct RawServer {
    url: String,
    connections: Arc<AtomicUsize>,
    /// Receives a value when the server has closed a connection.
    closed: tokio::sync::mpsc::UnboundedReceiver<()>,
    _tasks: JoinSet<()>,
}

impl RawServer {
    async fn start(response: &'static str, per_connection: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let (sender, closed) = tokio::sync::mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let count = connections.clone();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                respond(stream, response, per_connection).await;
                sender.send(()).unwrap();
            }
        });
        Self { url, connections, closed, _tasks: tasks }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Answers `requests` requests of a connection, or all until the client closes it.
async fn respond(mut stream: TcpStream, response: &str, requests: usize) {
    for _ in 0..requests {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else { return };
            head.push(byte);
        }
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn send(client: &HttpClient, url: &str, reads: bool) -> Result<Bytes, RequestError> {
    let request = Request::get(url).body(Full::default()).unwrap();
    let response = client.send(request).await?;
    match reads {
        true => Ok(response.into_body().collect().await.unwrap().to_bytes()),
        false => Ok(Bytes::new()),
    }
}

/// Sends three requests one after the other, and compares the number of connections.
async fn check(response: &'static str, per_connection: usize, reads: bool, expected: usize) {
    let mut server = RawServer::start(response, per_connection).await;
    let client = HttpClient::without_roots().unwrap();
    for number in 1..=3 {
        let body = send(&client, &server.url, reads).await.unwrap();
        let whole = if reads && response != EMPTY { "body" } else { "" };
        assert_eq!(body, whole, "request {number}");
        // A server that closes idle connections does so before the next request.
        if per_connection == number {
            server.closed.recv().await.unwrap();
        }
    }
    assert_eq!(server.connections(), expected, "{response:?} {per_connection} {reads}");
}

#[tokio::test]
async fn requests_share_a_connection_whose_responses_were_read() {
    check(SIZED, 9, true, 1).await;
    check(CHUNKED, 9, true, 1).await;
    check(EMPTY, 9, true, 1).await;
    check(EMPTY, 9, false, 1).await;
}

#[tokio::test]
async fn connection_with_an_unread_response_is_closed() {
    check(CHUNKED, 9, false, 3).await;
    check(SIZED, 9, false, 3).await;
}

#[tokio::test]
async fn connection_that_the_server_closes_is_replaced() {
    check(SIZED, 1, true, 3).await;
    check(SIZED, 2, true, 2).await;
    check(LAST, 1, true, 3).await;
    check(OPEN_END, 1, true, 3).await;
}

#[tokio::test]
async fn request_that_was_sent_is_not_repeated() {
    let server = RawServer::start("", 1).await;
    let client = HttpClient::without_roots().unwrap();
    let failure = send(&client, &server.url, true).await.unwrap_err();
    assert!(matches!(failure, RequestError::Broken(_)), "{failure:?}");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn concurrent_requests_have_a_connection_each() {
    let client = HttpClient::without_roots().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let requests = async { tokio::join!(send(&client, &url, true), send(&client, &url, true)) };
    let responses = async {
        // Neither is answered before both have arrived.
        let (mut one, mut other) = (listener.accept().await.unwrap().0, listener.accept().await.unwrap().0);
        for stream in [&mut one, &mut other] {
            stream.write_all(SIZED.as_bytes()).await.unwrap();
        }
        (one, other)
    };
    let ((one, other), _open) = tokio::join!(requests, responses);
    assert_eq!((one.unwrap(), other.unwrap()), ("body".into(), "body".into()));
}

#[tokio::test]
async fn idle_connection_is_closed_after_its_time() {
    let mut server = RawServer::start(SIZED, 9).await;
    let client = HttpClient::without_roots().unwrap();
    send(&client, &server.url, true).await.unwrap();
    tokio::time::pause();
    // The only task with a timer is the one that closes the connection.
    server.closed.recv().await.unwrap();
    tokio::time::resume();
    send(&client, &server.url, true).await.unwrap();
    assert_eq!(server.connections(), 2);
}
