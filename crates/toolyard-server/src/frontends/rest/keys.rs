//! `/keys`: keys, for operators.

use axum::extract::State;
use http::StatusCode;

use super::body::JsonBody;
use super::extract::{AuditRecorder, UrlPath};
use super::query::NoQuery;
use super::{ProblemDetails, Rest, RestResult, json_value};
use crate::audit::AuditAction;
use crate::keys::record::{self, KeyError};
use crate::keys::{AuthenticatedCaller, KeySummary, NewApiKey};

/// `GET /keys`
pub(super) async fn list(State(rest): Rest, _: NoQuery) -> RestResult {
    let keys = record::list(&**rest.keys.store()).await?;
    let keys: Vec<_> = keys.into_iter().map(KeySummary::from).collect();
    json_value(StatusCode::OK, &serde_json::json!({"keys": keys}))
}

/// `POST /keys`
pub(super) async fn create(
    State(rest): Rest,
    audit: AuditRecorder,
    JsonBody(new_key): JsonBody<NewApiKey>,
) -> RestResult {
    let (key, secret) = record::create(&**rest.keys.store(), new_key).await.map_err(|error| match error {
        KeyError::Bad(bad) => ProblemDetails::bad_request(bad.to_string()),
        KeyError::Store(error) => error.into(),
    })?;
    audit.record(AuditAction::KeyCreated, &key.id);
    rest.keys.read().await?;
    json_value(StatusCode::CREATED, &KeySummary::new(key, &secret))
}

/// `DELETE /keys/{id}`: revokes a key, on this gateway at once.
pub(super) async fn revoke(
    State(rest): Rest,
    caller: AuthenticatedCaller,
    UrlPath(id): UrlPath<String>,
    audit: AuditRecorder,
) -> RestResult {
    if caller.key.is_some_and(|own_key| *own_key.0 == *id) {
        // Otherwise the last operator could lock everyone out.
        let detail = "a key cannot revoke itself: use another key or `toolyard key revoke`";
        return Err(ProblemDetails::conflict("own_key", false, detail));
    }
    let revoked = record::revoke(&**rest.keys.store(), &id).await?;
    let key = revoked.ok_or_else(|| ProblemDetails::not_found(format!("unknown key {id:?}")))?;
    audit.record(AuditAction::KeyRevoked, &key.id);
    rest.keys.read().await?;
    json_value(StatusCode::OK, &KeySummary::from(key))
}
