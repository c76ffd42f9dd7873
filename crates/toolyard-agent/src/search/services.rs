//! Searches services and renders the results in the form that agents know.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;
use toolyard_core::Registry;
use toolyard_core::identifier_words::is_compound;
use toolyard_core::registry::{EntryKind, HandlerEntry};
use toolyard_manifest::ServiceRanker;
use toolyard_rank::{Bm25Ranker, Bm25Texts, IndexChange, RankingWeights, ToolDocument, ToolIndex};

use super::english;
use super::tool_finder::{FinderHit, ToolFinder};
use crate::summary::SummarySource;

/// Maximum number of results.
const MAX_RESULTS: usize = 5;
/// Maximum number of tools or skills that a result names.
const MAX_NAMED: usize = 3;
/// Minimum score of a named tool, relative to that of the tool of the service that fits best.
const MIN_FIT: f32 = 1.0 / 3.0;
/// Maximum length of a query in characters and in words.
const MAX_QUERY_LENGTH: usize = 4096;
const MAX_WORDS: usize = 64;
/// Maximum number of indexed sets of services. Callers of one scope see the same set.
const MAX_READ: usize = 8;

/// Returns the words of a name that the ranker of services would read as one: `searchProducts` is one word to it.
fn compound_words(name: &str) -> Option<String> {
    is_compound(name).then(|| english().content_words(name))
}

/// Kind of a service, which determines how it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceKind {
    /// Another agent, with skills.
    A2a,
    /// A server with tools.
    Mcp,
}

/// A service that can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownService {
    /// Kind of the service.
    pub kind: ServiceKind,
    /// Name of the service.
    pub name: Arc<str>,
    /// Name for people, if it differs.
    pub display_name: Option<Arc<str>>,
    /// Summary of its purpose.
    pub summary: String,
    /// Names of its tools or skills, in the order of the service.
    pub abilities: Vec<Arc<str>>,
    /// Additional texts that a query may match, such as descriptions of its skills.
    pub texts: Vec<String>,
}

impl KnownService {
    /// Returns all text that is indexed. A name that is a compound is followed by its words.
    fn text(&self) -> String {
        let display_name = self.display_name.as_deref().unwrap_or_default();
        let words = [&*self.name, display_name, &self.summary];
        let abilities = self.abilities.iter().map(|ability| &**ability);
        let all = words.into_iter().chain(abilities).chain(self.texts.iter().map(String::as_str));
        let mut text = all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
        let names = [&*self.name, display_name].into_iter().chain(self.abilities.iter().map(|name| &**name));
        for split in names.filter_map(compound_words) {
            text.push(' ');
            text.push_str(&split);
        }
        text
    }

    /// Returns the document of the service for the ranking of tools.
    fn document(&self) -> ToolDocument {
        let parameters = self.abilities.iter().map(|name| (name.to_string(), String::new()));
        ToolDocument {
            key: self.name.to_string(),
            name: self.name.to_string(),
            title: self.display_name.as_deref().map(str::to_owned),
            description: [self.summary.as_str()]
                .into_iter()
                .chain(self.texts.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join(" "),
            parameters: parameters.collect(),
        }
    }
}

/// A matching service, as a model reads it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundService {
    /// Name of the service.
    pub id: Arc<str>,
    /// Kind of the service.
    pub r#type: ServiceKind,
    /// Summary of its purpose.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Relevance relative to that of the best result, rounded to two decimals.
    pub relevance_score: f64,
    /// First skills of an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_skills: Option<Vec<Arc<str>>>,
    /// Tools of a server that fit, the best first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_tools: Option<Vec<Arc<str>>>,
}

impl FoundService {
    /// `tools` are the tools that fit the query, the best first.
    fn new(service: &KnownService, relevance_score: f64, tools: Vec<Arc<str>>) -> Self {
        let KnownService { kind, name, summary, abilities, .. } = service;
        let (top_skills, top_tools) = match kind {
            ServiceKind::A2a => (Some(abilities.iter().take(MAX_NAMED).cloned().collect()), None),
            ServiceKind::Mcp => (None, Some(tools)),
        };
        let (id, summary) = (name.clone(), summary.clone());
        Self { id, r#type: *kind, summary, relevance_score, top_skills, top_tools }
    }

    /// Returns its first tools or skills, and a word for them.
    pub(super) fn top(&self) -> (&'static str, &[Arc<str>]) {
        match (&self.top_skills, &self.top_tools) {
            (Some(skills), _) => ("top skills", skills),
            (None, Some(tools)) => ("top tools", tools),
            (None, None) => ("top tools", &[]),
        }
    }
}

/// Indexed services. Indexing takes longer than ranking.
pub(super) struct IndexedServices {
    services: Vec<KnownService>,
    texts: Bm25Texts,
    /// Index for the ranking of tools, created on first use.
    documents: OnceLock<ToolIndex>,
}

/// Services with their scores, the best first.
pub(super) type RankedServices<'a> = Vec<(&'a KnownService, f64)>;

