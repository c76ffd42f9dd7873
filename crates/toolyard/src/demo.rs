//! `toolyard demo-server`: a small MCP server on stdio, which the quick start puts behind the gateway.

use std::process::ExitCode;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::gate::{Gate, GateSize};
use toolyard_core::layers::Arguments;
use toolyard_core::names::Names;
use toolyard_core::registry::{Handler, Limits};
use toolyard_core::{
    Backend, Call, Catalog, Gateway, Json, Outcome, Output, Phase, Registry, Tool, ToolError,
};
use toolyard_manifest::Process;
use toolyard_mcp::server::duplex::{self, DuplexLimits};
use toolyard_mcp::server::{Frontend, FrontendOptions, Offers, ServerInfo};

/// The tools of the demo.
struct Demo {
    catalog: watch::Sender<Arc<Catalog>>,
}

pub(crate) async fn run() -> anyhow::Result<ExitCode> {
    let process = Process::default();
    let running = process.limits.concurrent_calls;
    let gate = Gate::new(GateSize { running, waiting: process.limits.queued_calls });
    let limits = Arc::new(Limits { timeout: std::time::Duration::MAX, gate });
    let handler = Handler { name: "demo".into(), backend: Arc::new(Demo::new()?), limits };
    let catalog = handler.backend.catalog().borrow().clone();
    let registry = Registry::assemble(&[(handler, catalog)], &mut Names::default());
    let (_registry, registry_now) = watch::channel(Arc::new(registry));
    let (_stopping, stopping_now) = watch::channel(false);
    let gateway = Arc::new(Gateway::new(registry_now, vec![Box::new(Arguments)]));
    let info = ServerInfo {
        name: "toolyard-demo".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..ServerInfo::default()
    };
    let offers = Offers { tools: true, ..Offers::default() };
    let options = FrontendOptions { info, offers, ..FrontendOptions::default() };
    let frontend = Arc::new(Frontend::new(gateway, options, stopping_now));
    let limits = DuplexLimits { line_bytes: process.limits.request_body_bytes, requests: running };
    duplex::serve(frontend, tokio::io::stdin(), tokio::io::stdout(), limits).await?;
    Ok(ExitCode::SUCCESS)
}

impl Demo {
    fn new() -> anyhow::Result<Self> {
        let tool = |definition| Ok(Arc::new(Tool::from_definition(&Json::from_value(&definition))?));
        let tools = definitions().into_iter().map(tool).collect::<anyhow::Result<_>>()?;
        Ok(Self {
            catalog: watch::Sender::new(Arc::new(Catalog {
                phase: Phase::Ready,
                tools,
                ..Catalog::default()
            })),
        })
    }
}

fn definitions() -> [Value; 3] {
    let text = json!({"type": "string"});
    let number = json!({"type": "number"});
    [
        json!({
            "name": "echo",
            "description": "Returns the text that it is given.",
            "inputSchema": {"type": "object", "properties": {"text": text}, "required": ["text"]},
        }),
        json!({
            "name": "reverse_string",
            "description": "Reverses the input string.",
            "inputSchema": {"type": "object", "properties": {"input": text}, "required": ["input"]},
        }),
        json!({
            "name": "add",
            "description": "Adds two numbers.",
            "inputSchema": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]},
        }),
    ]
}

/// Runs a tool whose arguments have passed its schema.
fn answer(tool: &str, arguments: &Value) -> Result<String, ToolError> {
    let text = |name: &str| arguments[name].as_str().unwrap_or_default();
    let number = |name: &str| arguments[name].as_f64().unwrap_or_default();
    match tool {
        "echo" => Ok(text("text").to_owned()),
        "reverse_string" => Ok(text("input").chars().rev().collect()),
        "add" => Ok((number("a") + number("b")).to_string()),
        unknown => Err(ToolError::unknown_tool(unknown)),
    }
}

impl Backend for Demo {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let arguments = call.arguments().map(Json::to_value).unwrap_or_default();
        let name = call.target.name().clone();
        let answer = answer(&name, &arguments).map(|text| Outcome::Done(Output::text(&text)));
        Box::pin(std::future::ready(answer))
    }
}
