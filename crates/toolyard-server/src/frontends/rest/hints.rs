//! `/hints`: services that a message is about, for hosts that inform their models.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::{ProblemDetails, RestState, json_value, query};
use crate::keys::AuthenticatedCaller;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HintRequest {
    message: String,
}

/// `POST /hints`: a text for the model and the services behind it. Both are empty if no service stands out.
pub(super) async fn hint(
    State(rest): State<Arc<RestState>>,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, body) = request.into_parts();
    let caller = AuthenticatedCaller::authorize(&parts.extensions, |access| access.rest)?;
    let [] = query(&parts, [])?;
    let HintRequest { message } = rest.read(&parts, body).await?;
    let registry = rest.gateway.settled_for(&caller.to_caller()).await;
    let hint = rest.services.hint(&registry, &message);
    let (text, services) = hint.map(|hint| (hint.text, hint.services)).unzip();
    Ok(json_value(StatusCode::OK, &json!({"hint": text, "services": services.unwrap_or_default()})))
}
