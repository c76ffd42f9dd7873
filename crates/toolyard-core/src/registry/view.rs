//! Views of a registry for callers.

use std::collections::HashMap;
use std::sync::Arc;

use super::{EntryKind, KindIndex, Registry, RegistryEntry};
use crate::access::AccessScope;
use crate::names::HandlerNamespaces;

impl Registry {
    /// Returns the registry within a scope. Handlers without entries in it are left out.
    pub(super) fn view(&self, scope: &AccessScope) -> Self {
        let namespaces = HandlerNamespaces::of(self.phases.iter().map(|(handler, _)| handler));
        let scope = &scope.bound(&namespaces);
        let discloses = self.discloses.clone();
        let scope_of_view = Some(scope.clone());
        let (is_of_one_client, own_tools) = (self.is_of_one_client, self.own_tools.clone());
        let view = Self { settled: self.settled, discloses, scope: scope_of_view, ..Self::default() };
        let model_tools = self.model_tools.clone();
        let (starting, namespaces) = (self.starting.clone(), self.namespaces.clone());
        let mut view = Self { is_of_one_client, own_tools, model_tools, starting, namespaces, ..view };
        for kind in EntryKind::ALL {
            let is_seen = |entry: &RegistryEntry| match kind {
                EntryKind::Tools | EntryKind::Prompts => scope.allows(entry),
                EntryKind::Resources | EntryKind::Templates => {
                    scope.allows(entry) && scope.contains_uri(&entry.handler.name, &entry.name)
                }
            };
            *view.part_mut(kind) = self.part(kind).view(is_seen);
        }
        let patterns = self.patterns.iter().filter(|(_, entry)| scope.allows(entry));
        view.patterns = patterns.cloned().collect();
        let is_seen = |handler: &str| {
            let mut callable = EntryKind::ALL.into_iter().flat_map(|kind| view.callable_entries(kind));
            callable.any(|entry| &*entry.handler.name == handler)
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

impl KindIndex {
    fn view(&self, is_seen: impl Fn(&RegistryEntry) -> bool) -> Self {
        let listing = self.listing.only(|entry| is_seen(entry));
        let visible = self.by_name.iter().filter(|(_, entry)| is_seen(entry));
        let by_name = visible
            .map(|(name, entry): (&Arc<str>, &Arc<RegistryEntry>)| (name.clone(), entry.clone()))
            .collect::<HashMap<_, _>>();
        Self { listing, by_name, hint: None }
    }
}
