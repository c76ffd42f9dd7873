//! A scripted function, and a backend that calls it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use toolyard_core::{
    Backend, BackendPhase, Call, Catalog, Json, MessageExchange, Outcome, RetrySchedule, SecretRedactor,
    ToolError,
};
use toolyard_mcp::client::{
    ClientOptions, DedicatedOptions, EraPreference, LivenessProbe, McpBackend, ServerEndpoint, SharingMode,
    UpstreamRetry, UpstreamToolFilter,
};

/// The response to a request.
pub(crate) type FunctionResult = Result<Value, ToolError>;

type Script = Box<dyn Fn(Value) -> BoxFuture<'static, FunctionResult> + Send + Sync>;

/// A scripted function that records its requests.
pub(crate) struct Function {
    script: Mutex<Arc<Script>>,
    generation: watch::Sender<u64>,
    requests: Mutex<Vec<Value>>,
    /// Deadline of the last request.
    pub(crate) deadline: Mutex<Option<Instant>>,
}

impl Function {
    /// Creates a function that answers at once.
    pub(crate) fn new(answer: impl Fn(&Value) -> FunctionResult + Send + Sync + 'static) -> Arc<Self> {
        Self::slow(move |request| Box::pin(std::future::ready(answer(&request))))
    }

    /// Creates a function that takes its time.
    pub(crate) fn slow(
        script: impl Fn(Value) -> BoxFuture<'static, FunctionResult> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let script: Script = Box::new(script);
        Arc::new(Self {
            script: Mutex::new(Arc::new(script)),
            generation: watch::Sender::new(1),
            requests: Mutex::default(),
            deadline: Mutex::default(),
        })
    }

    /// Replaces the function by another version, and announces that.
    pub(crate) fn replace(&self, answer: impl Fn(&Value) -> FunctionResult + Send + Sync + 'static) {
        let script: Script = Box::new(move |request| Box::pin(std::future::ready(answer(&request))));
        *self.script.lock().unwrap() = Arc::new(script);
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Takes the methods of the requests so far, in order.
    pub(crate) fn take_methods(&self) -> Vec<String> {
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.iter().map(|request| request["method"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the last request.
    pub(crate) fn last(&self) -> Value {
        self.requests.lock().unwrap().last().unwrap().clone()
    }

    /// Returns a backend for the function.
    pub(crate) fn serve(self: &Arc<Self>) -> McpBackend {
        McpBackend::start("function", ServerEndpoint::Function(self.clone()), options())
    }
}

/// Returns the settings of a backend in a test.
pub(crate) fn options() -> ClientOptions {
    ClientOptions {
        dropped_notices: Arc::default(),
        skipped_messages: Arc::default(),
        error_lines: Default::default(),
        launcher: None,
        name: "gateway".into(),
        version: "1".into(),
        max_message_bytes: 100_000,
        max_list_items: 100,
        max_depth: 512,
        connect_timeout: Duration::from_secs(30),
        discover_timeout: Duration::from_secs(1),
        idle_timeout: Some(Duration::from_secs(1)),
        era: EraPreference::default(),
        filter: UpstreamToolFilter::default(),
        retry: UpstreamRetry { retry: RetrySchedule::never(), attempt_timeout: None },
        dedicated: DedicatedOptions {
            sharing: SharingMode::Client,
            limit: 1,
            idle_timeout: Duration::from_secs(1),
            max_list_bytes: 0,
        },
        probe: Some(LivenessProbe { interval: Duration::from_secs(1), timeout: Duration::from_secs(1) }),
        budget: toolyard_net::budget::ByteBudget::default(),
        secrets: SecretRedactor::default(),
    }
}

impl MessageExchange for Function {
    fn exchange(&self, request: Json, deadline: Option<Instant>) -> BoxFuture<'_, Result<Json, ToolError>> {
        let request = request.to_value();
        self.requests.lock().unwrap().push(request.clone());
        *self.deadline.lock().unwrap() = deadline;
        let script = self.script.lock().unwrap().clone();
        Box::pin(async move { script(request).await.map(|answer| Json::from_value(&answer)) })
    }

    fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}

/// Answers like the sample functions: with the first revision for any requested one, and with a failure if parameters
/// or arguments are missing, as the JavaScript and Lua samples do.
pub(crate) fn sample(request: &Value) -> FunctionResult {
    tool_function(&["echo"])(request)
}

/// The same with these tools.
pub(crate) fn tool_function(names: &[&str]) -> impl Fn(&Value) -> FunctionResult + Send + Sync + 'static {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let tool = |name: &&str| json!({"name": name, "description": "Echo.", "inputSchema": schema});
    let tools: Vec<_> = names.iter().map(tool).collect();
    move |request| {
        let initialized = json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "my-mcp-server", "version": "1.0.0"},
        });
        match request["method"].as_str().unwrap() {
            "initialize" => result(request, &initialized),
            "tools/list" => result(request, &json!({"tools": tools})),
            "tools/call" => {
                let params = request["params"].as_object().expect("there are parameters");
                let arguments = params["arguments"].as_object().expect("there are arguments");
                let name = params["name"].as_str().unwrap();
                match tools.iter().any(|tool| tool["name"] == name) {
                    true => result(
                        request,
                        &json!({"content": [{"type": "text", "text": arguments.get("text")}]}),
                    ),
                    false => error(request, -32602, &format!("Unknown tool: {name}")),
                }
            }
            method => error(request, -32601, &format!("Method not found: {method}")),
        }
    }
}

pub(crate) fn result(request: &Value, result: &Value) -> FunctionResult {
    Ok(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

pub(crate) fn error(request: &Value, code: i32, message: &str) -> FunctionResult {
    Ok(json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}))
}

/// Calls a tool and returns the text of its result.
pub(crate) async fn call(backend: &McpBackend, tool: &str, arguments: Value) -> Result<String, ToolError> {
    match backend.call(Call::tool(tool, Json::from_value(&arguments))).await? {
        Outcome::Done(output) => Ok(output.body.to_json().to_value()["content"][0]["text"].to_string()),
        other => panic!("{other:?}"),
    }
}

/// Waits until the catalog satisfies a condition.
pub(crate) async fn until(backend: &McpBackend, is: impl Fn(&Catalog) -> bool) -> Arc<Catalog> {
    let mut catalog = backend.catalog();
    let matched = tokio::time::timeout(Duration::from_secs(600), catalog.wait_for(|catalog| is(catalog)));
    matched.await.expect("it comes to that").unwrap().clone()
}

pub(crate) async fn ready(backend: &McpBackend) -> Arc<Catalog> {
    until(backend, |catalog| catalog.phase == BackendPhase::Ready).await
}

/// Returns the names of the tools in a catalog.
pub(crate) fn names(catalog: &Catalog) -> Vec<String> {
    catalog.tools.iter().map(|tool| tool.name.to_string()).collect()
}
