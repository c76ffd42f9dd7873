//! `/audit`: the audit trail, for operators.

use axum::extract::State;
use http::StatusCode;

use super::query::{Query, QueryParams, QueryValues};
use super::{ProblemDetails, Rest, RestResult, json_value};
use crate::audit::query::{self as trail, AuditQuery, MAX_RECORDS};

impl QueryParams for AuditQuery {
    const NAMES: &'static [&'static str] =
        &["action", "principal", "name", "handler", "outcome", "since", "until", "before", "limit"];

    fn parse(mut values: QueryValues) -> Result<Self, ProblemDetails> {
        Ok(Self {
            action: values.text("action"),
            principal: values.text("principal"),
            name: values.text("name"),
            handler: values.text("handler"),
            outcome: values.text("outcome"),
            since: values.time("since")?,
            until: values.time("until")?,
            before: values.number("before", i64::MAX.unsigned_abs())?,
            limit: values.number("limit", MAX_RECORDS as u64)?.map(|limit| limit as usize),
        })
    }
}

/// `GET /audit`: records, newest first.
pub(super) async fn read(State(rest): Rest, Query(filter): Query<AuditQuery>) -> RestResult {
    json_value(StatusCode::OK, &trail::read(&**rest.keys.store(), filter).await?)
}
