use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use toolyard_manifest::{AgentCardSource, EndpointUrl};
use toolyard_testing::memory_store::MemoryStore;

use super::age::last_seen;
use super::*;

struct Harness {
    directory: AgentDirectory,
    seconds: Arc<AtomicU64>,
    settings: AgentSettings,
    store: Arc<dyn KeyValueStore>,
}

impl Harness {
    fn new() -> Self {
        let cards = ["http://a", "http://b", "http://c"].map(source).to_vec();
        let settings = AgentSettings { cards, agents: 3, ..AgentSettings::default() };
        let seconds = Arc::<AtomicU64>::default();
        let store: Arc<dyn KeyValueStore> = Arc::new(MemoryStore::default());
        Self { directory: directory(&store, &seconds), seconds, settings, store }
    }

    fn later(&self, seconds: u64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    async fn seen(&self, name: &str, url: &str) -> String {
        let seen = self.directory.seen(card(name, url), &source_id(&source(url)), &self.settings).await;
        seen.map_or_else(|error| error.to_string(), |()| "ok".to_owned())
    }

    /// Returns the agents with their descriptions, which are the sources of their cards.
    fn list(&self) -> String {
        list(&self.directory)
    }
}

fn source(url: &str) -> AgentCardSource {
    AgentCardSource {
        url: EndpointUrl::parse(url).expect("a URL"),
        endpoint: None,
        signature: None,
        headers: Vec::new(),
    }
}

fn directory(store: &Arc<dyn KeyValueStore>, seconds: &Arc<AtomicU64>) -> AgentDirectory {
    let (seconds, start) = (seconds.clone(), SystemTime::now());
    let clock = Arc::new(move || start + Duration::from_secs(seconds.load(Ordering::Relaxed)));
    AgentDirectory::new(store.clone(), clock)
}

fn list(directory: &AgentDirectory) -> String {
    let now = directory.now();
    let line = |agent: KnownAgent| {
        format!("{} {}: {}", agent.card.name, agent.card.description, last_seen(&agent, now))
    };
    directory.all().into_iter().map(line).collect::<Vec<_>>().join("; ")
}

fn card(name: &str, description: &str) -> AgentCard {
    AgentCard::of_value(json!({"name": name, "description": description})).expect("a card")
}

#[tokio::test]
async fn agents_expire_unless_the_file_has_them() {
    let harness = Harness::new();
    harness.directory.set_filed(vec![card("Planner", "file"), card("Files", "file")], 3);
    assert_eq!(harness.seen("planner", "http://a").await, "ok");
    assert_eq!(harness.seen("Other", "http://b").await, "ok");
    harness.later(2 * 3600);
    insta::assert_snapshot!(harness.list(), @"Files file: well-known (not yet seen this session); Other http://b: 2h ago; planner http://a: 2h ago (well-known)");
    harness.later(22 * 3600);
    insta::assert_snapshot!(harness.list(), @"Files file: well-known (not yet seen this session); Planner file: well-known (not yet seen this session)");
    harness.directory.set_filed(Vec::new(), 3);
    assert_eq!(harness.list(), "");
}

#[tokio::test]
async fn agents_survive_a_restart_while_the_manifest_has_their_cards() {
    let harness = Harness::new();
    assert_eq!(harness.seen("One", "http://a").await, "ok");
    assert_eq!(harness.seen("Two", "http://b").await, "ok");
    let restarted = directory(&harness.store, &harness.seconds);
    let settings = AgentSettings { cards: harness.settings.cards[..1].to_vec(), ..harness.settings.clone() };
    restarted.load(&settings).await.expect("a store");
    assert_eq!(list(&restarted), "One http://a: just now");
    // An edit of the manifest.
    harness.directory.load(&settings).await.expect("a store");
    assert_eq!(harness.list(), "One http://a: just now");
}

#[tokio::test]
async fn names_are_unique_and_their_number_is_limited() {
    let harness = Harness::new();
    assert_eq!(harness.seen("One", "http://a").await, "ok");
    let taken = harness.seen("ONE", "http://b").await;
    assert_eq!(taken, "another agent card has the name \"ONE\": give the agents different names");
    assert_eq!(harness.seen("Renamed", "http://a").await, "ok");
    assert_eq!(harness.list(), "Renamed http://a: just now");
    harness
        .directory
        .set_filed(vec![card("X", "file"), card("Y", "file"), card("Z", "file"), card("Q", "file")], 2);
    assert_eq!(
        harness.seen("Two", "http://b").await,
        "there are 3 known agents, and there may be no more: raise `builtins.agents.agents`"
    );
    assert_eq!(harness.list().matches(';').count(), 2);
    assert!(harness.directory.find(" x ").is_some() && harness.directory.find("Q").is_none());
}

#[tokio::test]
async fn card_without_a_signature_disables_no_agent_of_the_file() {
    let harness = Harness::new();
    let problem = |name: &str| harness.directory.find(name).and_then(|agent| agent.problem);
    harness.directory.set_filed(vec![card("Filed", "file")], 3);
    for name in ["Filed", "Other"] {
        let id = source_id(&source(&format!("http://{name}")));
        harness.directory.distrusted(Some(name.to_owned()), "no signature", &id, &harness.settings).await;
    }
    assert_eq!((problem("Filed"), problem("Other").as_deref()), (None, Some("no signature")));
    assert!(harness.list().starts_with("Filed file: "), "{}", harness.list());
}

#[tokio::test]
async fn announced_agents_expire_and_leave() {
    let harness = Harness::new();
    harness.directory.set_filed(vec![card("Planner", "file")], 3);
    let announce = async |name: &str, description: &str| {
        let announced = harness.directory.announced(card(name, description), &harness.settings).await;
        announced.map_or_else(|error| error.to_string(), |()| "ok".to_owned())
    };
    assert_eq!(announce("planner", "bus").await, "ok");
    assert_eq!(announce("Helper", "bus").await, "ok");
    assert_eq!(harness.seen("Other", "http://a").await, "ok");
    let full = "there are 3 known agents, and there may be no more: raise `builtins.agents.agents`";
    assert_eq!(announce("More", "bus").await, full);
    let listed = "Helper bus: just now; Other http://a: just now; planner bus: just now (well-known)";
    assert_eq!(harness.list(), listed);
    // The operator has named the URL of its card.
    assert_eq!(announce("Other", "bus").await, "ok");
    assert_eq!(harness.list(), listed);
    let restarted = directory(&harness.store, &harness.seconds);
    restarted.load_announced(&harness.settings).await.expect("a store");
    assert_eq!(list(&restarted), "Helper bus: just now; Other bus: just now; planner bus: just now");
    for name in ["PLANNER", "Helper", "Other", "Nobody"] {
        harness.directory.left(name).await.expect("a store");
    }
    assert_eq!(
        harness.list(),
        "Other http://a: just now; Planner file: well-known (not yet seen this session)"
    );
    assert_eq!(announce("Helper", "bus").await, "ok");
    harness.later(24 * 3600);
    assert_eq!(harness.list(), "Planner file: well-known (not yet seen this session)");
    let restarted = directory(&harness.store, &harness.seconds);
    restarted.load_announced(&harness.settings).await.expect("a store");
    assert_eq!(list(&restarted), "");
}
