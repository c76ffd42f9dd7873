//! A server at a URL: the headers of its requests, and the route on which it was found.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use toolyard_net::auth::UpstreamCredentials;
use toolyard_net::challenge::AuthChallenge;
use toolyard_net::client::HttpClient;

use super::TransportError;

/// A server at a URL. Clones share the route on which the server was found.
///
/// A URL without a path also stands for the default path, and a server may use another transport than expected: the
/// candidate routes are tried in turn.
#[derive(Clone)]
pub struct HttpEndpoint {
    route: HttpRoute,
    client: HttpClient,
    headers: HeaderMap,
    auth: Option<Arc<UpstreamCredentials>>,
    known_route: Arc<Mutex<Option<HttpRoute>>>,
}

/// The two HTTP transports of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpStyle {
    /// Streamable HTTP: one URL (since 2025-03-26).
    Streamable,
    /// HTTP+SSE: a stream at one URL, messages to another (2024-11-05).
    Sse,
}

/// A candidate URL and transport of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) struct HttpRoute {
    pub(super) url: Uri,
    pub(in crate::client) style: HttpStyle,
}

impl HttpEndpoint {
    /// Creates an endpoint with streamable HTTP and without credentials.
    #[must_use]
    pub fn new(url: Uri, client: HttpClient) -> Self {
        let route = HttpRoute { url, style: HttpStyle::Streamable };
        Self { route, client, headers: HeaderMap::new(), auth: None, known_route: Arc::default() }
    }

    /// Sets the transport that is tried first.
    #[must_use]
    pub fn with_style(self, style: HttpStyle) -> Self {
        self.with_route(HttpRoute { style, url: self.route.url.clone() })
    }

    /// Adds headers to every request. A header of the protocol with the same name wins.
    #[must_use]
    pub fn with_headers(self, headers: HeaderMap) -> Self {
        Self { headers, ..self }
    }

    /// Adds credentials to every request. They are sent only to the origin of this URL.
    #[must_use]
    pub fn with_auth(self, auth: UpstreamCredentials) -> Self {
        Self { auth: Some(Arc::new(auth)), ..self }
    }

    /// Returns the candidate routes, the most likely first: where the server was found last, then the configured
    /// transport, then the other one (2025-03-26, basic/transports, backwards compatibility).
    pub(in crate::client) fn routes(&self) -> Vec<HttpRoute> {
        let mut routes: Vec<_> = self.lock().iter().cloned().collect();
        for style in [self.route.style, self.route.style.other()] {
            let default = self.has_no_path().then(|| self.with_path(style.default_path()));
            for url in default.into_iter().chain([self.route.url.clone()]) {
                let route = HttpRoute { url, style };
                if !routes.contains(&route) {
                    routes.push(route);
                }
            }
        }
        routes
    }

    /// Returns the same server on this route.
    pub(in crate::client) fn with_route(&self, route: HttpRoute) -> Self {
        Self { route, ..self.clone() }
    }

    /// Returns the route.
    pub(in crate::client) const fn route(&self) -> &HttpRoute {
        &self.route
    }

