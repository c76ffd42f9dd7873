//! All HTTP routes of the gateway.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use http::header;
use tokio::task::spawn_blocking;
use toolyard_manifest::{ListenAddress, ProcessSettings};
use toolyard_mcp::server::http::{McpEndpoint, PATH};
use toolyard_net::guard::BrowserGuard;
use toolyard_net::listener::HttpService;

use crate::context::GatewayContext;
use crate::frontends::landing::LandingPage;
use crate::frontends::rest::{self, ProblemDetails};
use crate::frontends::{self, FrontendDeps};
use crate::health;
use crate::keys::{AuthLayer, AuthenticatedCaller};
use crate::listeners::ListeningAddresses;
use crate::start::StartError;
use crate::telemetry::GatewayTelemetry;

/// Lifecycle stage of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayStage {
    /// The manifest is not loaded yet.
    Starting,
    /// Calls are accepted. Some handlers may be unavailable.
    Serving,
    /// New calls are refused; running calls may finish.
    Draining,
}

/// Content type of the Prometheus text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns every route. All routes except the health checks, the OpenAPI document, the agent card, notifications of agents, the exchange of a one-time code for a
/// session, and the files of the console are authenticated if keys are required.
///
/// # Errors
/// If a frontend lacks something of this system.
pub(crate) fn all(context: &GatewayContext, deps: &FrontendDeps<'_>) -> Result<HttpRoutes, StartError> {
    let (guard, keys) = (deps.guard, deps.keys.clone());
    let mcp = frontends::mcp::endpoint(context, deps)?;
    let auth = AuthLayer::new(keys.clone(), guard.clone());
    let metrics =
        Router::new().route("/metrics", get(metrics)).with_state((guard.clone(), deps.telemetry.clone()));
    let rest = rest::state(context, deps);
    let authenticated = frontends::routes(&rest, deps, mcp.clone())
        .merge(metrics)
        .fallback(rest::not_found)
        .layer(auth.clone());
    let notifications = frontends::a2a::notifications::route(context, deps, &rest);
    let public = rest::public_router(rest, Arc::new(guard.clone()))
        .merge(notifications)
        .merge(frontends::a2a::card_route(context, deps.a2a, guard, &keys));
    let router = health::routes(context, keys.clone()).merge(public).merge(authenticated);
    let settings = &context.process.console;
    let with_console = router.clone().merge(frontends::console::routes());
    let has_console = settings.enabled && settings.listen.is_empty();
    let main = if has_console { with_console.clone() } else { router };
    let of_router = |router, has_console| {
        let landing = LandingPage::new(context, guard.clone(), keys.clone(), has_console);
        GatewayRoutes { mcp: mcp.clone(), auth: auth.clone(), landing, router }
    };
    Ok(HttpRoutes { main: of_router(main, has_console), console: of_router(with_console, true) })
}

/// All routes, by the addresses that serve them.
pub(crate) struct HttpRoutes {
    /// Those of `listen`.
    pub(crate) main: GatewayRoutes,
    /// Those of the console's own addresses.
    pub(crate) console: GatewayRoutes,
}

/// All routes.
pub(crate) struct GatewayRoutes {
    mcp: McpEndpoint,
    auth: AuthLayer,
    landing: LandingPage,
    router: Router,
}

impl HttpService for GatewayRoutes {
    /// Answers a request. Those to the MCP endpoint, which are most, do not pass the router, which copies and boxes its
    /// services for each request.
    fn answer(&self, request: http::Request<Body>) -> BoxFuture<'static, Response> {
        if self.landing.is_wanted(&request) {
            return ready(self.landing.answer(&request)).boxed();
        }
        if request.uri().path() != PATH {
            return self.router.answer(request);
        }
        let mcp = self.mcp.clone();
        self.auth.clone().answer(request, |request| mcp.serve(request)).boxed()
    }
}

/// Returns the allowed hosts and origins of requests. Other gateways of a cluster use the configured cluster address as
/// host.
pub(crate) fn guard(process: &ProcessSettings, listening: &ListeningAddresses) -> BrowserGuard {
    let own = listening.http1().filter_map(ListenAddress::tcp).map(|address| host_of(address.ip()));
    let in_cluster = process.cluster.iter().filter_map(|cluster| {
        let address = cluster.address.parse::<http::Uri>().ok()?;
        address.host().map(str::to_owned)
    });
    BrowserGuard {
        own_hosts: own.chain(in_cluster).collect(),
        hosts: process.allowed_hosts.clone(),
        origins: process.allowed_origins.clone(),
        exposed: listening.http1().any(ListenAddress::is_exposed),
    }
}

/// Serves the metrics to Prometheus. They contain tool names, so pages of other origins are refused.
async fn metrics(
    State((guard, telemetry)): State<(BrowserGuard, Arc<GatewayTelemetry>)>,
    request: http::Request<Body>,
) -> Result<Response, ProblemDetails> {
    guard.check(&request).map_err(|refusal| ProblemDetails::denied(refusal.to_string()))?;
    AuthenticatedCaller::authorize(request.extensions(), |access| access.metrics || access.admin)?;
    // There may be thousands of time series, and rendering them would block calls.
    let page = spawn_blocking(move || telemetry.page()).await.map_err(|_| ProblemDetails::fault())?;
    Ok(([(header::CONTENT_TYPE, METRICS_TYPE)], page).into_response())
}

/// Formats an address as in a `Host` header.
fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}
