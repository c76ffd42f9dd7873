//! What the store keeps from one start to the next.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolyard_core::registry::Kind;
use toolyard_core::store::{Space, Store};
use toolyard_server::{Options, Running};

use crate::door::memory;
use crate::manifest;
use crate::upstream::{Era, Received, Reply, Server, TOOL, Upstream, but};

/// A server that is there once it is let.
struct Held {
    upstream: Upstream,
    is_open: Arc<AtomicBool>,
}

impl Held {
    fn start() -> Self {
        let is_open = Arc::new(AtomicBool::new(false));
        let server = Server::new(Era::Modern, &[TOOL], |request: &Received| Reply::result(request, "{}"));
        let opened = is_open.clone();
        let script =
            but(server, move |_| (!opened.load(Ordering::Relaxed)).then(|| Reply::http(503, "", "")));
        Self { upstream: Upstream::start(script), is_open }
    }

    fn let_in(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Relaxed);
    }
}

async fn start(store: &Arc<dyn Store>, servers: &[(&str, SocketAddr, &str)]) -> Running {
    let options = Options { store: Some(store.clone()), ..Options::default() };
    let running = toolyard_server::start(&manifest(servers, ""), &options).await.unwrap();
    running.gateway().settled().await;
    running
}

/// Waits until so many tools are listed; gives their names with those of their handlers.
async fn names(running: &Running, count: usize) -> Vec<String> {
    let mut registry = running.gateway().watch();
    let registry = registry.wait_for(|now| now.entries(Kind::Tools).len() == count).await.unwrap();
    let entries = registry.entries(Kind::Tools).iter();
    let mut names: Vec<_> =
        entries.map(|entry| format!("{} of {}", entry.name, entry.handler.name)).collect();
    names.sort();
    names
}

/// Waits until the store has this name, in whatever record.
async fn kept(store: &Arc<dyn Store>, name: &str) {
    let space = Space("names");
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

/// Who answers first has the name. At the next start another one is the first, and the name is not its.
#[tokio::test]
async fn names_stay_with_their_owners_whoever_answers_first_after_a_restart() {
    let (first, second, store) = (Held::start(), Held::start(), memory().await);
    let servers = [("first", first.upstream.address, ""), ("second", second.upstream.address, "")];
    let expected = ["first_t of first", "t of second"];

    second.let_in(true);
    let running = start(&store, &servers).await;
    assert_eq!(names(&running, 1).await, ["t of second"]);
    first.let_in(true);
    assert_eq!(names(&running, 2).await, expected);
    kept(&store, "first_t").await;
    running.stop().await;

    second.let_in(false);
    let running = start(&store, &servers).await;
    assert_eq!(names(&running, 1).await, ["first_t of first"]);
    second.let_in(true);
    assert_eq!(names(&running, 2).await, expected);
    running.stop().await;

    // Without what was kept, the order of the manifest decides.
    let running = start(&memory().await, &servers).await;
    assert_eq!(names(&running, 2).await, ["second_t of second", "t of first"]);
}
