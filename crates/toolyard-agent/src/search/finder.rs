//! An index of all tools, kept up with what there is.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;
use toolyard_core::{Caller, Entry, Gateway, Registry};
use toolyard_rank::{Change, Hit, Index, Ranking};

use super::english;
use super::reading::{Listed, by_handler};

/// Finds tools. An index is made of what there is when somebody first searches, or [follows](Finder::follow), and then changed
/// where a handler's tools have changed. Searches share a snapshot of it and take no lock, as long as it is that of what there
/// is now.
pub struct Finder {
    /// Behind it is what there is. It may have what searches here, which does not keep it.
    gateway: Weak<Gateway>,
    /// The handler whose tools are not looked for: they are listed in any case.
    own: Arc<str>,
    snapshot: watch::Sender<Arc<Snapshot>>,
    /// The place of whoever makes the next snapshot.
    making: Semaphore,
}

/// The index of one registry.
struct Snapshot {
    /// Which registry it is of.
    of: Weak<Registry>,
    handlers: BTreeMap<Arc<str>, Vec<Listed>>,
    index: Arc<Index>,
    /// How many handlers were read for it; of the others it has what the one before had.
    read: usize,
}

impl Finder {
    /// A finder of the tools of a gateway, but for those of the handler `own`.
    #[must_use]
    pub fn new(gateway: Weak<Gateway>, own: &str) -> Self {
        let index = Arc::new(Index::new(english(), Ranking::default()));
        let empty = Snapshot { of: Weak::new(), handlers: BTreeMap::new(), index, read: 0 };
        let (own, snapshot) = (own.into(), watch::Sender::new(Arc::new(empty)));
        Self { gateway, own, snapshot, making: Semaphore::new(1) }
    }

    /// Changes the index each time that there is something else, until that can change no more, so that no search has to wait for
    /// it.
    pub async fn follow(&self) {
        let Some(mut registry) = self.gateway.upgrade().map(|gateway| gateway.watch()) else { return };
        registry.mark_changed();
        while registry.changed().await.is_ok() {
            self.current().await;
        }
    }

    /// The tools that fit a query best, `limit` at most, the best first, of those that are listed in `view`: what there is now,
    /// as a caller sees it.
    pub async fn search(&self, view: &Registry, query: &str, limit: usize) -> Vec<Arc<Entry>> {
        let Snapshot { index, .. } = &*self.current().await;
        let hits = index.search(query, limit);
        let is_all = hits.len() < limit;
        let found = self.seen(view, &hits);
        if is_all || found.len() == limit {
            return found;
        }
        // Some of the best are not there for this caller.
        let mut found = self.seen(view, &index.search(query, usize::MAX));
        found.truncate(limit);
        found
    }

    /// Whether this is a tool that is looked for.
    #[must_use]
    pub fn finds(&self, entry: &Entry) -> bool {
        entry.handler.name != self.own
    }

    /// The tools themselves.
    fn seen(&self, view: &Registry, hits: &[Hit]) -> Vec<Arc<Entry>> {
        let found = hits.iter().filter_map(|hit| view.tool(&hit.key).ok());
        found.filter(|entry| self.finds(entry)).cloned().collect()
    }

    /// The index of what there is now.
    async fn current(&self) -> Arc<Snapshot> {
        if let Some(snapshot) = self.fresh() {
            return snapshot;
        }
        // It is never closed.
        let _place = self.making.acquire().await;
        if let Some(snapshot) = self.fresh() {
            return snapshot;
        }
        let (before, registry, own) = (self.snapshot.borrow().clone(), self.registry(), self.own.clone());
        let made = spawn_blocking(move || Arc::new(before.after(&registry, &own))).await;
        match made {
            Ok(next) => {
                tracing::debug!(tools = next.index.len(), handlers_read = next.read, "tools are indexed");
                self.snapshot.send_replace(next.clone());
                next
            }
            // It panicked, or the process ends.
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "tools are not indexed");
                self.snapshot.borrow().clone()
            }
        }
    }

    /// The snapshot that there is, if it is that of the registry that there is.
    fn fresh(&self) -> Option<Arc<Snapshot>> {
        let (now, snapshot) = (self.registry(), self.snapshot.borrow().clone());
        snapshot.of.ptr_eq(&Arc::downgrade(&now)).then_some(snapshot)
    }

    /// What there is now: nothing, once the gateway is gone.
    fn registry(&self) -> Arc<Registry> {
        self.gateway.upgrade().map(|gateway| gateway.registry()).unwrap_or_default()
    }

    /// What there is now for a caller.
    #[must_use]
    pub(super) fn view(&self, caller: &Caller) -> Arc<Registry> {
        Registry::seen_by(self.registry(), caller)
    }

    #[cfg(test)]
    pub(super) async fn read(&self) -> (usize, usize) {
        let snapshot = self.current().await;
        (snapshot.index.len(), snapshot.read)
    }
}

impl Snapshot {
    /// The snapshot of another registry. Only handlers with other tools than before are read.
    fn after(&self, registry: &Arc<Registry>, own: &str) -> Self {
        let handlers = by_handler(registry, own);
        let others = handlers.iter().filter(|(name, tools)| self.handlers.get(*name) != Some(tools));
        let put = others.map(|(name, tools)| Change::Put {
            server: name.to_string(),
            tools: tools.iter().map(Listed::ranked).collect(),
        });
        let mut changes: Vec<_> = put.collect();
        let read = changes.len();
        let gone = self.handlers.keys().filter(|name| !handlers.contains_key(*name));
        changes.extend(gone.map(|name| Change::Remove { server: name.to_string() }));
        let index = match changes.is_empty() {
            true => self.index.clone(),
            false => Arc::new(self.index.apply(changes)),
        };
        Self { of: Arc::downgrade(registry), handlers, index, read }
    }
}
