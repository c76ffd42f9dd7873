//! Cache lifetimes of lists, in the gateway and in its clients (2026-07-28, server/utilities/caching).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use tokio::time;
use toolyard_core::Registry;
use toolyard_core::registry::EntryKind;
use toolyard_server::GatewayOptions;
use toolyard_testing::json;
use toolyard_testing::upstream::{ScriptedReply, TestUpstream, UpstreamEra, but};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::catalog_server::{CatalogServer, LISTS, ask, never};
use crate::gateway::{gateway, manifest};

/// A modern server with a time to live in seconds and a cache scope for each list.
fn server(lists: [(u64, &str); 4]) -> CatalogServer {
    let server = CatalogServer::new(UpstreamEra::Modern, never);
    for ((method, member), (seconds, scope)) in LISTS.into_iter().zip(lists) {
        let item = format!(r#"{{"name":"{member}","uri":"{member}:","uriTemplate":"{member}:{{x}}"}}"#);
        let hint = format!(r#""ttlMs":{},"cacheScope":"{scope}""#, seconds * 1000);
        server.set(method, &format!(r#""{member}":[{item}],{hint}"#));
    }
    server
}

/// The cache hints for modern clients: no longer and no wider than the hints of any server, and of the gateway itself.
#[tokio::test]
async fn cache_hints_are_the_minimum_of_all_servers() {
    let one = TestUpstream::start(server([(7, "public"), (7, "private"), (7, "public"), (900, "public")]));
    let two = TestUpstream::start(server([(3, "public"), (9, "public"), (0, "private"), (900, "public")]));
    let legacy = TestUpstream::start(CatalogServer::new(UpstreamEra::Legacy, never));
    let cases: [&[(&str, SocketAddr, &str)]; 3] = [
        &[("legacy", legacy.address, "")],
        &[("legacy", legacy.address, ""), ("one", one.address, "")],
        &[("legacy", legacy.address, ""), ("one", one.address, ""), ("two", two.address, "")],
    ];
    let mut lines = Vec::new();
    for handlers in cases {
        let running = gateway(handlers, "").await;
        let mut client = WireClient::new(running.address(), ClientMode::Modern).await;
        for method in LISTS.map(|(method, _)| method).into_iter().chain(["server/discover"]) {
            let response = json::read(&ask(&mut client, method, "").await.body);
            let result = response.get("result");
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

/// Advances the paused clock by so many seconds.
async fn pass(seconds: u64) {
    time::pause();
    time::advance(Duration::from_secs(seconds)).await;
    time::resume();
}

/// The gateway requests an expired list again, unless its server announces changes.
#[tokio::test]
async fn expired_list_is_requested_again() {
    const SILENT: &str = r#"{"tools":{},"prompts":{"listChanged":true},"resources":{}}"#;
    let lists = [(60, "public"), (1, "public"), (900, "public"), (900, "public")];
    let server = server(lists).with_capabilities(SILENT);
    let upstream = TestUpstream::start(server.clone());
    let running = gateway(&[("h", upstream.address, "")], "").await;
    for round in 2..4 {
        server.set("tools/list", &format!(r#""tools":[{{"name":"t{round}"}}],"ttlMs":60000"#));
        let mut registry = running.gateway().watch();
        registry.mark_unchanged();
        pass(61).await;
        // The fleet may publish a status in between.
        let expected = [format!("t{round}")];
        let has_new_list = |registry: &Arc<Registry>| {
            registry
                .entries(EntryKind::Tools)
                .iter()
                .map(|entry| &*entry.name)
                .eq(expected.iter().map(|name| &**name))
        };
        registry.wait_for(has_new_list).await.unwrap();
        assert_eq!(upstream.now(|log| LISTS.map(|(method, _)| log.count(method))), [round, 1, 1, 1]);
    }
}

/// A list without a response delays no other list.
#[tokio::test]
async fn pending_list_does_not_delay_others() {
    let server =
        CatalogServer::new(UpstreamEra::Modern, never).with_capabilities(r#"{"tools":{},"prompts":{}}"#);
    let upstream = TestUpstream::start(but(server, |request| {
        (request.method() == "prompts/list").then(ScriptedReply::never)
    }));
    let manifest = manifest(&[("h", upstream.address, "")], "");
    let running = toolyard_server::start(&manifest, &GatewayOptions::default()).await.unwrap();
    upstream.saw(|log| log.count("prompts/list") == 1, |_| ()).await;
    pass(5).await;
    let mut registry = running.gateway().watch();
    let registry =
        registry.wait_for(|registry| !registry.entries(EntryKind::Tools).is_empty()).await.unwrap().clone();
    assert!(registry.entries(EntryKind::Prompts).is_empty());
}
