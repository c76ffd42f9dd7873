//! The bridge with the handlers of this process, and the servers of another one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, join_all};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use toolyard_agent::management::{
    BridgeManager, BridgedCall, BridgedResult, BridgedServer, BridgedTool, HttpTransportKind, NewServer,
    ServerAddress,
};
use toolyard_agent::summary::SummarySource;
use toolyard_bus::caller::RemoteCall;
use toolyard_bus::envelope::{TraceContext, new_id};
use toolyard_bus::mcp::{BridgeServers, McpBridge, McpToolProxy};
use toolyard_bus::message::McpRegisterServerRequest;
use toolyard_bus::record::ToolInvokeRequest;
use toolyard_core::registry::HandlerEntry;
use toolyard_core::store::Store;
use toolyard_core::{BackendPhase, ErrorCode, Gateway, ToolError};
use toolyard_manifest::BusSettings;

use super::{connect, principal};
use crate::bus::BusFailure;
use crate::context::GatewayContext;
use crate::fleet::FleetCommand;
use crate::frontends::FrontendDeps;
use crate::shutdown::Subsystem;
use crate::summaries::ServerSummaries;

/// Time for a server to answer after it was asked to list its tools again.
const RECONNECT_TIME: Duration = Duration::from_secs(10);

/// Time for the bridge's message about a server that was added.
const ANNOUNCE_TIME: Duration = Duration::from_secs(2);

/// Starts a bridge on the bus of the settings.
///
/// # Errors
/// If the settings have no URL that a broker's client accepts.
pub(in crate::bus) fn start(
    context: &GatewayContext,
    deps: &FrontendDeps<'_>,
    summaries: &Arc<ServerSummaries>,
) -> Result<Box<dyn Subsystem>, BusFailure> {
    let settings = &context.process.bus;
    let bus = connect(settings, &context.store)?;
    let servers = Arc::new(FleetServers {
        gateway: deps.gateway.clone(),
        commands: context.fleet.commands.clone(),
        summaries: summaries.clone(),
    });
    let principal = principal(settings, deps.keys);
    Ok(Box::new(McpBridge::start(bus, deps.gateway.clone(), principal, servers, settings)?))
}

impl Subsystem for McpBridge {
    fn stop(self: Box<Self>, drain: Duration) -> BoxFuture<'static, ()> {
        McpBridge::stop(*self, drain).boxed()
    }
}

/// The handlers of a gateway as the servers of a bridge.
struct FleetServers {
    gateway: Arc<Gateway>,
    commands: mpsc::WeakSender<FleetCommand>,
    summaries: Arc<ServerSummaries>,
}

impl FleetServers {
    /// Asks for the lists of a handler, and waits until it is ready.
    async fn refresh(&self, name: String) {
        let (done, is_known) = oneshot::channel();
        // The sender is not held, because the fleet ends when all senders are dropped.
        let Some(commands) = self.commands.upgrade() else { return };
        if commands.send(FleetCommand::Refresh(name.clone(), done)).await.is_err() {
            return;
        }
        drop(commands);
        if is_known.await != Ok(true) {
            return;
        }
        let mut registry = self.gateway.watch();
        let is_ready = |registry: &Arc<toolyard_core::Registry>| {
            registry.phases().iter().any(|(it, phase)| **it == *name && *phase == BackendPhase::Ready)
        };
        // A gateway that ends needs no server.
        drop(registry.wait_for(is_ready).await.map(drop));
    }
}

impl BridgeServers for FleetServers {
    fn reconnect<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, ()> {
        async move {
            let names: Vec<_> = match server {
                Some(server) => vec![server.to_owned()],
                None => {
                    let registry = self.gateway.registry();
                    registry.phases().iter().map(|(name, _)| name.to_string()).collect()
                }
            };
            let all = join_all(names.into_iter().map(|name| self.refresh(name)));
            // A server that does not answer keeps its last lists.
            drop(timeout(RECONNECT_TIME, all).await);
        }
        .boxed()
    }

    fn summary(&self, server: &HandlerEntry, tools: &[&str]) -> String {
        self.summaries.of(server, tools)
    }
}

