//! The health checks without a key.

use insta::assert_snapshot;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::WireConnection;

use crate::causes::until;
use crate::gateway::{entry, gateway_of};

/// The statuses and bodies of the checks.
async fn checks(running: &RunningGateway) -> String {
    let mut lines = Vec::new();
    for path in ["/health", "/live", "/ready"] {
        let mut connection = WireConnection::open(running.address()).await;
        connection.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await;
        let response = connection.response().await.unwrap();
        lines.push(format!("{path} {} {}", response.head.status(), response.body));
    }
    lines.join("\n")
}

#[tokio::test]
async fn gateway_is_ready_once_a_handler_answers() {
    let down = entry("down", "", "transport: stdio, command: /no/such/program");
    let running = gateway_of(&down, "").await;
    until(&running, "failure", |handlers| handlers[0]["phase"] == "Unavailable").await;
    assert_snapshot!(checks(&running).await, @r#"
    /health 200 {"status":"ok"}
    /live 200 {"status":"ok"}
    /ready 503 {"status":"no handler answers","causes":{"program_not_found":1}}
    "#);
    let script = |request: &ReceivedRequest| ScriptedReply::result(request, "{}");
    let up = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], script));
    let endpoint = format!("transport: streamable-http, endpoint: 'http://{}/mcp'", up.address);
    let running = gateway_of(&(down + &entry("up", "", &endpoint)), "").await;
    assert_snapshot!(checks(&running).await, @r#"
    /health 200 {"status":"ok"}
    /live 200 {"status":"ok"}
    /ready 200 {"status":"ok"}
    "#);
}
