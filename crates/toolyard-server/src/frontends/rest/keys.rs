//! `/keys`: keys, for operators.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;

use super::{NamedPath, ProblemDetails, RestState, json_value, query};
use crate::audit::AuditAction;
use crate::keys::record::{self, KeyError};
use crate::keys::{AuthenticatedCaller, KeySummary, NewApiKey};

/// `GET /keys`
pub(super) async fn list(
    State(rest): State<Arc<RestState>>,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, _) = request.into_parts();
    AuthenticatedCaller::authorize(&parts.extensions, |access| access.admin)?;
    let [] = query(&parts, [])?;
    let keys = record::list(&**rest.keys.store()).await?;
    let keys: Vec<_> = keys.into_iter().map(KeySummary::from).collect();
    Ok(json_value(StatusCode::OK, &serde_json::json!({"keys": keys})))
}

/// `POST /keys`
pub(super) async fn create(
    State(rest): State<Arc<RestState>>,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, body) = request.into_parts();
    AuthenticatedCaller::authorize(&parts.extensions, |access| access.admin)?;
    let new_key: NewApiKey = rest.read(&parts, body).await?;
    let (key, secret) = record::create(&**rest.keys.store(), new_key).await.map_err(|error| match error {
        KeyError::Bad(bad) => ProblemDetails::bad_request(bad.to_string()),
        KeyError::Store(error) => error.into(),
    })?;
    rest.record_action(&parts, AuditAction::KeyCreated, &key.id);
    rest.keys.read().await?;
    Ok(json_value(StatusCode::CREATED, &KeySummary::new(key, &secret)))
}

/// `DELETE /keys/{id}`: revokes a key, on this gateway at once.
pub(super) async fn revoke(
    State(rest): State<Arc<RestState>>,
    NamedPath(id): NamedPath,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, _) = request.into_parts();
    let caller = AuthenticatedCaller::authorize(&parts.extensions, |access| access.admin)?;
    if caller.key.is_some_and(|own_key| *own_key.0 == *id) {
        // Otherwise the last operator could lock everyone out.
        let detail = "a key cannot revoke itself: use another key or `toolyard key revoke`";
        return Err(ProblemDetails::conflict("own_key", false, detail));
    }
    let revoked = record::revoke(&**rest.keys.store(), &id).await?;
    let key = revoked.ok_or_else(|| ProblemDetails::not_found(format!("unknown key {id:?}")))?;
    rest.record_action(&parts, AuditAction::KeyRevoked, &key.id);
    rest.keys.read().await?;
    Ok(json_value(StatusCode::OK, &KeySummary::from(key)))
}
