//! `/hints`: services that a message is about, for hosts that inform their models.

use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::body::JsonBody;
use super::query::NoQuery;
use super::{Rest, RestResult, json_value};
use crate::keys::AuthenticatedCaller;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HintRequest {
    message: String,
}

/// `POST /hints`: a text for the model and the services behind it. Both are empty if no service stands out.
pub(super) async fn hint(
    State(rest): Rest,
    caller: AuthenticatedCaller,
    _: NoQuery,
    JsonBody(HintRequest { message }): JsonBody<HintRequest>,
) -> RestResult {
    let registry = rest.gateway.settled_for(&caller.to_caller()).await;
    let hint = rest.services.hint(&registry, &message).await;
    let (text, services) = hint.map(|hint| (hint.text, hint.services)).unzip();
    json_value(StatusCode::OK, &json!({"hint": text, "services": services.unwrap_or_default()}))
}
