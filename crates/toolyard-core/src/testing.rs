//! A backend for tests of what stands in front of one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::backend::{Backend, Catalog, Phase};
use crate::call::Call;
use crate::gate::{Gate, GateSize};
use crate::json::{Json, Object};
use crate::layers::Answer;
use crate::names::Names;
use crate::registry::{Handler, Limits, Registry};
use crate::tool::Tool;

/// What a [`FakeBackend`] does with a call.
pub(crate) type Behaviour = Box<dyn Fn(Call) -> BoxFuture<'static, Answer> + Send + Sync>;

/// A backend that offers the given tools and behaves as it is told.
pub(crate) struct FakeBackend {
    catalog: watch::Sender<Arc<Catalog>>,
    behaviour: Behaviour,
}

impl FakeBackend {
    /// A backend with tools of these definitions. What is no definition is skipped.
    #[must_use]
    pub(crate) fn new(definitions: &[&str], behaviour: Behaviour) -> Arc<Self> {
        let backend = Self { catalog: watch::Sender::default(), behaviour };
        backend.offer(definitions);
        Arc::new(backend)
    }

    /// Offers other tools from now on.
    pub(crate) fn offer(&self, definitions: &[&str]) {
        let read = |text: &&str| Tool::from_definition(&Json::parse(text.to_string()).ok()?).ok();
        let tools = definitions.iter().filter_map(read).map(Arc::new).collect();
        self.catalog.send_replace(Arc::new(Catalog { phase: Phase::Ready, tools, ..Catalog::default() }));
    }
}

impl Backend for FakeBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Answer> {
        (self.behaviour)(call)
    }
}

/// A handler around a backend, with limits that do not matter.
#[must_use]
pub(crate) fn handler(name: &str, backend: Arc<dyn Backend>) -> Handler {
    let gate = Gate::new(GateSize { running: 1000, waiting: 1000 });
    Handler::new(name, backend, Limits { timeout: Duration::from_secs(30), gate })
}

/// A catalog that is ready, with tools of these names.
#[must_use]
pub(crate) fn tools(names: &[impl AsRef<str>]) -> Catalog {
    let tool = |name: &str| Arc::new(Tool::named(name, Object::new()));
    let tools = names.iter().map(|name| tool(name.as_ref())).collect();
    Catalog { phase: Phase::Ready, tools, ..Catalog::default() }
}

/// The registry of these handlers as they are now.
#[must_use]
pub(crate) fn registry_of(handlers: &[Handler]) -> Arc<Registry> {
    let part = |handler: &Handler| (handler.clone(), handler.backend.catalog().borrow().clone());
    let parts: Vec<_> = handlers.iter().map(part).collect();
    Arc::new(Registry::assemble(&parts, &mut Names::default()))
}
