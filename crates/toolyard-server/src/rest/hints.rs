//! Which services a message is about, for hosts that tell their models so.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::{Problem, Rest, query, written};
use crate::keys::Visitor;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    message: String,
}

/// `POST /hints`: a text for the model, and what it is made of; neither where no service stands out.
pub(super) async fn hint(State(rest): State<Arc<Rest>>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let visitor = Visitor::of(&parts.extensions, |access| access.rest)?;
    let [] = query(&parts, [])?;
    let Body { message } = rest.read(&parts, body).await?;
    let view = rest.gateway.settled_for(&visitor.caller()).await;
    let hint = rest.services.hint(&view, &message);
    let (text, services) = hint.map(|hint| (hint.text, hint.services)).unzip();
    Ok(written(StatusCode::OK, &json!({"hint": text, "services": services.unwrap_or_default()})))
}
