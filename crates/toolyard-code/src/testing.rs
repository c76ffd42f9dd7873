//! Registries for tests.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::names::{NameRegistry, PrefixPolicy};
use toolyard_core::registry::{CallLimits, HandlerEntry};
use toolyard_core::{
    Backend, BackendPhase, Call, CallOutput, Catalog, Json, Outcome, Registry, Tool, ToolError,
};

/// A handler: its name, the definitions of its tools, and their prefix.
pub(crate) type Offer = (&'static str, Vec<Value>, PrefixPolicy);

struct SilentBackend(watch::Sender<Arc<Catalog>>);

impl Backend for SilentBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.subscribe()
    }

    fn call(&self, _call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(ready(Ok(Outcome::Done(CallOutput::text("")))))
    }
}

/// Returns definitions of tools that have only a name.
pub(crate) fn named(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({ "name": name })).collect()
}

/// Returns a registry of these handlers.
pub(crate) fn registry(offers: &[Offer]) -> Registry {
    let parts: Vec<_> = offers
        .iter()
        .map(|(name, tools, prefix)| {
            let tool =
                |definition| Arc::new(Tool::from_definition(&Json::from_value(definition)).expect("a tool"));
            let tools = tools.iter().map(tool).collect();
            let catalog = Arc::new(Catalog { phase: BackendPhase::Ready, tools, ..Catalog::default() });
            let backend = Arc::new(SilentBackend(watch::Sender::new(catalog.clone())));
            let gate = CallGate::new(GateSize { running: 10, waiting: 10 });
            let limits = CallLimits { timeout: Duration::from_secs(10), gate };
            (HandlerEntry { prefix: *prefix, ..HandlerEntry::new(*name, backend, limits) }, catalog)
        })
        .collect();
    Registry::assemble(&parts, &mut NameRegistry::default())
}
