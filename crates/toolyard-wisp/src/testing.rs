//! A gateway for tests, with wisps, a server, and stand-ins for the gateway's other tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_agent::memory::{self, WorkingMemory};
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::gateway::Observers;
use toolyard_core::names::NameRegistry;
use toolyard_core::registry::{CallLimits, HandlerEntry, Registry};
use toolyard_core::{Backend, Call, Caller, Gateway, Json, NestedGateway};
use toolyard_manifest::{MemorySettings, WispSettings};
use toolyard_sdk::{Context, Server, Tool, ToolCall, ToolFailure, ToolReply};
use toolyard_testing::memory_store::MemoryStore;

use crate::model::{LlmStepRequest, StepModel, StepModelError};
use crate::tools::{self, Wisps};

/// A model that answers by the first word of its prompt, and repeats what it was asked.
#[derive(Default)]
pub(crate) struct ScriptedModel;

impl StepModel for ScriptedModel {
    fn run(&self, request: LlmStepRequest) -> BoxFuture<'_, Result<String, StepModelError>> {
        async move {
            let LlmStepRequest { prompt, tools, calls, .. } = request;
            match prompt.split_whitespace().next() {
                Some("unavailable") => Err(StepModelError::Unavailable("connection refused".to_owned())),
                Some("undecided") => Err(StepModelError::NoAnswer("20 rounds are used up".to_owned())),
                Some("empty") => Ok(" ".to_owned()),
                Some("call") => {
                    let result = calls.call("lookup", json_of(&json!({"id": "from-model"})), None).await;
                    Ok(text_of(&result.expect("a result").body.to_json().to_value()))
                }
                _ => Ok(format!("tools: {}\nprompt: {prompt}", tools.join(", "))),
            }
        }
        .boxed()
    }
}

/// Number of calls of the tool `slow` that run.
pub(crate) type RunningCalls = Arc<AtomicUsize>;

/// Counts a call while it runs.
struct CountedCall(RunningCalls);

impl Drop for CountedCall {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A gateway with the tool `spawn_wisps`.
pub(crate) struct WispGateway {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) slow_calls: RunningCalls,
}

/// Options of a test gateway.
#[derive(Default)]
pub(crate) struct GatewayOptions {
    pub(crate) settings: WispSettings,
    pub(crate) has_model: bool,
}

impl WispGateway {
    pub(crate) fn new(options: GatewayOptions) -> Self {
        let slow_calls = RunningCalls::default();
        let running = slow_calls.clone();
        let gateway = Arc::new_cyclic(|gateway| {
            let memory = WorkingMemory::new(Arc::<MemoryStore>::default(), MemorySettings::default());
            let model = options.has_model.then(|| Arc::<ScriptedModel>::default() as Arc<dyn StepModel>);
            let wisps = Wisps {
                gateway: NestedGateway::new(gateway.clone(), "builtins"),
                memory: memory.clone(),
                settings: Arc::new(options.settings),
                model,
            };
            let own = stand_ins(Server::new("toolyard", "1.0.0"));
            let own = memory::tools::add(own, memory).and_then(|server| tools::add(server, wisps));
            let own =
                HandlerEntry { is_builtin: true, ..handler("builtins", own.expect("tools").into_backend()) };
            let registry = registry_of(&[own, handler("shop", shop(running).into_backend())]);
            let (_, registry) = watch::channel(registry);
            let size = GateSize { running: 10, waiting: 0 };
            Gateway::new(registry, Gateway::layers(Observers::default(), size, None, None))
        });
        Self { gateway, slow_calls }
    }

    /// Calls a tool and returns the text that an agent reads.
    pub(crate) async fn read(&self, tool: &str, arguments: &Value) -> String {
        let caller = Caller { principal: Some("k1".into()), ..Caller::default() };
        let call = Call { caller, ..Call::tool(tool, json_of(arguments)) };
        match self.gateway.invoke_to_end(call).await {
            Ok(output) => {
                let text = text_of(&output.body.to_json().to_value());
                if output.is_error { format!("error: {text}") } else { text }
            }
            Err(error) => format!("refused: {error}"),
        }
    }

