//! Builds handlers of the type `cortexone`.

use std::sync::Arc;

use toolyard_backends::cortexone::unwrap::ReturnFormat;
use toolyard_backends::cortexone::{CortexOneFunction, CortexOneOptions};
use toolyard_core::{Backend, RetrySchedule, SecretRedactor};
use toolyard_manifest::{CortexOneHandler, HandlerConfig};
use toolyard_net::auth::{HttpAuthScheme, UpstreamCredentials};

use super::{HandlerBuilder, UnsupportedBackend, auth, explicit_tool};

impl HandlerBuilder {
    pub(super) fn cortexone(
        &self,
        handler: &HandlerConfig,
        function: &CortexOneHandler,
        secrets: &SecretRedactor,
    ) -> Arc<dyn Backend> {
        let Ok(url) = format!("{}/invoke", function.url()).parse() else {
            // Validation accepts only URLs to which a path can be added.
            return Arc::new(UnsupportedBackend::because(
                "the URL of the function cannot be used",
                function.tool.as_ref().map(explicit_tool),
            ));
        };
        let source = auth::source(&function.api_key, &self.process);
        let options = CortexOneOptions {
            url,
            auth: UpstreamCredentials { scheme: HttpAuthScheme::Bare, source, secrets: secrets.clone() },
            return_format: if function.tool.is_some() {
                ReturnFormat::HttpResponse
            } else {
                ReturnFormat::JsonRpcMessage
            },
            delivery: self.http_delivery(handler, &function.retry),
        };
        let exchange = Arc::new(CortexOneFunction::new(options, &self.client));
        // The exchange itself retries.
        self.function_backend(handler, exchange, function.tool.as_ref(), RetrySchedule::never(), secrets)
    }
}