    /// Records the route on which the server was found.
    pub(in crate::client) fn remember_route(&self, name: &str, route: &HttpRoute) {
        let before = self.lock().replace(route.clone());
        if before.as_ref() != Some(route) && route.style != self.route.style {
            tracing::info!(handler = %name, style = %route.style, "the server uses another transport than configured");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<HttpRoute>> {
        self.known_route.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_no_path(&self) -> bool {
        matches!(self.route.url.path(), "" | "/")
    }

    /// Returns the same URL with this path.
    fn with_path(&self, path: &'static str) -> Uri {
        let mut parts = self.route.url.clone().into_parts();
        let joined = self.route.url.query().map_or(path.to_owned(), |query| format!("{path}?{query}"));
        // Both parts come from a valid URL.
        parts.path_and_query = PathAndQuery::try_from(joined).ok();
        Uri::from_parts(parts).unwrap_or_else(|_| self.route.url.clone())
    }

    /// Builds an HTTP request with the headers of every request: the configured ones, the credentials, and those of
    /// the transports.
    pub(super) async fn build_request(
        &self,
        method: Method,
        url: &Uri,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, TransportError> {
        let headers = self.headers(&method);
        self.request_with(method, url, headers, body).await
    }

    /// Returns the headers of every request: the configured ones, and those of the transports.
    pub(super) fn headers(&self, method: &Method) -> HeaderMap {
        let accept = match *method {
            Method::GET => HeaderValue::from_static("text/event-stream"),
            _ => HeaderValue::from_static("application/json, text/event-stream"),
        };
        let mut headers = self.headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, accept);
        headers
    }

    /// Builds an HTTP request with these headers and the credentials.
    pub(super) async fn request_with(
        &self,
        method: Method,
        url: &Uri,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, TransportError> {
        if let Some(auth) = &self.auth {
            let value = auth.header().await.map_err(TransportError::Credentials)?;
            headers.insert(header::AUTHORIZATION, value);
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = url.clone();
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Returns the error for a status of failure.
    pub(super) fn status_error(&self, status: StatusCode, headers: &HeaderMap) -> TransportError {
        let was_sent = self.auth.is_some() || self.headers.contains_key(header::AUTHORIZATION);
        match status {
            StatusCode::UNAUTHORIZED => TransportError::Unauthorized(AuthChallenge::of(headers, was_sent)),
            status => TransportError::Status(status),
        }
    }

    /// Returns the client that sends the requests. It follows no redirects: the credentials are for the configured
    /// server.
    pub(super) const fn client(&self) -> &HttpClient {
        &self.client
    }
}

impl HttpStyle {
    const fn other(self) -> Self {
        match self {
            Self::Streamable => Self::Sse,
            Self::Sse => Self::Streamable,
        }
    }

    /// Returns the default path of servers with this transport.
    const fn default_path(self) -> &'static str {
        match self {
            Self::Streamable => "/mcp",
            Self::Sse => "/sse",
        }
    }
}

/// Writes the name that manifests use.
impl fmt::Display for HttpStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Streamable => "streamable-http",
            Self::Sse => "sse",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &'static str) -> HttpEndpoint {
        HttpEndpoint::new(Uri::from_static(url), HttpClient::without_roots().unwrap())
    }

    #[track_caller]
    fn check(endpoint: &HttpEndpoint, expect: &[&str]) {
        let routes = endpoint.routes();
        let lines: Vec<_> = routes.iter().map(|route| format!("{} {}", route.style, route.url)).collect();
        assert_eq!(lines, expect);
    }

    #[test]
    fn candidate_routes() {
        let joined = ["streamable-http http://a/x", "sse http://a/x"];
        check(&endpoint("http://a/x"), &joined);
        check(&endpoint("http://a/x").with_style(HttpStyle::Sse), &[joined[1], joined[0]]);
        let bare = [
            "streamable-http http://a/mcp",
            "streamable-http http://a/",
            "sse http://a/sse",
            "sse http://a/",
        ];
        check(&endpoint("http://a"), &bare);
        check(&endpoint("http://a/").with_style(HttpStyle::Sse), &[bare[2], bare[3], bare[0], bare[1]]);
        check(
            &endpoint("http://a:1/?k=v"),
            &[
                "streamable-http http://a:1/mcp?k=v",
                "streamable-http http://a:1/?k=v",
                "sse http://a:1/sse?k=v",
                "sse http://a:1/?k=v",
            ],
        );
    }

    #[test]
    fn known_route_is_tried_first() {
        let endpoint = endpoint("http://a/x");
        endpoint.clone().remember_route("a", &endpoint.routes()[1]);
        check(&endpoint, &["sse http://a/x", "streamable-http http://a/x"]);
    }
}
