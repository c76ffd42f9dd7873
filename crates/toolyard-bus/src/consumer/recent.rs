//! Ids of the last messages, to recognize one that was sent twice.

use std::collections::{HashSet, VecDeque};

/// Number of ids that are remembered. A sender repeats a message within seconds.
const REMEMBERED: usize = 10_000;

/// The last ids.
#[derive(Debug, Default)]
pub(super) struct RecentIds {
    known: HashSet<String>,
    order: VecDeque<String>,
}

impl RecentIds {
    /// Remembers an id. Returns `false` if it is known already. An empty id, of a sender that sets none, is always new.
    pub(super) fn insert(&mut self, id: &str) -> bool {
        if id.is_empty() {
            return true;
        }
        if !self.known.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_ids_are_known() {
        let mut recent = RecentIds::default();
        assert!(recent.insert("a") && !recent.insert("a"));
        assert!(recent.insert("") && recent.insert(""));
        (0..REMEMBERED).for_each(|number| assert!(recent.insert(&number.to_string())));
        assert!(recent.insert("a"), "the oldest id is forgotten");
        assert_eq!(recent.known.len(), REMEMBERED);
    }
}
