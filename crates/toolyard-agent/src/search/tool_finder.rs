//! The index of all tools, which follows the registry.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

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

/// The index of one registry.
pub(super) struct FinderSnapshot {
    /// The registry that is indexed.
    registry: Weak<Registry>,
    handlers: BTreeMap<Arc<str>, Vec<IndexedTool>>,
    index: Arc<ToolIndex>,
    /// Number of handlers that were indexed for this snapshot; the others are unchanged.
    handlers_read: usize,
}

impl ToolFinder {
    /// Returns a finder of the tools of a gateway, without those of the handler `own`.
    #[must_use]
    pub fn new(gateway: Weak<Gateway>, own: &str) -> Self {
        let index = Arc::new(ToolIndex::new(english(), RankingWeights::default()));
        let empty =
            FinderSnapshot { registry: Weak::new(), handlers: BTreeMap::new(), index, handlers_read: 0 };
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
        let FinderSnapshot { index, .. } = &*self.current().await;
        let hits = index.search(query, limit);
        let is_all = hits.len() < limit;
        let matches = self.seen(view, &hits);
        if is_all || matches.len() == limit {
            return matches;
        }
        // The caller cannot see some of the best matches.
        let mut matches = self.seen(view, &index.search(query, usize::MAX));
        matches.truncate(limit);
        matches
    }

    /// Returns `true` if most words of a query occur in no tool and nothing shows that it is English.
    pub(super) async fn is_mostly_unknown(&self, query: &str) -> bool {
        self.current().await.index.is_mostly_unknown(query)
    }

    /// Returns `true` if the search includes this tool.
    #[must_use]
    pub fn finds(&self, entry: &RegistryEntry) -> bool {
        entry.handler.name != self.own
    }

    /// Returns the visible tools of these hits.
    fn seen(&self, view: &Registry, hits: &[SearchHit]) -> Vec<Arc<RegistryEntry>> {
        let entries = hits.iter().filter_map(|hit| view.tool(&hit.key).ok());
        entries.filter(|entry| self.finds(entry)).cloned().collect()
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
                    tools = next.index.len(),
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
        (snapshot.index.len(), snapshot.handlers_read)
    }
}

impl FinderSnapshot {
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
            false => Arc::new(self.index.apply(changes)),
        };
        Self { registry: Arc::downgrade(registry), handlers, index, handlers_read: read }
    }
}
