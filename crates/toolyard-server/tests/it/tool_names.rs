//! Advertised tool names outlive the gateway that assigned them, in a store that several gateways share.

use std::net::SocketAddr;
use std::sync::Arc;

use toolyard_core::registry::EntryKind;
use toolyard_core::store::Store;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TestUpstream, UpstreamEra,
};

use crate::gateway::{manifest, started_on};
use crate::keyed_gateway::memory;

/// Starts a gateway, waits for all its handlers, stops it, and returns the advertised names.
async fn names(store: &Arc<dyn Store>, handlers: &[(&str, SocketAddr, &str)]) -> String {
    let running = started_on(store, &manifest(handlers, "")).await;
    let registry = running.gateway().registry();
    let named = |handler: &str| {
        let entry = registry.entries(EntryKind::Tools).iter().find(|entry| &*entry.handler.name == handler);
        entry.map_or_else(String::new, |entry| entry.name.to_string())
    };
    let named: Vec<_> =
        handlers.iter().map(|(handler, ..)| format!("{handler}:{}", named(handler))).collect();
    running.stop().await;
    named.join(" ")
}

#[tokio::test]
async fn tool_names_are_shared_by_gateways_on_one_store() {
    let server = || {
        TestUpstream::start(ScriptedUpstream::new(
            UpstreamEra::Modern,
            &[r#"{"name":"read"}"#],
            |request: &ReceivedRequest| ScriptedReply::result(request, "{}"),
        ))
    };
    let (a, b, c) = (server(), server(), server());
    let [a, b, c] = [("a", a.address, ""), ("b", b.address, ""), ("c", c.address, "")];
    let store = memory().await;
    assert_eq!(names(&store, &[a, b]).await, "a:read b:b_read");
    assert_eq!(names(&store, &[c]).await, "c:read", "names are unique in one gateway only");
    assert_eq!(names(&store, &[b, a]).await, "b:b_read a:read");
    // With both in one manifest, the first one keeps the name, and the other one gets a new one.
    assert_eq!(names(&store, &[b, c, a]).await, "b:b_read c:read a:a_read");
    assert_eq!(names(&store, &[a, c]).await, "a:a_read c:read");
}
