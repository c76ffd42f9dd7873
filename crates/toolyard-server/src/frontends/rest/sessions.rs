//! `/session-codes` and `/sessions`: sign-in of browsers.

use axum::extract::State;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;
use toolyard_core::timestamp::iso_8601;

use super::body::JsonBody;
use super::extract::AuditRecorder;
use super::query::NoQuery;
use super::{ProblemDetails, Rest, RestResult, json_value};
use crate::audit::{AuditAction, AuditActor, AuditEvent, actor_of};
use crate::keys::AuthenticatedCaller;
use crate::keys::auth_layer::presented_key;
use crate::keys::sessions::CODE_LIFETIME;

/// Maximum bytes of a request with a one-time code.
const MAX_CODE_BYTES: usize = 4096;

/// A one-time code to exchange.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CodeExchange {
    code: String,
}

/// `POST /session-codes`: creates a one-time code for the caller's key.
pub(super) async fn create_code(State(rest): Rest, caller: AuthenticatedCaller, _: NoQuery) -> RestResult {
    let Some(key) = caller.principal() else {
        return Err(ProblemDetails::conflict(
            "no_key",
            false,
            "the request has no key, and needs no session",
        ));
    };
    let code = rest.keys.sessions().create_code(key).map_err(|_| ProblemDetails::fault())?;
    json_value(StatusCode::CREATED, &json!({"code": code, "expiresIn": CODE_LIFETIME.as_secs()}))
}

/// `POST /sessions`: exchanges a one-time code for the token of a session. It needs no key.
pub(super) async fn exchange(
    State(rest): Rest,
    _: NoQuery,
    parts: Parts,
    JsonBody(CodeExchange { code }): JsonBody<CodeExchange, MAX_CODE_BYTES>,
) -> RestResult {
    let session = rest.keys.sessions().exchange(&code).map_err(|_| ProblemDetails::fault())?;
    let session = session.ok_or_else(|| {
        ProblemDetails::not_found(
            "the one-time code is unknown, was used, or has expired: create another one",
        )
    })?;
    let actor = AuditActor { principal: Some(session.key.clone()), ..actor_of(&parts) };
    let object = session.key.to_string();
    rest.audit.record_event(AuditEvent { actor, action: AuditAction::SessionStarted, object });
    json_value(StatusCode::CREATED, &json!({"token": session.token, "expires": iso_8601(session.expires)}))
}

/// `DELETE /sessions/current`: ends the session of the request.
pub(super) async fn end(
    State(rest): Rest,
    caller: AuthenticatedCaller,
    headers: HeaderMap,
    _: NoQuery,
    audit: AuditRecorder,
) -> RestResult {
    let token = presented_key(&headers).unwrap_or_default();
    if !rest.keys.sessions().end(token) {
        return Err(ProblemDetails::not_found(
            "the request has no session: it was sent with a key, or needs none",
        ));
    }
    audit.record(AuditAction::SessionEnded, &caller.principal().unwrap_or_default());
    json_value(StatusCode::OK, &json!({"ended": true}))
}
