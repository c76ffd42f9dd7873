//! `/keys`: keys, for operators.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use toolyard_core::Caller;
use toolyard_core::access::{AccessGrant, AccessScope};
use toolyard_core::registry::EntryKind;

use super::body::JsonBody;
use super::extract::{AuditRecorder, UrlPath};
use super::query::NoQuery;
use super::{ProblemDetails, Rest, RestResult, json_value};
use crate::audit::AuditAction;
use crate::keys::key::{check_scopes, tool_scope};
use crate::keys::record::{self, KeyError};
use crate::keys::{AuthenticatedCaller, KeyScope, KeySummary, NewApiKey};

/// `GET /keys`
pub(super) async fn list(State(rest): Rest, _: NoQuery) -> RestResult {
    let store = &**rest.keys.store();
    let mut keys = Vec::new();
    for key in record::list(store).await? {
        keys.push(KeySummary::with_usage(key, store).await?);
    }
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

/// Scopes of a key to create.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyPreview {
    scopes: Vec<KeyScope>,
}

/// `POST /keys/tools`: the tools that a key with these scopes sees.
pub(super) async fn preview(
    State(rest): Rest,
    JsonBody(KeyPreview { scopes }): JsonBody<KeyPreview>,
) -> RestResult {
    check_scopes(&scopes).map_err(|invalid| ProblemDetails::bad_request(invalid.to_string()))?;
    let grant = AccessGrant {
        scope: tool_scope(&scopes),
        allowance: None,
        memory: AccessScope::default(),
        model: None,
        chunk_threshold: None,
    };
    let caller = Caller { grant: Some(Arc::new(grant)), ..Caller::default() };
    let registry = rest.gateway.settled_for(&caller).await;
    let tools: Vec<&str> = registry.definitions(EntryKind::Tools).map(|(entry, _)| &*entry.name).collect();
    json_value(StatusCode::OK, &serde_json::json!({"tools": tools}))
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
