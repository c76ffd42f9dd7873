//! Converts a call's arguments to a request. A pure function of a plan.
//!
//! The URL template, headers and the query take their arguments, in this order; each argument is used once. With
//! POST, PUT and PATCH the remaining arguments are the body, byte for byte if nothing changes them; with other
//! methods they are the query.

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use bytes::Bytes;
use toolyard_core::{ErrorCode, Json, Object, ToolError};

use super::mapping::JmesPathMapping;
use super::target::{RequestTarget, invalid_argument, percent_encode, plain_text};

/// Template of a tool's requests.
#[derive(Clone)]
pub struct HttpRequestPlan {
    /// The method.
    pub method: Method,
    /// The URL, or a template of it.
    pub target: RequestTarget,
    /// Headers of every request.
    pub headers: HeaderMap,
    /// Content type of a body, unless [`HttpRequestPlan::headers`] has one.
    pub content_type: HeaderValue,
    /// Names of the arguments in the query. `None`: all remaining arguments with a method without a body, none with
    /// other methods.
    pub query_params: Option<Vec<String>>,
    /// Names of the arguments in headers, with the name of each header.
    pub header_params: Vec<(String, HeaderName)>,
    /// Parameters of every query; arguments do not override them.
    pub static_query: Vec<(String, String)>,
    /// Members of every body; arguments override them.
    pub static_body: Object,
    /// Mapping that converts the arguments to the body.
    pub body_mapping: Option<JmesPathMapping>,
}

impl HttpRequestPlan {
    /// Creates a plan with a method, a target and defaults for everything else.
    #[must_use]
    pub fn new(method: Method, target: RequestTarget) -> Self {
        Self {
            method,
            target,
            headers: HeaderMap::new(),
            content_type: HeaderValue::from_static("application/json"),
            query_params: None,
            header_params: Vec::new(),
            static_query: Vec::new(),
            static_body: Object::new(),
            body_mapping: None,
        }
    }

    /// True if arguments of `bytes` bytes can be converted on a connection's thread.
    #[must_use]
    pub fn is_brief(&self, bytes: usize) -> bool {
        self.body_mapping.as_ref().is_none_or(|mapping| mapping.is_brief(bytes))
    }

    /// Builds the request for these arguments.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArguments`] if the URL lacks an argument, or an argument is not valid in its location.
    pub fn request(&self, arguments: Option<&Json>) -> Result<Request<Bytes>, ToolError> {
        let mut rest = match arguments.map(Json::to_object) {
            Some(Err(error)) => {
                return Err(ToolError::new(
                    ErrorCode::InvalidArguments,
                    format!("Invalid arguments: {error}"),
                ));
            }
            Some(Ok(object)) => object,
            None => Object::new(),
        };
        let all = rest.clone();
        let url = self.target.expand(&mut rest)?;
        let headers = self.header_arguments(&mut rest)?;
        let url = self.with_query(url, &mut rest);
        let body = match arguments {
            _ if !self.has_body() => Bytes::new(),
            Some(text) if rest == all && self.forwards_arguments_verbatim() && !all.is_empty() => {
                text.bytes()
            }
            _ => self.body(&rest)?,
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = url.parse::<Uri>().map_err(|error| invalid_url().caused_by(error))?;
        self.write_headers(headers, &mut request);
        Ok(request)
    }

    fn has_body(&self) -> bool {
        [Method::POST, Method::PUT, Method::PATCH].contains(&self.method)
    }

    fn forwards_arguments_verbatim(&self) -> bool {
        self.static_body.is_empty() && self.body_mapping.is_none()
    }

    fn header_arguments(&self, rest: &mut Object) -> Result<HeaderMap, ToolError> {
        let mut headers = HeaderMap::new();
        for (argument, name) in &self.header_params {
            let Some(value) = rest.remove(argument).filter(|value| !value.is_null()) else { continue };
            let value = HeaderValue::try_from(plain_text(&value));
            headers.insert(
                name,
                value.map_err(|_| invalid_argument(argument, "it is not a valid header value"))?,
            );
        }
        Ok(headers)
    }

    fn write_headers(&self, argument_headers: HeaderMap, request: &mut Request<Bytes>) {
        let has_body = !request.body().is_empty();
        let headers = request.headers_mut();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, */*;q=0.5"));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("toolyard/", env!("CARGO_PKG_VERSION"))),
        );
        headers.insert(header::CONTENT_TYPE, self.content_type.clone());
        headers.extend(self.headers.clone());
        headers.extend(argument_headers);
        if !has_body {
            headers.remove(header::CONTENT_TYPE);
        }
    }

    /// Appends the query to the URL. Arguments do not repeat the author's parameters: servers differ in which of two
    /// values they use.
    fn with_query(&self, url: String, rest: &mut Object) -> String {
        let mut url = url;
        let url_names: Vec<String> = names_in_query(&url);
        let static_names: Vec<_> = self.static_query.iter().map(|(name, _)| percent_encode(name)).collect();
        for (name, value) in self.query_arguments(rest) {
            if !url_names.contains(&name) && !static_names.contains(&name) {
                append(&mut url, &name, &percent_encode(&value));
            }
        }
        for (name, (_, value)) in static_names.iter().zip(&self.static_query) {
            append(&mut url, name, &percent_encode(value));
        }
        url
    }

    /// Returns the arguments of the query as pairs of encoded name and value.
    fn query_arguments(&self, rest: &mut Object) -> Vec<(String, String)> {
        let selected: Vec<(String, Json)> = match &self.query_params {
            Some(names) => names.iter().filter_map(|name| Some((name.clone(), rest.remove(name)?))).collect(),
            None if self.has_body() => Vec::new(),
            None => rest.iter().map(|(name, value)| (name.into_owned(), value.clone())).collect(),
        };
        let values = |(name, value): (String, Json)| {
            let name = percent_encode(&name);
            query_values(&value).into_iter().map(move |value| (name.clone(), value))
        };
        selected.into_iter().flat_map(values).collect()
    }

    fn body(&self, rest: &Object) -> Result<Bytes, ToolError> {
        let mut body = self.static_body.clone();
        for (name, value) in rest.iter() {
            body.set(&name, value.clone());
        }
        match &self.body_mapping {
            Some(mapping) => {
                let mapped = mapping.apply(&body.to_json())?;
                Ok(if mapped.is_null() { Bytes::new() } else { mapped.bytes() })
            }
            None if body.is_empty() => Ok(Bytes::new()),
            None => Ok(body.to_json().bytes()),
        }
    }
}

/// Returns one value for each item of a flat array, none for `null`, and otherwise the value itself.
fn query_values(value: &Json) -> Vec<String> {
    let is_nested = |value: &Json| matches!(value.as_bytes().first(), Some(b'{' | b'['));
    if value.is_null() {
        return Vec::new();
    }
    match value.to_items() {
        Ok(items) if !items.iter().any(is_nested) => items.iter().map(plain_text).collect(),
        _ => vec![plain_text(value)],
    }
}

fn names_in_query(url: &str) -> Vec<String> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    query.split('&').map(|pair| pair.split('=').next().unwrap_or_default().to_owned()).collect()
}

fn append(url: &mut String, name: &str, value: &str) {
    let separator = match url.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    url.extend([separator, name, "=", value]);
}

fn invalid_url() -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, "Invalid arguments: the resulting URL is invalid or too long")
}
