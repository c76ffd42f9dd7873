//! Resources that no list has and no template stands for. Servers may have them all the same (2025-11-25,
//! server/resources), and tell of them in results of tools.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Entry, Handler};
use crate::access::Scope;
use crate::names::qualifier;

/// The template that every URI fits (RFC 6570).
const ANY: &str = "{+uri}";

/// Who may have a resource that nobody offers. Nobody is asked: it is who must be meant, or it is not found.
#[derive(Default)]
pub(super) struct Unlisted {
    /// An entry for each handler that may have some.
    entries: Vec<Arc<Entry>>,
    /// The handler whose resources have this beginning, a scheme or a scheme with an authority; `None` where several have.
    origins: HashMap<Box<str>, Option<Arc<str>>>,
    /// What of it exists, if not everything does.
    scope: Option<Scope>,
}

impl Unlisted {
    /// Adds a handler that may have resources which it does not offer.
    pub(super) fn add(&mut self, handler: &Handler) {
        let entry = Entry {
            name: format!("{}{ANY}", qualifier(&handler.name)).into(),
            own: ANY.into(),
            tool: None,
            additions: None,
            price: handler.price,
            chunking: handler.chunking,
            handler: handler.clone(),
        };
        self.entries.push(Arc::new(entry));
    }

    /// Notes whose resources these are, all that can be found.
    pub(super) fn learn<'a>(&mut self, offered: impl Iterator<Item = &'a Arc<Entry>>) {
        // Where there is no choice, nobody needs to know.
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

    /// What of it exists in a scope; the resources that can be found there are still to be learnt.
    pub(super) fn view(&self, scope: &Scope) -> Self {
        Self { entries: self.entries.clone(), scope: Some(scope.clone()), ..Self::default() }
    }

    /// Who must be meant by a URI: the handler that it names, the only one there is, or the only one that has resources
    /// of the same origin.
    pub(super) fn find(&self, uri: &str) -> Option<&Arc<Entry>> {
        let exists = |entry: &&Arc<Entry>| {
            self.scope.as_ref().is_none_or(|scope| scope.allows_name(&entry.handler.name, uri))
        };
        let mut candidates = self.entries.iter().filter(exists);
        if let Some(named) = candidates.clone().find(|entry| !entry.qualifier_in(uri).is_empty()) {
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

/// The beginnings of a URI, or of a template, that tell whose it is: the scheme with the authority, if there is one that is
/// written out, then the scheme.
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
