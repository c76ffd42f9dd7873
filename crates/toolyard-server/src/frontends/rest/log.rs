//! `/log`: the log filter, for operators.

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::body::JsonBody;
use super::extract::AuditRecorder;
use super::{ProblemDetails, Rest, RestResult, json_value};
use crate::audit::AuditAction;

/// The new filter.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogFilterRequest {
    /// Levels, global or per target, as in `info,toolyard_mcp=debug`.
    filter: String,
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// True if the filter is valid by the OpenAPI document, which allows less than a log may.
fn is_filter(text: &str) -> bool {
    let is_target = |target: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
        !target.is_empty() && target.bytes().all(is_part)
    };
    text.split(',').all(|directive| match directive.split_once('=') {
        Some((target, level)) => is_target(target) && LEVELS.contains(&level),
        None => LEVELS.contains(&directive),
    })
}

/// `PUT /log`: replaces the log filter until it is changed again.
pub(super) async fn change(
    State(rest): Rest,
    audit: AuditRecorder,
    JsonBody(log_filter): JsonBody<LogFilterRequest>,
) -> RestResult {
    if !is_filter(&log_filter.filter) {
        let detail =
            "invalid `filter`: expected levels, optionally per target, such as `info,toolyard_mcp=debug`";
        return Err(ProblemDetails::bad_request(detail));
    }
    rest.log
        .set_filter(&log_filter.filter)
        .map_err(|error| ProblemDetails::bad_request(error.to_string()))?;
    audit.record(AuditAction::LogChanged, &log_filter.filter);
    json_value(StatusCode::OK, &log_filter)
}
