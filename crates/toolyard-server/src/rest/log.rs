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
    /// Levels, for all or for a target, as in `info,toolyard_mcp=debug`.
    filter: String,
}

/// `PUT /log`: has other things logged, until that is changed again.
pub(super) async fn change(State(rest): State<Arc<Rest>>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let wanted: Wanted = rest.read(&parts, body).await?;
    rest.log.set_filter(&wanted.filter).map_err(|error| Problem::bad_request(error.to_string()))?;
    rest.note(&parts, Deed::LogChanged, &wanted.filter);
    Ok(written(StatusCode::OK, &wanted))
}
