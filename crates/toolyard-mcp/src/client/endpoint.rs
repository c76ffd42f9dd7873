//! A server at a URL: what its requests carry, and where it turned out to be.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use toolyard_net::auth::Auth;
use toolyard_net::client::{Client, RequestError};

use super::transport::TransportError;

/// A server at a URL. Clones are the same server: what one finds out all know.
///
/// A URL without a path stands for the usual one as well, and a server may turn out to speak the other style than
/// the one that was expected: the places where it may be are tried in turn.
#[derive(Clone)]
pub struct HttpEndpoint {
    route: Route,
    client: Client,
    headers: HeaderMap,
    auth: Option<Arc<Auth>>,
    found: Arc<Mutex<Option<Route>>>,
}

/// The two ways in which MCP uses HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpStyle {
    /// One URL for everything (since 2025-03-26).
    Streamable,
    /// A stream at one URL, messages to another (2024-11-05).
    Sse,
}

/// One place where a server may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) url: Uri,
    pub(super) style: HttpStyle,
}

impl HttpEndpoint {
    /// A server that is expected to speak streamable HTTP, and requires nothing of its clients.
    #[must_use]
    pub fn new(url: Uri, client: Client) -> Self {
        let route = Route { url, style: HttpStyle::Streamable };
        Self { route, client, headers: HeaderMap::new(), auth: None, found: Arc::default() }
    }

    /// With a style that is tried first.
    #[must_use]
    pub fn with_style(self, style: HttpStyle) -> Self {
        self.on(Route { style, url: self.route.url.clone() })
    }

    /// With headers for every request. Where the protocol has a header of the same name, that counts.
    #[must_use]
    pub fn with_headers(self, headers: HeaderMap) -> Self {
        Self { headers, ..self }
    }

    /// With credentials for every request. They go to this URL's own origin, and nowhere else.
    #[must_use]
    pub fn with_auth(self, auth: Auth) -> Self {
        Self { auth: Some(Arc::new(auth)), ..self }
    }

    /// Where the server may be, the likeliest place first: where it was found the last time, then what was said of
    /// it, then the other style (2025-03-26, basic/transports, backwards compatibility).
    pub(super) fn routes(&self) -> Vec<Route> {
        let mut routes: Vec<_> = self.lock().iter().cloned().collect();
        for style in [self.route.style, self.route.style.other()] {
            let usual = self.is_bare().then(|| self.at(style.usual_path()));
            for url in usual.into_iter().chain([self.route.url.clone()]) {
                let route = Route { url, style };
                if !routes.contains(&route) {
                    routes.push(route);
                }
            }
        }
        routes
    }

    /// The same server on this route.
    pub(super) fn on(&self, route: Route) -> Self {
        Self { route, ..self.clone() }
    }

    /// Where it is looked for, and how it is spoken to.
    pub(super) const fn route(&self) -> &Route {
        &self.route
    }

    /// Remembers where the server is.
    pub(super) fn remember(&self, name: &str, route: &Route) {
        let before = self.lock().replace(route.clone());
        if before.as_ref() != Some(route) && route.style != self.route.style {
            tracing::info!(handler = %name, style = %route.style, "the server speaks another transport than was said");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Route>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_bare(&self) -> bool {
        matches!(self.route.url.path(), "" | "/")
    }

    /// The same URL with this path.
    fn at(&self, path: &'static str) -> Uri {
        let mut parts = self.route.url.clone().into_parts();
        let whole = self.route.url.query().map_or(path.to_owned(), |query| format!("{path}?{query}"));
        // Both halves have been parts of a URL before.
        parts.path_and_query = PathAndQuery::try_from(whole).ok();
        Uri::from_parts(parts).unwrap_or_else(|_| self.route.url.clone())
    }

    /// Sends a request and waits for the head of the response. Redirects are not followed: credentials are for
    /// the server that the configuration names.
    pub(super) async fn send(
        &self,
        method: Method,
        url: &Uri,
        body: Bytes,
        headers: &HeaderMap,
    ) -> Result<Response<Incoming>, TransportError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = url.clone();
        *request.headers_mut() = self.headers.clone();
        if let Some(auth) = &self.auth {
            let value = auth.header().await.map_err(TransportError::Credentials)?;
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        for (name, value) in headers {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        self.client.send(request).await.map_err(|error| match error {
            RequestError::Connect(_) | RequestError::NotPublic => TransportError::Unreachable(error.into()),
            RequestError::Broken(_) => TransportError::Broken(error.into()),
        })
    }
}

impl HttpStyle {
    const fn other(self) -> Self {
        match self {
            Self::Streamable => Self::Sse,
            Self::Sse => Self::Streamable,
        }
    }

    /// Where servers of this style are unless somebody says otherwise.
    const fn usual_path(self) -> &'static str {
        match self {
            Self::Streamable => "/mcp",
            Self::Sse => "/sse",
        }
    }
}

/// As manifests write it.
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
        HttpEndpoint::new(Uri::from_static(url), Client::without_roots().unwrap())
    }

    #[track_caller]
    fn check(endpoint: &HttpEndpoint, expect: &[&str]) {
        let routes = endpoint.routes();
        let shown: Vec<_> = routes.iter().map(|route| format!("{} {}", route.style, route.url)).collect();
        assert_eq!(shown, expect);
    }

    #[test]
    fn where_a_server_may_be() {
        let whole = ["streamable-http http://a/x", "sse http://a/x"];
        check(&endpoint("http://a/x"), &whole);
        check(&endpoint("http://a/x").with_style(HttpStyle::Sse), &[whole[1], whole[0]]);
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
    fn where_it_was_is_tried_first() {
        let endpoint = endpoint("http://a/x");
        endpoint.clone().remember("a", &endpoint.routes()[1]);
        check(&endpoint, &["sse http://a/x", "streamable-http http://a/x"]);
    }
}