impl IndexedServices {
    pub(super) fn new(services: Vec<KnownService>) -> Self {
        let texts = Bm25Texts::new(services.iter().map(KnownService::text));
        Self { services, texts, documents: OnceLock::new() }
    }

    /// Returns the number of services.
    pub(super) const fn len(&self) -> usize {
        self.services.len()
    }

    /// Returns the number of different words of a query that a service has.
    pub(super) fn count_words(&self, service: &KnownService, query: &str) -> usize {
        let at = self.services.iter().position(|other| std::ptr::eq(other, service));
        at.map_or(0, |at| self.texts.count_words(at, query))
    }

    /// Returns the services that match a query, with their scores, the best first. Uses only the first words of the
    /// query, because every pair of words is searched for in all texts.
    pub(super) fn ranked(&self, query: &str) -> RankedServices<'_> {
        let scores = self.texts.scores(&Bm25Ranker::default(), &beginning(query));
        let mut ranked: Vec<_> = self.services.iter().zip(scores).filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        ranked
    }
}

impl IndexedServices {
    /// Returns the services that match a query by the ranking of tools.
    fn ranked_as_tools(&self, query: &str) -> RankedServices<'_> {
        let documents = self.documents.get_or_init(|| {
            let put = |service: &KnownService| IndexChange::Put {
                server: service.name.to_string(),
                tools: vec![service.document()],
            };
            ToolIndex::new(english(), RankingWeights::default()).apply(self.services.iter().map(put))
        });
        let by_name: HashMap<&str, &KnownService> =
            self.services.iter().map(|service| (&*service.name, service)).collect();
        let hits = documents.search(query, self.services.len());
        hits.iter().filter_map(|hit| Some((*by_name.get(&*hit.key)?, f64::from(hit.score)))).collect()
    }
}

/// The other agents that a gateway knows.
pub trait AgentIndex: Send + Sync {
    /// Returns the agents that a caller with this view of the registry can invoke.
    fn services(&self, view: &Registry) -> Vec<KnownService>;
}

/// Index of the services of a gateway.
#[derive(Clone)]
pub struct ServiceIndex {
    summaries: Arc<dyn SummarySource>,
    agents: Option<Arc<dyn AgentIndex>>,
    /// Finder of the tools that fit. It leaves out the gateway's own tools, which are no service.
    finder: Arc<ToolFinder>,
    /// Sets of services that were indexed last, the latest first.
    read: Arc<Mutex<VecDeque<Arc<IndexedServices>>>>,
}

impl ServiceIndex {
    /// Returns an index of the services of registries, without the handler that the finder leaves out.
    #[must_use]
    pub fn new(summaries: Arc<dyn SummarySource>, finder: Arc<ToolFinder>) -> Self {
        Self { summaries, agents: None, finder, read: Arc::default() }
    }

    /// Adds other agents.
    #[must_use]
    pub fn with_agents(self, agents: Arc<dyn AgentIndex>) -> Self {
        Self { agents: Some(agents), ..self }
    }

    /// Returns the services that a caller sees: the handlers with at least one visible tool, and the agents.
    #[must_use]
    pub fn of(&self, view: &Registry) -> Vec<KnownService> {
        let mut tools: BTreeMap<&str, Vec<Arc<str>>> = BTreeMap::new();
        let mut handlers: Vec<&HandlerEntry> = Vec::new();
        for entry in view.entries(EntryKind::Tools).iter().filter(|entry| self.finder.finds(entry)) {
            let of_handler = tools.entry(&entry.handler.name).or_default();
            if of_handler.is_empty() {
                handlers.push(&entry.handler);
            }
            of_handler.push(entry.service_name().clone());
        }
        let service = |handler: &HandlerEntry| {
            let abilities = tools.remove(&*handler.name).unwrap_or_default();
            let names: Vec<_> = abilities.iter().map(|name| &**name).collect();
            KnownService {
                kind: ServiceKind::Mcp,
                name: handler.name.clone(),
                display_name: handler.display_name.clone(),
                summary: self.summaries.of(handler, &names),
                abilities,
                texts: Vec::new(),
            }
        };
        let agents = self.agents.iter().flat_map(|agents| agents.services(view));
        handlers.into_iter().map(service).chain(agents).collect()
    }

