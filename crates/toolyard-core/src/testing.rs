//! A fake backend for tests of layers and registries.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::backend::{Backend, BackendPhase, Catalog};
use crate::call::Call;
use crate::gate::{CallGate, GateSize};
use crate::json::{Json, Object};
use crate::layers::CallResult;
use crate::names::NameRegistry;
use crate::registry::{CallLimits, HandlerEntry, Registry};
use crate::tool::Tool;

/// The reaction of a [`FakeBackend`] to a call.
pub(crate) type FakeBehaviour = Box<dyn Fn(Call) -> BoxFuture<'static, CallResult> + Send + Sync>;

/// A backend with given tools and behaviour.
pub(crate) struct FakeBackend {
    catalog: watch::Sender<Arc<Catalog>>,
    behaviour: FakeBehaviour,
}

impl FakeBackend {
    /// Creates a backend with tools of these definitions. Invalid ones are skipped.
    #[must_use]
    pub(crate) fn new(definitions: &[&str], behaviour: FakeBehaviour) -> Arc<Self> {
        let backend = Self { catalog: watch::Sender::default(), behaviour };
        backend.offer(definitions);
        Arc::new(backend)
    }

    /// Replaces the offered tools.
    pub(crate) fn offer(&self, definitions: &[&str]) {
        let read = |text: &&str| Tool::from_definition(&Json::parse(text.to_string()).ok()?).ok();
        let tools = definitions.iter().filter_map(read).map(Arc::new).collect();
        self.catalog.send_replace(Arc::new(Catalog {
            phase: BackendPhase::Ready,
            tools,
            ..Catalog::default()
        }));
    }
}

impl Backend for FakeBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, CallResult> {
        (self.behaviour)(call)
    }
}

/// Returns a handler with generous limits.
#[must_use]
pub(crate) fn handler(name: &str, backend: Arc<dyn Backend>) -> HandlerEntry {
    let gate = CallGate::new(GateSize { running: 1000, waiting: 1000 });
    HandlerEntry::new(name, backend, CallLimits { timeout: Duration::from_secs(30), gate })
}

/// Returns a ready catalog with tools of these names.
#[must_use]
pub(crate) fn tools(names: &[impl AsRef<str>]) -> Catalog {
    let any = Object::new().with("type", Json::string("object")).to_json();
    let schema = Object::new().with("inputSchema", any);
    let tool = |name: &str| Arc::new(Tool::named(name, schema.clone()));
    let tools = names.iter().map(|name| tool(name.as_ref())).collect();
    Catalog { phase: BackendPhase::Ready, tools, ..Catalog::default() }
}

/// Returns the registry of these handlers in their current state.
#[must_use]
pub(crate) fn registry_of(handlers: &[HandlerEntry]) -> Arc<Registry> {
    let part = |handler: &HandlerEntry| (handler.clone(), handler.backend.catalog().borrow().clone());
    let parts: Vec<_> = handlers.iter().map(part).collect();
    Arc::new(Registry::assemble(&parts, &mut NameRegistry::default()))
}
