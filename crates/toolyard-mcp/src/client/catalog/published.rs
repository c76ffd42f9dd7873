//! The published catalog: the lists of the shared connection, and those of dedicated connections that differ.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use toolyard_core::registry::EntryKind;
use toolyard_core::{
    BackendPhase, CallTarget, Caller, Catalog, ClientIdentity, CompletionReference, Object, OwnCatalog,
    Prompt, PublishedTemplate, Resource, Tool,
};

use super::list_invalidation::ListSet;

/// Publishes the catalog of a server.
pub(in crate::client) struct CatalogPublisher {
    catalog: watch::Sender<Arc<Catalog>>,
    /// The lists of dedicated connections, the oldest first.
    own: Mutex<Vec<ConnectionLists>>,
    /// True if the catalog has lists of single clients, so that calls look for them.
    has_own: AtomicBool,
}

/// The lists of a dedicated connection.
pub(in crate::client) struct ConnectionLists {
    /// Number of the connection.
    pub(in crate::client) connection: u64,
    pub(in crate::client) client: ClientIdentity,
    /// The lists that were fetched.
    pub(in crate::client) fetched: ListSet,
    pub(in crate::client) lists: Catalog,
}

impl CatalogPublisher {
    pub(in crate::client) fn new() -> Self {
        Self { catalog: watch::Sender::default(), own: Mutex::default(), has_own: AtomicBool::new(false) }
    }