    /// Spawns wisps and returns the result, with names instead of ids and without times.
    pub(crate) async fn spawn(&self, definitions: &Value) -> String {
        let text = self.read("spawn_wisps", &json!({"definitions": definitions})).await;
        without_ids(&text)
    }
}

fn json_of(value: &Value) -> Json {
    Json::from_value(value)
}

pub(crate) fn text_of(body: &Value) -> String {
    body["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Replaces ids by `BATCH` and `W0`, `W1`, … in the order of the text, and times by `N`.
pub(crate) fn without_ids(text: &str) -> String {
    let mut text = text.to_owned();
    let mut number = 0;
    while let Some(at) = text.find("`wisp-") {
        let id = text[at + 1..].split('`').next().unwrap_or_default().to_owned();
        text = text.replace(&id, &format!("W{number}"));
        number += 1;
    }
    if let Some(at) = text.find("`batch-") {
        let id = text[at + 1..].split('`').next().unwrap_or_default().to_owned();
        text = text.replace(&id, "BATCH");
    }
    let lines = text.lines().map(|line| match line.rsplit_once("] ").filter(|_| line.starts_with("- `")) {
        Some((line, _)) => format!("{line}] N ms"),
        None => match line.rsplit_once(" failed, ").filter(|(_, time)| time.ends_with(" s")) {
            Some((line, _)) => format!("{line} failed, N s"),
            None => line.to_owned(),
        },
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Adds tools of the gateway that repeat their arguments.
fn stand_ins(server: Server) -> Server {
    let tools = ["web_search", "web_browse", "execute_python_script", "invoke_agent"];
    tools.into_iter().fold(server, |server, name| {
        let tool = Tool::new(name, name).input_schema(json!({"type": "object"}));
        let repeat = async |call: ToolCall| {
            Ok::<_, ToolFailure>(format!("{} {}", call.name, call.arguments.to_json().as_text()))
        };
        server.register_tool(tool, repeat).expect("a tool")
    })
}

/// A server with tools that succeed and fail.
fn shop(running: RunningCalls) -> Server {
    let lookup = Tool::new("lookup", "Returns the price of an article.").input_schema(json!({
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": false,
    }));
    let any = |name: &str| Tool::new(name, name).input_schema(json!({"type": "object"}));
    let server = Server::new("shop", "1.0.0")
        .register_tool(lookup, async |call: ToolCall| {
            let id = call.arguments.get_str("id").unwrap_or_default().into_owned();
            let price = json!({"id": id, "price": {"amount": 3, "currency": "EUR"}, "tags": ["new", "red"]});
            Ok::<_, ToolFailure>(ToolReply::new().text(price.to_string()).structured(&price))
        })
        .and_then(|server| {
            server.register_tool(any("broken"), async |_: ToolCall| {
                Err::<String, _>(ToolFailure::new("the warehouse is closed"))
            })
        })
        .and_then(|server| {
            server.register_tool(any("repeat"), async |call: ToolCall| {
                let text = call.arguments.get_str("text").unwrap_or_default().into_owned();
                let times =
                    call.arguments.get("times").and_then(|times| times.to_value().as_u64()).unwrap_or(1);
                Ok::<_, ToolFailure>(text.repeat(usize::try_from(times).unwrap_or_default()))
            })
        })
        .and_then(|server| {
            server.register_tool(any("slow"), move |_: Context, _: ToolCall| {
                let running = running.clone();
                async move {
                    running.fetch_add(1, Ordering::SeqCst);
                    let _counted = CountedCall(running);
                    pending::<Result<String, ToolFailure>>().await
                }
            })
        });
    server.expect("tools")
}

fn handler(name: &str, backend: Arc<dyn Backend>) -> HandlerEntry {
    let gate = CallGate::new(GateSize { running: 1000, waiting: 0 });
    HandlerEntry::new(name, backend, CallLimits { timeout: Duration::from_secs(900), gate })
}

fn registry_of(handlers: &[HandlerEntry]) -> Arc<Registry> {
    let part = |handler: &HandlerEntry| (handler.clone(), handler.backend.catalog().borrow().clone());
    let parts: Vec<_> = handlers.iter().map(part).collect();
    Arc::new(Registry::assemble(&parts, &mut NameRegistry::default()))
}
