//! Lists of the last run, and names in the order of the manifest.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::registry::EntryKind;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, ReplyScript, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra, but,
};
use toolyard_testing::wait::until_async;
use toolyard_testing::wire_client::WireConnection;

use crate::causes::{status, until};
use crate::gateway::{call, gateway, gateway_of, manifest, started_on};
use crate::keyed_gateway::memory;

fn done(request: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"done"}],"resultType":"complete"}"#)
}

/// A server that answers nothing before the gate opens.
struct LateServer<S> {
    server: S,
    gate: watch::Receiver<bool>,
}

impl<S: ReplyScript> ReplyScript for LateServer<S> {
    fn reply(&self, request: &ReceivedRequest) -> ScriptedReply {
        let mut gate = self.gate.clone();
        self.server.reply(request).after(async move { drop(gate.wait_for(|open| *open).await) })
    }
}

fn late() -> (watch::Sender<bool>, TestUpstream) {
    let (gate, closed) = watch::channel(false);
    let server = ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], done);
    (gate, TestUpstream::start(LateServer { server, gate: closed }))
}

fn names(running: &RunningGateway) -> Vec<String> {
    running
        .gateway()
        .registry()
        .entries(EntryKind::Tools)
        .iter()
        .map(|entry| entry.name.to_string())
        .collect()
}

/// The phase and the counts of the status.
async fn summary(running: &RunningGateway) -> String {
    let status = status(running).await;
    format!("{} {} {}", status["phase"], status["discoveredToolsCount"], status["availableToolsCount"])
}

/// Starts a gateway with a server that answers, stops it, and starts it with the gate closed and this change of the
/// handler. Returns the listed tools before the server has answered.
async fn second_run(change: &str) -> Vec<String> {
    let (gate, server) = late();
    gate.send_replace(true);
    let store = memory().await;
    let process = "timeouts: {firstList: 100ms, eraProbe: 60s, connect: 60s}";
    let first = started_on(&store, &manifest(&[("h", server.address, "")], process)).await;
    until_async("a list", || names(&first) == ["t"]).await;
    first.stop().await;
    gate.send_replace(false);
    let second = started_on(&store, &manifest(&[("h", server.address, change)], process)).await;
    let listed = names(&second);
    if change.is_empty() {
        assert_eq!(summary(&second).await, "\"Pending\" 1 0");
        let mut waiting = Box::pin(call(&second, "t", "{}"));
        tokio::select! {
            biased;
            early = &mut waiting => panic!("{early:?}"),
            () = tokio::task::yield_now() => {}
        }
        gate.send_replace(true);
        assert!(waiting.await.unwrap().contains("done"));
        until(&second, "ready server", |handlers| handlers[0]["phase"] == "Ready").await;
        assert_eq!(summary(&second).await, "\"Ready\" 1 1");
    }
    second.stop().await;
    listed
}

#[tokio::test]
async fn lists_of_the_last_run_are_served_and_calls_wait() {
    assert_eq!(second_run("").await, ["t"]);
}

#[tokio::test]
async fn lists_of_another_server_are_not_served() {
    assert_eq!(second_run("auth: {type: bearer, token: another},").await, [""; 0]);
}

/// The descriptions of the published tools.
fn descriptions(running: &RunningGateway) -> Vec<String> {
    let registry = running.gateway().registry();
    let entries = registry.entries(EntryKind::Tools).iter();
    entries
        .map(|entry| entry.tool.as_ref().unwrap().definition.get_str("description").unwrap().into())
        .collect()
}

/// Runs a gateway with `pin` and a server that changes its tool, and another one with `later` before the server answers.
/// Returns the listed descriptions of both.
async fn changed_lists(pin: &str, later: &str) -> [Vec<String>; 2] {
    let (gate, closed) = watch::channel(true);
    let description = Arc::new(Mutex::new("old"));
    let current = description.clone();
    let server = but(
        ScriptedUpstream::new(UpstreamEra::Modern, &[], done),
        move |request: &ReceivedRequest| {
            let tool = json!({"name": "t", "description": *current.lock().unwrap(), "inputSchema": {"type": "object"}});
            let list = json!({"tools": [tool], "resultType": "complete"}).to_string();
            (request.method() == "tools/list").then(|| ScriptedReply::result(request, &list))
        },
    );
    let server = TestUpstream::start(LateServer { server, gate: closed });
    let store = memory().await;
    let process = "timeouts: {firstList: 100ms, eraProbe: 60s, connect: 60s}";
    let first = started_on(&store, &manifest(&[("h", server.address, pin)], process)).await;
    until_async("a list", || names(&first) == ["t"]).await;
    *description.lock().unwrap() = "new";
    let mut connection = WireConnection::open(first.address()).await;
    let head = "POST /api/v1/handlers/h/refresh HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
    connection.send(head.as_bytes()).await;
    assert_eq!(connection.response().await.unwrap().head.status(), 202);
    let has_change = |handlers: &[Value]| handlers[0]["changes"][0]["tool"] == "t";
    until(&first, "change of the tool", has_change).await;
    let served = descriptions(&first);
    first.stop().await;
    gate.send_replace(false);
    let second = started_on(&store, &manifest(&[("h", server.address, later)], process)).await;
    let last = descriptions(&second);
    second.stop().await;
    [served, last]
}

#[tokio::test]
async fn lists_of_the_last_run_have_only_accepted_definitions_of_a_handler_that_holds_them() {
    let (hold, warn) = ("pin: hold,", "");
    assert_eq!(changed_lists(hold, hold).await, [["old"], ["old"]]);
    assert_eq!(changed_lists(warn, warn).await, [["new"], ["new"]]);
    // The offered definition was served with a warning, and is not accepted.
    assert_eq!(changed_lists(warn, hold).await, [vec!["new"], vec![]]);
    assert_eq!(changed_lists(hold, warn).await, [["old"], ["new"]]);
}

#[tokio::test]
async fn names_follow_the_manifest_whatever_answers_first() {
    let (gate, slow) = late();
    let fast = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], done));
    let handlers = [("slow", slow.address, ""), ("fast", fast.address, "")];
    let running = gateway(&handlers, "timeouts: {firstList: 100ms, eraProbe: 60s, connect: 60s}").await;
    until_async("the fast server", || names(&running) == ["t"]).await;
    gate.send_replace(true);
    until_async("both servers", || names(&running) == ["t", "fast_t"]).await;
}

#[tokio::test]
async fn names_stay_once_the_first_handler_has_failed() {
    let down = "    - {name: down, type: mcp, mcpConfig: {transport: stdio, command: /no/such/program}}\n";
    let fast = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], done));
    let endpoint = format!("transport: streamable-http, endpoint: 'http://{}/mcp'", fast.address);
    let fast = format!("{down}{}", crate::gateway::entry("fast", "", &endpoint));
    let running = gateway_of(&fast, "").await;
    until_async("the fast server", || names(&running) == ["t"]).await;
}
