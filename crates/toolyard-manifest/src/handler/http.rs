//! A handler of the type `http`: one tool, whose calls are HTTP requests.

use std::fmt;

use http::{HeaderName, HeaderValue, Method};
use serde_json::{Map, Value};

use super::{RequestAuth, RetryPolicy, SecretString};
use crate::formats::{EndpointUrl, UrlTemplate};

/// A tool and the mapping of its calls to requests.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpHandler {
    /// `tool`: the definition of the tool.
    pub tool: ToolDefinition,
    /// `endpoint`, `httpConfig.endpoint` or `httpConfig.urlTemplate`: the URL of requests.
    pub url: HttpUrl,
    /// `method`. Default: POST.
    pub method: Method,
    /// `headers`: headers of every request.
    pub headers: Vec<(HeaderName, SecretString)>,
    /// `contentType`: the content type of bodies. Default: application/json.
    pub content_type: HeaderValue,
    /// `auth`, or `httpConfig.authType` and the related fields.
    pub auth: Option<RequestAuth>,
    /// `queryParams`: for methods with a body, the arguments that go into the query. For other methods, the only
    /// arguments that go there.
    pub query_params: Option<Vec<String>>,
    /// `headerParams`: arguments that go into headers.
    pub header_params: Vec<(String, HeaderName)>,
    /// `staticQuery`: query parameters of every request.
    pub static_query: Vec<(String, SecretString)>,
    /// `staticBody`: members of every body; an argument of the same name takes precedence.
    pub static_body: Option<StaticBody>,
    /// `bodyMapping`: transforms the body.
    pub body_mapping: Option<JmesPathMapping>,
    /// `responseMapping`: transforms the response into the result.
    pub response_mapping: Option<JmesPathMapping>,
    /// `redact`: members that are removed from responses.
    pub redact: Vec<String>,
    /// `retryPolicy` or `retries`.
    pub retry: HttpRetry,
}

/// The definition of a tool, as models see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinition {
    /// Name of the tool.
    pub name: String,
    /// Description of the tool.
    pub description: String,
    /// JSON schema of its arguments.
    pub input_schema: Value,
    /// JSON schema of its result.
    pub output_schema: Option<Value>,
}

/// The URL of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpUrl {
    /// A constant URL; arguments only affect its query.
    Fixed(EndpointUrl),
    /// A URL that arguments are part of.
    Template(UrlTemplate),
}

/// The retry policy of HTTP requests.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRetry {
    /// Number of attempts and backoff.
    pub policy: RetryPolicy,
    /// `retryOn`: the retryable status codes. Default: 408, 429, 500, 502, 503, 504.
    pub retry_on: Vec<u16>,
    /// `retryOnNetworkError`: retry if there is no response, or none in time. Default: true.
    pub retry_on_network_error: bool,
    /// `respectRetryAfter`: honour a longer wait that the server requests. Default: true.
    pub respect_retry_after: bool,
}

/// Members of a body. They may be secret, so `Debug` shows only their names.
#[derive(Clone, PartialEq, Eq)]
pub struct StaticBody(pub(crate) Map<String, Value>);

/// A JMESPath expression that compiles.
#[derive(Clone)]
pub struct JmesPathMapping(pub(crate) jmespath::Expression<'static>);

// === impl Url ===

impl HttpUrl {
    /// True if requests use TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        match self {
            Self::Fixed(endpoint) => endpoint.is_tls(),
            Self::Template(template) => template.is_tls(),
        }
    }
}

// === impl HttpRetry ===

/// Applies the defaults for HTTP, which the contract does not define.
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

impl JmesPathMapping {
    /// The compiled expression.
    #[must_use]
    pub const fn expression(&self) -> &jmespath::Expression<'static> {
        &self.0
    }
}

impl PartialEq for JmesPathMapping {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl fmt::Debug for JmesPathMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JmesPathMapping({})", self.0.as_str())
    }
}
