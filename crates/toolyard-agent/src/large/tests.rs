//! A gateway with a working memory and a server, whose tools all return the same result.

mod bounds;
mod chunks;
mod forms;
mod messages;
mod owners;
mod reading;
mod truncation;

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::access::AccessGrant;
use toolyard_core::backend::{BackendPhase, Catalog};
use toolyard_core::client::{Client, ClientNotification, NoClient};
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::names::NameRegistry;
use toolyard_core::overrides::{ChunkingPolicy, DefinitionOverride, Override, Overrides};
use toolyard_core::registry::{CallLimits, DisclosureMode, DisclosurePolicy, HandlerEntry};
use toolyard_core::{Backend, Gateway, Json, Object, TaskReference, Tool};
use toolyard_manifest::MemorySettings;

use super::*;
use crate::chunk;
use crate::memory::chunk_keys as keys;
use crate::memory::testing::ManualStore;
use crate::memory::tools;
use crate::memory::{MemoryNamespace, SessionHandleSettings, SessionHandles};

/// Answers each call with the same result. The result `echo` is the `_meta` of the call as a text, and `jsonRpcError` is
/// the error of a server.
struct FixedResultBackend {
    catalog: watch::Sender<Arc<Catalog>>,
    result: Value,
}

impl Backend for FixedResultBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, CallResult> {
        if self.result == "echo" {
            return ready(Ok(Outcome::Done(CallOutput::text(call.meta.to_json().as_text())))).boxed();
        }
        if let Some(error) = self.result.get("jsonRpcError") {
            let failure = ToolError::new(ErrorCode::ExecutionFailed, "The server answered with an error");
            return ready(Err(failure.from_peer(Json::from_value(error)))).boxed();
        }
        let body = Json::from_value(&self.result).to_object().expect("an object");
        let is_error = self.result["isError"] == true;
        ready(Ok(Outcome::Done(CallOutput { body, is_error }))).boxed()
    }
}

fn fixed(tools: &[(&str, bool)], result: Value) -> Arc<dyn Backend> {
    let tool = |(name, has_schema): &(&str, bool)| {
        let schema = Json::parse(r#"{"type":"object"}"#).expect("JSON");
        let rest = if *has_schema { Object::new().with("outputSchema", schema) } else { Object::new() };
        Arc::new(Tool::named(name, rest))
    };
    let tools = tools.iter().map(tool).collect();
    let catalog = Catalog { phase: BackendPhase::Ready, tools, ..Catalog::default() };
    Arc::new(FixedResultBackend { catalog: watch::Sender::new(Arc::new(catalog)), result })
}

/// A client with a model.
#[derive(Debug)]
struct ModelClient;

impl Client for ModelClient {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        false
    }

    fn calls_tools(&self) -> bool {
        true
    }

    fn notify(&self, _: ClientNotification) {}
}

/// Returns overrides of two tools.
fn overrides() -> Overrides {
    let chunking =
        |chunking| Override::Change(DefinitionOverride { chunking, ..DefinitionOverride::default() });
    let strict = ChunkingPolicy { threshold: Some(10), ..ChunkingPolicy::default() };
    let structured = |structured| ChunkingPolicy { structured, ..ChunkingPolicy::default() };
    let (loose, kept) = (structured(Some(true)), structured(Some(false)));
    let policies = [("strict", strict), ("loose", loose), ("kept", kept)];
    policies.map(|(name, policy)| (name.into(), chunking(policy))).into()
}

struct LargeResultHarness {
    store: Arc<ManualStore>,
    memory: WorkingMemory,
    gateway: Gateway,
}

