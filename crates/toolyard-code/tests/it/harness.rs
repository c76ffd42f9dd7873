//! A gateway with the tools for scripts, and with tools that scripts call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_code::engine::ScriptEngine;
use toolyard_code::shapes::ObservedShapes;
use toolyard_code::tools::{self, CodeTools, RUN};
use toolyard_core::access::{AccessGrant, CallAllowance, ScopePattern};
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::names::NameRegistry;
use toolyard_core::registry::{CallLimits, HandlerEntry};
use toolyard_core::{
    Backend, Call, CallOutput, Caller, Client, Gateway, Json, NestedGateway, NoClient, Observers, Registry,
    ToolError,
};
use toolyard_manifest::CodeSettings;
use toolyard_process::{ProcessSpawner, ProcessTable};
use toolyard_sandbox::{IsolationRequirement, Sandbox, SandboxOptions};
use toolyard_sdk::{Server, Tool, ToolCall, ToolFailure, ToolReply};

/// Binary of the processes and their supervisors.
const WORKER: &str = env!("CARGO_BIN_EXE_script-worker");

/// Name of the handler with the tools for scripts.
const OWN: &str = "builtins";

/// A gateway with its tools.
pub(crate) struct Harness {
    gateway: Arc<Gateway>,
    /// A process has only one: it names the groups of its processes.
    sandbox: Sandbox,
    /// Number of calls of `hub` that are running, and the maximum so far.
    pub(crate) running: Arc<RunningCalls>,
    _registry: watch::Sender<Arc<Registry>>,
}

/// Counts calls that run at the same time.
#[derive(Default)]
pub(crate) struct RunningCalls {
    now: AtomicUsize,
    pub(crate) most: AtomicUsize,
}

impl Harness {
    pub(crate) fn new(settings: CodeSettings) -> Self {
        Self::within(IsolationRequirement::BestEffort, settings)
    }

    /// Creates a gateway whose scripts have this isolation.
    pub(crate) fn within(isolation: IsolationRequirement, settings: CodeSettings) -> Self {
        let processes = ProcessTable::new(ProcessSpawner::supervised_by(WORKER), 64);
        let mut options = SandboxOptions::new(processes);
        options.binary = WORKER.into();
        options.isolation = isolation;
        Self::over(Sandbox::new(options), settings)
    }

    /// Creates another gateway in the same sandbox.
    pub(crate) fn with(&self, settings: CodeSettings) -> Self {
        Self::over(self.sandbox.clone(), settings)
    }

