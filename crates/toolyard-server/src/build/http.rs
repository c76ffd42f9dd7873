//! Builds handlers of the type `http`.

use std::sync::Arc;

use toolyard_backends::delivery::{RequestDelivery, ResendPolicy};
use toolyard_backends::health::ServiceProbe;
use toolyard_backends::http::mapping::JmesPathMapping;
use toolyard_backends::http::request::HttpRequestPlan;
use toolyard_backends::http::response::ResponseConversion;
use toolyard_backends::http::target::RequestTarget;
use toolyard_backends::http::{HttpBackend, HttpToolOptions};
use toolyard_core::{Backend, Json, Object, SecretRedactor};
use toolyard_manifest::{
    self as manifest, HandlerConfig, HttpHandler, HttpRetry, HttpUrl, SecretString, ServiceProbeSettings,
};

use super::{HandlerBuilder, UnsupportedBackend, auth, explicit_tool, headers};

/// Response size limit of the specification, in bytes. The process may have a lower one.
const RESPONSE_BYTES: usize = 10 << 20;

impl HandlerBuilder {
    pub(super) fn http(
        &self,
        handler: &HandlerConfig,
        http: &HttpHandler,
        secrets: &SecretRedactor,
    ) -> Arc<dyn Backend> {
        let delivery = self.http_delivery(handler, &http.retry);
        let tool = explicit_tool(&http.tool);
        let client = match self.outbound_client(&http.outbound) {
            Ok(client) => client,
            Err(reason) => return Arc::new(UnsupportedBackend::because(reason, Some(tool))),
        };
        let form = tool.output_form();
        let options = HttpToolOptions {
            name: handler.name.as_str().into(),
            probe: http.probe.as_ref().map(service_probe),
            tool,
            plan: plan(http, delivery.response_bytes),
            auth: http.auth.as_ref().map(|auth| auth::auth(auth, &self.process, secrets)),
            reading: ResponseConversion {
                redact: http.redact.clone(),
                mapping: http.response_mapping.as_ref().map(|it| mapping(it, delivery.response_bytes)),
                form,
            },
            delivery,
        };
        let backend = HttpBackend::new(options, &client);
        Arc::new(backend.with_long_work(self.long_work.clone()))
    }

    /// Returns the delivery of requests with this retry policy.
    pub(super) fn http_delivery(&self, handler: &HandlerConfig, retry: &HttpRetry) -> RequestDelivery {
        let policy = ResendPolicy {
            retry: super::retry(&retry.policy),
            statuses: retry.retry_on.clone(),
            network_errors: retry.retry_on_network_error,
            respect_retry_after: retry.respect_retry_after,
        };
        let response_bytes = self.process.limits.response_bytes.min(RESPONSE_BYTES);
        let budget = self.budget_of(handler);
        RequestDelivery { attempt_time: handler.timeout, policy, response_bytes, budget }
    }
}

/// Converts the regular checks of a service.
pub(super) fn service_probe(probe: &ServiceProbeSettings) -> ServiceProbe {
    ServiceProbe { interval: probe.interval, timeout: probe.timeout, path: probe.path.clone() }
}

fn plan(handler: &HttpHandler, mapped_bytes: usize) -> HttpRequestPlan {
    let target = match &handler.url {
        HttpUrl::Fixed(endpoint) => RequestTarget::fixed(endpoint.uri()),
        HttpUrl::Template(template) => RequestTarget::template(template.as_str()),
    };
    let text = |(name, value): &(String, SecretString)| (name.clone(), value.expose().to_owned());
    let members = handler.static_body.iter().flat_map(|body| body.iter());
    let static_body =
        members.fold(Object::new(), |body, (name, value)| body.with(name, Json::from_value(value)));
    HttpRequestPlan {
        headers: headers(&handler.headers),
        content_type: handler.content_type.clone(),
        query_params: handler.query_params.clone(),
        header_params: handler.header_params.clone(),
        static_query: handler.static_query.iter().map(text).collect(),
        static_body,
        body_mapping: handler.body_mapping.as_ref().map(|it| mapping(it, mapped_bytes)),
        ..HttpRequestPlan::new(handler.method.clone(), target)
    }
}

fn mapping(declared: &manifest::JmesPathExpression, most_bytes: usize) -> JmesPathMapping {
    JmesPathMapping::new(declared.expression().clone(), most_bytes)
}
