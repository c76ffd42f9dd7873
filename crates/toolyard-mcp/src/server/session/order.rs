//! The order in which sessions make room for others, per owner and overall.
//!
//! Every operation takes logarithmic time in the number of sessions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::owner::SessionOwner;

/// The rank of a session: idle ones first, the least recently used first among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SessionRank {
    /// True if the session was in use when it was last checked.
    pub(super) was_in_use: bool,
    /// Last known use in milliseconds.
    pub(super) last_used: u64,
    /// A unique number.
    pub(super) number: u64,
}

/// Session ids by rank.
type RankOrder = BTreeMap<SessionRank, Arc<str>>;

/// The ranks of all sessions.
#[derive(Debug, Default)]
pub(super) struct SessionOrder {
    all: RankOrder,
    by_owner: HashMap<SessionOwner, RankOrder>,
    /// The owners by their number of sessions.
    sizes: BTreeSet<(usize, SessionOwner)>,
}

impl SessionOrder {
    pub(super) fn add(&mut self, owner: &SessionOwner, rank: SessionRank, id: Arc<str>) {
        self.all.insert(rank, id.clone());
        let order = self.by_owner.entry(owner.clone()).or_default();
        let before = order.len();
        order.insert(rank, id);
        let now = order.len();
        self.resize(owner, before, now);
    }

    pub(super) fn remove(&mut self, owner: &SessionOwner, rank: SessionRank) {
        self.all.remove(&rank);
        let Some(order) = self.by_owner.get_mut(owner) else { return };
        let before = order.len();
        order.remove(&rank);
        let now = order.len();
        if now == 0 {
            self.by_owner.remove(owner);
        }
        self.resize(owner, before, now);
    }

    fn resize(&mut self, owner: &SessionOwner, before: usize, now: usize) {
        self.sizes.remove(&(before, owner.clone()));
        if now > 0 {
            self.sizes.insert((now, owner.clone()));
        }
    }

    /// Returns the number of sessions of an owner.
    pub(super) fn count(&self, owner: &SessionOwner) -> usize {
        self.by_owner.get(owner).map_or(0, RankOrder::len)
    }

    /// Returns the first session of an owner, or of all owners.
    pub(super) fn first(&self, owner: Option<&SessionOwner>) -> Option<Arc<str>> {
        self.order(owner)?.first_key_value().map(|(_, id)| id.clone())
    }

    /// Returns the first session that was in use when it was last checked.
    pub(super) fn first_in_use(&self, owner: Option<&SessionOwner>) -> Option<Arc<str>> {
        let first = SessionRank { was_in_use: true, last_used: 0, number: 0 };
        self.order(owner)?.range(first..).next().map(|(_, id)| id.clone())
    }

    fn order(&self, owner: Option<&SessionOwner>) -> Option<&RankOrder> {
        owner.map_or(Some(&self.all), |owner| self.by_owner.get(owner))
    }

    /// Returns the owner with the most sessions, and their number.
    pub(super) fn largest(&self) -> Option<(usize, SessionOwner)> {
        self.sizes.last().cloned()
    }
}
