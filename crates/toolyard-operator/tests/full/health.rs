//! Health, readiness and metrics of the operator.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use toolyard_operator::controller::{OperatorMetrics, serve_health};
use toolyard_testing::http::send;

#[tokio::test]
async fn health_and_metrics_are_served() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let metrics = Arc::new(OperatorMetrics::default());
    metrics.set_leader(true);
    let task = tokio::spawn(serve_health(listener, metrics));
    let check = async |line: &'static str, expected: (u16, &str)| {
        let response = tokio::task::spawn_blocking(move || send(address, line, &[], "")).await.unwrap();
        let body = response.body.lines().nth(1).unwrap_or(&response.body).to_owned();
        assert_eq!((response.status, body.as_str()), expected, "{line}");
    };
    check("GET /health", (200, r#"{"status":"ok"}"#)).await;
    check("GET /ready", (200, r#"{"status":"ok"}"#)).await;
    check("GET /metrics", (200, "toolyard_operator_leader 1")).await;
    check("GET /", (404, "not found: /health, /ready and /metrics exist\n")).await;
    task.abort();
}

/// Clients that send nothing, or not all of it, do not keep probes waiting.
#[tokio::test]
async fn idle_connections_make_room_for_probes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(serve_health(listener, Arc::default()));
    let mut idle = Vec::new();
    for number in 0..100 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(b"GET /health HTTP/1.1\r\nhost:").await.unwrap();
        }
        idle.push(stream);
    }
    // Less than the time limit of a request, after which there would be room again.
    let probe = tokio::task::spawn_blocking(move || send(address, "GET /health", &[], ""));
    let response = tokio::time::timeout(Duration::from_secs(4), probe).await.unwrap().unwrap();
    assert_eq!(response.status, 200);
    task.abort();
}
