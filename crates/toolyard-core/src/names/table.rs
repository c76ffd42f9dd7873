//! The names of one kind of entries.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::legal::{is_legal, legalized, with_hash};
use super::qualifier::{qualified, qualifier};
use super::{AssignedName, NamedKind, PrefixPolicy};

/// Minimum number of remembered names that a handler does not offer any more. A server could offer new ones without
/// end.
pub(super) const REMEMBERED: usize = 1000;

/// A name that another handler has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NameConflict {
    pub(crate) name: Arc<str>,
    /// Handler that has the name.
    pub(crate) by: Arc<str>,
}

/// The form of names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum NameRule {
    /// Names that models can call.
    #[default]
    Word,
    /// URIs or templates, as their servers have them.
    Uri,
}

/// The names of one kind.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    rule: NameRule,
    /// Names by handler and own name.
    pub(super) given: HashMap<Arc<str>, HashMap<Arc<str>, HeldName>>,
    /// Handler of each name.
    pub(super) owners: HashMap<Arc<str>, Arc<str>>,
    /// Number of assigned and released names so far.
    pub(super) changes: u64,
}

#[derive(Debug)]
pub(super) struct HeldName {
    name: Arc<str>,
    /// Preference at the time of assignment.
    wish: NamePreference,
}

/// The manifest's preference for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamePreference {
    /// Name from an override.
    pub(super) asked: Option<Arc<str>>,
    pub(super) prefix: PrefixPolicy,
}

// === impl NameTable ===

impl NameTable {
    /// Creates an empty table of URIs.
    pub(super) fn of_uris() -> Self {
        Self { rule: NameRule::Uri, ..Self::default() }
    }

    /// Keeps the selected names of a handler, and releases the others.
    pub(super) fn retain(&mut self, handler: &str, keep: impl Fn(&Arc<str>, &NamePreference) -> bool) {
        let Self { given, owners, changes, rule: _ } = self;
        let Some(given) = given.get_mut(handler) else { return };
        given.retain(|own, given| {
            let stays = keep(own, &given.wish);
            if !stays {
                owners.remove(&given.name);
                *changes += 1;
            }
            stays
        });
    }

    /// Returns `true` if a handler has names.
    pub(super) fn has_names(&self, handler: &str) -> bool {
        self.given.get(handler).is_some_and(|given| !given.is_empty())
    }

    /// Releases all names of a handler.
    pub(super) fn forget(&mut self, handler: &str) {
        self.retain(handler, |_, _| false);
        self.given.remove(handler);
    }

    /// Assigns the preferred name to a tool, if it is free.
    pub(super) fn claim(&mut self, handler: &Arc<str>, own: &Arc<str>, wish: NamePreference) {
        if let Some(name) = wish.asked.clone().filter(|name| self.is_free(name)) {
            self.set(handler, own, HeldName { name, wish });
        }
    }

    /// Returns the name of a tool, assigning one if necessary.
    pub(super) fn give(
        &mut self,
        handler: &Arc<str>,
        own: &Arc<str>,
        wish: NamePreference,
    ) -> Result<Arc<str>, NameConflict> {
        if let Some(given) = self.given.get(handler).and_then(|given| given.get(own)) {
            return Ok(given.name.clone());
        }
        let name = self.choose(handler, own, &wish)?;
        self.set(handler, own, HeldName { name: name.clone(), wish });
        Ok(name)
    }

    fn set(&mut self, handler: &Arc<str>, own: &Arc<str>, given: HeldName) {
        self.changes += 1;
        self.owners.insert(given.name.clone(), handler.clone());
        let before = self.given.entry(handler.clone()).or_default().insert(own.clone(), given);
        if let Some(before) = before {
            self.owners.remove(&before.name);
        }
    }

    /// Returns all assigned names.
    pub(super) fn assigned_names(&self, named: NamedKind) -> impl Iterator<Item = AssignedName> {
        self.given.iter().flat_map(move |(handler, given)| {
            given.iter().map(move |(own, HeldName { name, wish })| AssignedName {
                named,
                handler: handler.clone(),
                own: own.clone(),
                name: name.clone(),
                asked: wish.asked.clone(),
                prefix: wish.prefix,
            })
        })
    }

    /// Restores an earlier assignment, if the name is free.
    pub(super) fn restore(&mut self, given: AssignedName) {
        let AssignedName { handler, own, name, asked, prefix, .. } = given;
        if self.is_free(&name) {
            self.set(&handler, &own, HeldName { name, wish: NamePreference { asked, prefix } });
        }
    }

    /// Forgets names that are not offered any more, if there are too many. Names from the manifest stay.
    pub(super) fn trim<'a>(&mut self, handler: &str, offered: impl Iterator<Item = &'a Arc<str>>) {
        let count = self.given.get(handler).map_or(0, HashMap::len);
        if count <= REMEMBERED {
            return;
        }
        let offered: HashSet<_> = offered.collect();
        if count > offered.len() + offered.len().max(REMEMBERED) {
            self.retain(handler, |own, wish| offered.contains(own) || wish.asked.is_some());
        }
    }

    fn is_free(&self, name: &str) -> bool {
        (self.rule == NameRule::Uri || is_legal(name)) && !self.owners.contains_key(name)
    }

    fn choose(&self, handler: &str, own: &Arc<str>, wish: &NamePreference) -> Result<Arc<str>, NameConflict> {
        let name = wish.asked.as_ref().unwrap_or(own);
        match wish.prefix {
            PrefixPolicy::Always if wish.asked.is_none() => {}
            PrefixPolicy::Never => {
                return self.untaken(match self.rule {
                    NameRule::Word => legalized(name).into(),
                    NameRule::Uri => name.clone(),
                });
            }
            PrefixPolicy::OnClash | PrefixPolicy::Always if self.is_free(name) => return Ok(name.clone()),
            PrefixPolicy::OnClash | PrefixPolicy::Always => {}
        }
        match self.rule {
            NameRule::Word => Ok(self.prefixed(handler, name)),
            NameRule::Uri => self.untaken(qualified(&qualifier(handler), name).into()),
        }
    }

    /// Returns the name if it is free.
    fn untaken(&self, name: Arc<str>) -> Result<Arc<str>, NameConflict> {
        match self.owners.get(&name).cloned() {
            Some(by) => Err(NameConflict { name, by }),
            None => Ok(name),
        }
    }

    fn prefixed(&self, handler: &str, name: &str) -> Arc<str> {
        let full = format!("{handler}_{name}");
        let legal = legalized(&full);
        if self.is_free(&legal) {
            return legal.into();
        }
        // Different names may have the same legal form, which the hash distinguishes. If the hashed form is taken too,
        // the next hash is tried.
        let hashed = (0..).map(|attempt| with_hash(&legal, &format!("{full}{}", "#".repeat(attempt))));
        hashed.into_iter().find(|name| self.is_free(name)).unwrap_or(legal).into()
    }
}
