//! Which services fit, ranked and told as agents know it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use toolyard_core::Registry;
use toolyard_core::registry::{Handler, Kind};
use toolyard_rank::{Bm25Ranker, Bm25Texts};

use crate::summary::Summaries;

/// How many are given.
const MOST: usize = 5;
/// How many tools or skills are named of each.
const MOST_NAMED: usize = 3;
/// How much of a query is read, in characters and in words.
const LONGEST_QUERY: usize = 4096;
const MOST_WORDS: usize = 64;
/// How many sets of services are kept read: callers of one scope see the same.
const MOST_READ: usize = 8;

/// What a service is, which says how it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceKind {
    /// Another agent. Its skills are what it can do.
    A2a,
    /// A server with tools.
    Mcp,
}

/// A service that can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// What it is.
    pub kind: ServiceKind,
    /// What it is called by.
    pub name: Arc<str>,
    /// What people call it, where that is something else.
    pub display_name: Option<Arc<str>>,
    /// What it is for.
    pub summary: String,
    /// The names of its tools, or of its skills, in its order.
    pub abilities: Vec<Arc<str>>,
    /// What else is said of it that a query may speak of, such as what its skills do.
    pub texts: Vec<String>,
}

impl Service {
    /// All that is read of it.
    fn text(&self) -> String {
        let words = [&*self.name, self.display_name.as_deref().unwrap_or_default(), &self.summary];
        let abilities = self.abilities.iter().map(|ability| &**ability);
        let all = words.into_iter().chain(abilities).chain(self.texts.iter().map(String::as_str));
        all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// A service that fits, as a model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundService {
    /// What it is called by.
    pub id: Arc<str>,
    /// What it is.
    pub r#type: ServiceKind,
    /// What it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// How well it fits, as a part of how well the best one does, rounded to two decimals.
    pub relevance_score: f64,
    /// The first skills of an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_skills: Option<Vec<Arc<str>>>,
    /// The first tools of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_tools: Option<Vec<Arc<str>>>,
}

impl FoundService {
    fn new(service: &Service, relevance_score: f64) -> Self {
        let Service { kind, name, summary, abilities, .. } = service.clone();
        let abilities = abilities.into_iter().take(MOST_NAMED).collect();
        let (top_skills, top_tools) = match kind {
            ServiceKind::A2a => (Some(abilities), None),
            ServiceKind::Mcp => (None, Some(abilities)),
        };
        Self { id: name, r#type: kind, summary, relevance_score, top_skills, top_tools }
    }

    /// What is named of it.
    pub(super) fn top(&self) -> (&'static str, &[Arc<str>]) {
        match (&self.top_skills, &self.top_tools) {
            (Some(skills), _) => ("top skills", skills),
            (None, Some(tools)) => ("top tools", tools),
            (None, None) => ("top tools", &[]),
        }
    }
}

/// Services whose texts were read, which takes longer than to rank them.
pub(super) struct ReadServices {
    services: Vec<Service>,
    texts: Bm25Texts,
}

impl ReadServices {
    pub(super) fn new(services: Vec<Service>) -> Self {
        let texts = Bm25Texts::new(services.iter().map(Service::text));
        Self { services, texts }
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.services.len()
    }

    /// Those that have something of a query, with their scores, the best first. More than the first words are not read: each pair
    /// of them is looked for in all texts.
    pub(super) fn ranked(&self, query: &str) -> Vec<(&Service, f64)> {
        let scores = self.texts.scores(&Bm25Ranker::default(), &beginning(query));
        let mut ranked: Vec<_> = self.services.iter().zip(scores).filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        ranked
    }
}

/// Knows the services that there are.
#[derive(Clone)]
pub struct Services {
    summaries: Arc<dyn Summaries>,
    /// The handler that is the gateway itself, and no service.
    own: Arc<str>,
    /// What was read last, the latest first.
    read: Arc<Mutex<VecDeque<Arc<ReadServices>>>>,
}

impl Services {
    /// The services of registries, without the handler `own`.
    #[must_use]
    pub fn new(summaries: Arc<dyn Summaries>, own: &str) -> Self {
        Self { summaries, own: own.into(), read: Arc::default() }
    }

    /// The services that a caller sees: the handlers that it sees a tool of.
    #[must_use]
    pub fn of(&self, view: &Registry) -> Vec<Service> {
        let mut tools: BTreeMap<&str, Vec<Arc<str>>> = BTreeMap::new();
        let mut handlers: Vec<&Handler> = Vec::new();
        for entry in view.entries(Kind::Tools).iter().filter(|entry| entry.handler.name != self.own) {
            let of_handler = tools.entry(&entry.handler.name).or_default();
            if of_handler.is_empty() {
                handlers.push(&entry.handler);
            }
            of_handler.push(entry.name.clone());
        }
        let service = |handler: &Handler| {
            let abilities = tools.remove(&*handler.name).unwrap_or_default();
            let names: Vec<_> = abilities.iter().map(|name| &**name).collect();
            Service {
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

    /// The services that fit a query best, five at most, the best first.
    #[must_use]
    pub fn search(&self, view: &Registry, query: &str) -> Vec<FoundService> {
        found(&self.read(view).ranked(query), MOST)
    }

    /// The services that a caller sees, read. Summaries may change while nothing else does, so that it is what is read that is
    /// compared.
    pub(super) fn read(&self, view: &Registry) -> Arc<ReadServices> {
        let services = self.of(view);
        if let Some(known) = self.last().iter().find(|read| read.services == services) {
            return known.clone();
        }
        let read = Arc::new(ReadServices::new(services));
        let mut last = self.last();
        last.push_front(read.clone());
        last.truncate(MOST_READ);
        read
    }

    fn last(&self) -> MutexGuard<'_, VecDeque<Arc<ReadServices>>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As much of a query as is read.
fn beginning(query: &str) -> String {
    let end = query.char_indices().nth(LONGEST_QUERY).map_or(query.len(), |(end, _)| end);
    query[..end].split_whitespace().take(MOST_WORDS).collect::<Vec<_>>().join(" ")
}

/// The first of them, as they are told.
pub(super) fn found(ranked: &[(&Service, f64)], most: usize) -> Vec<FoundService> {
    let best = ranked.first().map_or(1.0, |(_, score)| *score);
    let relative = |score: f64| (score / best * 100.0).round() / 100.0;
    ranked.iter().take(most).map(|(service, score)| FoundService::new(service, relative(*score))).collect()
}

/// What a model reads: JSON as agents know it.
pub(super) fn told(results: &[FoundService]) -> Result<String, serde_json::Error> {
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
    fn of_a_long_query_the_beginning_is_read() {
        assert_eq!(beginning("  open an\tissue "), "open an issue");
        assert_eq!(beginning(&"word ".repeat(1000)).split(' ').count(), MOST_WORDS);
        assert_eq!(beginning(&"é".repeat(5000)).chars().count(), LONGEST_QUERY);
        assert_eq!(beginning(""), "");
    }
}
