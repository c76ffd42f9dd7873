//! Builds handlers of the type `http`.

use std::time::Duration;

use toolyard_backends::delivery::{RequestDelivery, ResendPolicy};
use toolyard_backends::http::mapping::JmespathMapping;
use toolyard_backends::http::request::HttpRequestPlan;
use toolyard_backends::http::response::ResponseConversion;
use toolyard_backends::http::target::RequestTarget;
use toolyard_backends::http::{HttpBackend, HttpToolOptions};
use toolyard_core::{Json, Object, SecretRedactor};
use toolyard_manifest::{self as manifest, HttpHandler, HttpRetry, HttpUrl, ProcessSettings, SecretString};
use toolyard_net::client::HttpClient;

use super::{HandlerBuilder, auth, headers};

/// Response size limit of the specification, in bytes. The process may have a lower one.
const RESPONSE_BYTES: usize = 10 << 20;

pub(super) fn backend(
    handler: &HttpHandler,
    delivery: RequestDelivery,
    process: &ProcessSettings,
    client: &HttpClient,
    secrets: &SecretRedactor,
) -> HttpBackend {
    let options = HttpToolOptions {
        tool: super::explicit_tool(&handler.tool),
        plan: plan(handler, delivery.response_bytes),
        auth: handler.auth.as_ref().map(|auth| auth::auth(auth, process, secrets)),
        reading: ResponseConversion {
            redact: handler.redact.clone(),
            mapping: handler.response_mapping.as_ref().map(|it| mapping(it, delivery.response_bytes)),
            promises_structure: handler.tool.output_schema.is_some(),
        },
        delivery,
    };
    HttpBackend::new(options, client)
}

impl HandlerBuilder {
    /// Returns the delivery of requests with this retry policy.
    pub(super) fn http_delivery(&self, retry: &HttpRetry, attempt_time: Duration) -> RequestDelivery {
        let policy = ResendPolicy {
            retry: super::retry(&retry.policy),
            statuses: retry.retry_on.clone(),
            network_errors: retry.retry_on_network_error,
            respect_retry_after: retry.respect_retry_after,
        };
        let response_bytes = self.process.limits.response_bytes.min(RESPONSE_BYTES);
        RequestDelivery { attempt_time, policy, response_bytes, budget: self.budget.clone() }
    }
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

fn mapping(declared: &manifest::JmesPathMapping, most_bytes: usize) -> JmespathMapping {
    JmespathMapping::new(declared.expression().clone(), most_bytes)
}
