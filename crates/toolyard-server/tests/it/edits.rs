//! Edits of a manifest while the gateway serves.

use std::net::SocketAddr;

use insta::assert_debug_snapshot;
use tokio::sync::watch;
use toolyard_core::Registry;
use toolyard_core::registry::Kind;
use toolyard_server::Running;

use crate::client::{Client, Speech};
use crate::upstream::{Era, Received, Reply, Reserved, Server, Upstream, but};
use crate::{gateway, manifest};

/// A server with one tool, which answers with a word.
fn server(tool: &str, word: &'static str) -> Server {
    Server::new(Era::Modern, &[&format!(r#"{{"name":"{tool}"}}"#)], move |request: &Received| {
        Reply::result(request, &format!(r#"{{"word":"{word}"}}"#))
    })
}

/// Waits until the list is this one.
async fn listed(running: &Running, names: &[&str]) {
    let mut registry = running.gateway().watch();
    let is_it =
        |now: &Registry| now.entries(Kind::Tools).iter().map(|entry| &*entry.name).eq(names.iter().copied());
    registry.wait_for(|now| is_it(now)).await.unwrap();
}

async fn word(running: &Running, tool: &str) -> String {
    let said = Client::new(running.address(), Speech::Bare).await.call(tool, "{}").await;
    said.body.split('"').rev().nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn an_edit_touches_only_what_it_is_about() {
    let [kept, changed, removed, added] =
        ["kept", "changed", "removed", "added"].map(|name| Upstream::start(server(name, name)));
    let before: &[(&str, SocketAddr, &str)] =
        &[("kept", kept.address, ""), ("changed", changed.address, ""), ("removed", removed.address, "")];
    let running = gateway(before, "").await;
    listed(&running, &["kept", "changed", "removed"]).await;
    let seen = kept.now(|log| log.requests.len());
    let after: &[(&str, SocketAddr, &str)] = &[
        ("added", added.address, ""),
        ("changed", changed.address, "timeout: 5s,"),
        ("kept", kept.address, ""),
    ];
    assert_debug_snapshot!(running.apply(&manifest(after, "limits: {sessions: 7}")).await.unwrap(), @r#"
    Applied {
        handlers: Difference {
            added: [
                "added",
            ],
            changed: [
                "changed",
            ],
            removed: [
                "removed",
            ],
            kept: 1,
        },
        needs_restart: true,
    }
    "#);
    listed(&running, &["added", "changed", "kept"]).await;
    assert_eq!(kept.now(|log| log.requests.len()), seen, "who is kept hears nothing of it");
    for tool in ["added", "changed", "kept"] {
        assert_eq!(word(&running, tool).await, tool);
    }
    let same = running.apply(&manifest(after, "")).await.unwrap();
    assert_eq!((same.handlers.kept, same.needs_restart), (3, false));
}

/// The calls of a handler that is removed are answered, though nobody can begin another one.
#[tokio::test]
async fn who_leaves_ends_what_runs() {
    let (open, gate) = watch::channel(false);
    let slow = Upstream::start(but(server("t", "late"), move |request: &Received| {
        let mut gate = gate.clone();
        (request.method() == "tools/call").then(|| {
            Reply::result(request, r#"{"word":"late"}"#).after(async move {
                gate.wait_for(|open| *open).await.unwrap();
            })
        })
    }));
    let other = Upstream::start(server("u", "other"));
    let running = gateway(&[("slow", slow.address, "")], "").await;
    let (said, ()) = tokio::join!(word(&running, "t"), async {
        slow.saw(|log| log.count("tools/call") == 1, |_| ()).await;
        running.apply(&manifest(&[("other", other.address, "")], "")).await.unwrap();
        listed(&running, &["u"]).await;
        open.send_replace(true);
    });
    assert_eq!(said, "late");
}

/// A handler that is edited goes on as it was until what takes its place has answered.
#[tokio::test]
async fn a_successor_takes_over_when_it_is_there() {
    let old = Upstream::start(server("t", "old"));
    let (open, gate) = watch::channel(false);
    let new = Upstream::start(but(server("t", "new"), move |request: &Received| {
        let mut gate = gate.clone();
        (request.method() == "tools/list").then(|| {
            Reply::result(request, r#"{"tools":[{"name":"t"}]}"#).after(async move {
                gate.wait_for(|open| *open).await.unwrap();
            })
        })
    }));
    let running = gateway(&[("h", old.address, "")], "").await;
    let mut changes = Client::new(running.address(), Speech::Modern).await.changes().await;
    changes.message().await.unwrap();
    running.apply(&manifest(&[("h", new.address, "")], "")).await.unwrap();
    new.saw(|log| log.count("tools/list") > 0, |_| ()).await;
    assert_eq!(word(&running, "t").await, "old");
    open.send_replace(true);
    // To the model nothing has happened: the list is the same.
    while word(&running, "t").await != "new" {}
    running.stop().await;
    let last = changes.message().await.unwrap();
    assert!(last.contains("\"result\""), "no change was announced: {last}");
}

/// A name stays with its owner until the manifest says otherwise.
#[tokio::test]
async fn names_follow_the_manifest() {
    let servers = [(); 3].map(|()| Upstream::start(server("t", "said")));
    let [a, b, c] = ["a", "b", "c"];
    let [at_a, at_b, at_c] = servers.each_ref().map(|server| server.address);
    let running = gateway(&[(a, at_a, ""), (b, at_b, "")], "").await;
    listed(&running, &["t", "b_t"]).await;
    // Who is removed leaves its name to whoever comes; who stays keeps the one that it has.
    running.apply(&manifest(&[(b, at_b, ""), (c, at_c, "")], "")).await.unwrap();
    listed(&running, &["b_t", "t"]).await;
    let seen = servers.each_ref().map(|server| server.now(|log| log.requests.len()));
    let renamed = [(b, at_b, "overrides: {t: {name: mine}},"), (c, at_c, "prefix: always,")];
    running.apply(&manifest(&renamed, "")).await.unwrap();
    listed(&running, &["mine", "c_t"]).await;
    let heard = servers.each_ref().map(|server| server.now(|log| log.requests.len()));
    assert_eq!(heard, seen, "servers hear nothing of it");
    assert_eq!(word(&running, "mine").await, "said");
}

/// An edit that turns out to be wrong takes the tools off the list, but who has learnt their names is told that they
/// are unavailable.
#[tokio::test]
async fn a_successor_that_fails_leaves_the_names() {
    let old = Upstream::start(server("t", "old"));
    let nobody = Reserved::new();
    let running = gateway(&[("h", old.address, "")], "").await;
    listed(&running, &["t"]).await;
    running.apply(&manifest(&[("h", nobody.address(), "")], "")).await.unwrap();
    listed(&running, &[]).await;
    let said = Client::new(running.address(), Speech::Bare).await.call("t", "{}").await;
    assert!(said.body.contains(r#""code":"unavailable""#), "{}", said.body);
}
