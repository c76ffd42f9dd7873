//! From a call's arguments to a request. A pure function of a plan.
//!
//! Arguments go, in this order, into the URL template, into headers and into the query; each takes out what it
//! uses. With POST, PUT and PATCH the rest is the body, as its own text where nothing changes it; with other
//! methods it is the query.

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use bytes::Bytes;
use jmespath::Expression;
use toolyard_core::{Code, Json, Object, ToolError};

use super::mapping;
use super::target::{Target, encoded, invalid, plain};

/// What the requests of a tool look like.
#[derive(Clone)]
pub struct Plan {
    /// The method.
    pub method: Method,
    /// Where they go.
    pub target: Target,
    /// What each of them carries.
    pub headers: HeaderMap,
    /// What a body is called, unless [`Plan::headers`] say it.
    pub content_type: HeaderValue,
    /// The arguments that go into the query: with a method that has a body, these; with another one, only
    /// these, or all where there is no list.
    pub query_params: Option<Vec<String>>,
    /// The arguments that go into headers.
    pub header_params: Vec<(String, HeaderName)>,
    /// What each query carries, whatever an argument says.
    pub static_query: Vec<(String, String)>,
    /// What each body carries, unless an argument says otherwise.
    pub static_body: Object,
    /// What makes the body of what would be the body.
    pub body_mapping: Option<Expression<'static>>,
}

impl Plan {
    /// Requests with a method and a target, and nothing else said.
    #[must_use]
    pub fn new(method: Method, target: Target) -> Self {
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

    /// The request for these arguments.
    ///
    /// # Errors
    /// [`Code::InvalidArguments`] where an argument is missing in the URL, or cannot stand where it belongs.
    pub fn request(&self, arguments: Option<&Json>) -> Result<Request<Bytes>, ToolError> {
        let mut rest = match arguments.map(Json::to_object) {
            Some(Err(error)) => {
                return Err(ToolError::new(Code::InvalidArguments, format!("Invalid arguments: {error}")));
            }
            Some(Ok(object)) => object,
            None => Object::new(),
        };
        let all = rest.clone();
        let url = self.target.fill(&mut rest)?;
        let headers = self.header_arguments(&mut rest)?;
        let url = self.with_query(url, &mut rest);
        let body = match arguments {
            _ if !self.has_body() => Bytes::new(),
            Some(text) if rest == all && self.sends_arguments_as_they_are() && !all.is_empty() => {
                text.bytes()
            }
            _ => self.body(&rest)?,
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = url.parse::<Uri>().map_err(|error| no_url().caused_by(error))?;
        self.write_headers(headers, &mut request);
        Ok(request)
    }

    fn has_body(&self) -> bool {
        [Method::POST, Method::PUT, Method::PATCH].contains(&self.method)
    }

    fn sends_arguments_as_they_are(&self) -> bool {
        self.static_body.is_empty() && self.body_mapping.is_none()
    }

    fn header_arguments(&self, rest: &mut Object) -> Result<HeaderMap, ToolError> {
        let mut headers = HeaderMap::new();
        for (argument, name) in &self.header_params {
            let Some(value) = rest.remove(argument).filter(|value| !value.is_null()) else { continue };
            let value = HeaderValue::try_from(plain(&value));
            headers.insert(name, value.map_err(|_| invalid(argument, "it cannot stand in a header"))?);
        }
        Ok(headers)
    }

    fn write_headers(&self, of_arguments: HeaderMap, request: &mut Request<Bytes>) {
        let has_body = !request.body().is_empty();
        let headers = request.headers_mut();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, */*;q=0.5"));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("toolyard/", env!("CARGO_PKG_VERSION"))),
        );
        headers.insert(header::CONTENT_TYPE, self.content_type.clone());
        headers.extend(self.headers.clone());
        headers.extend(of_arguments);
        if !has_body {
            headers.remove(header::CONTENT_TYPE);
        }
    }

    /// The URL with its query. What an author wrote into it cannot be said again by an argument: which of two
    /// a server takes is anybody's guess.
    fn with_query(&self, url: String, rest: &mut Object) -> String {
        let mut url = url;
        let written: Vec<String> = names_in_query(&url);
        let fixed: Vec<_> = self.static_query.iter().map(|(name, _)| encoded(name)).collect();
        for (name, value) in self.query_arguments(rest) {
            if !written.contains(&name) && !fixed.contains(&name) {
                append(&mut url, &name, &encoded(&value));
            }
        }
        for (name, (_, value)) in fixed.iter().zip(&self.static_query) {
            append(&mut url, name, &encoded(value));
        }
        url
    }

    /// Names, encoded, and values of the arguments that go into the query.
    fn query_arguments(&self, rest: &mut Object) -> Vec<(String, String)> {
        let taken: Vec<(String, Json)> = match &self.query_params {
            Some(names) => names.iter().filter_map(|name| Some((name.clone(), rest.remove(name)?))).collect(),
            None if self.has_body() => Vec::new(),
            None => rest.iter().map(|(name, value)| (name.into_owned(), value.clone())).collect(),
        };
        let values = |(name, value): (String, Json)| {
            let name = encoded(&name);
            query_values(&value).into_iter().map(move |value| (name.clone(), value))
        };
        taken.into_iter().flat_map(values).collect()
    }

    fn body(&self, rest: &Object) -> Result<Bytes, ToolError> {
        let mut body = self.static_body.clone();
        for (name, value) in rest.iter() {
            body.set(&name, value.clone());
        }
        match &self.body_mapping {
            Some(expression) => {
                let mapped = mapping::apply(expression, &body.to_json())?;
                Ok(if mapped.is_null() { Bytes::new() } else { mapped.bytes() })
            }
            None if body.is_empty() => Ok(Bytes::new()),
            None => Ok(body.to_json().bytes()),
        }
    }
}

/// An array is one value for each of its items, as long as these are plain; what is `null` is left out.
fn query_values(value: &Json) -> Vec<String> {
    let is_nested = |value: &Json| matches!(value.as_bytes().first(), Some(b'{' | b'['));
    if value.is_null() {
        return Vec::new();
    }
    match value.to_items() {
        Ok(items) if !items.iter().any(is_nested) => items.iter().map(plain).collect(),
        _ => vec![plain(value)],
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

fn no_url() -> ToolError {
    ToolError::new(Code::InvalidArguments, "Invalid arguments: they make no URL, or one that is too long")
}