/// Returns the servers of the bridge on this bus.
///
/// # Errors
/// If the settings have no URL that a broker's client accepts.
pub(in crate::bus) fn servers(
    settings: &BusSettings,
    store: &Arc<dyn Store>,
) -> Result<Arc<dyn BridgeManager>, BusFailure> {
    let bus = connect(settings, store)?;
    Ok(Arc::new(ProxiedServers(McpToolProxy::start(bus, settings))))
}

/// The servers of a bridge, over the bus.
struct ProxiedServers(McpToolProxy);

impl BridgeManager for ProxiedServers {
    fn servers(&self) -> Vec<Arc<BridgedServer>> {
        let index = self.0.servers();
        let servers = index.values().map(|server| {
            Arc::new(BridgedServer {
                name: server.server_name.clone(),
                display_name: server.display_name.as_deref().map(Into::into),
                summary: server.summary.clone(),
                tool_count: usize::try_from(server.tool_count).unwrap_or_default(),
                tools: server.tool_names.clone(),
            })
        });
        servers.collect()
    }

    fn details<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<BridgedTool>, ToolError>> {
        async move {
            let response = self.0.details(server).await?;
            if let Some(error) = response.error {
                return Err(ToolError::new(ErrorCode::ExecutionFailed, error));
            }
            let tools = response.tools.into_iter().map(|tool| BridgedTool {
                name: tool.name,
                description: tool.description,
                parameters_schema: tool
                    .parameters_schema
                    .unwrap_or_else(|| r#"{"type":"object"}"#.to_owned()),
            });
            Ok(tools.collect())
        }
        .boxed()
    }

    fn invoke(&self, call: BridgedCall) -> BoxFuture<'_, Result<BridgedResult, ToolError>> {
        async move {
            let BridgedCall { server, tool, arguments, timeout, trace_parent, client } = call;
            let request = ToolInvokeRequest {
                tool_call_id: new_id()?,
                tool_name: tool,
                arguments: Some(arguments),
                session_id: None,
            };
            let trace = trace_parent.and_then(|parent| TraceContext::parse(&parent, None));
            let call = RemoteCall { trace, client, ..RemoteCall::within(timeout) };
            let response = self.0.invoke(&server, &request, call).await?;
            let text = response.content.unwrap_or_default();
            Ok(BridgedResult { text, is_error: response.is_error })
        }
        .boxed()
    }

    fn register(&self, server: NewServer) -> BoxFuture<'_, Result<Option<usize>, ToolError>> {
        async move {
            let (name, mut servers) = (server.name.clone(), self.0.watch());
            let response = self.0.register(&request_of(server)).await?;
            if !response.success {
                return Err(refused(response.error));
            }
            let announced = timeout(ANNOUNCE_TIME, servers.wait_for(|index| index.contains_key(&name)));
            let announced = announced.await.ok().and_then(Result::ok);
            let server = announced.as_ref().and_then(|index| index.get(&name));
            Ok(server.and_then(|server| usize::try_from(server.tool_count).ok()))
        }
        .boxed()
    }

    fn unregister<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        async move {
            let response = self.0.unregister(server).await?;
            if response.success { Ok(()) } else { Err(refused(response.error)) }
        }
        .boxed()
    }
}

fn refused(error: Option<String>) -> ToolError {
    let error = error.unwrap_or_else(|| "the bridge gives no reason".to_owned());
    ToolError::new(ErrorCode::ExecutionFailed, error)
}

fn request_of(server: NewServer) -> McpRegisterServerRequest {
    let NewServer { name, address, display_name: _, description: _ } = server;
    let request = McpRegisterServerRequest { server_name: name, ..McpRegisterServerRequest::default() };
    match address {
        ServerAddress::Program { command, args, env } => McpRegisterServerRequest {
            r#type: "stdio".to_owned(),
            command: Some(command),
            args,
            env: env.into_iter().collect(),
            ..request
        },
        ServerAddress::Url { url, transport } => {
            let kind = match transport {
                HttpTransportKind::StreamableHttp => "http",
                HttpTransportKind::Sse => "sse",
            };
            McpRegisterServerRequest { r#type: kind.to_owned(), url: Some(url), ..request }
        }
    }
}
