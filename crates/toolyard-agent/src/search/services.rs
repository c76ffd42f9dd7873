//! Searches services and renders the results in the form that agents know.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use toolyard_core::Registry;
use toolyard_core::registry::{EntryKind, HandlerEntry};
use toolyard_rank::{Bm25Ranker, Bm25Texts};

use crate::summary::SummarySource;

/// Maximum number of results.
const MAX_RESULTS: usize = 5;
/// Maximum number of tools or skills that a result names.
const MAX_NAMED: usize = 3;
/// Maximum length of a query in characters and in words.
const MAX_QUERY_LENGTH: usize = 4096;
const MAX_WORDS: usize = 64;
/// Maximum number of indexed sets of services. Callers of one scope see the same set.
const MAX_READ: usize = 8;

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
    /// Returns all text that is indexed.
    fn text(&self) -> String {
        let words = [&*self.name, self.display_name.as_deref().unwrap_or_default(), &self.summary];
        let abilities = self.abilities.iter().map(|ability| &**ability);
        let all = words.into_iter().chain(abilities).chain(self.texts.iter().map(String::as_str));
        all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
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
    /// First tools of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_tools: Option<Vec<Arc<str>>>,
}

impl FoundService {
    fn new(service: &KnownService, relevance_score: f64) -> Self {
        let KnownService { kind, name, summary, abilities, .. } = service.clone();
        let abilities = abilities.into_iter().take(MAX_NAMED).collect();
        let (top_skills, top_tools) = match kind {
            ServiceKind::A2a => (Some(abilities), None),
            ServiceKind::Mcp => (None, Some(abilities)),
        };
        Self { id: name, r#type: kind, summary, relevance_score, top_skills, top_tools }
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
}

impl IndexedServices {
    pub(super) fn new(services: Vec<KnownService>) -> Self {
        let texts = Bm25Texts::new(services.iter().map(KnownService::text));
        Self { services, texts }
    }

    /// Returns the number of services.
    pub(super) const fn len(&self) -> usize {
        self.services.len()
    }

    /// Returns the services that match a query, with their scores, the best first. Uses only the first words of the
    /// query, because every pair of words is searched for in all texts.
    pub(super) fn ranked(&self, query: &str) -> Vec<(&KnownService, f64)> {
        let scores = self.texts.scores(&Bm25Ranker::default(), &beginning(query));
        let mut ranked: Vec<_> = self.services.iter().zip(scores).filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        ranked
    }
}

/// Index of the services of a gateway.
#[derive(Clone)]
pub struct ServiceIndex {
    summaries: Arc<dyn SummarySource>,
    /// Handler of the gateway's own tools, which is not a service.
    own: Arc<str>,
    /// Sets of services that were indexed last, the latest first.
    read: Arc<Mutex<VecDeque<Arc<IndexedServices>>>>,
}

impl ServiceIndex {
    /// Returns an index of the services of registries, without the handler `own`.
    #[must_use]
    pub fn new(summaries: Arc<dyn SummarySource>, own: &str) -> Self {
        Self { summaries, own: own.into(), read: Arc::default() }
    }

    /// Returns the services that a caller sees: the handlers with at least one visible tool.
    #[must_use]
    pub fn of(&self, view: &Registry) -> Vec<KnownService> {
        let mut tools: BTreeMap<&str, Vec<Arc<str>>> = BTreeMap::new();
        let mut handlers: Vec<&HandlerEntry> = Vec::new();
        for entry in view.entries(EntryKind::Tools).iter().filter(|entry| entry.handler.name != self.own) {
            let of_handler = tools.entry(&entry.handler.name).or_default();
            if of_handler.is_empty() {
                handlers.push(&entry.handler);
            }
            of_handler.push(entry.name.clone());
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
        handlers.into_iter().map(service).collect()
    }

    /// Returns the best matches of a query, at most five, the best first.
    #[must_use]
    pub fn search(&self, view: &Registry, query: &str) -> Vec<FoundService> {
        top_services(&self.read(view).ranked(query), MAX_RESULTS)
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

/// Returns the part of a query that is used.
fn beginning(query: &str) -> String {
    let end = query.char_indices().nth(MAX_QUERY_LENGTH).map_or(query.len(), |(end, _)| end);
    query[..end].split_whitespace().take(MAX_WORDS).collect::<Vec<_>>().join(" ")
}

/// Returns the first results as a model reads them.
pub(super) fn top_services(ranked: &[(&KnownService, f64)], most: usize) -> Vec<FoundService> {
    let best = ranked.first().map_or(1.0, |(_, score)| *score);
    let relative = |score: f64| (score / best * 100.0).round() / 100.0;
    ranked.iter().take(most).map(|(service, score)| FoundService::new(service, relative(*score))).collect()
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
    fn long_query_is_cut() {
        assert_eq!(beginning("  open an\tissue "), "open an issue");
        assert_eq!(beginning(&"word ".repeat(1000)).split(' ').count(), MAX_WORDS);
        assert_eq!(beginning(&"é".repeat(5000)).chars().count(), MAX_QUERY_LENGTH);
        assert_eq!(beginning(""), "");
    }
}
