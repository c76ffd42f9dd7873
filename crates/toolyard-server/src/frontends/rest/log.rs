//! `/log`: the log filter, for operators.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{ProblemDetails, RestState, json_value};
use crate::audit::AuditAction;
use crate::keys::AuthenticatedCaller;

/// The new filter.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogFilterRequest {
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
    State(rest): State<Arc<RestState>>,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, body) = request.into_parts();
    AuthenticatedCaller::authorize(&parts.extensions, |access| access.admin)?;
    let log_filter: LogFilterRequest = rest.read(&parts, body).await?;
    if !is_filter(&log_filter.filter) {
        let detail =
            "invalid `filter`: expected levels, optionally per target, such as `info,toolyard_mcp=debug`";
        return Err(ProblemDetails::bad_request(detail.to_owned()));
    }
    rest.log
        .set_filter(&log_filter.filter)
        .map_err(|error| ProblemDetails::bad_request(error.to_string()))?;
    rest.record_action(&parts, AuditAction::LogChanged, &log_filter.filter);
    Ok(json_value(StatusCode::OK, &log_filter))
}
