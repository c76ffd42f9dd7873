//! `/bus`: the message bus of the gateway, for operators.

use axum::extract::State;
use http::StatusCode;
use serde_json::json;
use toolyard_core::ErrorCode;

use super::query::{NoQuery, Query, QueryParams, QueryValues};
use super::{ProblemDetails, Rest, RestResult, json_value};
use crate::bus::{self, BusFailure, DeadLetterQuery};

/// Maximum number of dead letters of a request, and the number by default.
const MAX_MESSAGES: u64 = 1000;
const MESSAGES: usize = 100;

/// The dead letters of a request. Members that it does not name are those of workers.
pub(super) struct WantedLetters {
    topic: Option<String>,
    group: Option<String>,
    limit: usize,
}

impl QueryParams for WantedLetters {
    const NAMES: &'static [&'static str] = &["topic", "group", "limit"];

    fn parse(mut values: QueryValues) -> Result<Self, ProblemDetails> {
        let limit = values.number("limit", MAX_MESSAGES)?.and_then(|limit| usize::try_from(limit).ok());
        Ok(Self {
            topic: values.text("topic"),
            group: values.text("group"),
            limit: limit.unwrap_or(MESSAGES),
        })
    }
}

/// `GET /bus`: the broker, and the names of the gateway there.
pub(super) async fn show(State(rest): Rest, _: NoQuery) -> RestResult {
    let settings = &rest.bus;
    let report = match &settings.url {
        None => json!({"enabled": false}),
        Some(url) => json!({
            "enabled": true,
            "broker": url.to_string(),
            "source": settings.source,
            "group": settings.worker.group,
        }),
    };
    json_value(StatusCode::OK, &report)
}

/// `GET /bus/dead-letters`: the dead letters of a group, without their bodies.
pub(super) async fn dead_letters(State(rest): Rest, Query(wanted): Query<WantedLetters>) -> RestResult {
    if rest.bus.url.is_none() {
        return Err(ProblemDetails::not_found("the gateway has no message bus: `bus.url` is not set"));
    }
    let query = DeadLetterQuery {
        topic: wanted.topic.unwrap_or_else(|| TOPIC.to_owned()),
        group: wanted.group.unwrap_or_else(|| rest.bus.worker.group.clone()),
        limit: wanted.limit,
        bodies: false,
    };
    let messages = bus::dead_letters(&rest.bus, &query).await?;
    json_value(StatusCode::OK, &json!({"messages": messages}))
}

/// Topic of calls.
const TOPIC: &str = "tool.invoke";

impl From<BusFailure> for ProblemDetails {
    fn from(failure: BusFailure) -> Self {
        match failure.code {
            ErrorCode::InvalidArguments => Self::bad_request(failure.message),
            _ => Self::new(ErrorCode::Unavailable, failure.message),
        }
    }
}
