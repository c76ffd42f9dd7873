//! What is logged, for operators.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{Problem, Rest, written};
use crate::audit::Deed;
use crate::keys::Visitor;

/// What is to be logged.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Levels, for all or for targets, as in `info,toolyard_mcp=debug`.
    filter: String,
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Whether a text is what the document of REST says of filters: less than a log may take.
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

/// `PUT /log`: has other things logged, until that is changed again.
pub(super) async fn change(State(rest): State<Arc<Rest>>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let wanted: Wanted = rest.read(&parts, body).await?;
    if !is_filter(&wanted.filter) {
        let detail = "`filter` is a level, or several levels with their targets: `info,toolyard_mcp=debug`";
        return Err(Problem::bad_request(detail.to_owned()));
    }
    rest.log.set_filter(&wanted.filter).map_err(|error| Problem::bad_request(error.to_string()))?;
    rest.note(&parts, Deed::LogChanged, &wanted.filter);
    Ok(written(StatusCode::OK, &wanted))
}
