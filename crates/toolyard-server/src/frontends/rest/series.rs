//! `/series`: calls, errors, latency and memory of the last hours, for operators.

use axum::extract::State;
use http::StatusCode;
use tokio::task::spawn_blocking;

use super::query::{Query, QueryParams, QueryValues};
use super::{ProblemDetails, Rest, RestResult, json_value};
use crate::telemetry::history::MAX_POINTS;

/// Default number of minutes.
const MINUTES: u64 = 60;

/// The number of minutes to return.
pub(super) struct SeriesQuery(u64);

impl QueryParams for SeriesQuery {
    const NAMES: &'static [&'static str] = &["minutes"];

    fn parse(mut values: QueryValues) -> Result<Self, ProblemDetails> {
        Ok(Self(values.number("minutes", MAX_POINTS as u64)?.unwrap_or(MINUTES)))
    }
}

/// `GET /series`: one point a minute, the latest of which is the running minute.
pub(super) async fn read(State(rest): Rest, Query(SeriesQuery(minutes)): Query<SeriesQuery>) -> RestResult {
    // It reads the metrics of all tools, and files of the system.
    let history = rest.history.clone();
    let series = spawn_blocking(move || history.series(usize::try_from(minutes).unwrap_or(MAX_POINTS))).await;
    json_value(StatusCode::OK, &series.map_err(|_| ProblemDetails::fault())?)
}
