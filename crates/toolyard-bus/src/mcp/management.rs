//! Requests on `mcp.manage`: details of servers, and servers that are added and removed.
//!
//! Servers are added and removed by the gateway's own tools, so that the rights of the bridge's caller and the audit trail
//! apply to them. Without these tools there are details only.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use toolyard_core::{Call, ErrorCode, Json, ToolError};

use super::bridge::BridgeShared;
use super::index::tools_of;
use crate::bus::{BusError, BusErrorKind, Delivery};
use crate::consumer::{AcknowledgedRequest, AtMostOnce, RequestHandler, log_failure};
use crate::envelope::Envelope;
use crate::headers::{self, ContentTrust};
use crate::message::{
    BusMessage, McpGetServiceDetailsRequest, McpGetServiceDetailsResponse, McpRegisterServerRequest,
    McpRegisterServerResponse, McpToolDetails, McpUnregisterServerRequest, McpUnregisterServerResponse,
};
use crate::record::convert::text_of;
use crate::reply::{reply_to, reply_topic, time_left, time_limit};
use crate::topic::MCP_MANAGE;

/// Tools of the gateway that add and remove servers.
const REGISTER: &str = "mcp_register_server";
const UNREGISTER: &str = "mcp_unregister_server";

/// Time limit of a request that has none. A server that is added may have to be installed.
const TIME_LIMIT: Duration = Duration::from_secs(150);

const NO_TOOLS: &str =
    "this bridge does not add or remove servers: it needs `builtins.mcp`, and its caller the tools for it";
const MAY_HAVE_RUN: &str =
    "the request was delivered before and may have run; it is not run a second time: list the servers";

pub(super) struct BridgeManagement {
    bridge: BridgeShared,
    at_most_once: AtMostOnce,
}

/// A request, by its message type.
enum ManagementRequest {
    Details(McpGetServiceDetailsRequest),
    Register(McpRegisterServerRequest),
    Unregister(McpUnregisterServerRequest),
}

impl RequestHandler for BridgeManagement {
    fn handle(self: Arc<Self>, delivery: Delivery) -> BoxFuture<'static, ()> {
        async move { self.answer(delivery).await }.boxed()
    }
}

impl BridgeManagement {
    pub(super) fn new(bridge: BridgeShared) -> Self {
        Self { bridge, at_most_once: AtMostOnce::default() }
    }

    async fn answer(&self, delivery: Delivery) {
        let envelope = delivery.envelope.clone();
        let request = match ManagementRequest::read(&envelope) {
            Ok(request) => request,
            Err(reason) => return log_failure(delivery.dead_letter(reason).await),
        };
        let Some(acknowledged) = self.at_most_once.acknowledge(delivery).await else { return };
        let may_have_run = acknowledged == AcknowledgedRequest::MayHaveRun;
        let sent = match request {
            ManagementRequest::Details(request) => {
                let details = self.details(&envelope, request).await;
                match self.send(&envelope, &details).await {
                    Err(error) if error.kind() == BusErrorKind::TooLarge => {
                        let error = Some(format!("the details are too large for the bus: {error}"));
                        let details = McpGetServiceDetailsResponse { tools: Vec::new(), error, ..details };
                        self.send(&envelope, &details).await
                    }
                    sent => sent,
                }
            }
            ManagementRequest::Register(request) => {
                self.send(&envelope, &self.register(&envelope, request, may_have_run).await).await
            }
            ManagementRequest::Unregister(request) => {
                self.send(&envelope, &self.unregister(&envelope, request, may_have_run).await).await
            }
        };
        log_failure(sent);
    }

    /// Returns the tools of a server, as the caller of the bridge sees them.
    async fn details(
        &self,
        envelope: &Envelope,
        request: McpGetServiceDetailsRequest,
    ) -> McpGetServiceDetailsResponse {
        let server_name = request.server_name.trim().to_lowercase();
        let failed = |server_name: String, error: String| McpGetServiceDetailsResponse {
            server_name,
            tools: Vec::new(),
            error: Some(error),
        };
        let viewed = async {
            let caller = self.bridge.principal.caller().await?;
            Ok::<_, ToolError>(self.bridge.gateway.settled_for(&caller).await)
        };
        let late = || Err(ToolError::new(ErrorCode::Timeout, "the servers were not ready in time"));
        let registry = match timeout_at(deadline(envelope), viewed).await.unwrap_or_else(|_| late()) {
            Ok(registry) => registry,
            Err(error) => return failed(server_name, error.message().to_owned()),
        };
        let tools = tools_of(&registry, &server_name);
        if tools.is_empty() {
            let error = format!("Server '{server_name}' not found.");
            return failed(server_name, error);
        }
        let details = tools.into_iter().map(|entry| {
            let tool = entry.tool.as_ref();
            let description = tool.and_then(|tool| tool.definition.get_str("description"));
            let schema = tool.and_then(|tool| tool.input_schema());
            McpToolDetails {
                name: entry.service_name().to_string(),
                description: description.unwrap_or_default().into_owned(),
                parameters_schema: schema.map(|schema| schema.as_text().to_owned()),
            }
        });
        McpGetServiceDetailsResponse { server_name, tools: details.collect(), error: None }
    }

