//! A gateway with a few handlers, for tests of the search.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use toolyard_core::access::{AccessGrant, AccessScope, ScopePattern};
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::names::{NameRegistry, PrefixPolicy};
use toolyard_core::registry::{CallLimits, HandlerEntry};
use toolyard_core::{
    Backend, BackendPhase, Call, CallOutput, Caller, Catalog, Gateway, Json, Object, Outcome, Registry, Tool,
    ToolError,
};
use toolyard_manifest::ServiceRanker;
use toolyard_sdk::Server;

use super::{CallToolBackend, ServiceIndex, ToolFinder, ToolSearch, add};
use crate::summary::SummarySource;

/// Name of the handler of the tools under test.
pub(super) const OWN: &str = "builtins";

/// Publishes tools, and answers each call with its name and arguments.
struct NamedEchoBackend(watch::Sender<Arc<Catalog>>);

impl Backend for NamedEchoBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let text = format!("{} {}", call.target.name(), call.arguments().map_or("", Json::as_text));
        let content = json!([{"type": "text", "text": text}]);
        let body = Object::new().with("content", Json::from_value(&content));
        ready(Ok(Outcome::Done(CallOutput { body, is_error: false }))).boxed()
    }
}

/// Returns fixed summaries by the names of handlers.
struct FixedSummaries(Vec<(&'static str, &'static str)>);

impl SummarySource for FixedSummaries {
    fn of(&self, handler: &HandlerEntry, tools: &[&str]) -> String {
        let summary = self.0.iter().find(|(name, _)| **name == *handler.name);
        summary.map_or_else(|| format!("Provides {} tool(s).", tools.len()), |(_, text)| (*text).to_owned())
    }
}

/// A handler with its tools: name, description, and the names of the arguments.
pub(super) type HandlerOffer = (&'static str, Vec<(&'static str, &'static str, &'static str)>);

/// A gateway, and the tools that search it.
pub(super) struct SearchHarness {
    registry: watch::Sender<Arc<Registry>>,
    names: NameRegistry,
    own: HandlerEntry,
    handlers: Vec<(HandlerEntry, Arc<Catalog>)>,
    pub(super) search: ToolSearch,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) gateway: Arc<Gateway>,
}

impl SearchHarness {
    pub(super) fn new(offers: &[HandlerOffer], summaries: &[(&'static str, &'static str)]) -> Self {
        let (registry, now) = watch::channel(Arc::default());
        let gateway = Arc::new(Gateway::new(now, Vec::new()));
        let finder = Arc::new(ToolFinder::new(Arc::downgrade(&gateway), OWN));
        let services = ServiceIndex::new(Arc::new(FixedSummaries(summaries.to_vec())), finder.clone());
        let search = ToolSearch { finder, embeddings: None, services, ranker: ServiceRanker::default() };
        let server = add(Server::new(OWN, "1.0.0"), search.clone()).expect("tools");
        let backend: Arc<dyn Backend> = Arc::new(CallToolBackend::new(server.into_backend(), JoinSet::new()));
        let own = handler(OWN, backend.clone());
        let mut harness = Self {
            registry,
            names: NameRegistry::default(),
            own,
            handlers: Vec::new(),
            search,
            backend,
            gateway,
        };
        for (name, tools) in offers {
            harness.put(name, tools);
        }
        harness.publish();
        harness
    }

    /// Sets the tools of a handler.
    pub(super) fn put(&mut self, name: &str, tools: &[(&str, &str, &str)]) {
        let tools =
            tools.iter().map(|(name, description, arguments)| Arc::new(tool(name, description, arguments)));
        let catalog = Catalog { phase: BackendPhase::Ready, tools: tools.collect(), ..Catalog::default() };
        let catalog = Arc::new(catalog);
        match self.handlers.iter_mut().find(|(handler, _)| &*handler.name == name) {
            Some((_, offered)) => *offered = catalog,
            None => {
                let backend = Arc::new(NamedEchoBackend(watch::channel(catalog.clone()).0));
                self.handlers.push((handler(name, backend), catalog));
            }
        }
    }

    /// Turns a handler into a server that was added at run time, whose tools always have its name in front.
    pub(super) fn mark_added(&mut self, name: &str) {
        let entry = self.handlers.iter_mut().find(|(handler, _)| &*handler.name == name);
        let (handler, _) = entry.expect("a handler");
        handler.is_added = true;
        handler.prefix = PrefixPolicy::Always;
    }

