//! Notifications of agents about tasks that the gateway has given to them. They need no key: each task has a token.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::post;
use http::{HeaderMap, StatusCode, header};
use toolyard_a2a::directory::refresh;
use toolyard_a2a::wire::push::TOKEN_HEADER;
use toolyard_a2a::{Agents, PushError};
use toolyard_core::ErrorCode;
use toolyard_net::guard::BrowserGuard;
use toolyard_net::header_values::Credentials;

use crate::context::GatewayContext;
use crate::frontends::FrontendDeps;
use crate::frontends::rest::{ProblemDetails, RestState, read_bytes};

/// Path of notifications.
const PATH: &str = "/a2a/notifications";

/// The parts that notifications need.
struct NotificationState {
    agents: Agents,
    rest: Arc<RestState>,
    guard: BrowserGuard,
    /// Maximum size of a notification.
    bytes: usize,
}

/// Returns the route of notifications, if the manifest has a URL for them.
pub(crate) fn route(context: &GatewayContext, deps: &FrontendDeps<'_>, rest: &Arc<RestState>) -> Router {
    let builtins = context.process.builtins.as_ref();
    let settings = builtins.and_then(|builtins| builtins.agents.as_ref());
    let Some(settings) = settings.filter(|settings| settings.push_url.is_some()) else {
        return Router::new();
    };
    let state = NotificationState {
        agents: deps.agents.clone(),
        rest: rest.clone(),
        guard: deps.guard.clone(),
        bytes: refresh::limits(settings).response_bytes,
    };
    Router::new().route(PATH, post(notify)).with_state(Arc::new(state))
}

/// Receives a notification. Without a valid token its body is not read.
async fn notify(
    State(state): State<Arc<NotificationState>>,
    request: Request,
) -> Result<StatusCode, ProblemDetails> {
    state.guard.check(&request).map_err(|refusal| ProblemDetails::denied(refusal.to_string()))?;
    let token = token_of(request.headers()).unwrap_or_default().to_owned();
    state.agents.check_token(&token).map_err(refused)?;
    let (_, body) = read_bytes(request, &state.rest, state.bytes).await?;
    state.agents.notify(&token, &body).map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

fn refused(error: PushError) -> ProblemDetails {
    match error {
        PushError::UnknownToken => ProblemDetails::unauthenticated(&error.to_string()),
        PushError::WrongTask => ProblemDetails::new(ErrorCode::InvalidArguments, error.to_string()),
    }
}

/// Returns the token of a notification: that of its header, or else the credentials.
fn token_of(headers: &HeaderMap) -> Option<&str> {
    if let Some(token) = headers.get(TOKEN_HEADER) {
        return token.to_str().ok();
    }
    let credentials = Credentials::parse(headers.get(header::AUTHORIZATION)?.to_str().ok()?)?;
    credentials.is("bearer").then_some(credentials.token)
}