    /// Returns the catalog and its changes.
    pub(in crate::client) fn subscribe(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    /// Returns the current catalog.
    pub(in crate::client) fn current(&self) -> Arc<Catalog> {
        self.catalog.borrow().clone()
    }

    /// Publishes the lists of the shared connection.
    pub(in crate::client) fn publish(&self, catalog: Catalog) {
        self.update(&mut self.own(), catalog);
    }

    /// Publishes a state of the server; the lists stay.
    pub(in crate::client) fn publish_phase(&self, phase: BackendPhase, protocol: Option<Arc<str>>) {
        let mut own = self.own();
        let catalog = Catalog { phase, protocol, ..Catalog::clone(&self.current()) };
        self.update(&mut own, catalog);
    }

    /// Publishes the lists of a dedicated connection to its client, where they differ. Definitions beyond `max_bytes`
    /// are left out; returns true if there are any.
    pub(in crate::client) fn publish_own(&self, mut lists: ConnectionLists, max_bytes: usize) -> bool {
        let mut own = self.own();
        let shared = self.current();
        lists.share_with(&shared);
        let has_left_out = lists.trim(&shared, max_bytes);
        match own.iter_mut().find(|other| other.connection == lists.connection) {
            Some(before) => *before = lists,
            None => own.push(lists),
        }
        self.update(&mut own, Catalog::clone(&shared));
        has_left_out
    }

    /// Withdraws the lists of a dedicated connection, which is closed.
    pub(in crate::client) fn withdraw(&self, connection: u64) {
        let mut own = self.own();
        let before = own.len();
        own.retain(|lists| lists.connection != connection);
        if own.len() != before {
            self.update(&mut own, Catalog::clone(&self.current()));
        }
    }

    /// Returns the dedicated connection of a caller that lists the target, unless the shared connection lists the same.
    pub(in crate::client) fn connection_of(&self, caller: &Caller, target: &CallTarget) -> Option<u64> {
        if !self.has_own.load(Ordering::Relaxed) {
            return None;
        }
        let client = ClientIdentity::of(caller)?;
        let (own, shared) = (self.own(), self.current());
        let lists = own.iter().filter(|lists| lists.client == client);
        // The client sees the definition of the oldest of its connections.
        let mut connections =
            lists.filter_map(|lists| Some((lists.connection, lists.lists_own(target, &shared)?)));
        connections.next().filter(|(_, is_own)| *is_own).map(|(connection, _)| connection)
    }

    /// Publishes a catalog with the lists of single clients.
    fn update(&self, own: &mut [ConnectionLists], mut catalog: Catalog) {
        own.iter_mut().for_each(|lists| lists.share_with(&catalog));
        catalog.own = differing(own, &catalog);
        self.has_own.store(!catalog.own.is_empty(), Ordering::Relaxed);
        self.catalog.send_if_modified(|now| {
            let is_other = **now != catalog;
            if is_other {
                *now = Arc::new(catalog);
            }
            is_other
        });
    }

    fn own(&self) -> MutexGuard<'_, Vec<ConnectionLists>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionLists {
    /// Replaces definitions that the shared connection lists too by those, which takes no further memory.
    fn share_with(&mut self, shared: &Catalog) {
        let lists = &mut self.lists;
        share(&mut lists.tools, &shared.tools);
        share(&mut lists.prompts, &shared.prompts);
        share(&mut lists.resources, &shared.resources);
        share(&mut lists.templates, &shared.templates);
    }

    /// Leaves out definitions of its own beyond `max_bytes`; returns true if there are any.
    fn trim(&mut self, shared: &Catalog, max_bytes: usize) -> bool {
        let (lists, mut room) = (&mut self.lists, max_bytes);
        let is_trimmed = [
            trim(&mut lists.tools, &shared.tools, &mut room),
            trim(&mut lists.prompts, &shared.prompts, &mut room),
            trim(&mut lists.resources, &shared.resources, &mut room),
            trim(&mut lists.templates, &shared.templates, &mut room),
        ];
        is_trimmed.contains(&true)
    }

    /// Returns true if the connection lists a target that the shared one does not list in the same way; `None` if the
    /// connection does not list it.
    fn lists_own(&self, target: &CallTarget, shared: &Catalog) -> Option<bool> {
        let own = &self.lists;
        match target {
            CallTarget::Tool(name) => lists_own(&own.tools, &shared.tools, name),
            CallTarget::Task(task) => lists_own(&own.tools, &shared.tools, &task.tool),
            CallTarget::Prompt(name) | CallTarget::Completion(CompletionReference::Prompt(name)) => {
                lists_own(&own.prompts, &shared.prompts, name)
            }
            CallTarget::Resource(uri) | CallTarget::Completion(CompletionReference::Template(uri)) => {
                let template = || {
                    let template = own.templates.iter().find(|template| template.matches(uri))?;
                    Some(!is_known(template, &shared.templates))
                };
                lists_own(&own.resources, &shared.resources, uri).or_else(template)
            }
            CallTarget::Function(_) => None,
        }
    }
}

/// An item of a list.
trait ListItem: PartialEq {
    fn key(&self) -> &str;
    fn definition(&self) -> &Object;

    /// True if a call with this name or URI means the item.
    fn matches(&self, name: &str) -> bool {
        self.key() == name
    }
}

impl ListItem for Tool {
    fn key(&self) -> &str {
        &self.name
    }

    fn definition(&self) -> &Object {
        &self.definition
    }
}

impl ListItem for Prompt {
    fn key(&self) -> &str {
        &self.key
    }

    fn definition(&self) -> &Object {
        &self.definition
    }
}

impl ListItem for Resource {
    fn key(&self) -> &str {
        &self.key
    }

    fn definition(&self) -> &Object {
        &self.definition
    }
}

impl ListItem for PublishedTemplate {
    fn key(&self) -> &str {
        self.uri.text()
    }

    fn matches(&self, name: &str) -> bool {
        self.key() == name || self.uri.matches(name).is_some()
    }

