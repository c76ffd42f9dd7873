//! Handlers of the types `function` and `cortexone`, in the words of their backends.

use std::sync::Arc;

use toolyard_backends::cortexone::unwrap::Returns;
use toolyard_backends::cortexone::{CortexOne, Options};
use toolyard_backends::function::{self, FunctionBackend};
use toolyard_backends::http::response::Reading;
use toolyard_core::{Backend, Exchange, Retry, Secrets};
use toolyard_manifest::{CortexOneHandler, FunctionHandler, Handler, ToolDefinition};
use toolyard_mcp::client::{Attempts, ClientOptions, Endpoint, McpBackend};
use toolyard_net::auth::{Auth, Scheme};

use super::{Builder, NotYet, auth, explicit_tool, http, retry};

/// Who runs the functions that this gateway hosts.
pub trait Functions: Send + Sync {
    /// The function of a handler, whichever version of it answers when. That it does not exist its requests find out.
    fn exchange(&self, handler: &FunctionHandler) -> Arc<dyn Exchange>;
}

impl Builder {
    pub(super) fn function(
        &self,
        handler: &Handler,
        function: &FunctionHandler,
        secrets: &Secrets,
    ) -> Arc<dyn Backend> {
        let Some(functions) = &self.functions else {
            let tool = function.tool.as_ref().map(explicit_tool);
            return Arc::new(NotYet::new(handler.kind.name(), tool));
        };
        let retry = retry(&function.retry);
        self.exchanged(handler, functions.exchange(function), function.tool.as_ref(), retry, secrets)
    }

    pub(super) fn cortexone(
        &self,
        handler: &Handler,
        function: &CortexOneHandler,
        secrets: &Secrets,
    ) -> Arc<dyn Backend> {
        let Ok(url) = format!("{}/invoke", function.url()).parse() else {
            // The manifest has only URLs to which that can be added.
            return Arc::new(NotYet::new(handler.kind.name(), function.tool.as_ref().map(explicit_tool)));
        };
        let source = auth::source(&function.api_key, &self.process);
        let options = Options {
            url,
            auth: Auth { scheme: Scheme::Bare, source, secrets: secrets.clone() },
            returns: if function.tool.is_some() { Returns::Response } else { Returns::Message },
            delivery: http::delivery(&function.retry, handler.timeout, &self.process),
        };
        let exchange = Arc::new(CortexOne::new(options, &self.client));
        // It tries again by itself.
        self.exchanged(handler, exchange, function.tool.as_ref(), Retry::never(), secrets)
    }

    /// A function is the tool that the manifest describes, or an MCP server.
    fn exchanged(
        &self,
        handler: &Handler,
        exchange: Arc<dyn Exchange>,
        tool: Option<&ToolDefinition>,
        retry: Retry,
        secrets: &Secrets,
    ) -> Arc<dyn Backend> {
        let has_one_attempt = retry.attempts <= 1;
        let Some(tool) = tool else {
            let attempts = Attempts { retry, time: (!has_one_attempt).then_some(handler.timeout) };
            let options = ClientOptions { attempts, ..self.client_options(secrets) };
            return Arc::new(McpBackend::start(handler.name.as_str(), Endpoint::Exchange(exchange), options));
        };
        let structured = tool.output_schema.is_some();
        // Who tries again by itself bounds its attempts as well.
        let attempt_time = super::retry(handler.kind.retry()).budget(handler.timeout);
        Arc::new(FunctionBackend::new(function::Options {
            tool: explicit_tool(tool),
            exchange,
            retry,
            attempt_time: if has_one_attempt { attempt_time } else { handler.timeout },
            reading: Reading { structured, ..Reading::default() },
        }))
    }
}