impl LargeResultHarness {
    fn new(result: Value, options: ResultSettings, limits: MemorySettings) -> Self {
        let (store, memory) = ManualStore::memory(limits);
        let tools =
            [("list_models", false), ("strict", false), ("loose", true), ("kept", true), ("typed", true)];
        let server = toolyard_sdk::Server::new("memory", "1.0.0");
        let server = tools::add(server, memory.clone()).expect("tools");
        let backends = [("fixed", fixed(&tools, result)), ("memory", server.into_backend())];
        let parts = backends.map(|(name, backend): (_, Arc<dyn Backend>)| {
            let gate = CallGate::new(GateSize { running: 10, waiting: 10 });
            let catalog = backend.catalog().borrow().clone();
            let limits = CallLimits { timeout: std::time::Duration::from_secs(30), gate };
            let overrides = Arc::new(overrides());
            let reader = Some(tools::GET.into());
            let (show, budget, pinned, finders) = (DisclosureMode::All, 0, Vec::new(), Vec::new());
            let output_schemas = Some(options.output_schemas);
            let disclosure = DisclosurePolicy {
                show,
                budget,
                pinned,
                finders,
                script_tools: Vec::new(),
                reader,
                output_schemas,
                unlisted: Vec::new(),
            };
            let disclosure = Arc::new(disclosure);
            let disclosure = (name == "memory").then_some(disclosure);
            (HandlerEntry { overrides, disclosure, ..HandlerEntry::new(name, backend, limits) }, catalog)
        });
        let registry = Arc::new(Registry::assemble(&parts, &mut NameRegistry::default()));
        let registry = watch::Sender::new(registry).subscribe();
        let settings = LargeSettings { memory: Some(memory.clone()), handler: "memory".into(), options };
        let settings = watch::Sender::new(Some(Arc::new(settings))).subscribe();
        let handles = SessionHandleSettings { memory: memory.clone(), handler: "memory".into() };
        let handles = watch::Sender::new(Some(Arc::new(handles))).subscribe();
        let layers: Vec<Box<dyn toolyard_core::layers::Layer>> = vec![
            Box::new(LargeResults::new(settings, registry.clone())),
            Box::new(SessionHandles::new(handles)),
        ];
        let gateway = Gateway::new(registry, layers);
        Self { store, memory, gateway }
    }

    fn small(result: Value) -> Self {
        let options = ResultSettings { threshold: 40, least_chunk: 20, ..ResultSettings::default() };
        Self::new(result, options, MemorySettings::default())
    }

    async fn call(&self, tool: &str, arguments: Value, meta: Value) -> Value {
        self.call_by(Arc::new(ModelClient), Caller::default(), tool, arguments, meta).await
    }

    async fn call_by(
        &self,
        client: Arc<dyn Client>,
        caller: Caller,
        tool: &str,
        arguments: Value,
        meta: Value,
    ) -> Value {
        let mut call = Call { client, caller, ..Call::tool(tool, Json::from_value(&arguments)) };
        call.meta = self.meta(&meta).await;
        match self.gateway.invoke(call).await {
            Ok(Outcome::Done(output)) => output.body.to_json().to_value(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the `_meta` of a request with a handle of the session that it names.
    async fn meta(&self, meta: &Value) -> Object {
        let mut meta = Json::from_value(meta).to_object().expect("an object");
        if let Some(named) = meta.get_str(SESSION_META).map(std::borrow::Cow::into_owned) {
            meta.set(SESSION_META, Json::string(&ManualStore::handle(&self.memory, &named).await));
        }
        meta
    }

    /// Calls a tool in the session `abc123` and returns the result with a fixed key.
    async fn result(&self, tool: &str) -> Value {
        let mut result = self.call(tool, json!({}), json!({"toolyard/session": "abc123"})).await;
        // A handle is another one each time.
        if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut)
            && meta.remove(SESSION_META).is_some()
            && meta.is_empty()
        {
            result.as_object_mut().expect("an object").remove("_meta");
        }
        let mut text = result.to_string();
        let keys = self.memory.list(&MemoryNamespace::new("session", "abc123")).await.unwrap_or_default();
        if let Some(base) = keys.first().and_then(|record| keys::base_of(&record.key)) {
            text = text.replace(base, &format!("session/abc123/tool-{tool}-a1b2c3"));
        }
        serde_json::from_str(&text).expect("JSON")
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
