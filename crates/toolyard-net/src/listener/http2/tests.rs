use axum::Router;
use axum::routing::get;
use bytes::BufMut;
use h2::client::SendRequest;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::super::SpokenVersion;
use super::*;

const LIMITS: ListenerLimits = ListenerLimits {
    connections: 10,
    connections_per_address: 10,
    health_paths: &["/health"],
    head_bytes: 16 * 1024,
    head_time: Duration::from_secs(10),
    write_time: Duration::from_secs(30),
    drain_time: Duration::from_secs(30),
};

/// Serves a connection with a few routes. Returns the client's end.
fn connect(health_only: bool) -> (DuplexStream, Arc<OpenConnection>, JoinHandle<()>) {
    let router = Router::new()
        .route("/small", get(async || "small"))
        .route("/health", get(async || "healthy"))
        .route("/large", get(async || vec![b'x'; 1 << 20]))
        .route("/slow", get(async || sleep(LIMITS.head_time * 20).await))
        .route("/watch", get(async || std::future::pending::<()>().await));
    let version = SpokenVersion::Http2 { unguarded: &["/watch"] };
    let service = ConnectionService {
        service: Arc::new(router),
        limits: LIMITS,
        version,
        is_draining: Arc::default(),
        health_only,
    };
    let (ours, theirs) = duplex(1 << 20);
    let connection = Arc::<OpenConnection>::default();
    let client = ClientAddress::Unix(None);
    let serving = serve_connection(service, &["/watch"], ours, client, connection.clone());
    (theirs, connection, tokio::spawn(async move { drop(serving.await) }))
}

/// Opens HTTP/2 on a connection.
async fn handshake(stream: DuplexStream) -> SendRequest<Bytes> {
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Sends a request. Returns the response.
async fn send(client: &SendRequest<Bytes>, path: &str) -> Result<http::Response<h2::RecvStream>, h2::Error> {
    let request = Request::get(format!("http://localhost{path}")).body(()).unwrap();
    let (response, _) = client.clone().ready().await?.send_request(request, true)?;
    response.await
}

/// Reads a body to its end.
async fn read(response: http::Response<h2::RecvStream>) -> Result<String, h2::Error> {
    let (mut body, mut text) = (response.into_body(), Vec::new());
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        text.put(data);
    }
    Ok(String::from_utf8(text).unwrap())
}

#[tokio::test(start_paused = true)]
async fn requests_are_answered_side_by_side() {
    let (stream, connection, _serving) = connect(false);
    let client = handshake(stream).await;
    let (slow, small) = tokio::join!(send(&client, "/slow"), async {
        let small = read(send(&client, "/small").await.unwrap()).await.unwrap();
        (small, connection.is_busy())
    });
    assert_eq!(small, ("small".to_owned(), true));
    // The connection was not silent, although nothing was sent for long.
    assert_eq!(slow.unwrap().status(), 200);
    assert_eq!(read(send(&client, "/large").await.unwrap()).await.unwrap().len(), 1 << 20);
}

#[tokio::test(start_paused = true)]
async fn unread_response_is_reset() {
    let (stream, connection, _serving) = connect(false);
    let client = handshake(stream).await;
    let mut body = send(&client, "/large").await.unwrap().into_body();
    let begin = Instant::now();
    let mut unread = 0;
    let end = loop {
        match body.data().await {
            Some(Ok(data)) => unread += data.len(),
            end => break end,
        }
    };
    let error = end.unwrap().unwrap_err();
    assert_eq!(error.reason(), Some(h2::Reason::CANCEL), "{error}");
    assert!(unread < 1 << 20 && begin.elapsed() >= LIMITS.write_time, "{unread} {:?}", begin.elapsed());
    assert!(!connection.is_busy());
    // The other requests of the connection go on, once the client has read what it got.
    body.flow_control().release_capacity(unread).unwrap();
    assert_eq!(read(send(&client, "/small").await.unwrap()).await.unwrap(), "small");
}

#[tokio::test(start_paused = true)]
async fn silent_connection_is_closed() {
    let check = async |paths: &[&str], is_open: bool| {
        let (stream, _connection, serving) = connect(false);
        let client = handshake(stream).await;
        let requests: Vec<_> = paths
            .iter()
            .map(|path| {
                let (client, path) = (client.clone(), (*path).to_owned());
                tokio::spawn(async move { send(&client, &path).await })
            })
            .collect();
        sleep(LIMITS.head_time * 4).await;
        assert_eq!(!serving.is_finished(), is_open, "{paths:?}");
        drop(requests);
    };
    check(&[], false).await;
    check(&["/small"], false).await;
    check(&["/watch"], false).await;
    check(&["/slow"], true).await;
    check(&["/slow", "/watch"], true).await;
    // Nor may a client say nothing at all.
    let (_stream, _connection, serving) = connect(false);
    sleep(LIMITS.head_time * 4).await;
    assert!(serving.is_finished());
}

#[tokio::test(start_paused = true)]
async fn told_connection_ends_after_its_requests() {
    let (stream, connection, serving) = connect(false);
    let client = handshake(stream).await;
    let slow = tokio::spawn({
        let client = client.clone();
        async move { send(&client, "/slow").await }
    });
    let watch = tokio::spawn({
        let client = client.clone();
        async move { send(&client, "/watch").await }
    });
    assert_eq!(read(send(&client, "/small").await.unwrap()).await.unwrap(), "small");
    connection.send(ConnectionSignal::Finish);
    assert_eq!(slow.await.unwrap().unwrap().status(), 200);
    serving.await.unwrap();
    assert!(watch.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn connection_beyond_the_limit_serves_health_checks_only() {
    for (path, expected) in [("/health", 200), ("/small", 503)] {
        let (stream, _connection, serving) = connect(true);
        let client = handshake(stream).await;
        assert_eq!(send(&client, path).await.unwrap().status(), expected, "{path}");
        serving.await.unwrap();
    }
}

/// Sends bytes. Returns the answer, up to the end of the connection.
async fn answer_to(bytes: &[u8]) -> Vec<u8> {
    let (mut stream, _connection, _serving) = connect(false);
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer
}

#[tokio::test(start_paused = true)]
async fn other_protocols_are_refused() {
    let answer = String::from_utf8(answer_to(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 505 "), "{answer}");
    assert!(answer.ends_with("this port speaks gRPC, which needs HTTP/2\n"), "{answer}");
    let answer = answer_to(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400 "), "{answer:?}");
    // A preface, and then anything but frames.
    let answer = answer_to(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nno frames at all, but many bytes").await;
    assert!(!answer.is_empty());
}
