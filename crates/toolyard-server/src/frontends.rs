//! The frontends: the protocols for callers. All of them make their calls by `Gateway::invoke`.
//!
//! A frontend is a module here and one line. A frontend with routes on the gateway's listeners has its line in
//! `routes`. A frontend with a socket of its own is a subsystem, whose line is in [`start`](crate::start).

#[cfg(feature = "full")]
pub(crate) mod grpc;
pub(crate) mod mcp;
pub mod rest;

use std::sync::Arc;

use axum::Router;
use tokio::task::JoinSet;
use toolyard_agent::search::ServiceIndex;
use toolyard_core::Gateway;
use toolyard_mcp::server::McpFrontend;
use toolyard_mcp::server::http::McpEndpoint;
use toolyard_net::guard::BrowserGuard;

use crate::context::GatewayContext;
use crate::hosting::CodeHosting;
use crate::keys::KeyCache;
use crate::listeners::ListeningAddresses;

/// The parts of the gateway that frontends use, beside the context.
pub(crate) struct FrontendDeps<'a> {
    /// The gateway that runs all calls.
    pub(crate) gateway: &'a Arc<Gateway>,
    /// The frontend of MCP, whose tasks and suspended calls outlast their requests.
    pub(crate) mcp: &'a Arc<McpFrontend>,
    /// The keys and their store.
    pub(crate) keys: &'a Arc<KeyCache>,
    /// The hosted functions.
    pub(crate) hosting: &'a CodeHosting,
    /// Index of what the handlers offer.
    pub(crate) services: &'a ServiceIndex,
    /// Allowed hosts and origins of requests.
    pub(crate) guard: &'a BrowserGuard,
    /// The bound addresses.
    pub(crate) listening: &'a ListeningAddresses,
}

/// Returns the routes of gRPC, with their authentication, and its tasks. There are none without its feature.
pub(crate) fn grpc_routes(context: &GatewayContext, deps: &FrontendDeps<'_>) -> (Router, JoinSet<()>) {
    #[cfg(feature = "full")]
    let routes = grpc::routes(context, deps);
    #[cfg(not(feature = "full"))]
    let (routes, _) = ((Router::new(), JoinSet::new()), (context, deps));
    routes
}

/// Returns the routes of all frontends on HTTP/1.1 that require a key.
pub(crate) fn routes(context: &GatewayContext, deps: &FrontendDeps<'_>, mcp: McpEndpoint) -> Router {
    Router::new()
        // `/mcp`, and `/sse` and `/message` for clients of 2024-11-05.
        .merge(mcp.into_router())
        // Calls and operations for programs without MCP.
        .nest("/api/v1", rest::routes(context, deps))
}
