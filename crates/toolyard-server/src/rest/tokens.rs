//! How much of a model's context the lists of tools take.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use toolyard_core::Registry;
use toolyard_core::registry::{Kind, Listing, Show};
use toolyard_core::tokens::{ESTIMATOR, estimate};

use super::{Problem, Rest, query, written};
use crate::keys::Visitor;

/// The ways to list tools, as the manifest calls them.
const SHOWS: [(&str, Show); 3] = [("all", Show::All), ("search", Show::Search), ("auto", Show::Auto)];

#[derive(Serialize)]
struct Tokens<'a> {
    /// How tokens are estimated.
    estimator: &'static str,
    /// How tools are listed now.
    disclosure: &'static str,
    /// How many tokens all of them may have with `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<usize>,
    lists: Vec<List>,
    handlers: Vec<OfHandler<'a>>,
}

/// A list, as a client would be given it.
#[derive(Serialize)]
struct List {
    disclosure: &'static str,
    tools: usize,
    tokens: usize,
}

/// What a handler has in the list of all tools.
#[derive(Serialize)]
struct OfHandler<'a> {
    name: &'a str,
    tools: usize,
    tokens: usize,
}

/// `GET /tokens`: what each way to list tools costs a client that sees what the visitor sees.
pub(super) async fn show(State(rest): State<Arc<Rest>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let visitor = Visitor::of(&parts.extensions, |access| access.rest || access.admin)?;
    let [] = query(&parts, [])?;
    let view = rest.gateway.settled_for(&visitor.caller()).await;
    Ok(written(StatusCode::OK, &tokens(&view)))
}

fn tokens(view: &Registry) -> Tokens<'_> {
    let settings = view.disclosure();
    // Where nothing can be found, all is listed.
    let show = settings.map_or(Show::All, |settings| settings.show);
    let offered = SHOWS.into_iter().filter(|(_, show)| settings.is_some() || *show == Show::All);
    let list = |(disclosure, show)| {
        let fewer = view.fewer(show);
        let (tools, tokens) = fewer.as_ref().map_or_else(|| size(view.all(Kind::Tools)), size);
        List { disclosure, tools, tokens }
    };
    Tokens {
        estimator: ESTIMATOR,
        disclosure: SHOWS.into_iter().find(|(_, one)| *one == show).map_or("all", |(name, _)| name),
        budget: settings.map(|settings| settings.budget),
        lists: offered.map(list).collect(),
        handlers: by_handler(view),
    }
}

fn size(listing: &Listing) -> (usize, usize) {
    (listing.entries().len(), listing.tokens())
}

fn by_handler(view: &Registry) -> Vec<OfHandler<'_>> {
    let mut bytes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (entry, definition) in view.listed(Kind::Tools) {
        let (tools, length) = bytes.entry(&entry.handler.name).or_default();
        *tools += 1;
        // With the comma that stands behind it.
        *length += definition.as_bytes().len() + 1;
    }
    let of_handler = |(name, (tools, length))| OfHandler { name, tools, tokens: estimate(length) };
    bytes.into_iter().map(of_handler).collect()
}
