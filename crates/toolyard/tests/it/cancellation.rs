//! A call that nobody wants any more reaches the server as a cancellation.

use serde_json::json;

use crate::support::gateway::Gateway;
use crate::support::http::Exchange;
use crate::support::message;
use crate::support::scripted::Scripted;

/// The server is told to cancel the call, by the name that the call has there.
#[track_caller]
fn check_cancelled(server: &Scripted) {
    let cancelled = server.wait_for("notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], server.wait_for("tools/call")["id"]);
}

#[track_caller]
fn check_hang_up(call: impl FnOnce(&Gateway) -> Exchange) {
    let server = Scripted::new("slow");
    let gateway = Gateway::of(&[server.handler()]);
    let caller = call(&gateway);
    server.wait_for("tools/call");
    drop(caller);
    check_cancelled(&server);
}

#[test]
fn by_hanging_up() {
    check_hang_up(|gateway| gateway.open(&[], &message::call(1, "wait")));
    check_hang_up(|gateway| gateway.open(&[message::STREAMS], &message::call(1, "wait")));
}

#[test]
fn by_hanging_up_in_the_stateless_era() {
    check_hang_up(|gateway| {
        let (mut headers, call) = message::modern("tools/call", json!({"name": "wait"}));
        headers.push(("Mcp-Name", "wait"));
        gateway.open(&headers, &call)
    });
}

/// Opens a session; gives its id.
#[track_caller]
fn session(gateway: &Gateway) -> String {
    gateway.ask("initialize", message::handshake()).header("mcp-session-id").unwrap().to_owned()
}

/// Withdraws the request 7 of a session.
#[track_caller]
fn withdraw(gateway: &Gateway, session: &str) {
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(gateway.post(&[("Mcp-Session-Id", session)], &message).status, 202);
}

#[test]
fn by_saying_so_in_a_session() {
    let server = Scripted::new("slow");
    let gateway = Gateway::of(&[server.handler()]);
    let session = session(&gateway);
    let caller = gateway.open(&[("Mcp-Session-Id", &session)], &message::call(7, "wait"));
    server.wait_for("tools/call");
    withdraw(&gateway, &session);
    check_cancelled(&server);
    // The caller gets no answer, as it said that it wants none.
    let answer = caller.response().unwrap();
    assert_eq!((answer.status, &*answer.body), (202, ""));
}

#[test]
fn a_session_cannot_withdraw_a_call_of_another() {
    let server = Scripted::new("slow");
    let gateway = Gateway::of(&[server.handler()]);
    let (session, other) = (session(&gateway), session(&gateway));
    let caller = gateway.open(&[("Mcp-Session-Id", &session)], &message::call(7, "wait"));
    server.wait_for("tools/call");
    withdraw(&gateway, &other);
    server.open_gate();
    assert_eq!(caller.response().unwrap().result()["content"][0]["text"], "The gate is open.");
}
