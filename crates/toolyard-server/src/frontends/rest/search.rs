//! `/search`: the search for tools, as models search, with the scores of the ranking.

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use toolyard_core::Registry;
use toolyard_core::registry::EntryKind;

use super::query::{Query, QueryParams, QueryValues};
use super::{ProblemDetails, Rest, RestResult, json_value};
use crate::keys::AuthenticatedCaller;

/// Default and maximum number of results.
const RESULTS: u64 = 10;
const MAX_RESULTS: u64 = 50;

/// A query, and the maximum number of results.
pub(super) struct ToolQuery {
    query: String,
    limit: u64,
}

impl QueryParams for ToolQuery {
    const NAMES: &'static [&'static str] = &["query", "limit"];

    fn parse(mut values: QueryValues) -> Result<Self, ProblemDetails> {
        let query = values.text("query").filter(|query| !query.trim().is_empty());
        let query = query.ok_or_else(|| ProblemDetails::bad_request("missing `query`: expected keywords"))?;
        Ok(Self { query, limit: values.number("limit", MAX_RESULTS)?.unwrap_or(RESULTS) })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FoundTool {
    handler: String,
    /// `None` if embeddings have changed the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
    tool: Box<RawValue>,
}

/// `GET /search`: the best tools for a query, the best first.
pub(super) async fn search(
    State(rest): Rest,
    caller: AuthenticatedCaller,
    Query(ToolQuery { query, limit }): Query<ToolQuery>,
) -> RestResult {
    let registry = rest.gateway.settled_for(&caller.to_caller()).await;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let ranked: Vec<_> = match &rest.reporter.embeddings {
        None => {
            let hits = rest.finder.hits(&registry, &query, limit).await;
            hits.into_iter().map(|hit| (hit.entry.name.clone(), Some(hit.score))).collect()
        }
        Some(embeddings) => {
            let entries = embeddings.search(&rest.finder, &registry, &query, limit, None).await;
            entries.into_iter().map(|entry| (entry.name.clone(), None)).collect()
        }
    };
    let found: Vec<_> =
        ranked.into_iter().filter_map(|(name, score)| found_tool(&registry, &name, score)).collect();
    json_value(StatusCode::OK, &serde_json::json!({"tools": found}))
}

fn found_tool(registry: &Registry, name: &str, score: Option<f32>) -> Option<FoundTool> {
    let (entry, definition) =
        registry.definitions(EntryKind::Tools).find(|(entry, _)| *entry.name == *name)?;
    let tool = RawValue::from_string(definition.as_text().to_owned()).ok()?;
    Some(FoundTool { handler: entry.handler.name.to_string(), score, tool })
}
