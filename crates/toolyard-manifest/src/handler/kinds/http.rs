//! A handler of the type `http`: one tool, whose calls are HTTP requests.
//!
//! The contract has two generations, with different fields for the endpoint and the authentication. Both are supported.

mod mapping;

use std::fmt;

use http::{HeaderName, HeaderValue, Method};
use serde_json::{Map, Value};

pub use self::mapping::JmesPathExpression;
use super::{HandlerScope, HandlerSettings, ReadHandler};
use crate::{
    cursor::{KeywordChoice, ValueCursor},
    fields::ObjectFields,
    formats::{self, EndpointUrl, UrlTemplate},
    handler::{
        HttpRetry, OutboundSettings, RequestAuth, RetryPolicy, SecretString, ServiceProbeSettings,
        ToolDefinition, auth,
        endpoint::{self, EndpointFormat},
        headers::headers,
        retry,
        secrets::SecretCollector,
        service_probe, tool,
    },
    problem::{ManifestProblem, SourceLocation},
    value::{self, StringMode},
};

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
    pub body_mapping: Option<JmesPathExpression>,
    /// `responseMapping`: transforms the response into the result.
    pub response_mapping: Option<JmesPathExpression>,
    /// `redact`: members that are removed from responses.
    pub redact: Vec<String>,
    /// `retryPolicy` or `retries`.
    pub retry: HttpRetry,
    /// `probe`: regular checks of the endpoint. Default: none.
    pub probe: Option<ServiceProbeSettings>,
    /// The proxy, and the certificates that are trusted.
    pub outbound: OutboundSettings,
}

/// The URL of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpUrl {
    /// A constant URL; arguments only affect its query.
    Fixed(EndpointUrl),
    /// A URL that arguments are part of.
    Template(UrlTemplate),
}

/// Members of a body. They may be secret, so `Debug` shows only their names.
#[derive(Clone, PartialEq, Eq)]
pub struct StaticBody(Map<String, Value>);

impl HandlerSettings for HttpHandler {
    fn endpoint(&self) -> String {
        match &self.url {
            HttpUrl::Fixed(endpoint) => endpoint.display_url(),
            HttpUrl::Template(template) => template.display_url().to_owned(),
        }
    }

    fn add_secrets(&self, secrets: &mut SecretCollector) {
        match &self.url {
            HttpUrl::Fixed(endpoint) => secrets.query_of(endpoint),
            HttpUrl::Template(template) => secrets.query(template.as_str()),
        }
        secrets.auth(self.auth.as_ref());
        secrets.headers(&self.headers);
        self.outbound.add_secrets(secrets);
        self.static_query.iter().for_each(|(_, value)| secrets.add(value.expose()));
        self.static_body.iter().flat_map(|body| body.iter()).for_each(|(_, value)| secrets.value(value));
    }

    fn retry(&self) -> &RetryPolicy {
        &self.retry.policy
    }

    fn uses_tls(&self) -> bool {
        self.url.is_tls()
    }

    fn has_server_definitions(&self) -> bool {
        false
    }
}

impl ReadHandler for HttpHandler {
    const FIELDS: &'static [&'static str] = &["httpConfig", "endpoint", "tool"];

    fn read(fields: &mut ObjectFields<'_>, scope: &HandlerScope<'_>) -> Option<Self> {
        let endpoint =
            fields.optional("endpoint", |cursor| Some(endpoint::read(cursor, scope.namespace, &URL)));
        let tool = fields.required("tool", tool::read);
        let config = fields.optional("httpConfig", |cursor| Some(config(cursor)));
        let has_invalid_config = matches!(config, Some(None));
        let config = config.flatten().unwrap_or_else(HttpConfig::empty);
        let auth = auth::handler_auth(fields, config.auth.clone(), "httpConfig");
        let retry = retry::handler_retry(fields, config.retry.clone(), "httpConfig");
        let is_reported = has_invalid_config || matches!(endpoint, Some(None));
        let endpoint = endpoint.flatten().or_else(|| config.endpoint.clone());
        let url = url(endpoint, config.template.clone(), auth.is_some(), is_reported, scope.location);
        Some(Self {
            tool: tool?,
            url: url?,
            method: config.method,
            headers: config.headers,
            content_type: config.content_type,
            auth,
            query_params: config.query_params,
            header_params: config.header_params,
            static_query: config.static_query,
            static_body: config.static_body,
            body_mapping: config.body_mapping,
            response_mapping: config.response_mapping,
            redact: config.redact,
            retry,
            probe: config.probe,
            outbound: config.outbound,
        })
    }
}

impl HttpHandler {
    /// Creates the handler of a tool whose calls are posted to this URL.
    pub(super) fn posting(tool: ToolDefinition, url: EndpointUrl) -> Self {
        let config = HttpConfig::empty();
        Self {
            tool,
            url: HttpUrl::Fixed(url),
            method: config.method,
            headers: config.headers,
            content_type: config.content_type,
            auth: None,
            query_params: None,
            header_params: Vec::new(),
            static_query: Vec::new(),
            static_body: None,
            body_mapping: None,
            response_mapping: None,
            redact: Vec::new(),
            retry: RetryPolicy::attempts(1).into(),
            probe: None,
            outbound: OutboundSettings::default(),
        }
    }
}

// === impl HttpUrl ===

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

// === the URL ===

