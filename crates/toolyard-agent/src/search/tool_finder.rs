//! The index of all tools, which follows the registry.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;
use toolyard_core::{Caller, Gateway, Registry, RegistryEntry};
use toolyard_rank::{IndexChange, RankingWeights, SearchHit, ToolIndex};

use super::english;
use super::indexed_tool::{IndexedTool, by_handler};

/// Finds tools. The index is built on the first search, or by [`follow`](ToolFinder::follow), and then updated for
/// handlers whose tools have changed. Searches share a snapshot of it and take no lock while it is current.
pub struct ToolFinder {
    /// The gateway. A weak reference, because the gateway may own the tools that search it.
    gateway: Weak<Gateway>,
    /// Handler of the gateway's own tools, which are advertised in any case and not searched.
    own: Arc<str>,
    snapshot: watch::Sender<Arc<FinderSnapshot>>,
    /// Permit for building the next snapshot.
    rebuild_permit: Semaphore,
}

/// A matching tool.
#[derive(Clone)]
pub struct FinderHit {
    /// The tool.
    pub entry: Arc<RegistryEntry>,
    /// The score, comparable within one result.
    pub score: f32,
    /// `true` if the query has a word of the tool itself, and not only of the name of its server.
    pub(super) matches_tool: bool,
}

/// The index of one registry.
pub(super) struct FinderSnapshot {
    /// The registry that is indexed.
    registry: Weak<Registry>,
    handlers: BTreeMap<Arc<str>, Vec<IndexedTool>>,
    /// The index; empty, and without its lexicon, before the first search.
    index: OnceLock<Arc<ToolIndex>>,
    /// Number of handlers that were indexed for this snapshot; the others are unchanged.
    handlers_read: usize,
}

impl ToolFinder {
    /// Returns a finder of the tools of a gateway, without those of the handler `own`.
    #[must_use]
    pub fn new(gateway: Weak<Gateway>, own: &str) -> Self {
        let empty = FinderSnapshot {
            registry: Weak::new(),
            handlers: BTreeMap::new(),
            index: OnceLock::new(),
            handlers_read: 0,
        };
        let (own, snapshot) = (own.into(), watch::Sender::new(Arc::new(empty)));
        Self { gateway, own, snapshot, rebuild_permit: Semaphore::new(1) }
    }

    /// Updates the index after each change of the registry, until the gateway ends, so that searches need not wait for
    /// it.
    pub async fn follow(&self) {
        let Some(mut registry) = self.gateway.upgrade().map(|gateway| gateway.watch()) else { return };
        registry.mark_changed();
        while registry.changed().await.is_ok() {
            self.current().await;
        }
    }

    /// Returns the tools of the latest index, and of each later one.
    pub(super) fn indexed_tools(&self) -> watch::Receiver<Arc<FinderSnapshot>> {
        self.snapshot.subscribe()
    }

    /// Returns the best matches of a query among the tools that are advertised in `view`, the current registry as a
    /// caller sees it. Returns at most `limit` tools, the best first.
    pub async fn search(&self, view: &Registry, query: &str, limit: usize) -> Vec<Arc<RegistryEntry>> {
        let hits = self.hits(view, query, limit).await;
        hits.into_iter().map(|hit| hit.entry).collect()
    }

    /// Like [`search`](Self::search), with the scores.
    pub async fn hits(&self, view: &Registry, query: &str, limit: usize) -> Vec<FinderHit> {
        let snapshot = self.current().await;
        let seen = |key: &str| view.tool(key).ok().filter(|entry| self.finds(entry));
        let hits = snapshot.index().search_among(query, limit, |key| seen(key).is_some());
        let hit = |SearchHit { key, score, matches_tool }: SearchHit| {
            Some(FinderHit { entry: seen(&key)?.clone(), score, matches_tool })
        };
        hits.into_iter().filter_map(hit).collect()
    }

    /// Returns `true` if a query may be in another language than English.
    pub(super) async fn may_be_foreign(&self, query: &str) -> bool {
        self.current().await.index().may_be_foreign(query)
    }

    /// Returns `true` if the search includes this tool.
    #[must_use]
    pub fn finds(&self, entry: &RegistryEntry) -> bool {
        entry.handler.name != self.own
    }

    /// Returns the index of the current registry.
    async fn current(&self) -> Arc<FinderSnapshot> {
        if let Some(snapshot) = self.fresh() {
            return snapshot;
        }
        // The semaphore is never closed.
        let _permit = self.rebuild_permit.acquire().await;
        if let Some(snapshot) = self.fresh() {
            return snapshot;
        }
        let (before, registry, own) = (self.snapshot.borrow().clone(), self.registry(), self.own.clone());
        let made = spawn_blocking(move || Arc::new(before.after(&registry, &own))).await;
        match made {
            Ok(next) => {
                tracing::debug!(
                    tools = next.index().len(),
                    handlers_read = next.handlers_read,
                    "indexed tools"
                );
                self.snapshot.send_replace(next.clone());
                next
            }
            // The task panicked, or the process is ending.
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "failed to index tools");
                self.snapshot.borrow().clone()
            }
        }
    }

    /// Returns the snapshot if it is that of the current registry.
    fn fresh(&self) -> Option<Arc<FinderSnapshot>> {
        let (now, snapshot) = (self.registry(), self.snapshot.borrow().clone());
        snapshot.registry.ptr_eq(&Arc::downgrade(&now)).then_some(snapshot)
    }

    /// Returns the current registry; an empty one once the gateway is gone.
    fn registry(&self) -> Arc<Registry> {
        self.gateway.upgrade().map(|gateway| gateway.registry()).unwrap_or_default()
    }

    /// Returns the current registry as a caller sees it.
    #[must_use]
    pub(super) fn view(&self, caller: &Caller) -> Arc<Registry> {
        Registry::view_for(self.registry(), caller)
    }

    #[cfg(test)]
    pub(super) async fn read(&self) -> (usize, usize) {
        let snapshot = self.current().await;
        (snapshot.index().len(), snapshot.handlers_read)
    }
}

impl FinderSnapshot {
    fn index(&self) -> &ToolIndex {
        self.index.get_or_init(|| Arc::new(ToolIndex::new(english(), RankingWeights::default())))
    }

    /// Returns the indexed tools by handler.
    pub(super) fn tools(&self) -> BTreeMap<Arc<str>, Vec<IndexedTool>> {
        self.handlers.clone()
    }

    /// Returns the snapshot of another registry. Indexes only handlers whose tools have changed.
    fn after(&self, registry: &Arc<Registry>, own: &str) -> Self {
        let handlers = by_handler(registry, own);
        let others = handlers.iter().filter(|(name, tools)| self.handlers.get(*name) != Some(tools));
        let put = others.map(|(name, tools)| IndexChange::Put {
            server: name.to_string(),
            tools: tools.iter().map(IndexedTool::ranked).collect(),
        });
        let mut changes: Vec<_> = put.collect();
        let read = changes.len();
        let gone = self.handlers.keys().filter(|name| !handlers.contains_key(*name));
        changes.extend(gone.map(|name| IndexChange::Remove { server: name.to_string() }));
        let index = match changes.is_empty() {
            true => self.index.clone(),
            false => OnceLock::from(Arc::new(self.index().apply(changes))),
        };
        Self { registry: Arc::downgrade(registry), handlers, index, handlers_read: read }
    }
}
