//! `/caller`: the caller's key and its rights, for clients that show only what their key may use.

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;

use super::query::NoQuery;
use super::{Rest, RestResult, json_value};
use crate::keys::{AuthenticatedCaller, KeyAccess};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallerReport<'a> {
    /// The key. `None`: the request needed none.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<CallerKey<'a>>,
    access: KeyAccess,
    version: &'static str,
    /// URL of a trace with `{traceId}` for its id, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_url: Option<&'a str>,
}

#[derive(Serialize)]
struct CallerKey<'a> {
    id: &'a str,
    name: &'a str,
}

/// `GET /caller`
pub(super) async fn show(State(rest): Rest, caller: AuthenticatedCaller, _: NoQuery) -> RestResult {
    let key = caller.key.as_deref().map(|(id, name)| CallerKey { id, name });
    let trace_url = rest.trace_url.as_deref().filter(|_| caller.access.admin);
    let report = CallerReport { key, access: caller.access, version: env!("CARGO_PKG_VERSION"), trace_url };
    json_value(StatusCode::OK, &report)
}
