//! Names of tools outlive the gateway that gave them, in a store that it shares with others.

use std::net::SocketAddr;
use std::sync::Arc;

use toolyard_core::registry::Kind;
use toolyard_core::store::Store;
use toolyard_server::Options;

use crate::door::memory;
use crate::manifest;
use crate::upstream::{Era, Received, Reply, Server, Upstream};

/// The published names, once all handlers have answered, of a gateway that is then stopped.
async fn names(store: &Arc<dyn Store>, handlers: &[(&str, SocketAddr, &str)]) -> String {
    let options = Options { store: Some(store.clone()), ..Options::default() };
    let running = toolyard_server::start(&manifest(handlers, ""), &options).await.unwrap();
    running.gateway().settled().await;
    let registry = running.gateway().registry();
    let named = |handler: &str| {
        let entry = registry.entries(Kind::Tools).iter().find(|entry| &*entry.handler.name == handler);
        entry.map_or_else(String::new, |entry| entry.name.to_string())
    };
    let named: Vec<_> =
        handlers.iter().map(|(handler, ..)| format!("{handler}:{}", named(handler))).collect();
    running.stop().await;
    named.join(" ")
}

#[tokio::test]
async fn gateways_of_one_store_keep_each_others_names() {
    let server = || {
        Upstream::start(Server::new(Era::Modern, &[r#"{"name":"read"}"#], |request: &Received| {
            Reply::result(request, "{}")
        }))
    };
    let (a, b, c) = (server(), server(), server());
    let [a, b, c] = [("a", a.address, ""), ("b", b.address, ""), ("c", c.address, "")];
    let store = memory().await;
    assert_eq!(names(&store, &[a, b]).await, "a:read b:b_read");
    assert_eq!(names(&store, &[c]).await, "c:read", "names are unique in one gateway only");
    assert_eq!(names(&store, &[b, a]).await, "b:b_read a:read");
    // The two together: who stands first has it, and the other one begins anew.
    assert_eq!(names(&store, &[b, c, a]).await, "b:b_read c:read a:a_read");
    assert_eq!(names(&store, &[a, c]).await, "a:a_read c:read");
}
