//! State that the store keeps over a restart.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolyard_core::registry::EntryKind;
use toolyard_core::store::{KeySpace, Store};
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra, but,
};

use crate::gateway::{manifest, started_on};
use crate::keyed_gateway::memory;

/// A server that answers nothing until the test opens its gate.
struct GatedServer {
    upstream: TestUpstream,
    is_open: Arc<AtomicBool>,
}

impl GatedServer {
    fn start() -> Self {
        let is_open = Arc::new(AtomicBool::new(false));
        let server = ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], |request: &ReceivedRequest| {
            ScriptedReply::result(request, "{}")
        });
        let opened = is_open.clone();
        let script =
            but(server, move |_| (!opened.load(Ordering::Relaxed)).then(|| ScriptedReply::http(503, "", "")));
        Self { upstream: TestUpstream::start(script), is_open }
    }

    fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Relaxed);
    }
}

async fn start(store: &Arc<dyn Store>, servers: &[(&str, SocketAddr, &str)]) -> RunningGateway {
    started_on(store, &manifest(servers, "")).await
}

/// Waits until the gateway advertises `count` tools; returns their names with those of their handlers.
async fn names(running: &RunningGateway, count: usize) -> Vec<String> {
    let mut registry = running.gateway().watch();
    let registry = registry.wait_for(|now| now.entries(EntryKind::Tools).len() == count).await.unwrap();
    let entries = registry.entries(EntryKind::Tools).iter();
    let mut names: Vec<_> =
        entries.map(|entry| format!("{} of {}", entry.name, entry.handler.name)).collect();
    names.sort();
    names
}

/// Waits until any record in the store contains this name.
async fn wait_for_record(store: &Arc<dyn Store>, name: &str) {
    let space = KeySpace("names");
    loop {
        let mut records = vec![store.get_blob(space, "all").await.unwrap().unwrap_or_default()];
        let values = store.list(space, "", None, 100).await.unwrap();
        records.extend(values.into_iter().map(|(_, value)| value.bytes));
        if records.iter().any(|record| String::from_utf8_lossy(record).contains(name)) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// The handler that answers first gets the name, and keeps it after a restart in which another handler answers first.
#[tokio::test]
async fn tool_names_keep_their_owners_over_a_restart() {
    let (first, second, store) = (GatedServer::start(), GatedServer::start(), memory().await);
    let servers = [("first", first.upstream.address, ""), ("second", second.upstream.address, "")];
    let expected = ["first_t of first", "t of second"];

    second.set_open(true);
    let running = start(&store, &servers).await;
    assert_eq!(names(&running, 1).await, ["t of second"]);
    first.set_open(true);
    assert_eq!(names(&running, 2).await, expected);
    wait_for_record(&store, "first_t").await;
    running.stop().await;

    second.set_open(false);
    let running = start(&store, &servers).await;
    assert_eq!(names(&running, 1).await, ["first_t of first"]);
    second.set_open(true);
    assert_eq!(names(&running, 2).await, expected);
    running.stop().await;

    // Without a record in the store, the order of the manifest decides.
    let running = start(&memory().await, &servers).await;
    assert_eq!(names(&running, 2).await, ["second_t of second", "t of first"]);
}