    /// Returns the best matches of a query, at most five, the best first.
    pub async fn search(&self, view: &Registry, query: &str, ranker: ServiceRanker) -> Vec<FoundService> {
        let read = self.read(view);
        let ranked = match ranker {
            ServiceRanker::Bm25 => read.ranked(query),
            ServiceRanker::Toolyard => read.ranked_as_tools(query),
        };
        self.top_services(view, query, &ranked, MAX_RESULTS).await
    }

    /// Returns the first results as a model reads them, with the tools that fit the query.
    pub(super) async fn top_services(
        &self,
        view: &Registry,
        query: &str,
        ranked: &[(&KnownService, f64)],
        most: usize,
    ) -> Vec<FoundService> {
        let mut matches: HashMap<&str, Vec<FinderHit>> =
            ranked.iter().take(most).map(|(service, _)| (&*service.name, Vec::new())).collect();
        if !ranked.is_empty() {
            for hit in self.finder.hits(view, query, usize::MAX).await {
                let hits = matches.get_mut(&*hit.entry.handler.name);
                hits.into_iter().for_each(|hits| hits.push(hit.clone()));
            }
        }
        top_services(ranked, most, |service| {
            fitting_tools(matches.remove(&*service.name).unwrap_or_default())
        })
    }

    /// Returns the indexed services that a caller sees. Compares whole services, because a summary may change while the
    /// registry does not.
    pub(super) fn read(&self, view: &Registry) -> Arc<IndexedServices> {
        let services = self.of(view);
        if let Some(known) = self.last().iter().find(|read| read.services == services) {
            return known.clone();
        }
        let read = Arc::new(IndexedServices::new(services));
        let mut last = self.last();
        last.push_front(read.clone());
        last.truncate(MAX_READ);
        read
    }

    fn last(&self) -> MutexGuard<'_, VecDeque<Arc<IndexedServices>>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the names of the tools of a service that fit a query, given all that match it, the best first. The name of the
/// service matches for all of them, so it counts only if no tool matches by itself.
fn fitting_tools(hits: Vec<FinderHit>) -> Vec<Arc<str>> {
    let is_specific = hits.iter().any(|hit| hit.matches_tool);
    let specific = hits.iter().filter(|hit| hit.matches_tool || !is_specific);
    let least = specific.clone().next().map_or(0.0, |best| best.score * MIN_FIT);
    let fitting = specific.filter(|hit| hit.score >= least).take(MAX_NAMED);
    fitting.map(|hit| hit.entry.service_name().clone()).collect()
}

/// Returns the part of a query that is used.
fn beginning(query: &str) -> String {
    let end = query.char_indices().nth(MAX_QUERY_LENGTH).map_or(query.len(), |(end, _)| end);
    query[..end].split_whitespace().take(MAX_WORDS).collect::<Vec<_>>().join(" ")
}

/// Returns the first results as a model reads them.
pub(super) fn top_services(
    ranked: &[(&KnownService, f64)],
    most: usize,
    mut fitting: impl FnMut(&KnownService) -> Vec<Arc<str>>,
) -> Vec<FoundService> {
    let best = ranked.first().map_or(1.0, |(_, score)| *score);
    let relative = |score: f64| (score / best * 100.0).round() / 100.0;
    let found = |(service, score): &(&KnownService, f64)| {
        FoundService::new(service, relative(*score), fitting(service))
    };
    ranked.iter().take(most).map(found).collect()
}

/// Renders the results as JSON in the form that agents know.
pub(super) fn results_json(results: &[FoundService]) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Results<'a> {
        results: &'a [FoundService],
    }
    match results.is_empty() {
        true => Ok(r#"{"results": []}"#.to_owned()),
        false => serde_json::to_string_pretty(&Results { results }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compound_names_are_split() {
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(compound_words(name).as_deref(), expected, "{name}");
        };
        check("searchProducts", Some("search products"));
        check("GitHub", Some("git hub"));
        check("search_products", None);
        check("github", None);
        check("", None);
    }

    #[test]
    fn long_query_is_cut() {
        assert_eq!(beginning("  open an\tissue "), "open an issue");
        assert_eq!(beginning(&"word ".repeat(1000)).split(' ').count(), MAX_WORDS);
        assert_eq!(beginning(&"é".repeat(5000)).chars().count(), MAX_QUERY_LENGTH);
        assert_eq!(beginning(""), "");
    }
}
