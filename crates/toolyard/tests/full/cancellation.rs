//! Cancelled calls reach the server as cancellations.

use serde_json::json;
use toolyard_testing::http::SentRequest;
use toolyard_testing::messages;
use toolyard_testing::scripted_server::ScriptedServer;

use crate::support::gateway::TestGateway;

/// Checks that the server receives the cancellation with its own id of the call.
#[track_caller]
fn check_cancelled(server: &ScriptedServer) {
    let cancelled = server.wait_for("notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], server.wait_for("tools/call")["id"]);
}

#[track_caller]
fn check_hang_up(call: impl FnOnce(&TestGateway) -> SentRequest) {
    let server = ScriptedServer::new("slow");
    let gateway = TestGateway::with_handlers(&[server.handler()]);
    let caller = call(&gateway);
    server.wait_for("tools/call");
    drop(caller);
    check_cancelled(&server);
}

#[test]
fn hang_up_cancels_the_call() {
    check_hang_up(|gateway| gateway.open_request(&[], &messages::tool_call(1, "wait")));
    check_hang_up(|gateway| {
        gateway.open_request(&[messages::ACCEPT_STREAMS], &messages::tool_call(1, "wait"))
    });
}

#[test]
fn hang_up_cancels_a_stateless_call() {
    check_hang_up(|gateway| {
        let (mut headers, call) = messages::stateless_request("tools/call", json!({"name": "wait"}));
        headers.push(("Mcp-Name", "wait"));
        gateway.open_request(&headers, &call)
    });
}

/// Opens a session and returns its id.
#[track_caller]
fn session(gateway: &TestGateway) -> String {
    gateway.request("initialize", messages::initialize_params()).header("mcp-session-id").unwrap().to_owned()
}

/// Cancels request 7 of a session.
#[track_caller]
fn withdraw(gateway: &TestGateway, session: &str) {
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(gateway.post(&[("Mcp-Session-Id", session)], &message).status, 202);
}

#[test]
fn cancelled_notification_cancels_the_call() {
    let server = ScriptedServer::new("slow");
    let gateway = TestGateway::with_handlers(&[server.handler()]);
    let session = session(&gateway);
    let caller = gateway.open_request(&[("Mcp-Session-Id", &session)], &messages::tool_call(7, "wait"));
    server.wait_for("tools/call");
    withdraw(&gateway, &session);
    check_cancelled(&server);
    // A cancelled request has no response.
    let answer = caller.response().unwrap();
    assert_eq!((answer.status, &*answer.body), (202, ""));
}

#[test]
fn session_cannot_cancel_call_of_another() {
    let server = ScriptedServer::new("slow");
    let gateway = TestGateway::with_handlers(&[server.handler()]);
    let (session, other) = (session(&gateway), session(&gateway));
    let caller = gateway.open_request(&[("Mcp-Session-Id", &session)], &messages::tool_call(7, "wait"));
    server.wait_for("tools/call");
    withdraw(&gateway, &other);
    server.open_gate();
    assert_eq!(caller.response().unwrap().result()["content"][0]["text"], "The gate is open.");
}
