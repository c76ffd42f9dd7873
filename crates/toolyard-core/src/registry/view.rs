//! A registry as some callers see it.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Entry, Kind, Part, Registry};
use crate::access::Scope;

impl Registry {
    /// What exists of it in a scope. Handlers of which nothing does are not there either.
    pub(super) fn view(&self, scope: &Scope) -> Self {
        let discloses = self.discloses.clone();
        let mut view = Self { settled: self.settled, discloses, ..Self::default() };
        for kind in Kind::ALL {
            *view.part_mut(kind) = self.part(kind).view(scope);
        }
        let patterns = self.patterns.iter().filter(|(_, entry)| scope.allows(entry));
        view.patterns = patterns.cloned().collect();
        let is_seen = |handler: &str| {
            let mut known = Kind::ALL.into_iter().flat_map(|kind| view.known(kind));
            known.any(|entry| &*entry.handler.name == handler)
        };
        let phases = self.phases.iter().filter(|(handler, _)| is_seen(handler)).cloned().collect();
        let hints = self.hints.iter().filter(|(handler, _)| is_seen(handler)).cloned().collect();
        (view.phases, view.hints) = (phases, hints);
        view.bring_hints_together();
        view.unlisted = self.unlisted.view(scope);
        view.learn_origins();
        view
    }
}

impl Part {
    fn view(&self, scope: &Scope) -> Self {
        let listing = self.listing.only(|entry| scope.allows(entry));
        let known = self.by_name.iter().filter(|(_, entry)| scope.allows(entry));
        let by_name = known
            .map(|(name, entry): (&Arc<str>, &Arc<Entry>)| (name.clone(), entry.clone()))
            .collect::<HashMap<_, _>>();
        Self { listing, by_name, hint: None }
    }
}
