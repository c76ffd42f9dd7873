//! Lists of the last run, and names in the order of the manifest.

use tokio::sync::watch;
use toolyard_core::registry::EntryKind;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, ReplyScript, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wait::until_async;

use crate::causes::{status, until};
use crate::gateway::{call, gateway, gateway_of, manifest, started_on};
use crate::keyed_gateway::memory;

fn done(request: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"done"}],"resultType":"complete"}"#)
}

/// A server that answers nothing before the gate opens.
struct LateServer {
    server: ScriptedUpstream,
    gate: watch::Receiver<bool>,
}

impl ReplyScript for LateServer {
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
