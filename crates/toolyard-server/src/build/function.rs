//! Builds handlers of the type `function`.

use std::sync::Arc;

use toolyard_backends::function::{self, FunctionBackend};
use toolyard_backends::http::response::ResponseConversion;
use toolyard_core::{Backend, MessageExchange, RetrySchedule, SecretRedactor};
use toolyard_manifest::{FunctionHandler, HandlerConfig, ToolDefinition};
use toolyard_mcp::client::{ClientOptions, McpBackend, ServerEndpoint, UpstreamRetry};

use super::{HandlerBuilder, UnsupportedBackend, explicit_tool, retry};

/// Provides exchanges with hosted functions.
pub trait FunctionExchanges: Send + Sync {
    /// Returns the exchange with a handler's function, resolving its version at each request. A missing function fails
    /// the requests.
    fn exchange(&self, handler: &FunctionHandler) -> Arc<dyn MessageExchange>;
}

impl HandlerBuilder {
    pub(super) fn function(
        &self,
        handler: &HandlerConfig,
        function: &FunctionHandler,
        secrets: &SecretRedactor,
    ) -> Arc<dyn Backend> {
        let Some(functions) = &self.functions else {
            let tool = function.tool.as_ref().map(explicit_tool);
            return Arc::new(UnsupportedBackend::because("this gateway hosts no functions", tool));
        };
        let retry = retry(&function.retry);
        self.function_backend(handler, functions.exchange(function), function.tool.as_ref(), retry, secrets)
    }

    /// Builds the backend of a function: a tool that the manifest defines, or an MCP server.
    pub(super) fn function_backend(
        &self,
        handler: &HandlerConfig,
        exchange: Arc<dyn MessageExchange>,
        tool: Option<&ToolDefinition>,
        retry: RetrySchedule,
        secrets: &SecretRedactor,
    ) -> Arc<dyn Backend> {
        let has_one_attempt = retry.attempts <= 1;
        let Some(tool) = tool else {
            let attempts =
                UpstreamRetry { retry, attempt_timeout: (!has_one_attempt).then_some(handler.timeout) };
            let options = ClientOptions { retry: attempts, ..self.client_options(handler, secrets) };
            return Arc::new(McpBackend::start(
                handler.name.as_str(),
                ServerEndpoint::Function(exchange),
                options,
            ));
        };
        let tool = explicit_tool(tool);
        let form = tool.output_form();
        // With retries, the attempts have time limits of their own.
        let attempt_time = super::retry(handler.kind.retry()).budget(handler.timeout);
        Arc::new(FunctionBackend::new(function::FunctionToolOptions {
            tool,
            exchange,
            retry,
            attempt_time: if has_one_attempt { attempt_time } else { handler.timeout },
            reading: ResponseConversion { form, ..ResponseConversion::default() },
        }))
    }
}