    /// Removes a handler.
    pub(super) fn remove(&mut self, name: &str) {
        self.handlers.retain(|(handler, _)| &*handler.name != name);
    }

    /// Publishes the current handlers.
    pub(super) fn publish(&mut self) {
        let own = (self.own.clone(), self.own.backend.catalog().borrow().clone());
        let parts: Vec<_> = [own].into_iter().chain(self.handlers.iter().cloned()).collect();
        self.registry.send_replace(Arc::new(Registry::assemble(&parts, &mut self.names)));
    }

    /// Returns the registry as a caller with this scope sees it.
    pub(super) fn view(&self, scope: &[&str]) -> Arc<Registry> {
        Registry::view_for(self.registry.borrow().clone(), &caller(scope))
    }

    /// Returns the call that `call_tool` forwards, as `name arguments`.
    pub(super) fn forwarded(&self, arguments: Value) -> Option<String> {
        let call = Call::tool("call_tool", Json::from_value(&arguments));
        let forwarded = self.backend.forward("call_tool", &call, &self.registry.borrow().clone())?;
        let arguments = forwarded.arguments().map(|arguments| arguments.as_text().to_owned());
        Some(format!("{} {}", forwarded.target.name(), arguments.unwrap_or_default()))
    }

    /// Calls a tool and returns its text, as a model reads it.
    pub(super) async fn read(&self, scope: &[&str], tool: &str, arguments: Value) -> String {
        let call = Call { caller: caller(scope), ..Call::tool(tool, Json::from_value(&arguments)) };
        match self.gateway.invoke(call).await {
            Ok(Outcome::Done(output)) => {
                let body = output.body.to_json().to_value();
                let text = body["content"][0]["text"].as_str().unwrap_or_default().to_owned();
                if output.is_error { format!("error: {text}") } else { text }
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => format!("refused: {error}"),
        }
    }

    /// Returns the names of the tools that match a query.
    pub(super) async fn search_names(&self, scope: &[&str], query: &str, limit: usize) -> Vec<String> {
        let entries = self.search.finder.search(&self.view(scope), query, limit).await;
        entries.iter().map(|entry| entry.name.to_string()).collect()
    }
}

fn caller(scope: &[&str]) -> Caller {
    let scope: AccessScope =
        scope.iter().map(|pattern| pattern.parse::<ScopePattern>().expect("a pattern")).collect();
    let grant = AccessGrant {
        scope,
        allowance: None,
        memory: AccessScope::default(),
        model: None,
        chunk_threshold: None,
    };
    Caller { grant: Some(Arc::new(grant)), ..Caller::default() }
}

fn handler(name: &str, backend: Arc<dyn Backend>) -> HandlerEntry {
    let gate = CallGate::new(GateSize { running: 10, waiting: 10 });
    HandlerEntry::new(name, backend, CallLimits { timeout: Duration::from_secs(30), gate })
}

fn tool(name: &str, description: &str, arguments: &str) -> Tool {
    let properties: Value =
        arguments.split_whitespace().map(|name| (name, json!({"type": "string"}))).collect();
    let definition = json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties},
    });
    Tool::from_definition(&Json::from_value(&definition)).expect("a definition")
}

/// Returns a gateway with a calendar, a shop and two forges.
pub(super) fn sample() -> SearchHarness {
    let offers: [HandlerOffer; 4] = [
        (
            "calendar",
            vec![
                ("create_event", "Creates an event in the calendar.", "title start end"),
                ("list_events", "Lists the events of a day.", "day"),
                ("move_event", "Reschedules a meeting.", "id start"),
                ("delete_event", "Deletes an event.", "id"),
            ],
        ),
        ("shop", vec![("list_orders", "Lists the orders of a customer.", "customer")]),
        (
            "github",
            vec![
                ("create_issue", "Opens an issue in a repository.", "repository title body"),
                ("list_issues", "Lists the issues of a repository.", "repository"),
            ],
        ),
        ("gitlab", vec![("create_issue", "Opens an issue in a project.", "project title")]),
    ];
    let summaries = [
        ("calendar", "Meetings and events of people: creates, moves and deletes them."),
        ("github", "Repositories and their issues on GitHub."),
    ];
    SearchHarness::new(&offers, &summaries)
}
