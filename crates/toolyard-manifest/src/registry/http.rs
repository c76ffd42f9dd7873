//! The reader of a handler of the type `http`.
//!
//! The contract has two generations, which differ in where the endpoint and the authentication stand. Both are
//! read.

use http::{HeaderName, HeaderValue, Method};

use super::{
    auth,
    endpoint::{self, Form},
    headers, retry, tool,
};
use crate::{
    cursor::{Choice, Cursor},
    fields::Fields,
    forms::{self, Endpoint, UrlTemplate},
    handler::{Auth, HttpHandler, HttpRetry, Mapping, Secret, StaticBody, Url},
    problem::{Place, Problem},
    value::{self, Strings},
};

/// An endpoint is a URL; a service of a cluster is reached without TLS.
const URL: Form<Endpoint> = Form { before_service: "http://", parse: Endpoint::parse };

const METHOD: Choice<&str> = Choice {
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
    not_yet: &[],
};

/// How many operators and brackets a JMESPath expression may have. Its parser and its interpreter recurse, for
/// some of them by several functions each.
const MOST_OPERATORS: usize = 200;

/// What `httpConfig` says.
struct Config {
    endpoint: Option<Endpoint>,
    template: Option<(String, Place)>,
    method: Method,
    headers: Vec<(HeaderName, Secret)>,
    content_type: HeaderValue,
    auth: Option<Auth>,
    query_params: Option<Vec<String>>,
    header_params: Vec<(String, HeaderName)>,
    static_query: Vec<(String, Secret)>,
    static_body: Option<StaticBody>,
    body_mapping: Option<Mapping>,
    response_mapping: Option<Mapping>,
    redact: Vec<String>,
    retry: Option<HttpRetry>,
}

/// What a handler's fields say that has the type `http`. `namespace` is that of its registry.
pub(super) fn handler(fields: &mut Fields<'_>, namespace: &str, place: &Cursor<'_>) -> Option<HttpHandler> {
    let endpoint = fields.optional("endpoint", |cursor| Some(endpoint::read(cursor, namespace, &URL)));
    let tool = fields.required("tool", tool::read);
    let config = fields.optional("httpConfig", |cursor| Some(config(cursor)));
    let config_is_wrong = matches!(config, Some(None));
    let config = config.flatten().unwrap_or_else(Config::empty);
    let auth = auth::of_handler(fields, config.auth.clone(), "httpConfig");
    let retry = retry::of_handler(fields, config.retry.clone(), "httpConfig");
    let known_to_be_wrong = config_is_wrong || matches!(endpoint, Some(None));
    let endpoint = endpoint.flatten().or_else(|| config.endpoint.clone());
    let url = url(endpoint, config.template.clone(), auth.is_some(), known_to_be_wrong, place);
    Some(HttpHandler {
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
    })
}

// === where to ===

/// The one URL of endpoint and template. A template that begins with `/` continues the endpoint.
fn url(
    endpoint: Option<Endpoint>,
    template: Option<(String, Place)>,
    has_auth: bool,
    known_to_be_wrong: bool,
    handler: &Cursor<'_>,
) -> Option<Url> {
    let Some((template, place)) = template else {
        if endpoint.is_none() && !known_to_be_wrong {
            endpoint::missing(handler);
        }
        return endpoint.map(Url::Fixed);
    };
    let whole = match (template.starts_with('/'), &endpoint) {
        (true, None) if known_to_be_wrong => return None,
        (true, Some(endpoint)) if endpoint.uri().query().is_some() => {
            let problem = Problem::new(place, "the endpoint has a query, and cannot be continued");
            handler.report(problem.expected("a template with the whole URL, or the query in `staticQuery`"));
            return None;
        }
        (true, Some(endpoint)) => format!("{}{template}", without_slash(endpoint)),
        _ => template,
    };
    let template = UrlTemplate::parse(&whole)
        .map_err(|invalid| handler.report(invalid.problem(place.clone(), "this")))
        .ok()?;
    if has_auth && template.host_varies() {
        let problem = Problem::new(place, "arguments decide which host gets the credentials");
        handler.report(problem.expected("a host that is written out, or no authentication"));
        return None;
    }
    Some(Url::Template(template))
}

fn without_slash(endpoint: &Endpoint) -> String {
    let uri = endpoint.uri();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    format!("{}://{authority}{}", uri.scheme_str().unwrap_or_default(), uri.path().trim_end_matches('/'))
}

// === the configuration ===

impl Config {
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
        }
    }
}

const fn json() -> HeaderValue {
    HeaderValue::from_static("application/json")
}

fn config(cursor: Cursor<'_>) -> Option<Config> {
    let mut fields = cursor.fields()?;
    let texts = |cursor: Cursor<'_>| cursor.list(Cursor::text);
    let endpoint = fields.optional("endpoint", |cursor| cursor.parse_secret(Endpoint::parse));
    let template = fields.optional("urlTemplate", |cursor| Some((cursor.clone().text()?, cursor.place())));
    let method = fields.with_default("method", |cursor| cursor.choice(&METHOD), "POST");
    let method: Method = method.parse().unwrap_or_default();
    let mut config = Config {
        endpoint,
        template,
        headers: fields.with_default("headers", |cursor| headers(cursor, forms::is_header_name), Vec::new()),
        content_type: fields.with_default("contentType", |cursor| cursor.parse(forms::header_value), json()),
        auth: auth::configured(&mut fields),
        query_params: fields.optional("queryParams", texts),
        header_params: fields.with_default("headerParams", header_params, Vec::new()),
        static_query: fields.with_default("staticQuery", static_query, Vec::new()),
        response_mapping: fields.optional("responseMapping", mapping),
        redact: fields.with_default("redact", texts, Vec::new()),
        retry: fields.optional("retryPolicy", retry::Policy::read),
        ..Config::empty()
    };
    if [Method::POST, Method::PUT, Method::PATCH].contains(&method) {
        let body = |cursor| value::object(cursor, Strings::Expanded).map(StaticBody);
        config.static_body = fields.optional("staticBody", body);
        config.body_mapping = fields.optional("bodyMapping", mapping);
    } else {
        fields.misplaced(&["staticBody", "bodyMapping"], "only POST, PUT and PATCH have a body");
    }
    fields.finish();
    Some(Config { method, ..config })
}

fn header_params(cursor: Cursor<'_>) -> Option<Vec<(String, HeaderName)>> {
    cursor.entries(forms::any_name, |cursor| cursor.parse(forms::header_name))
}

fn static_query(cursor: Cursor<'_>) -> Option<Vec<(String, Secret)>> {
    cursor.entries(forms::any_name, Cursor::secret)
}

fn mapping(cursor: Cursor<'_>) -> Option<Mapping> {
    let text = cursor.literal()?;
    if text.bytes().filter(|byte| b"([{!&|.=<>*".contains(byte)).count() > MOST_OPERATORS {
        let problem = cursor.problem("this expression is too long");
        cursor.report(
            problem.expected(format!("JMESPath with at most {MOST_OPERATORS} operators and brackets")),
        );
        return None;
    }
    match jmespath::compile(text) {
        Ok(expression) => Some(Mapping(expression)),
        Err(error) => {
            let problem = cursor.problem(format!("this is not JMESPath: {}", error.reason));
            let at = format!("the trouble begins at character {} of the expression", error.offset + 1);
            cursor.report(problem.expected("an expression such as `items[].name`").hint(at));
            None
        }
    }
}
