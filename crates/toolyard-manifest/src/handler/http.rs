//! A handler of the type `http`: one tool, whose calls are HTTP requests.

use std::fmt;

use http::{HeaderName, HeaderValue, Method};
use serde_json::{Map, Value};

use super::{Auth, RetryPolicy, Secret};
use crate::forms::{Endpoint, UrlTemplate};

/// A tool, and how its calls become requests.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpHandler {
    /// `tool`.
    pub tool: ToolDefinition,
    /// `endpoint`, `httpConfig.endpoint` or `httpConfig.urlTemplate`: where requests go.
    pub url: Url,
    /// `method`. POST.
    pub method: Method,
    /// `headers`: what every request carries.
    pub headers: Vec<(HeaderName, Secret)>,
    /// `contentType`: what a body is called. application/json.
    pub content_type: HeaderValue,
    /// `auth`, or `httpConfig.authType` and what belongs to it.
    pub auth: Option<Auth>,
    /// `queryParams`: the arguments that go into the query, with a method that has a body; with any other
    /// one, the only arguments that go there.
    pub query_params: Option<Vec<String>>,
    /// `headerParams`: arguments that go into headers.
    pub header_params: Vec<(String, HeaderName)>,
    /// `staticQuery`: what every query carries.
    pub static_query: Vec<(String, Secret)>,
    /// `staticBody`: what every body carries; an argument of the same name counts instead.
    pub static_body: Option<StaticBody>,
    /// `bodyMapping`: makes the body of what would be the body.
    pub body_mapping: Option<Mapping>,
    /// `responseMapping`: makes the result of what is in the response.
    pub response_mapping: Option<Mapping>,
    /// `redact`: members of the response that nobody is to see.
    pub redact: Vec<String>,
    /// `retryPolicy`, or what `retries` stands for.
    pub retry: HttpRetry,
}

/// What the model is told of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub input_schema: Value,
    /// The JSON schema of its result.
    pub output_schema: Option<Value>,
}

/// Where requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Url {
    /// Always to the same place, the query apart.
    Fixed(Endpoint),
    /// Where the arguments say.
    Template(UrlTemplate),
}

/// When and how often a request that failed is sent again.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRetry {
    /// How often, and after which waits.
    pub policy: RetryPolicy,
    /// `retryOn`: the statuses after which it is sent again. 408, 429, 500, 502, 503, 504.
    pub retry_on: Vec<u16>,
    /// `retryOnNetworkError`: whether it is where no response came, or not in time. True.
    pub retry_on_network_error: bool,
    /// `respectRetryAfter`: whether a server may ask for a longer wait. True.
    pub respect_retry_after: bool,
}

/// Members of a body. They may be secret, so `Debug` shows only their names.
#[derive(Clone, PartialEq, Eq)]
pub struct StaticBody(pub(crate) Map<String, Value>);

/// A JMESPath expression that compiles.
#[derive(Clone)]
pub struct Mapping(pub(crate) jmespath::Expression<'static>);

// === impl Url ===

impl Url {
    /// Whether requests go over TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        match self {
            Self::Fixed(endpoint) => endpoint.is_tls(),
            Self::Template(template) => template.is_tls(),
        }
    }
}

// === impl HttpRetry ===

/// With what the contract has where it is silent about HTTP.
impl From<RetryPolicy> for HttpRetry {
    fn from(policy: RetryPolicy) -> Self {
        Self {
            policy,
            retry_on: vec![408, 429, 500, 502, 503, 504],
            retry_on_network_error: true,
            respect_retry_after: true,
        }
    }
}

// === impl StaticBody ===

impl StaticBody {
    /// Names and values, in the order of the document.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl fmt::Debug for StaticBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StaticBody")?;
        f.debug_list().entries(self.0.keys()).finish()
    }
}

// === impl Mapping ===

impl Mapping {
    /// The expression.
    #[must_use]
    pub const fn expression(&self) -> &jmespath::Expression<'static> {
        &self.0
    }
}

impl PartialEq for Mapping {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({})", self.0.as_str())
    }
}
