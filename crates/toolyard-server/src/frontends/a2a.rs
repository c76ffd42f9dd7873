//! The A2A protocol: the gateway as an agent, whose skills are tools that the manifest names.
//!
//! The agent card needs no key. Calls need a key with the scope `rest`, as calls by REST.
//!
//! - [`notifications`]: notifications of agents about tasks that the gateway has given to them.

pub(crate) mod notifications;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use http::{StatusCode, header};
use tokio::sync::watch;
use tokio::time::timeout;
use toolyard_a2a::client::AgentClient;
use toolyard_a2a::server::{A2aReply, A2aRequest, A2aServer};
use toolyard_a2a::wire::rpc::{CARD_PATH, VERSION_HEADER};
use toolyard_core::{Caller, Gateway};
use toolyard_mcp::server::http::peer_of;
use toolyard_net::client::HttpClient;
use toolyard_net::guard::BrowserGuard;

use super::rest::{ProblemDetails, RestState, read_body};
use crate::context::GatewayContext;
use crate::keys::{AuthenticatedCaller, KeyCache};
use crate::routes::GatewayStage;
use crate::shutdown::Subsystem;

/// Path of the endpoint.
const PATH: &str = "/a2a";

/// Interval of the comments that keep an idle stream open.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// The parts that the agent card needs.
struct CardParts {
    server: A2aServer,
    guard: BrowserGuard,
    keys: Arc<KeyCache>,
    /// `http` or `https`.
    scheme: &'static str,
}

/// Returns the gateway as an agent; `None` unless the manifest makes it one.
pub(crate) fn start(context: &GatewayContext, gateway: &Arc<Gateway>) -> Option<A2aServer> {
    let client = AgentClient::new(HttpClient::with_system_roots);
    Some(A2aServer::new(gateway.clone(), context.process.a2a.clone()?, client))
}

/// Returns the route of the agent card, which needs no key.
pub(crate) fn card_route(
    context: &GatewayContext,
    server: Option<&A2aServer>,
    guard: &BrowserGuard,
    keys: &Arc<KeyCache>,
) -> Router {
    let Some(server) = server.cloned() else { return Router::new() };
    let scheme = if context.process.tls.is_some() { "https" } else { "http" };
    let parts = CardParts { server, guard: guard.clone(), keys: keys.clone(), scheme };
    Router::new().route(CARD_PATH, get(card)).with_state(Arc::new(parts))
}

/// Returns the route of calls, which needs a key.
pub(super) fn route(rest: &Arc<RestState>, server: Option<&A2aServer>, guard: &BrowserGuard) -> Router {
    let Some(server) = server.cloned() else { return Router::new() };
    Router::new().route(PATH, post(call)).with_state((rest.clone(), server, Arc::new(guard.clone())))
}

async fn card(State(parts): State<Arc<CardParts>>, request: Request) -> Result<Response, ProblemDetails> {
    parts.guard.check(&request).map_err(|refusal| ProblemDetails::denied(refusal.to_string()))?;
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let url = format!("{}://{host}{PATH}", parts.scheme);
    let card = parts.server.card(&url, env!("CARGO_PKG_VERSION"), parts.keys.requires_key());
    Ok(json(card))
}

/// The state of calls.
type CallState = (Arc<RestState>, A2aServer, Arc<BrowserGuard>);

async fn call(
    State((rest, server, guard)): State<CallState>,
    request: Request,
) -> Result<Response, ProblemDetails> {
    guard.check(&request).map_err(|refusal| ProblemDetails::denied(refusal.to_string()))?;
    let caller = AuthenticatedCaller::authorize(request.extensions(), |access| access.rest)?;
    if *rest.stage.borrow() == GatewayStage::Draining {
        return Err(ProblemDetails::stopping());
    }
    let (parts, body) = read_body(request, &rest, rest.body_bytes).await?;
    let caller = Caller { peer: peer_of(&parts), ..caller.to_caller() };
    let parts = Arc::new(parts);
    let version = parts.headers.get(VERSION_HEADER).and_then(|version| version.to_str().ok());
    let reply = server.answer(A2aRequest { caller, origin: Some(parts.clone()), version, body: &body }).await;
    Ok(match reply {
        A2aReply::Response(text) => json(text),
        A2aReply::Events(events) => events_response(events, rest.stage.clone()),
    })
}

fn json(text: String) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (StatusCode::OK, headers, text).into_response()
}

/// Returns a stream of events, which ends when the gateway drains.
fn events_response(events: BoxStream<'static, String>, stage: watch::Receiver<GatewayStage>) -> Response {
    let events = stream::unfold((events, stage), async |(mut events, mut stage)| {
        let text = tokio::select! {
            _stopping = stage.wait_for(|stage| *stage == GatewayStage::Draining) => return None,
            next = timeout(HEARTBEAT, events.next()) => match next {
                Ok(Some(data)) => Bytes::from(format!("data: {data}\n\n")),
                Ok(None) => return None,
                Err(_) => Bytes::from_static(b":\n\n"),
            },
        };
        Some((Ok::<_, Infallible>(text), (events, stage)))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(events)).into_response()
}

/// The tasks of the gateway as an agent, if it is one.
impl Subsystem for Option<A2aServer> {
    fn stop(self: Box<Self>, _drain: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Some(server) = *self {
                server.stop().await;
            }
        })
    }
}
