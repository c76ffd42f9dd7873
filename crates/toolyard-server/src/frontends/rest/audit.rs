//! `/audit`: the audit trail, for operators.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use toolyard_core::timestamp;

use super::{ProblemDetails, RestState, json_value, query};
use crate::audit::query::{self as trail, AuditQuery, MAX_RECORDS};
use crate::keys::AuthenticatedCaller;

/// `GET /audit`: records, newest first.
pub(super) async fn read(
    State(rest): State<Arc<RestState>>,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, _) = request.into_parts();
    AuthenticatedCaller::authorize(&parts.extensions, |access| access.admin)?;
    let names = ["action", "principal", "name", "handler", "outcome", "since", "until", "before", "limit"];
    let [action, principal, name, handler, outcome, since, until, before, limit] = query(&parts, names)?;
    let audit_query = AuditQuery {
        action,
        principal,
        name,
        handler,
        outcome,
        since: since.map(|text| time("since", &text)).transpose()?,
        until: until.map(|text| time("until", &text)).transpose()?,
        before: before.map(|text| number("before", &text, i64::MAX.unsigned_abs())).transpose()?,
        limit: limit
            .map(|text| number("limit", &text, MAX_RECORDS as u64))
            .transpose()?
            .map(|limit| limit as usize),
    };
    let page = trail::read(&**rest.keys.store(), audit_query).await?;
    Ok(json_value(StatusCode::OK, &page))
}

pub(super) fn time(name: &str, text: &str) -> Result<SystemTime, ProblemDetails> {
    let problem = || {
        ProblemDetails::bad_request(format!("invalid `{name}`: expected a time such as 2026-11-21T08:30:00Z"))
    };
    timestamp::parse(text).ok_or_else(problem)
}

pub(super) fn number(name: &str, text: &str, max: u64) -> Result<u64, ProblemDetails> {
    let number = text.parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| {
        ProblemDetails::bad_request(format!("invalid `{name}`: expected a number from 1 to {max}"))
    })
}
