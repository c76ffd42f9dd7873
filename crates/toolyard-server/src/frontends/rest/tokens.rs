//! `/tokens`: tokens that the tool lists take in a model's context.

use std::collections::BTreeMap;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolyard_core::registry::{DisclosureMode, EncodedListing};
use toolyard_core::tokens::{ESTIMATOR, estimate};
use toolyard_core::{Json, Registry};
use toolyard_manifest::HandlerConfig;

use super::query::NoQuery;
use super::{Rest, RestResult, json_value};
use crate::build::tool_group;
use crate::keys::AuthenticatedCaller;

/// Disclosure modes of the manifest, by name.
const DISCLOSURES: [(&str, DisclosureMode); 4] = [
    ("all", DisclosureMode::All),
    ("search", DisclosureMode::Search),
    ("auto", DisclosureMode::Auto),
    ("code", DisclosureMode::Code),
];

#[derive(Serialize)]
struct TokenEstimates<'a> {
    /// Name of the estimation method.
    estimator: &'static str,
    /// The current disclosure mode.
    disclosure: &'static str,
    /// Token budget of the list with `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<usize>,
    lists: Vec<ToolListTokens>,
    handlers: Vec<HandlerTokenCount<'a>>,
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
struct HandlerTokenCount<'a> {
    #[serde(flatten)]
    total: TokenCount<'a>,
    /// Shares of the groups of the gateway's own tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<TokenCount<'a>>,
}

#[derive(Serialize)]
struct TokenCount<'a> {
    name: &'a str,
    tools: usize,
    tokens: usize,
}

/// `GET /tokens`: tokens of each disclosure mode for a client that sees what the caller sees.
pub(super) async fn show(State(rest): Rest, caller: AuthenticatedCaller, _: NoQuery) -> RestResult {
    let registry = rest.gateway.settled_for(&caller.to_caller()).await;
    json_value(StatusCode::OK, &tokens(&registry))
}

fn tokens(registry: &Registry) -> TokenEstimates<'_> {
    let settings = registry.disclosure();
    // Without search tools, all tools are listed.
    let show = settings.map_or(DisclosureMode::All, |settings| settings.show);
    let is_available = |(_, show): &(&str, DisclosureMode)| match show {
        DisclosureMode::All => true,
        DisclosureMode::Search | DisclosureMode::Auto => settings.is_some(),
        DisclosureMode::Code => settings.is_some_and(|settings| !settings.script_tools.is_empty()),
    };
    let available = DISCLOSURES.into_iter().filter(is_available);
    let list = |(disclosure, show)| {
        let fewer = registry.fewer(show);
        let (tools, tokens) = fewer.as_ref().map_or_else(|| size(registry.tools_for_models()), size);
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

fn by_handler(registry: &Registry) -> Vec<HandlerTokenCount<'_>> {
    let mut handlers = TokenCounts::default();
    let mut groups = TokenCounts::default();
    for (entry, definition) in registry.tools_for_models().iter() {
        handlers.add(&entry.handler.name, definition);
        let is_own = &*entry.handler.name == HandlerConfig::BUILTINS;
        if let Some(group) = is_own.then(|| tool_group(&entry.own)).flatten() {
            groups.add(group, definition);
        }
    }
    let mut groups = Some(groups.counts());
    handlers
        .counts()
        .into_iter()
        .map(|total| {
            let is_own = total.name == HandlerConfig::BUILTINS;
            let groups = groups.take_if(|_| is_own).unwrap_or_default();
            HandlerTokenCount { total, groups }
        })
        .collect()
}

/// Numbers of tools and of bytes of their definitions, by name.
#[derive(Default)]
struct TokenCounts<'a>(BTreeMap<&'a str, (usize, usize)>);

impl<'a> TokenCounts<'a> {
    fn add(&mut self, name: &'a str, definition: &Json) {
        let (tools, length) = self.0.entry(name).or_default();
        *tools += 1;
        // With the comma after it.
        *length += definition.as_bytes().len() + 1;
    }

    fn counts(self) -> Vec<TokenCount<'a>> {
        let count = |(name, (tools, length))| TokenCount { name, tools, tokens: estimate(length) };
        self.0.into_iter().map(count).collect()
    }
}
