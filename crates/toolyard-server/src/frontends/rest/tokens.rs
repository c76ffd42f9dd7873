//! `/tokens`: tokens that the tool lists take in a model's context.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolyard_core::Registry;
use toolyard_core::registry::{DisclosureMode, EncodedListing, EntryKind};
use toolyard_core::tokens::{ESTIMATOR, estimate};

use super::query::NoQuery;
use super::{Rest, RestResult, json_value};
use crate::keys::AuthenticatedCaller;

/// Disclosure modes of the manifest, by name.
const DISCLOSURES: [(&str, DisclosureMode); 3] =
    [("all", DisclosureMode::All), ("search", DisclosureMode::Search), ("auto", DisclosureMode::Auto)];

#[derive(Serialize)]
struct TokenEstimates {
    /// Name of the estimation method.
    estimator: &'static str,
    /// The current disclosure mode.
    disclosure: &'static str,
    /// Token budget of the list with `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<usize>,
    lists: Vec<ToolListTokens>,
    handlers: Vec<HandlerTokenCount>,
}

/// Size of a list as a client would get it.
#[derive(Serialize)]
struct ToolListTokens {
    disclosure: &'static str,
    tools: usize,
    tokens: usize,
}

/// Share of a handler in the list of all tools.
#[derive(Serialize)]
struct HandlerTokenCount {
    name: Arc<str>,
    tools: usize,
    tokens: usize,
}

/// `GET /tokens`: tokens of each disclosure mode for a client that sees what the caller sees.
pub(super) async fn show(State(rest): Rest, caller: AuthenticatedCaller, _: NoQuery) -> RestResult {
    let registry = rest.gateway.settled_for(&caller.to_caller()).await;
    json_value(StatusCode::OK, &tokens(&registry))
}

fn tokens(registry: &Registry) -> TokenEstimates {
    let settings = registry.disclosure();
    // Without search tools, all tools are listed.
    let show = settings.map_or(DisclosureMode::All, |settings| settings.show);
    let available =
        DISCLOSURES.into_iter().filter(|(_, show)| settings.is_some() || *show == DisclosureMode::All);
    let list = |(disclosure, show)| {
        let fewer = registry.fewer(show);
        let (tools, tokens) =
            fewer.as_ref().map_or_else(|| size(registry.full_listing(EntryKind::Tools)), size);
        ToolListTokens { disclosure, tools, tokens }
    };
    TokenEstimates {
        estimator: ESTIMATOR,
        disclosure: DISCLOSURES.into_iter().find(|(_, one)| *one == show).map_or("all", |(name, _)| name),
        budget: settings.map(|settings| settings.budget),
        lists: available.map(list).collect(),
        handlers: by_handler(registry),
    }
}

fn size(listing: &EncodedListing) -> (usize, usize) {
    (listing.entries().len(), listing.tokens())
}

fn by_handler(registry: &Registry) -> Vec<HandlerTokenCount> {
    let mut bytes: BTreeMap<Arc<str>, (usize, usize)> = BTreeMap::new();
    let fewer = registry.fewer(DisclosureMode::All);
    let all = fewer.as_ref().unwrap_or_else(|| registry.full_listing(EntryKind::Tools));
    for (entry, definition) in all.iter() {
        let (tools, length) = bytes.entry(entry.handler.name.clone()).or_default();
        *tools += 1;
        // With the comma after it.
        *length += definition.as_bytes().len() + 1;
    }
    let of_handler = |(name, (tools, length))| HandlerTokenCount { name, tools, tokens: estimate(length) };
    bytes.into_iter().map(of_handler).collect()
}
