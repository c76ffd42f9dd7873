//! Keys, for operators.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;

use super::{Named, Problem, Rest, query, written};
use crate::audit::Deed;
use crate::keys::record::{self, KeyError};
use crate::keys::{NewKey, ShownKey, Visitor};

/// `GET /keys`
pub(super) async fn list(State(rest): State<Arc<Rest>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let [] = query(&parts, [])?;
    let keys = record::list(&**rest.ring.store()).await?;
    let keys: Vec<_> = keys.into_iter().map(ShownKey::from).collect();
    Ok(written(StatusCode::OK, &serde_json::json!({"keys": keys})))
}

/// `POST /keys`
pub(super) async fn create(State(rest): State<Arc<Rest>>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let wanted: NewKey = rest.read(&parts, body).await?;
    let (key, secret) = record::create(&**rest.ring.store(), wanted).await.map_err(|error| match error {
        KeyError::Bad(bad) => Problem::bad_request(bad.to_string()),
        KeyError::Store(error) => error.into(),
    })?;
    rest.note(&parts, Deed::KeyCreated, &key.id);
    rest.ring.read().await?;
    Ok(written(StatusCode::CREATED, &ShownKey::new(key, &secret)))
}

/// `DELETE /keys/{id}`: the key opens nothing any more, here at once.
pub(super) async fn revoke(
    State(rest): State<Arc<Rest>>,
    Named(id): Named,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let visitor = Visitor::of(&parts.extensions, |access| access.admin)?;
    if visitor.key.is_some_and(|own| *own.0 == *id) {
        // Nobody might be left who could make another one.
        let detail = "A key does not revoke itself: another one does, or `toolyard key revoke`";
        return Err(Problem::conflict("own_key", false, detail));
    }
    let revoked = record::revoke(&**rest.ring.store(), &id).await?;
    let key = revoked.ok_or_else(|| Problem::not_found(format!("There is no key {id:?}")))?;
    rest.note(&parts, Deed::KeyRevoked, &key.id);
    rest.ring.read().await?;
    Ok(written(StatusCode::OK, &ShownKey::from(key)))
}