    fn definition(&self) -> &Object {
        &self.definition
    }
}

fn share<T: ListItem>(own: &mut [Arc<T>], shared: &[Arc<T>]) {
    if own.is_empty() {
        return;
    }
    let by_key: HashMap<_, _> = shared.iter().map(|item| (item.key(), item)).collect();
    for item in own {
        if let Some(same) =
            by_key.get(item.key()).filter(|other| !Arc::ptr_eq(other, item) && **other == item)
        {
            *item = Arc::clone(same);
        }
    }
}

fn trim<T: ListItem>(own: &mut Vec<Arc<T>>, shared: &[Arc<T>], room: &mut usize) -> bool {
    let before = own.len();
    let shared: HashMap<_, _> = shared.iter().map(|item| (item.key(), item)).collect();
    own.retain(|item| {
        if shared.get(item.key()).is_some_and(|other| Arc::ptr_eq(other, item)) {
            return true;
        }
        let rest = room.checked_sub(item.definition().to_json().as_bytes().len());
        *room = rest.unwrap_or_default();
        rest.is_some()
    });
    own.len() != before
}

fn lists_own<T: ListItem>(own: &[Arc<T>], shared: &[Arc<T>], key: &str) -> Option<bool> {
    let item = own.iter().find(|item| item.matches(key))?;
    Some(!is_known(item, shared))
}

fn is_known<T>(item: &Arc<T>, shared: &[Arc<T>]) -> bool {
    shared.iter().any(|other| Arc::ptr_eq(other, item))
}

/// Returns the lists of each client that differ from those of the catalog. Of several connections of one client the
/// lists are joined; of items with the same key that of the oldest connection counts.
fn differing(own: &[ConnectionLists], shared: &Catalog) -> Vec<OwnCatalog> {
    let mut by_client: HashMap<&ClientIdentity, Vec<&ConnectionLists>> = HashMap::new();
    own.iter().for_each(|lists| by_client.entry(&lists.client).or_default().push(lists));
    let differing = by_client.into_iter().map(|(client, connections)| {
        let of_kind = |kind| connections.iter().filter(move |lists| lists.fetched.contains(kind));
        OwnCatalog {
            client: client.clone(),
            tools: joined(of_kind(EntryKind::Tools).map(|own| &own.lists.tools), &shared.tools),
            prompts: joined(of_kind(EntryKind::Prompts).map(|own| &own.lists.prompts), &shared.prompts),
            resources: joined(
                of_kind(EntryKind::Resources).map(|own| &own.lists.resources),
                &shared.resources,
            ),
            templates: joined(
                of_kind(EntryKind::Templates).map(|own| &own.lists.templates),
                &shared.templates,
            ),
        }
    });
    let mut differing: Vec<_> =
        differing.filter(|own| EntryKind::ALL.into_iter().any(|kind| own.differs_in(kind))).collect();
    // Equal catalogs compare equal.
    differing.sort_by(|one, other| identity(&one.client).cmp(&identity(&other.client)));
    differing
}

fn identity(client: &ClientIdentity) -> (bool, &str) {
    match client {
        ClientIdentity::Session(session) => (false, session),
        ClientIdentity::Principal(principal) => (true, principal),
    }
}

/// Joins the lists of several connections; `None` if the result is the shared list.
fn joined<'a, T: ListItem + 'a>(
    lists: impl Iterator<Item = &'a Vec<Arc<T>>>,
    shared: &[Arc<T>],
) -> Option<Vec<Arc<T>>> {
    let mut joined: Option<Vec<Arc<T>>> = None;
    for list in lists {
        let Some(joined) = &mut joined else {
            joined = Some(list.clone());
            continue;
        };
        let keys: HashSet<_> = joined.iter().map(|item| item.key().to_owned()).collect();
        joined.extend(list.iter().filter(|item| !keys.contains(item.key())).cloned());
    }
    let is_same = |own: &Vec<Arc<T>>| {
        own.len() == shared.len() && own.iter().zip(shared).all(|(own, shared)| Arc::ptr_eq(own, shared))
    };
    joined.filter(|own| !is_same(own))
}

#[cfg(test)]
mod tests {
    use toolyard_core::Json;

    use super::*;

