//! A function that answers one message with one other, and whoever calls it as a server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use toolyard_core::{Backend, Call, Catalog, Exchange, Json, Outcome, Phase, Retry, Secrets, ToolError};
use toolyard_mcp::client::{
    Attempts, ClientOptions, Endpoint, LaneMode, LaneOptions, McpBackend, Probe, ToolFilter,
};

/// What comes back for a request.
pub(crate) type Exchanged = Result<Value, ToolError>;

type Script = Box<dyn Fn(Value) -> BoxFuture<'static, Exchanged> + Send + Sync>;

/// A function, and what it was asked.
pub(crate) struct Function {
    script: Mutex<Arc<Script>>,
    generation: watch::Sender<u64>,
    asked: Mutex<Vec<Value>>,
    /// Of the last request.
    pub(crate) deadline: Mutex<Option<Instant>>,
}

impl Function {
    /// One that answers at once.
    pub(crate) fn new(answer: impl Fn(&Value) -> Exchanged + Send + Sync + 'static) -> Arc<Self> {
        Self::slow(move |request| Box::pin(std::future::ready(answer(&request))))
    }

    /// One that takes its time.
    pub(crate) fn slow(
        script: impl Fn(Value) -> BoxFuture<'static, Exchanged> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let script: Script = Box::new(script);
        Arc::new(Self {
            script: Mutex::new(Arc::new(script)),
            generation: watch::Sender::new(1),
            asked: Mutex::default(),
            deadline: Mutex::default(),
        })
    }

    /// Another version answers from now on, and whoever is interested is told.
    pub(crate) fn become_(&self, answer: impl Fn(&Value) -> Exchanged + Send + Sync + 'static) {
        let script: Script = Box::new(move |request| Box::pin(std::future::ready(answer(&request))));
        *self.script.lock().unwrap() = Arc::new(script);
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// The methods that it was asked for since the last time, in order.
    pub(crate) fn take_asked(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.iter().map(|request| request["method"].as_str().unwrap().to_owned()).collect()
    }

    /// The last request.
    pub(crate) fn last(&self) -> Value {
        self.asked.lock().unwrap().last().unwrap().clone()
    }

    /// The backend of a gateway whose server is this.
    pub(crate) fn serve(self: &Arc<Self>) -> McpBackend {
        let options = ClientOptions {
            name: "yard".into(),
            version: "1".into(),
            message_bytes: 100_000,
            tools: 100,
            connect_time: Duration::from_secs(30),
            probe_time: Duration::from_secs(1),
            idle_time: Some(Duration::from_secs(1)),
            filter: ToolFilter::default(),
            attempts: Attempts { retry: Retry::never(), time: None },
            lanes: LaneOptions { mode: LaneMode::Client, most: 1, idle_time: Duration::from_secs(1) },
            probe: Some(Probe { interval: Duration::from_secs(1), time: Duration::from_secs(1) }),
            secrets: Secrets::default(),
        };
        McpBackend::start("function", Endpoint::Exchange(self.clone()), options)
    }
}

impl Exchange for Function {
    fn exchange(&self, request: Json, deadline: Option<Instant>) -> BoxFuture<'_, Result<Json, ToolError>> {
        let request = request.to_value();
        self.asked.lock().unwrap().push(request.clone());
        *self.deadline.lock().unwrap() = deadline;
        let script = self.script.lock().unwrap().clone();
        Box::pin(async move { script(request).await.map(|answer| Json::from_value(&answer)) })
    }

    fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}

/// Answers as the samples do that authors begin with: whatever revision it is asked for it says the first one, and it
/// breaks down where parameters or arguments are missing, as the ones in JavaScript and Lua do.
pub(crate) fn sample(request: &Value) -> Exchanged {
    of_tools(&["echo"])(request)
}

/// The same with tools of these names.
pub(crate) fn of_tools(names: &[&str]) -> impl Fn(&Value) -> Exchanged + Send + Sync + 'static {
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

pub(crate) fn result(request: &Value, result: &Value) -> Exchanged {
    Ok(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

pub(crate) fn error(request: &Value, code: i32, message: &str) -> Exchanged {
    Ok(json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}))
}

/// Calls a tool; gives the text of its result.
pub(crate) async fn call(backend: &McpBackend, tool: &str, arguments: Value) -> Result<String, ToolError> {
    match backend.call(Call::tool(tool, Json::from_value(&arguments))).await? {
        Outcome::Done(output) => Ok(output.body.to_json().to_value()["content"][0]["text"].to_string()),
        other => panic!("{other:?}"),
    }
}

/// Waits until the catalog is like this.
pub(crate) async fn until(backend: &McpBackend, is: impl Fn(&Catalog) -> bool) -> Arc<Catalog> {
    let mut catalog = backend.catalog();
    let found = tokio::time::timeout(Duration::from_secs(600), catalog.wait_for(|catalog| is(catalog)));
    found.await.expect("it comes to that").unwrap().clone()
}

pub(crate) async fn ready(backend: &McpBackend) -> Arc<Catalog> {
    until(backend, |catalog| catalog.phase == Phase::Ready).await
}

/// The names of the tools in a catalog.
pub(crate) fn names(catalog: &Catalog) -> Vec<String> {
    catalog.tools.iter().map(|tool| tool.name.to_string()).collect()
}
