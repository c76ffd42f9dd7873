//! A handler of the type `openapi`: each operation of a service is a tool.

mod credentials;

use std::{path::PathBuf, time::Duration};

use http::{HeaderName, Method};
use serde_json::Value;

pub use self::credentials::{OAuthClient, SchemeCredential};
use super::{HandlerScope, HandlerSettings, ReadHandler};
use crate::{
    cursor::{KeywordChoice, ValueCursor},
    fields::ObjectFields,
    formats::{self, EndpointUrl},
    handler::{
        HttpRetry, OutboundSettings, RequestAuth, RetryPolicy, SecretString, ServiceProbeSettings, auth,
        headers::headers, retry, secrets::SecretCollector, service_probe,
    },
    tree::NodeContent,
    value::{self, StringMode},
};

/// A service and the location of its description.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenApiHandler {
    /// `specURL` or `spec`: the description, OpenAPI 2 or 3.
    pub spec: OpenApiSpec,
    /// `baseURL`: the base URL of requests. Default: that of the description.
    pub base_url: Option<EndpointUrl>,
    /// `operationFilter` and `filter`: the operations that become tools.
    pub filter: OperationFilter,
    /// `headers`: headers of every request, including the one for the description.
    pub headers: Vec<(HeaderName, SecretString)>,
    /// `auth`, or `openAPIConfig.authType` and the related fields.
    pub auth: Option<RequestAuth>,
    /// `credentials`: the credentials of the service, by the names of its security schemes.
    pub credentials: Vec<(String, SchemeCredential)>,
    /// `serverVariables`: values of the variables in the server URL, instead of their defaults.
    pub server_variables: Vec<(String, SecretString)>,
    /// `refresh`: time between two reads of the description. Default: 5 min; `None`: on request only.
    pub refresh: Option<Duration>,
    /// `retryPolicy` or `retries`.
    pub retry: HttpRetry,
    /// `probe`: regular checks of the service. Default: none.
    pub probe: Option<ServiceProbeSettings>,
    /// The proxy, and the certificates that are trusted, for the description and the service.
    pub outbound: OutboundSettings,
}

/// The location of a description.
#[derive(Clone, Debug, PartialEq)]
pub enum OpenApiSpec {
    /// `specURL`: a URL.
    Url(EndpointUrl),
    /// `specURL` with `file:`: a file, which exists when the manifest is read.
    File(PathBuf),
    /// `spec`: in the manifest. An object is the description itself; a string is its text, in JSON or YAML.
    Inline(Value),
}

/// The operations that become tools: those that match every non-empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationFilter {
    /// `operationFilter`: by `operationId` or tool name.
    pub operations: Vec<String>,
    /// `filter.tags`: by one of their tags.
    pub tags: Vec<String>,
    /// `filter.methods`: by method.
    pub methods: Vec<Method>,
    /// `filter.paths`: by path. `*` matches anything but a slash, `**` matches anything.
    pub paths: Vec<String>,
}

impl HandlerSettings for OpenApiHandler {
    fn endpoint(&self) -> String {
        match &self.base_url {
            Some(base_url) => base_url.display_url(),
            None => self.spec.display_location(),
        }
    }

    fn add_secrets(&self, secrets: &mut SecretCollector) {
        if let OpenApiSpec::Url(url) = &self.spec {
            secrets.query_of(url);
        }
        self.base_url.iter().for_each(|url| secrets.query_of(url));
        secrets.auth(self.auth.as_ref());
        secrets.headers(&self.headers);
        self.outbound.add_secrets(secrets);
        self.credentials.iter().for_each(|(_, credential)| credential.add_secrets(secrets));
    }

    fn retry(&self) -> &RetryPolicy {
        &self.retry.policy
    }

    fn uses_tls(&self) -> bool {
        let spec = matches!(&self.spec, OpenApiSpec::Url(url) if url.is_tls());
        // Where the description names the server, its scheme is unknown yet.
        spec || self.base_url.as_ref().is_none_or(EndpointUrl::is_tls)
            || self.credentials.iter().any(|(_, credential)| credential.uses_tls())
    }

    fn identity(&self) -> Vec<String> {
        let OperationFilter { operations, tags, methods, paths } = &self.filter;
        let spec = match &self.spec {
            OpenApiSpec::Url(url) => url.uri().to_string(),
            OpenApiSpec::File(path) => path.display().to_string(),
            OpenApiSpec::Inline(value) => value.to_string(),
        };
        let methods = methods.iter().map(Method::to_string).collect();
        let lists = [("operations", operations), ("tags", tags), ("methods", &methods), ("paths", paths)];
        let lists =
            lists.into_iter().flat_map(|(name, list)| [name.to_owned()].into_iter().chain(list.clone()));
        [spec].into_iter().chain(lists).collect()
    }

    fn has_server_definitions(&self) -> bool {
        true
    }
}

impl ReadHandler for OpenApiHandler {
    const FIELDS: &'static [&'static str] = &["openAPIConfig"];

    fn read(fields: &mut ObjectFields<'_>, _: &HandlerScope<'_>) -> Option<Self> {
        let config = fields.required("openAPIConfig", config);
        let auth = auth::handler_auth(
            fields,
            config.as_ref().and_then(|config| config.auth.clone()),
            "openAPIConfig",
        );
        let retry: HttpRetry = retry::handler_retry(fields, None, "openAPIConfig");
        Some(Self { auth, retry, ..config? })
    }
}

