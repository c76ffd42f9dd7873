//! Edits of a manifest while the gateway serves.

use std::net::SocketAddr;

use insta::assert_debug_snapshot;
use tokio::sync::watch;
use toolyard_core::Registry;
use toolyard_core::registry::EntryKind;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, ReservedAddress, ScriptedReply, ScriptedUpstream, TestUpstream, UpstreamEra, but,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::gateway::{gateway, manifest};

/// A server with one tool, which answers with a word.
fn server(tool: &str, word: &'static str) -> ScriptedUpstream {
    ScriptedUpstream::new(
        UpstreamEra::Modern,
        &[&format!(r#"{{"name":"{tool}"}}"#)],
        move |request: &ReceivedRequest| ScriptedReply::result(request, &format!(r#"{{"word":"{word}"}}"#)),
    )
}

/// Waits until the gateway advertises exactly these tools.
async fn wait_for_tools(running: &RunningGateway, names: &[&str]) {
    let mut registry = running.gateway().watch();
    let is_it = |now: &Registry| {
        now.entries(EntryKind::Tools).iter().map(|entry| &*entry.name).eq(names.iter().copied())
    };
    registry.wait_for(|now| is_it(now)).await.unwrap();
}

async fn word(running: &RunningGateway, tool: &str) -> String {
    let response = WireClient::new(running.address(), ClientMode::Bare).await.call(tool, "{}").await;
    response.body.split('"').rev().nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn edit_restarts_only_changed_handlers() {
    let [unchanged, changed, removed, added] =
        ["kept", "changed", "removed", "added"].map(|name| TestUpstream::start(server(name, name)));
    let before: &[(&str, SocketAddr, &str)] = &[
        ("kept", unchanged.address, ""),
        ("changed", changed.address, ""),
        ("removed", removed.address, ""),
    ];
    let running = gateway(before, "").await;
    wait_for_tools(&running, &["kept", "changed", "removed"]).await;
    let seen = unchanged.now(|log| log.requests.len());
    let after: &[(&str, SocketAddr, &str)] = &[
        ("added", added.address, ""),
        ("changed", changed.address, "timeout: 5s,"),
        ("kept", unchanged.address, ""),
    ];
    assert_debug_snapshot!(running.apply(&manifest(after, "limits: {sessions: 7}")).await.unwrap(), @r#"
    AppliedEdit {
        handlers: FleetDifference {
            added: [
                "added",
            ],
            changed: [
                "changed",
            ],
            removed: [
                "removed",
            ],
            unchanged: 1,
        },
        needs_restart: true,
    }
    "#);
    wait_for_tools(&running, &["added", "changed", "kept"]).await;
    assert_eq!(unchanged.now(|log| log.requests.len()), seen, "an unchanged handler gets no requests");
    for tool in ["added", "changed", "kept"] {
        assert_eq!(word(&running, tool).await, tool);
    }
    let same = running.apply(&manifest(after, "")).await.unwrap();
    assert_eq!((same.handlers.unchanged, same.needs_restart), (3, false));
}

/// The calls of a removed handler complete, although no new ones can start.
#[tokio::test]
async fn removed_handler_completes_its_calls() {
    let (open, gate) = watch::channel(false);
    let slow = TestUpstream::start(but(server("t", "late"), move |request: &ReceivedRequest| {
        let mut gate = gate.clone();
        (request.method() == "tools/call").then(|| {
            ScriptedReply::result(request, r#"{"word":"late"}"#).after(async move {
                gate.wait_for(|open| *open).await.unwrap();
            })
        })
    }));
    let other = TestUpstream::start(server("u", "other"));
    let running = gateway(&[("slow", slow.address, "")], "").await;
    let (answer, ()) = tokio::join!(word(&running, "t"), async {
        slow.saw(|log| log.count("tools/call") == 1, |_| ()).await;
        running.apply(&manifest(&[("other", other.address, "")], "")).await.unwrap();
        wait_for_tools(&running, &["u"]).await;
        open.send_replace(true);
    });
    assert_eq!(answer, "late");
}

/// The previous server of an edited handler serves until its successor has answered.
#[tokio::test]
async fn successor_takes_over_once_it_is_ready() {
    let old = TestUpstream::start(server("t", "old"));
    let (open, gate) = watch::channel(false);
    let new = TestUpstream::start(but(server("t", "new"), move |request: &ReceivedRequest| {
        let mut gate = gate.clone();
        (request.method() == "tools/list").then(|| {
            ScriptedReply::result(request, r#"{"tools":[{"name":"t"}]}"#).after(async move {
                gate.wait_for(|open| *open).await.unwrap();
            })
        })
    }));
    let running = gateway(&[("h", old.address, "")], "").await;
    let mut changes = WireClient::new(running.address(), ClientMode::Modern).await.changes().await;
    changes.message().await.unwrap();
    running.apply(&manifest(&[("h", new.address, "")], "")).await.unwrap();
    new.saw(|log| log.count("tools/list") > 0, |_| ()).await;
    assert_eq!(word(&running, "t").await, "old");
    open.send_replace(true);
    // The model sees no change, because the list is the same.
    while word(&running, "t").await != "new" {}
    running.stop().await;
    let last = changes.message().await.unwrap();
    assert!(last.contains("\"result\""), "no change was announced: {last}");
}

/// A name stays with its owner until the manifest gives it to another one.
#[tokio::test]
async fn tool_names_follow_the_manifest() {
    let servers = [(); 3].map(|()| TestUpstream::start(server("t", "said")));
    let [a, b, c] = ["a", "b", "c"];
    let [at_a, at_b, at_c] = servers.each_ref().map(|server| server.address);
    let running = gateway(&[(a, at_a, ""), (b, at_b, "")], "").await;
    wait_for_tools(&running, &["t", "b_t"]).await;
    // A removed handler frees its name for the next one; the others keep their names.
    running.apply(&manifest(&[(b, at_b, ""), (c, at_c, "")], "")).await.unwrap();
    wait_for_tools(&running, &["b_t", "t"]).await;
    let seen = servers.each_ref().map(|server| server.now(|log| log.requests.len()));
    let renamed = [(b, at_b, "overrides: {t: {name: mine}},"), (c, at_c, "prefix: always,")];
    running.apply(&manifest(&renamed, "")).await.unwrap();
    wait_for_tools(&running, &["mine", "c_t"]).await;
    let counts = servers.each_ref().map(|server| server.now(|log| log.requests.len()));
    assert_eq!(counts, seen, "a rename causes no requests");
    assert_eq!(word(&running, "mine").await, "said");
}

/// A successor that fails withdraws the tools from the list, but a call of one of them fails as unavailable rather than
/// unknown.
#[tokio::test]
async fn failed_successor_keeps_the_tool_names() {
    let old = TestUpstream::start(server("t", "old"));
    let nobody = ReservedAddress::new();
    let running = gateway(&[("h", old.address, "")], "").await;
    wait_for_tools(&running, &["t"]).await;
    running.apply(&manifest(&[("h", nobody.address(), "")], "")).await.unwrap();
    wait_for_tools(&running, &[]).await;
    let response = WireClient::new(running.address(), ClientMode::Bare).await.call("t", "{}").await;
    assert!(response.body.contains(r#""code":"unavailable""#), "{}", response.body);
}
