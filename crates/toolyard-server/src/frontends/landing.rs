//! A short page for browsers that open the URL of MCP clients.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{Method, header};
use tokio::sync::watch;
use toolyard_core::registry::EntryKind;
use toolyard_core::{BackendPhase, Registry};
use toolyard_mcp::server::http::PATH;
use toolyard_net::guard::BrowserGuard;

use super::rest::ProblemDetails;
use crate::context::GatewayContext;
use crate::keys::KeyCache;

/// Path of the page if the console is not there.
const ROOT: &str = "/";

/// URL of the documentation.
const DOCS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/tree/main/docs");

/// The page, in the gateway's present state.
#[derive(Clone)]
pub(crate) struct LandingPage {
    guard: BrowserGuard,
    keys: Arc<KeyCache>,
    registry: watch::Receiver<Arc<Registry>>,
    has_console: bool,
}

impl LandingPage {
    pub(crate) fn new(
        context: &GatewayContext,
        guard: BrowserGuard,
        keys: Arc<KeyCache>,
        has_console: bool,
    ) -> Self {
        Self { guard, keys, registry: context.fleet.registry.clone(), has_console }
    }

    /// True for a browser's request to open the MCP endpoint, or the root without a console. MCP clients accept JSON and
    /// event streams.
    pub(crate) fn is_wanted(&self, request: &http::Request<Body>) -> bool {
        let path = request.uri().path();
        let accepts =
            || request.headers().get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        request.method() == Method::GET
            && (path == PATH || path == ROOT && !self.has_console)
            && accepts().any(|accept| accept.contains("text/html"))
    }

    /// Answers such a request. The page needs no key, and says nothing about tools if requests need one.
    pub(crate) fn answer(&self, request: &http::Request<Body>) -> Response {
        if let Err(refusal) = self.guard.check(request) {
            return ProblemDetails::denied(refusal.to_string()).into_response();
        }
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-store"),
            (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
        ];
        (headers, self.text()).into_response()
    }

    fn text(&self) -> String {
        let console = match self.has_console {
            true => "<p>The <a href=\"/\">console</a> shows its servers, tools and calls.</p>\n",
            false => "",
        };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Toolyard</title>\n<h1>Toolyard</h1>\n\
             <p>This is an MCP endpoint: give its URL, which ends in <code>{PATH}</code>, to an MCP client.</p>\n\
             <p>{state}</p>\n{console}<p><a href=\"{DOCS}\">Documentation</a></p>\n</html>\n",
            state = self.state(),
        )
    }

    fn state(&self) -> String {
        if !self.keys.is_loaded() {
            return "The store cannot be read, so that no request is admitted.".to_owned();
        }
        if self.keys.requires_key() {
            return "Requests need an API key, as <code>Authorization: Bearer KEY</code>.".to_owned();
        }
        let registry = self.registry.borrow();
        let ready = registry.phases().iter().filter(|(_, phase)| *phase == BackendPhase::Ready).count();
        let (tools, handlers) = (registry.entries(EntryKind::Tools).len(), registry.phases().len());
        format!("Tools: {tools}. Handlers that are ready: {ready} of {handlers}.")
    }
}