// === impl OpenApiSpec ===

impl OpenApiSpec {
    /// The location for display: a URL without its query, the path of a file, or `inline`.
    fn display_location(&self) -> String {
        match self {
            Self::Url(endpoint) => endpoint.display_url(),
            Self::File(path) => format!("file:{}", path.display()),
            Self::Inline(_) => "inline".to_owned(),
        }
    }
}

// === the configuration ===

/// Default time between two reads of a description. Services change when they are deployed.
const DEFAULT_REFRESH: Duration = Duration::from_secs(5 * 60);

/// The methods of OpenAPI operations.
const METHOD: KeywordChoice<&str> = KeywordChoice {
    noun: "method of OpenAPI",
    words: &[
        ("GET", "GET"),
        ("PUT", "PUT"),
        ("POST", "POST"),
        ("DELETE", "DELETE"),
        ("OPTIONS", "OPTIONS"),
        ("HEAD", "HEAD"),
        ("PATCH", "PATCH"),
        ("TRACE", "TRACE"),
    ],
    unsupported: &[],
};

/// Reads `openAPIConfig`. The handler's own fields are added later.
fn config(cursor: ValueCursor<'_>) -> Option<OpenApiHandler> {
    let mut fields = cursor.fields()?;
    let spec = spec(&mut fields);
    let base_url = fields.optional("baseURL", |cursor| cursor.parse_secret(EndpointUrl::parse));
    let operations =
        fields.with_default("operationFilter", |cursor| cursor.non_empty_list(ValueCursor::text), Vec::new());
    let filter = fields.with_default("filter", operation_filter, OperationFilter::default());
    let headers =
        fields.with_default("headers", |cursor| headers(cursor, formats::is_header_name), Vec::new());
    let auth = auth::config_auth(&mut fields);
    let credentials = |cursor: ValueCursor<'_>| cursor.entries(formats::any_name, credentials::read);
    let credentials = fields.with_default("credentials", credentials, Vec::new());
    let variables = |cursor: ValueCursor<'_>| cursor.entries(formats::any_name, ValueCursor::secret);
    let server_variables = fields.with_default("serverVariables", variables, Vec::new());
    let refresh = fields.with_default("refresh", ValueCursor::duration, DEFAULT_REFRESH);
    let probe = fields.optional("probe", service_probe::read);
    let outbound = OutboundSettings::read(&mut fields);
    fields.finish();
    Some(OpenApiHandler {
        spec: spec?,
        base_url,
        filter: OperationFilter { operations, ..filter },
        headers,
        auth,
        credentials,
        server_variables,
        refresh: (!refresh.is_zero()).then_some(refresh),
        retry: RetryPolicy::attempts(1).into(),
        probe,
        outbound,
    })
}

/// Reads the location of the description, which has exactly one form.
fn spec(fields: &mut ObjectFields<'_>) -> Option<OpenApiSpec> {
    match fields.optional("spec", |cursor| Some(inline_spec(cursor))) {
        Some(inline) => {
            fields.reject_misplaced(&["specURL"], "`spec` already contains the description");
            inline.map(OpenApiSpec::Inline)
        }
        None => fields.required("specURL", spec_url),
    }
}

/// Reads a URL, or `file:` and a path.
fn spec_url(cursor: ValueCursor<'_>) -> Option<OpenApiSpec> {
    match cursor.clone().text()?.strip_prefix("file:") {
        Some(path) => auth::existing_file(&cursor, path).map(OpenApiSpec::File),
        None => cursor.parse_secret(formats::description_url).map(OpenApiSpec::Url),
    }
}

/// Reads an inline description without expanding references, because `${` may be part of it.
fn inline_spec(cursor: ValueCursor<'_>) -> Option<Value> {
    match cursor.content() {
        NodeContent::Text(text) if text.trim().is_empty() => {
            cursor.report(cursor.problem("this is empty").expected("a description, OpenAPI 2 or 3"));
            None
        }
        NodeContent::Text(text) => Some(Value::from(text.as_str())),
        NodeContent::Object(_) => value::object(cursor, StringMode::Literal).map(Value::Object),
        _ => {
            cursor.report_wrong_type("a description as an object, or its text", None);
            None
        }
    }
}

/// Reads the object `filter`. The filter by `operationId` is a separate field.
fn operation_filter(cursor: ValueCursor<'_>) -> Option<OperationFilter> {
    let method = |cursor: ValueCursor<'_>| Method::from_bytes(cursor.choice(&METHOD)?.as_bytes()).ok();
    let path = |cursor: ValueCursor<'_>| cursor.parse(formats::path_glob);
    let mut fields = cursor.fields()?;
    let filter = OperationFilter {
        operations: Vec::new(),
        tags: fields.with_default("tags", |cursor| cursor.non_empty_list(ValueCursor::text), Vec::new()),
        methods: fields.with_default("methods", |cursor| cursor.non_empty_list(method), Vec::new()),
        paths: fields.with_default("paths", |cursor| cursor.non_empty_list(path), Vec::new()),
    };
    fields.finish();
    Some(filter)
}