    /// Creates another gateway in the same sandbox, with other servers.
    pub(crate) fn with_servers(&self, servers: Vec<(&'static str, Arc<dyn Backend>)>) -> Self {
        Self::serving(self.sandbox.clone(), CodeSettings::default(), Arc::default(), servers)
    }

    fn over(sandbox: Sandbox, settings: CodeSettings) -> Self {
        let running = Arc::<RunningCalls>::default();
        let hub = hub(&running);
        Self::serving(sandbox, settings, running, vec![("hub", hub)])
    }

    fn serving(
        sandbox: Sandbox,
        settings: CodeSettings,
        running: Arc<RunningCalls>,
        servers: Vec<(&'static str, Arc<dyn Backend>)>,
    ) -> Self {
        let (registry, current) = watch::channel(Arc::default());
        let size = GateSize { running: 100, waiting: 100 };
        let layers = Gateway::layers(Observers::default(), size, None, []);
        let gateway = Arc::new(Gateway::new(current, layers));
        let code = CodeTools {
            nested: NestedGateway::new(Arc::downgrade(&gateway), OWN),
            engine: ScriptEngine::new(sandbox.clone(), &settings),
            settings,
            shapes: Arc::new(ObservedShapes::new(100)),
        };
        let own = tools::add(Server::new(OWN, "1.0.0"), code).unwrap().into_backend();
        let servers = servers.into_iter().map(|(name, backend)| (name, backend, false));
        let handler = |(name, backend, is_builtin): (&'static str, Arc<dyn Backend>, bool)| {
            let catalog = backend.catalog().borrow().clone();
            let limits = CallLimits { timeout: Duration::from_secs(60), gate: CallGate::new(size) };
            (HandlerEntry { is_builtin, ..HandlerEntry::new(name, backend, limits) }, catalog)
        };
        let parts: Vec<_> = std::iter::once((OWN, own, true)).chain(servers).map(handler).collect();
        registry.send_replace(Arc::new(Registry::assemble(&parts, &mut NameRegistry::default())));
        Self { gateway, sandbox, running, _registry: registry }
    }

    /// Calls a tool as a caller with these scopes, and returns its texts.
    pub(crate) async fn call(&self, scopes: &[&str], tool: &str, arguments: Value) -> String {
        self.call_with(scopes, None, Arc::new(NoClient), tool, arguments).await
    }

    /// Calls a tool as a caller with these scopes and this allowance, for a client.
    pub(crate) async fn call_with(
        &self,
        scopes: &[&str],
        allowance: Option<Arc<dyn CallAllowance>>,
        client: Arc<dyn Client>,
        tool: &str,
        arguments: Value,
    ) -> String {
        let scope = scopes.iter().map(|scope| scope.parse::<ScopePattern>().unwrap()).collect();
        let grant = Some(Arc::new(AccessGrant { scope, allowance, ..AccessGrant::default() }));
        let caller = Caller { grant, ..Caller::default() };
        let call = Call { caller, client, ..Call::tool(tool, Json::from_value(&arguments)) };
        shown(self.gateway.invoke_to_end(call).await)
    }

    /// Runs a script, and returns what a model reads.
    pub(crate) async fn run(&self, language: &str, code: &str) -> String {
        self.call(&["*"], RUN, json!({"language": language, "code": code})).await
    }

    /// Checks the results of scripts.
    pub(crate) async fn check(&self, language: &str, cases: &[(&str, &str)]) {
        for (code, expected) in cases {
            let text = self.run(language, code).await;
            assert!(text.contains(expected), "{code}\n-- expected: {expected}\n-- found: {text}");
        }
    }
}

/// Returns the texts of a result.
fn shown(result: Result<CallOutput, ToolError>) -> String {
    match result {
        Ok(output) => {
            let body = output.body.to_json().to_value();
            let blocks = body["content"].as_array().cloned().unwrap_or_default();
            let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            let text = texts.join("\n--\n");
            if output.is_error { format!("error: {text}") } else { text }
        }
        Err(error) => format!("refused: {error}"),
    }
}

/// Returns a server with tools of several kinds.
fn hub(running: &Arc<RunningCalls>) -> Arc<dyn Backend> {
    let attempts = Arc::new(AtomicUsize::new(0));
    let running = running.clone();
    let argument = |call: &ToolCall, name: &str| call.arguments::<Value>().unwrap()[name].clone();
    Server::new("hub", "1.0.0")
        .register_tool(Tool::new("echo", "Returns its arguments."), async |call: ToolCall| {
            ToolReply::new().structured(&call.arguments::<Value>()?)
        })
        .unwrap()
        .register_tool(Tool::new("items", "Lists items as text."), async move |call: ToolCall| {
            let count = argument(&call, "count").as_u64().unwrap_or(1000);
            let items: Vec<_> = (0..count).map(|id| json!({"id": id, "price": id % 7})).collect();
            Value::from(items).to_string()
        })
        .unwrap()
        .register_tool(Tool::new("fail", "Fails."), async || {
            Err::<String, _>(ToolFailure::new("the disk is full"))
        })
        .unwrap()
        .register_tool(Tool::new("flaky", "Fails twice."), async move || {
            match attempts.fetch_add(1, Ordering::Relaxed) {
                0 | 1 => Err(ToolFailure::new("try again")),
                attempt => Ok(format!("done after {attempt}")),
            }
        })
        .unwrap()
        .register_tool(Tool::new("busy", "Takes 50 ms."), async move |call: ToolCall| {
            let now = running.now.fetch_add(1, Ordering::SeqCst) + 1;
            running.most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            running.now.fetch_sub(1, Ordering::SeqCst);
            argument(&call, "n").to_string()
        })
        .unwrap()
        .register_tool(Tool::new("endless", "Never ends."), async || {
            std::future::pending::<()>().await;
            "never"
        })
        .unwrap()
        .register_tool(Tool::new("hidden", "Is for others."), async || "secret")
        .unwrap()
        .into_backend()
}