/// Combines endpoint and template into one URL. A template that starts with `/` extends the endpoint.
fn url(
    endpoint: Option<EndpointUrl>,
    template: Option<(String, SourceLocation)>,
    has_auth: bool,
    is_reported: bool,
    handler: &ValueCursor<'_>,
) -> Option<HttpUrl> {
    let Some((template, location)) = template else {
        if endpoint.is_none() && !is_reported {
            endpoint::report_missing(handler);
        }
        return endpoint.map(HttpUrl::Fixed);
    };
    let whole = match (template.starts_with('/'), &endpoint) {
        (true, None) if is_reported => return None,
        (true, Some(endpoint)) if endpoint.uri().query().is_some() => {
            let problem = ManifestProblem::new(
                location,
                "the endpoint has a query, so that a template cannot extend it",
            );
            handler.report(problem.expected("a template with the whole URL, or the query in `staticQuery`"));
            return None;
        }
        (true, Some(endpoint)) => format!("{}{template}", endpoint_prefix(endpoint)),
        _ => template,
    };
    let template = UrlTemplate::parse(&whole)
        .map_err(|invalid| handler.report(invalid.problem(location.clone(), "this")))
        .ok()?;
    if has_auth && template.has_variable_host() {
        let problem =
            ManifestProblem::new(location, "arguments must not select the host that gets the credentials");
        handler.report(problem.expected("a host that is written out, or no authentication"));
        return None;
    }
    Some(HttpUrl::Template(template))
}

fn endpoint_prefix(endpoint: &EndpointUrl) -> String {
    let uri = endpoint.uri();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    format!("{}://{authority}{}", uri.scheme_str().unwrap_or_default(), uri.path().trim_end_matches('/'))
}

// === the configuration ===

/// The endpoint is a URL; a service of the cluster is reached without TLS.
const URL: EndpointFormat<EndpointUrl> =
    EndpointFormat { service_prefix: "http://", parse: EndpointUrl::parse };

const METHOD: KeywordChoice<&str> = KeywordChoice {
    noun: "method",
    words: &[
        ("GET", "GET"),
        ("POST", "POST"),
        ("PUT", "PUT"),
        ("PATCH", "PATCH"),
        ("DELETE", "DELETE"),
        ("HEAD", "HEAD"),
        ("OPTIONS", "OPTIONS"),
    ],
    unsupported: &[],
};

/// The content of `httpConfig`.
struct HttpConfig {
    endpoint: Option<EndpointUrl>,
    template: Option<(String, SourceLocation)>,
    method: Method,
    headers: Vec<(HeaderName, SecretString)>,
    content_type: HeaderValue,
    auth: Option<RequestAuth>,
    query_params: Option<Vec<String>>,
    header_params: Vec<(String, HeaderName)>,
    static_query: Vec<(String, SecretString)>,
    static_body: Option<StaticBody>,
    body_mapping: Option<JmesPathExpression>,
    response_mapping: Option<JmesPathExpression>,
    redact: Vec<String>,
    retry: Option<HttpRetry>,
    probe: Option<ServiceProbeSettings>,
    outbound: OutboundSettings,
}

impl HttpConfig {
    fn empty() -> Self {
        Self {
            endpoint: None,
            template: None,
            method: Method::POST,
            headers: Vec::new(),
            content_type: json(),
            auth: None,
            query_params: None,
            header_params: Vec::new(),
            static_query: Vec::new(),
            static_body: None,
            body_mapping: None,
            response_mapping: None,
            redact: Vec::new(),
            retry: None,
            probe: None,
            outbound: OutboundSettings::default(),
        }
    }
}

const fn json() -> HeaderValue {
    HeaderValue::from_static("application/json")
}

fn config(cursor: ValueCursor<'_>) -> Option<HttpConfig> {
    let mut fields = cursor.fields()?;
    let texts = |cursor: ValueCursor<'_>| cursor.list(ValueCursor::text);
    let endpoint = fields.optional("endpoint", |cursor| cursor.parse_secret(EndpointUrl::parse));
    let template = fields.optional("urlTemplate", |cursor| Some((cursor.clone().text()?, cursor.location())));
    let method = fields.with_default("method", |cursor| cursor.choice(&METHOD), "POST");
    let method: Method = method.parse().unwrap_or_default();
    let mut config = HttpConfig {
        endpoint,
        template,
        headers: fields.with_default(
            "headers",
            |cursor| headers(cursor, formats::is_header_name),
            Vec::new(),
        ),
        content_type: fields.with_default(
            "contentType",
            |cursor| cursor.parse(formats::header_value),
            json(),
        ),
        auth: auth::config_auth(&mut fields),
        query_params: fields.optional("queryParams", texts),
        header_params: fields.with_default("headerParams", header_params, Vec::new()),
        static_query: fields.with_default("staticQuery", static_query, Vec::new()),
        response_mapping: fields.optional("responseMapping", mapping::read),
        redact: fields.with_default("redact", texts, Vec::new()),
        retry: fields.optional("retryPolicy", retry::ReadRetryPolicy::read),
        probe: fields.optional("probe", service_probe::read),
        outbound: OutboundSettings::read(&mut fields),
        ..HttpConfig::empty()
    };
    if [Method::POST, Method::PUT, Method::PATCH].contains(&method) {
        let body = |cursor| value::object(cursor, StringMode::Expanded).map(StaticBody);
        config.static_body = fields.optional("staticBody", body);
        config.body_mapping = fields.optional("bodyMapping", mapping::read);
    } else {
        fields.reject_misplaced(&["staticBody", "bodyMapping"], "only POST, PUT and PATCH have a body");
    }
    fields.finish();
    Some(HttpConfig { method, ..config })
}

fn header_params(cursor: ValueCursor<'_>) -> Option<Vec<(String, HeaderName)>> {
    cursor.entries(formats::any_name, |cursor| cursor.parse(formats::header_name))
}

fn static_query(cursor: ValueCursor<'_>) -> Option<Vec<(String, SecretString)>> {
    cursor.entries(formats::any_name, ValueCursor::secret)
}