    fn tools(definitions: &[&str]) -> Vec<Arc<Tool>> {
        let tool = |text: &&str| Tool::from_definition(&Json::parse(text.to_string()).unwrap()).unwrap();
        definitions.iter().map(tool).map(Arc::new).collect()
    }

    fn lists(connection: u64, client: &str, definitions: &[&str]) -> ConnectionLists {
        let (client, fetched) = (ClientIdentity::Principal(client.into()), ListSet::of(&[EntryKind::Tools]));
        let lists = Catalog { tools: tools(definitions), ..Catalog::default() };
        ConnectionLists { connection, client, fetched, lists }
    }

    const A: &str = r#"{"name":"a"}"#;
    const B: &str = r#"{"name":"b"}"#;
    const OTHER_A: &str = r#"{"name":"a","x":1}"#;

    /// Returns the tools of each client with lists of its own.
    fn own(publisher: &CatalogPublisher) -> String {
        let catalog = publisher.current();
        let client = |own: &OwnCatalog| {
            let tools = own.tools.iter().flatten().map(|tool| tool.definition.to_json().as_text().to_owned());
            format!("{} {}", identity(&own.client).1, tools.collect::<Vec<_>>().join(" "))
        };
        catalog.own.iter().map(client).collect::<Vec<_>>().join("; ")
    }

    fn publisher(definitions: &[&str]) -> CatalogPublisher {
        let publisher = CatalogPublisher::new();
        publisher.publish(Catalog { tools: tools(definitions), ..Catalog::default() });
        publisher
    }

    fn connection_of(publisher: &CatalogPublisher, client: &str, tool: &str) -> Option<u64> {
        let caller = Caller { principal: Some(client.into()), ..Caller::default() };
        publisher.connection_of(&caller, &CallTarget::Tool(tool.into()))
    }

    #[test]
    fn only_differing_lists_are_published() {
        let publisher = publisher(&[A]);
        assert!(!publisher.publish_own(lists(1, "p", &[A]), 0));
        assert_eq!(own(&publisher), "");
        publisher.publish_own(lists(1, "p", &[A, B]), 100);
        publisher.publish_own(lists(2, "q", &[OTHER_A]), 100);
        assert_eq!(own(&publisher), format!("p {A} {B}; q {OTHER_A}"));
        // The list of the shared connection catches up.
        publisher.publish(Catalog { tools: tools(&[A, B]), ..Catalog::default() });
        assert_eq!(own(&publisher), format!("q {OTHER_A}"));
        publisher.publish(Catalog { tools: tools(&[B]), ..Catalog::default() });
        assert_eq!(own(&publisher), format!("p {A} {B}; q {OTHER_A}"));
        publisher.withdraw(1);
        publisher.withdraw(2);
        assert_eq!((own(&publisher), connection_of(&publisher, "p", "a")), (String::new(), None));
    }

    #[test]
    fn connections_of_one_client_are_joined() {
        let publisher = publisher(&[A]);
        publisher.publish_own(lists(1, "p", &[A, B]), 100);
        publisher.publish_own(lists(2, "p", &[OTHER_A, r#"{"name":"c"}"#]), 100);
        assert_eq!(own(&publisher), format!("p {A} {B} {}", r#"{"name":"c"}"#));
        let connections = ["a", "b", "c", "d"].map(|tool| connection_of(&publisher, "p", tool));
        assert_eq!(connections, [None, Some(1), Some(2), None]);
        assert_eq!(connection_of(&publisher, "q", "b"), None);
    }

    #[test]
    fn definitions_beyond_the_limit_are_left_out() {
        for (limit, expect, is_left_out) in [
            (24, format!("p {A} {B} {B}"), false),
            (12, format!("p {A} {B}"), true),
            (11, String::new(), true),
        ] {
            let publisher = publisher(&[A]);
            assert_eq!(publisher.publish_own(lists(1, "p", &[A, B, B]), limit), is_left_out, "{limit}");
            assert_eq!(own(&publisher), expect, "{limit}");
        }
    }
}
