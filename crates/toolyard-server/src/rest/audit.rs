//! The audit trail, for operators.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use toolyard_core::timestamp;

use super::{Problem, Rest, query, written};
use crate::audit::query::{self as trail, MOST, Wanted};
use crate::keys::Visitor;

/// `GET /audit`: records, newest first.
pub(super) async fn read(State(rest): State<Arc<Rest>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let names = ["action", "principal", "name", "handler", "outcome", "since", "until", "before", "limit"];
    let [action, principal, name, handler, outcome, since, until, before, limit] = query(&parts, names)?;
    let wanted = Wanted {
        action,
        principal,
        name,
        handler,
        outcome,
        since: since.map(|text| time("since", &text)).transpose()?,
        until: until.map(|text| time("until", &text)).transpose()?,
        before: before.map(|text| number("before", &text, i64::MAX.unsigned_abs())).transpose()?,
        limit: limit.map(|text| number("limit", &text, MOST as u64)).transpose()?.map(|limit| limit as usize),
    };
    let page = trail::read(&**rest.ring.store(), wanted).await?;
    Ok(written(StatusCode::OK, &page))
}

pub(super) fn time(name: &str, text: &str) -> Result<SystemTime, Problem> {
    let problem = || Problem::bad_request(format!("`{name}` is a time such as 2026-11-21T08:30:00Z"));
    timestamp::parse(text).ok_or_else(problem)
}

pub(super) fn number(name: &str, text: &str, most: u64) -> Result<u64, Problem> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| Problem::bad_request(format!("`{name}` is a number from 1 to {most}")))
}
