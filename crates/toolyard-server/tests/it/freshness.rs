//! For how long lists may be kept: by the gateway, and by its clients (2026-07-28, server/utilities/caching).

use std::net::SocketAddr;
use std::time::Duration;

use insta::assert_snapshot;
use tokio::time;
use toolyard_core::registry::Kind;
use toolyard_server::Options;

use crate::client::{Client, Speech};
use crate::json;
use crate::stocked::{LISTS, Stocked, ask, never};
use crate::upstream::{Era, Reply, Upstream, but};
use crate::{gateway, manifest};

/// A modern server whose lists may be kept for so many seconds, and by whom.
fn server(lists: [(u64, &str); 4]) -> Stocked {
    let server = Stocked::new(Era::Modern, never);
    for ((method, member), (seconds, scope)) in LISTS.into_iter().zip(lists) {
        let item = format!(r#"{{"name":"{member}","uri":"{member}:","uriTemplate":"{member}:{{x}}"}}"#);
        let hint = format!(r#""ttlMs":{},"cacheScope":"{scope}""#, seconds * 1000);
        server.set(method, &format!(r#""{member}":[{item}],{hint}"#));
    }
    server
}

/// What a modern client may make of each list: no more than any server says, or the gateway itself, where all are there.
#[tokio::test]
async fn what_clients_are_told() {
    let one = Upstream::start(server([(7, "public"), (7, "private"), (7, "public"), (900, "public")]));
    let two = Upstream::start(server([(3, "public"), (9, "public"), (0, "private"), (900, "public")]));
    let legacy = Upstream::start(Stocked::new(Era::Legacy, never));
    let cases: [&[(&str, SocketAddr, &str)]; 3] = [
        &[("legacy", legacy.address, "")],
        &[("legacy", legacy.address, ""), ("one", one.address, "")],
        &[("legacy", legacy.address, ""), ("one", one.address, ""), ("two", two.address, "")],
    ];
    let mut lines = Vec::new();
    for handlers in cases {
        let running = gateway(handlers, "").await;
        let mut client = Client::new(running.address(), Speech::Modern).await;
        for method in LISTS.map(|(method, _)| method).into_iter().chain(["server/discover"]) {
            let said = json::read(&ask(&mut client, method, "").await.body);
            let result = said.get("result");
            let (ttl, scope) = (result.get("ttlMs").text(), result.get("cacheScope").plain());
            lines.push(format!("{} {method}: {ttl} {scope}", handlers.len()));
        }
    }
    assert_snapshot!(lines.join("\n"), @"
    1 tools/list: 30000 public
    1 prompts/list: 30000 public
    1 resources/list: 30000 public
    1 resources/templates/list: 30000 public
    1 server/discover: 30000 public
    2 tools/list: 7000 public
    2 prompts/list: 7000 private
    2 resources/list: 7000 public
    2 resources/templates/list: 30000 public
    2 server/discover: 30000 public
    3 tools/list: 3000 public
    3 prompts/list: 7000 private
    3 resources/list: 0 private
    3 resources/templates/list: 30000 public
    3 server/discover: 30000 public
    ");
}

/// Has all that waits for this time wait no longer.
async fn pass(seconds: u64) {
    time::pause();
    time::advance(Duration::from_secs(seconds)).await;
    time::resume();
}

/// A list whose time is over is asked for again, unless its server says when it changes.
#[tokio::test]
async fn what_is_over_is_asked_for_again() {
    const SILENT: &str = r#"{"tools":{},"prompts":{"listChanged":true},"resources":{}}"#;
    let lists = [(60, "public"), (1, "public"), (900, "public"), (900, "public")];
    let server = server(lists).with_capabilities(SILENT);
    let upstream = Upstream::start(server.clone());
    let running = gateway(&[("h", upstream.address, "")], "").await;
    for round in 2..4 {
        server.set("tools/list", &format!(r#""tools":[{{"name":"t{round}"}}],"ttlMs":60000"#));
        let mut registry = running.gateway().watch();
        registry.mark_unchanged();
        pass(61).await;
        registry.changed().await.unwrap();
        let names = |kind| {
            registry.borrow().entries(kind).iter().map(|entry| entry.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(Kind::Tools), [format!("t{round}")]);
        assert_eq!(upstream.now(|log| LISTS.map(|(method, _)| log.count(method))), [round, 1, 1, 1]);
    }
}

/// A list that does not come is not waited for, nor does it keep others away.
#[tokio::test]
async fn a_list_that_hangs() {
    let server = Stocked::new(Era::Modern, never).with_capabilities(r#"{"tools":{},"prompts":{}}"#);
    let upstream =
        Upstream::start(but(server, |request| (request.method() == "prompts/list").then(Reply::never)));
    let manifest = manifest(&[("h", upstream.address, "")], "");
    let running = toolyard_server::start(&manifest, &Options::default()).await.unwrap();
    upstream.saw(|log| log.count("prompts/list") == 1, |_| ()).await;
    pass(5).await;
    let mut registry = running.gateway().watch();
    let registry =
        registry.wait_for(|registry| !registry.entries(Kind::Tools).is_empty()).await.unwrap().clone();
    assert!(registry.entries(Kind::Prompts).is_empty());
}