    async fn register(
        &self,
        envelope: &Envelope,
        request: McpRegisterServerRequest,
        may_have_run: bool,
    ) -> McpRegisterServerResponse {
        let McpRegisterServerRequest { server_name, r#type, url, command, args, env } = request;
        let server_name = server_name.trim().to_lowercase();
        let mut arguments = json!({"server_name": server_name, "type": r#type, "env": env});
        if let Some(url) = url {
            arguments["url"] = url.into();
        }
        if let Some(command) = command {
            arguments["command"] = command.into();
            arguments["arguments"] = args.into();
        }
        let added = self.change(envelope, REGISTER, &arguments, may_have_run).await;
        let (success, summary, error) = match added {
            Ok(text) => (true, Some(self.summary(&server_name).unwrap_or(text)), None),
            Err(error) => (false, None, Some(error)),
        };
        McpRegisterServerResponse { server_name, success, summary, error }
    }

    async fn unregister(
        &self,
        envelope: &Envelope,
        request: McpUnregisterServerRequest,
        may_have_run: bool,
    ) -> McpUnregisterServerResponse {
        let server_name = request.server_name.trim().to_lowercase();
        let arguments = json!({"server_name": server_name});
        let error = self.change(envelope, UNREGISTER, &arguments, may_have_run).await.err();
        McpUnregisterServerResponse { server_name, success: error.is_none(), error }
    }

    /// Calls a tool that changes the servers, and returns its text.
    ///
    /// # Errors
    /// The reason why nothing has changed.
    async fn change(
        &self,
        envelope: &Envelope,
        tool: &str,
        arguments: &Value,
        may_have_run: bool,
    ) -> Result<String, String> {
        if may_have_run {
            return Err(MAY_HAVE_RUN.to_owned());
        }
        let deadline = deadline(envelope);
        let changed = async {
            let mut call = Call::tool(tool, Json::from_value(arguments));
            call.caller = self.bridge.principal.caller().await?;
            call.deadline = Some(deadline);
            if let Some(trace) = &envelope.trace {
                call.meta.set("traceparent", Json::string(&trace.parent));
            }
            self.bridge.gateway.invoke_to_end(call).await
        };
        let late = || Err(ToolError::new(ErrorCode::Timeout, "the request took too long: list the servers"));
        match timeout_at(deadline, changed).await.unwrap_or_else(|_| late()) {
            Ok(output) => {
                let text = text_of(&output).unwrap_or_default();
                if output.is_error { Err(text) } else { Ok(text) }
            }
            Err(error) if error.code() == ErrorCode::ToolNotFound => Err(NO_TOOLS.to_owned()),
            Err(error) => Err(error.message().to_owned()),
        }
    }

    /// Returns the summary of a server that was added.
    fn summary(&self, server: &str) -> Option<String> {
        let registry = self.bridge.gateway.registry();
        let tools = tools_of(&registry, server);
        let names: Vec<&str> = tools.iter().map(|entry| &**entry.service_name()).collect();
        tools.first().map(|entry| self.bridge.servers.summary(&entry.handler, &names))
    }

    async fn send<M: BusMessage>(&self, request: &Envelope, message: &M) -> Result<(), BusError> {
        // It was checked when the request was read.
        let topic = reply_topic(request, MCP_MANAGE).map_err(BusError::invalid)?;
        let envelope = reply_to(request, message, &self.bridge.settings.source)?
            .header(headers::CONTENT_TRUST, ContentTrust::System.as_str());
        self.bridge.bus.broadcast(&topic, envelope).await
    }
}

impl ManagementRequest {
    /// Reads a request, or returns the reason why the message is none. One without a topic for its reply is none.
    fn read(envelope: &Envelope) -> Result<Self, String> {
        if envelope.reply_to.is_none() {
            return Err("the request has no `replyTo`".to_owned());
        }
        reply_topic(envelope, MCP_MANAGE)?;
        let request = if envelope.is::<McpRegisterServerRequest>() {
            envelope.read().map(Self::Register)
        } else if envelope.is::<McpUnregisterServerRequest>() {
            envelope.read().map(Self::Unregister)
        } else {
            envelope.read().map(Self::Details)
        };
        request.map_err(|problem| problem.to_string())
    }
}

fn deadline(envelope: &Envelope) -> Instant {
    let limit = time_limit(envelope).unwrap_or(TIME_LIMIT).min(TIME_LIMIT);
    Instant::now() + time_left(envelope, limit)
}
