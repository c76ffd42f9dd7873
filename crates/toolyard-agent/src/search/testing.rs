//! A yard of a few handlers, for tests of search.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use toolyard_core::access::{Grant, Pattern, Scope};
use toolyard_core::gate::{Gate, GateSize};
use toolyard_core::names::Names;
use toolyard_core::registry::{Handler, Limits};
use toolyard_core::{
    Backend, Call, Caller, Catalog, Gateway, Json, Object, Outcome, Output, Phase, Registry, Tool, ToolError,
};
use toolyard_sdk::Server;

use super::{Calling, Finder, Search, Services, add};
use crate::summary::Summaries;

/// The handler of the tools that are tested.
pub(super) const OWN: &str = "builtins";

/// Offers tools, and answers each call with what it is asked.
struct Echo(watch::Sender<Arc<Catalog>>);

impl Backend for Echo {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let said = format!("{} {}", call.target.name(), call.arguments().map_or("", Json::as_text));
        let content = json!([{"type": "text", "text": said}]);
        let body = Object::new().with("content", Json::from_value(&content));
        ready(Ok(Outcome::Done(Output { body, is_error: false }))).boxed()
    }
}

/// Says what it is told to say of each handler.
struct Said(Vec<(&'static str, &'static str)>);

impl Summaries for Said {
    fn of(&self, handler: &Handler, tools: &[&str]) -> String {
        let said = self.0.iter().find(|(name, _)| **name == *handler.name);
        said.map_or_else(|| format!("Provides {} tool(s).", tools.len()), |(_, said)| (*said).to_owned())
    }
}

/// A handler with tools: name, description, and the names of its arguments.
pub(super) type Offer = (&'static str, Vec<(&'static str, &'static str, &'static str)>);

/// What can be found, and the tools that find it.
pub(super) struct Yard {
    registry: watch::Sender<Arc<Registry>>,
    names: Names,
    own: Handler,
    handlers: Vec<(Handler, Arc<Catalog>)>,
    pub(super) search: Search,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) gateway: Arc<Gateway>,
}

impl Yard {
    pub(super) fn new(offers: &[Offer], summaries: &[(&'static str, &'static str)]) -> Self {
        let (registry, now) = watch::channel(Arc::default());
        let gateway = Arc::new(Gateway::new(now, Vec::new()));
        let search = Search {
            finder: Arc::new(Finder::new(Arc::downgrade(&gateway), OWN)),
            services: Services::new(Arc::new(Said(summaries.to_vec())), OWN),
        };
        let server = add(Server::new(OWN, "1.0.0"), search.clone()).expect("tools");
        let backend: Arc<dyn Backend> = Arc::new(Calling::new(server.into_backend(), JoinSet::new()));
        let own = handler(OWN, backend.clone());
        let mut yard =
            Self { registry, names: Names::default(), own, handlers: Vec::new(), search, backend, gateway };
        for (name, tools) in offers {
            yard.put(name, tools);
        }
        yard.publish();
        yard
    }

    /// These are the tools of a handler now.
    pub(super) fn put(&mut self, name: &str, tools: &[(&str, &str, &str)]) {
        let tools =
            tools.iter().map(|(name, description, arguments)| Arc::new(tool(name, description, arguments)));
        let catalog = Catalog { phase: Phase::Ready, tools: tools.collect(), ..Catalog::default() };
        let catalog = Arc::new(catalog);
        match self.handlers.iter_mut().find(|(handler, _)| &*handler.name == name) {
            Some((_, offered)) => *offered = catalog,
            None => {
                let backend = Arc::new(Echo(watch::channel(catalog.clone()).0));
                self.handlers.push((handler(name, backend), catalog));
            }
        }
    }

    /// A handler is gone.
    pub(super) fn remove(&mut self, name: &str) {
        self.handlers.retain(|(handler, _)| &*handler.name != name);
    }

    /// Says what there is now.
    pub(super) fn publish(&mut self) {
        let own = (self.own.clone(), self.own.backend.catalog().borrow().clone());
        let parts: Vec<_> = [own].into_iter().chain(self.handlers.iter().cloned()).collect();
        self.registry.send_replace(Arc::new(Registry::assemble(&parts, &mut self.names)));
    }

    /// What a caller sees with this scope.
    pub(super) fn view(&self, scope: &[&str]) -> Arc<Registry> {
        Registry::seen_by(self.registry.borrow().clone(), &caller(scope))
    }

    /// The call that another one stands for, as `name arguments`.
    pub(super) fn forwarded(&self, arguments: Value) -> Option<String> {
        let call = Call::tool("call_tool", Json::from_value(&arguments));
        let meant = self.backend.forward("call_tool", &call, &self.registry.borrow().clone())?;
        let arguments = meant.arguments().map(|arguments| arguments.as_text().to_owned());
        Some(format!("{} {}", meant.target.name(), arguments.unwrap_or_default()))
    }

    /// What the model of a caller reads.
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

    /// The names of the tools that a search gives.
    pub(super) async fn found(&self, scope: &[&str], query: &str, limit: usize) -> Vec<String> {
        let found = self.search.finder.search(&self.view(scope), query, limit).await;
        found.iter().map(|entry| entry.name.to_string()).collect()
    }
}

fn caller(scope: &[&str]) -> Caller {
    let scope: Scope = scope.iter().map(|pattern| pattern.parse::<Pattern>().expect("a pattern")).collect();
    let grant =
        Grant { scope, allowance: None, memory: Scope::default(), model: None, chunk_threshold: None };
    Caller { grant: Some(Arc::new(grant)), ..Caller::default() }
}

fn handler(name: &str, backend: Arc<dyn Backend>) -> Handler {
    let gate = Gate::new(GateSize { running: 10, waiting: 10 });
    Handler::new(name, backend, Limits { timeout: Duration::from_secs(30), gate })
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

/// A yard with a calendar, a shop, and two forges.
pub(super) fn town() -> Yard {
    let offers: [Offer; 4] = [
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
    Yard::new(&offers, &summaries)
}
