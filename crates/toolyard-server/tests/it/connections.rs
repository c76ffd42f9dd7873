//! More connections than `limits.connections`.

use toolyard_testing::wire_client::WireConnection;

use crate::keyed_gateway::KeyedGateway;

/// Requests the status with a key; returns the status code, or 0 if the connection was closed.
async fn ask(connection: &mut WireConnection, path: &str, key: &str) -> u16 {
    let key = if key.is_empty() { String::new() } else { format!("authorization: Bearer {key}\r\n") };
    connection.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{key}\r\n").as_bytes()).await;
    connection.response().await.map_or(0, |response| response.head.status())
}

#[tokio::test]
async fn silent_connections_do_not_block_new_clients() {
    for with_keys in [false, true] {
        let gateway = KeyedGateway::start("limits: {connections: 4}").await;
        let key = if with_keys { gateway.key_for("admin").await } else { String::new() };
        let address = gateway.running.address();
        let open = async || WireConnection::open(address).await;
        let mut admitted = open().await;
        // A new key is valid a moment after its creation.
        while ask(&mut admitted, "/api/v1/status", &key).await != 200 {}
        let mut silent = Vec::new();
        for round in 0..5 {
            for _ in 0..10 {
                silent.push(open().await);
            }
            assert_eq!(ask(&mut open().await, "/health", "").await, 200, "{round}");
            assert_eq!(ask(&mut open().await, "/api/v1/status", &key).await, 200, "{round}");
            assert_eq!(ask(&mut admitted, "/api/v1/status", &key).await, 200, "{round}");
        }
        gateway.running.stop().await;
    }
}

#[tokio::test]
async fn connection_without_an_admitted_request_is_closed_first() {
    let gateway = KeyedGateway::start("limits: {connections: 3}").await;
    let key = gateway.key_for("admin").await;
    let address = gateway.running.address();
    let mut admitted = WireConnection::open(address).await;
    while ask(&mut admitted, "/api/v1/status", &key).await != 200 {}
    let mut strangers = Vec::new();
    for _ in 0..5 {
        strangers.push(WireConnection::open(address).await);
        let stranger = strangers.last_mut().unwrap();
        assert_eq!(ask(stranger, "/api/v1/status", "").await, 401);
        assert_eq!(ask(stranger, "/health", "").await, 200);
    }
    assert_eq!(ask(&mut admitted, "/api/v1/status", &key).await, 200);
    gateway.running.stop().await;
}
