//! The frontends: the protocols for callers. All of them make their calls by `Gateway::invoke`.
//!
//! A frontend is a module here and one line. A frontend with routes on the gateway's listeners has its line in
//! `routes`. A frontend with a socket of its own is a subsystem, whose line is in [`start`](crate::start).

pub(crate) mod a2a;
pub(crate) mod console;
pub(crate) mod grpc;
pub(crate) mod landing;
pub(crate) mod mcp;
pub mod rest;

use std::sync::Arc;

use axum::Router;
use tokio::task::JoinSet;
use toolyard_a2a::Agents;
use toolyard_a2a::server::A2aServer;
use toolyard_agent::search::{ServiceIndex, ToolFinder};
use toolyard_core::Gateway;
use toolyard_mcp::server::McpFrontend;
use toolyard_mcp::server::http::McpEndpoint;
use toolyard_net::guard::BrowserGuard;
use toolyard_schedule::Schedules;

use crate::context::GatewayContext;
use crate::frontends::rest::RestState;
use crate::hosting::CodeHosting;
use crate::keys::KeyCache;
use crate::listeners::ListeningAddresses;
use crate::telemetry::GatewayTelemetry;

/// The parts of the gateway that frontends use, beside the context.
pub(crate) struct FrontendDeps<'a> {
    /// The gateway that runs all calls.
    pub(crate) gateway: &'a Arc<Gateway>,
    /// The frontend of MCP, whose tasks and suspended calls outlast their requests.
    pub(crate) mcp: &'a Arc<McpFrontend>,
    /// The gateway as an agent, if it is one.
    pub(crate) a2a: Option<&'a A2aServer>,
    /// Other agents.
    pub(crate) agents: &'a Agents,
    /// The keys and their store.
    pub(crate) keys: &'a Arc<KeyCache>,
    /// The hosted functions.
    pub(crate) hosting: &'a CodeHosting,
    /// Index of what the handlers offer.
    pub(crate) services: &'a ServiceIndex,
    /// Index of all tools.
    pub(crate) finder: &'a Arc<ToolFinder>,
    /// Scheduled tasks.
    pub(crate) schedules: &'a Schedules,
    /// Metrics of calls.
    pub(crate) telemetry: &'a Arc<GatewayTelemetry>,
    /// Allowed hosts and origins of requests.
    pub(crate) guard: &'a BrowserGuard,
    /// The bound addresses.
    pub(crate) listening: &'a ListeningAddresses,
}

/// Returns the routes of gRPC, with their authentication, and its tasks.
pub(crate) fn grpc_routes(context: &GatewayContext, deps: &FrontendDeps<'_>) -> (Router, JoinSet<()>) {
    grpc::routes(context, deps)
}

/// Returns the routes of all frontends on HTTP/1.1 that require a key.
pub(crate) fn routes(rest: &Arc<RestState>, deps: &FrontendDeps<'_>, mcp: McpEndpoint) -> Router {
    Router::new()
        // `/mcp`, and `/sse` and `/message` for clients of 2024-11-05.
        .merge(mcp.into_router())
        // Calls and operations for programs without MCP.
        .nest("/api/v1", rest::router(rest.clone(), Arc::new(deps.guard.clone())))
        // Messages of other agents.
        .merge(a2a::route(rest, deps.a2a, deps.guard))
}
