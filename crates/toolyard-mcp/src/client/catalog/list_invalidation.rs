//! Invalidation of the lists of a server.

use tokio::sync::watch;
use toolyard_core::registry::EntryKind;

use crate::wire::method;

/// A set of lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::client) struct ListSet(u8);

impl ListSet {
    pub(in crate::client) const NONE: Self = Self(0);
    pub(in crate::client) const ALL: Self = Self::of(&EntryKind::ALL);

    pub(in crate::client) const fn of(kinds: &[EntryKind]) -> Self {
        let (mut lists, mut at) = (0, 0);
        while at < kinds.len() {
            lists |= 1 << kinds[at] as u8;
            at += 1;
        }
        Self(lists)
    }

    pub(in crate::client) const fn union(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    pub(in crate::client) const fn difference(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Returns the lists that a notification reports as changed.
    pub(in crate::client) fn changed_by(notification: &str) -> Self {
        match notification {
            method::TOOLS_CHANGED => Self::of(&[EntryKind::Tools]),
            method::PROMPTS_CHANGED => Self::of(&[EntryKind::Prompts]),
            method::RESOURCES_CHANGED => Self::of(&[EntryKind::Resources, EntryKind::Templates]),
            _ => Self::NONE,
        }
    }

    pub(in crate::client) const fn contains(self, kind: EntryKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

/// The lists that have to be fetched again.
#[derive(Debug, Default)]
pub(in crate::client) struct ListInvalidation(watch::Sender<ListSet>);

impl ListInvalidation {
    pub(in crate::client) fn invalidate(&self, lists: ListSet) {
        self.0.send_if_modified(|stale| {
            let before = std::mem::replace(stale, stale.union(lists));
            *stale != before
        });
    }

    /// Waits until a list is invalidated.
    pub(in crate::client) async fn wait(&self) {
        // Cannot fail: the sender lives in `self`.
        let _gone = self.0.subscribe().wait_for(|stale| *stale != ListSet::NONE).await.map(drop);
    }

    /// Takes the invalidated lists.
    pub(in crate::client) fn take(&self) -> ListSet {
        self.0.send_replace(ListSet::NONE)
    }
}
