//! Handlers with `selector`, at a gateway that watches no cluster.

use insta::assert_snapshot;
use serde_json::Value;
use toolyard_server::RunningGateway;
use toolyard_testing::wire_client::WireConnection;

use crate::gateway::gateway_of;

const SELECTOR: &str = "    - {name: platform-tools, selector: {matchLabels: {team: platform}}}\n";

async fn status(running: &RunningGateway) -> Value {
    let mut connection = WireConnection::open(running.address()).await;
    connection.send(b"GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    serde_json::from_str(&connection.response().await.unwrap().body).unwrap()
}

#[tokio::test]
async fn selector_outside_of_a_cluster_is_pending() {
    let running = gateway_of(SELECTOR, "").await;
    let mut status = status(&running).await;
    let handler = &mut status["handlers"][0];
    handler["since"] = Value::Null;
    handler["lastError"]["time"] = Value::Null;
    assert_snapshot!(handler, @r#"{"name":"platform-tools","registry":"test","origin":"manifest","type":"selector","endpoint":"selector://default/team=platform","phase":"Pending","since":null,"tools":0,"lastError":{"time":null,"code":"no_cluster","message":"`selector` is for gateways that the operator runs in a cluster; this one watches no cluster"}}"#);
    assert_eq!(status["phase"], "Pending");
    assert_eq!(status["handlers"].to_string().matches("retryable").count(), 0);
}

#[tokio::test]
async fn selector_does_not_disturb_other_handlers() {
    let other = "    - {name: x, type: mcp, mcpConfig: {transport: streamable-http, endpoint: 'http://127.0.0.1:9/mcp'}}\n";
    let running = gateway_of(&format!("{SELECTOR}{other}"), "").await;
    assert_eq!(status(&running).await["phase"], "Degraded");
}
