//! Resources that neither a list nor a template contains. Servers may have them (2025-11-25, server/resources), and
//! mention them in results of tools.

use std::collections::HashMap;
use std::sync::Arc;

use super::{HandlerEntry, RegistryEntry};
use crate::access::AccessScope;
use crate::names::{qualified, qualifier};

/// The template that matches every URI (RFC 6570).
const ANY: &str = "{+uri}";

/// Candidates for unlisted resources. No server is asked: a resource is found only if one handler must be meant.
#[derive(Default)]
pub(super) struct UnlistedResources {
    /// An entry for each handler that may have unlisted resources.
    entries: Vec<Arc<RegistryEntry>>,
    /// Handler of the resources with this origin, a scheme or a scheme with an authority; `None` for several handlers.
    origins: HashMap<Box<str>, Option<Arc<str>>>,
    /// Scope of the view, if it is one.
    scope: Option<AccessScope>,
}

impl UnlistedResources {
    /// Adds a handler that may have unlisted resources.
    pub(super) fn add(&mut self, handler: &HandlerEntry) {
        let entry = RegistryEntry {
            name: qualified(&qualifier(&handler.name), ANY).into(),
            own: ANY.into(),
            tool: None,
            additions: None,
            price: handler.price,
            chunking: handler.chunking,
            handler: handler.clone(),
        };
        self.entries.push(Arc::new(entry));
    }

    /// Records the origins of all resources that can be found.
    pub(super) fn learn<'a>(&mut self, offered: impl Iterator<Item = &'a Arc<RegistryEntry>>) {
        // With one candidate the origins do not matter.
        if self.entries.len() < 2 {
            return;
        }
        for entry in offered {
            for origin in origins(&entry.own) {
                match self.origins.get_mut(origin) {
                    Some(owner) if owner.as_ref().is_some_and(|owner| *owner != entry.handler.name) => {
                        *owner = None
                    }
                    Some(_) => {}
                    None => drop(self.origins.insert(origin.into(), Some(entry.handler.name.clone()))),
                }
            }
        }
    }

    /// Returns all candidates, without origins.
    pub(super) fn candidates(&self) -> Self {
        Self { entries: self.entries.clone(), ..Self::default() }
    }

    /// Returns the candidates in a scope, without origins.
    pub(super) fn view(&self, scope: &AccessScope) -> Self {
        Self { entries: self.entries.clone(), scope: Some(scope.clone()), ..Self::default() }
    }

    /// Returns the handler that a URI must mean: the one that it names, the only candidate, or the only one with
    /// resources of the same origin.
    pub(super) fn find(&self, uri: &str) -> Option<&Arc<RegistryEntry>> {
        let exists = |entry: &&Arc<RegistryEntry>| {
            self.scope.as_ref().is_none_or(|scope| scope.allows_name(&entry.handler.name, uri))
        };
        let mut candidates = self.entries.iter().filter(exists);
        if let Some(named) = candidates.clone().find(|entry| entry.qualifier_in(uri).is_some()) {
            return Some(named);
        }
        let first = candidates.next()?;
        if candidates.next().is_none() {
            return Some(first);
        }
        let owner = origins(uri).find_map(|origin| self.origins.get(origin))?.as_ref()?;
        self.entries.iter().filter(exists).find(|entry| entry.handler.name == *owner)
    }
}

/// Returns the origins of a URI or template: the scheme with the authority, if it has a literal one, then the scheme.
fn origins(uri: &str) -> impl Iterator<Item = &str> {
    let scheme = uri.find(':').map(|at| &uri[..=at]).filter(|scheme| !scheme.contains(['/', '{']));
    let authority = scheme.and_then(|scheme| {
        let behind = uri[scheme.len()..].strip_prefix("//")?;
        let length = behind.find(['/', '?', '#']).unwrap_or(behind.len());
        let authority = &uri[..scheme.len() + 2 + length];
        (!authority.contains('{')).then_some(authority)
    });
    authority.into_iter().chain(scheme)
}
