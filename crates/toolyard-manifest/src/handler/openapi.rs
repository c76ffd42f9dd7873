//! A handler of the type `openapi`: each operation of a described service is a tool.

use http::HeaderName;

use super::{Auth, HttpRetry, Secret};
use crate::forms::Endpoint;

/// A service, and where its description is.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenApiHandler {
    /// `specURL`: the description, OpenAPI 2 or 3.
    pub spec_url: Endpoint,
    /// `baseURL`: where requests go, if not where the description says.
    pub base_url: Option<Endpoint>,
    /// `operationFilter`: the operations that become tools. None: all of them.
    pub operation_filter: Option<Vec<String>>,
    /// `headers`: what every request carries, the one for the description too.
    pub headers: Vec<(HeaderName, Secret)>,
    /// `auth`, or `openAPIConfig.authType` and what belongs to it.
    pub auth: Option<Auth>,
    /// `retryPolicy`, or what `retries` stands for.
    pub retry: HttpRetry,
}
