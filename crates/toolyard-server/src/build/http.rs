//! A handler of the type `http`, in the words of its backend.

use std::time::Duration;

use toolyard_backends::delivery::{Delivery, Policy};
use toolyard_backends::http::request::Plan;
use toolyard_backends::http::response::Reading;
use toolyard_backends::http::target::Target;
use toolyard_backends::http::{HttpBackend, Options};
use toolyard_core::{Json, Object, Secrets};
use toolyard_manifest::{HttpHandler, HttpRetry, Mapping, Process, Secret, Url};
use toolyard_net::client::Client;

use super::{auth, headers};

/// The contract's bound on a response. The process may have a lower one.
const RESPONSE_BYTES: usize = 10 << 20;

pub(super) fn backend(
    handler: &HttpHandler,
    attempt_time: Duration,
    process: &Process,
    client: &Client,
    secrets: &Secrets,
) -> HttpBackend {
    let options = Options {
        tool: super::explicit_tool(&handler.tool),
        plan: plan(handler),
        auth: handler.auth.as_ref().map(|auth| auth::auth(auth, process, secrets)),
        delivery: delivery(&handler.retry, attempt_time, process),
        reading: Reading {
            redact: handler.redact.clone(),
            mapping: handler.response_mapping.as_ref().map(expression),
            structured: handler.tool.output_schema.is_some(),
        },
    };
    HttpBackend::new(options, client)
}

/// How requests are sent that are retried like this.
pub(super) fn delivery(retry: &HttpRetry, attempt_time: Duration, process: &Process) -> Delivery {
    let policy = Policy {
        retry: super::retry(&retry.policy),
        statuses: retry.retry_on.clone(),
        network_errors: retry.retry_on_network_error,
        respect_retry_after: retry.respect_retry_after,
    };
    Delivery { attempt_time, policy, response_bytes: process.limits.response_bytes.min(RESPONSE_BYTES) }
}

fn plan(handler: &HttpHandler) -> Plan {
    let target = match &handler.url {
        Url::Fixed(endpoint) => Target::fixed(endpoint.uri()),
        Url::Template(template) => Target::template(template.as_str()),
    };
    let text = |(name, value): &(String, Secret)| (name.clone(), value.expose().to_owned());
    let members = handler.static_body.iter().flat_map(|body| body.iter());
    let static_body =
        members.fold(Object::new(), |body, (name, value)| body.with(name, Json::from_value(value)));
    Plan {
        headers: headers(&handler.headers),
        content_type: handler.content_type.clone(),
        query_params: handler.query_params.clone(),
        header_params: handler.header_params.clone(),
        static_query: handler.static_query.iter().map(text).collect(),
        static_body,
        body_mapping: handler.body_mapping.as_ref().map(expression),
        ..Plan::new(handler.method.clone(), target)
    }
}

fn expression(mapping: &Mapping) -> jmespath::Expression<'static> {
    mapping.expression().clone()
}
