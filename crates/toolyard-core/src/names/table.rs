//! The names of one kind of things.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::legal::{is_legal, legalized, with_hash};
use super::qualifier::qualifier;
use super::{Given, Named, Prefix};

/// How many things that a handler does not offer any more are remembered at least. A server could go on offering
/// new ones for ever.
pub(super) const REMEMBERED: usize = 1000;

/// A name that somebody else has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) name: Arc<str>,
    /// The handler that has it.
    pub(crate) by: Arc<str>,
}

/// What may be a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Rule {
    /// What models can call.
    #[default]
    Word,
    /// A URI, or a template of URIs, as its owner has it.
    Uri,
}

/// The names of one kind.
#[derive(Debug, Default)]
pub(super) struct Table {
    rule: Rule,
    /// By handler, then by what that calls it.
    pub(super) given: HashMap<Arc<str>, HashMap<Arc<str>, Has>>,
    /// The handler that has a name.
    pub(super) owners: HashMap<Arc<str>, Arc<str>>,
    /// How often one was given or became free.
    pub(super) changes: u64,
}

#[derive(Debug)]
pub(super) struct Has {
    name: Arc<str>,
    /// What the manifest wanted when it was given.
    wish: Wish,
}

/// What the manifest says of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    /// The name that an override asks for.
    pub(super) asked: Option<Arc<str>>,
    pub(super) prefix: Prefix,
}

// === impl Table ===

impl Table {
    /// No URIs yet.
    pub(super) fn of_uris() -> Self {
        Self { rule: Rule::Uri, ..Self::default() }
    }

    /// Keeps some of a handler's names, and gives the others free.
    pub(super) fn retain(&mut self, handler: &str, keep: impl Fn(&Arc<str>, &Wish) -> bool) {
        let Self { given, owners, changes, rule: _ } = self;
        let Some(given) = given.get_mut(handler) else { return };
        given.retain(|own, given| {
            let kept = keep(own, &given.wish);
            if !kept {
                owners.remove(&given.name);
                *changes += 1;
            }
            kept
        });
    }

    /// Gives all names of a handler free.
    pub(super) fn forget(&mut self, handler: &str) {
        self.retain(handler, |_, _| false);
        self.given.remove(handler);
    }

    /// Gives a tool the name that is asked for, if that is free.
    pub(super) fn claim(&mut self, handler: &Arc<str>, own: &Arc<str>, wish: Wish) {
        if let Some(name) = wish.asked.clone().filter(|name| self.is_free(name)) {
            self.set(handler, own, Has { name, wish });
        }
    }

    /// The name that a tool has, or a new one.
    pub(super) fn give(&mut self, handler: &Arc<str>, own: &Arc<str>, wish: Wish) -> Result<Arc<str>, Taken> {
        if let Some(given) = self.given.get(handler).and_then(|given| given.get(own)) {
            return Ok(given.name.clone());
        }
        let name = self.choose(handler, own, &wish)?;
        self.set(handler, own, Has { name: name.clone(), wish });
        Ok(name)
    }

    fn set(&mut self, handler: &Arc<str>, own: &Arc<str>, given: Has) {
        self.changes += 1;
        self.owners.insert(given.name.clone(), handler.clone());
        let before = self.given.entry(handler.clone()).or_default().insert(own.clone(), given);
        if let Some(before) = before {
            self.owners.remove(&before.name);
        }
    }

    /// Everything that was given.
    pub(super) fn given(&self, named: Named) -> impl Iterator<Item = Given> {
        self.given.iter().flat_map(move |(handler, given)| {
            given.iter().map(move |(own, Has { name, wish })| Given {
                named,
                handler: handler.clone(),
                own: own.clone(),
                name: name.clone(),
                asked: wish.asked.clone(),
                prefix: wish.prefix,
            })
        })
    }

    /// Gives a name as it was given before, if it is free.
    pub(super) fn restore(&mut self, given: Given) {
        let Given { handler, own, name, asked, prefix, .. } = given;
        if self.is_free(&name) {
            self.set(&handler, &own, Has { name, wish: Wish { asked, prefix } });
        }
    }

    /// Lets go of what is not offered any more, if that has become too much to remember. What the manifest asks for is
    /// not the server's to lose.
    pub(super) fn trim<'a>(&mut self, handler: &str, offered: impl ExactSizeIterator<Item = &'a Arc<str>>) {
        let given = self.given.get(handler).map_or(0, HashMap::len);
        if given > offered.len() + offered.len().max(REMEMBERED) {
            let offered: HashSet<_> = offered.collect();
            self.retain(handler, |own, wish| offered.contains(own) || wish.asked.is_some());
        }
    }

    fn is_free(&self, name: &str) -> bool {
        (self.rule == Rule::Uri || is_legal(name)) && !self.owners.contains_key(name)
    }

    fn choose(&self, handler: &str, own: &Arc<str>, wish: &Wish) -> Result<Arc<str>, Taken> {
        let name = wish.asked.as_ref().unwrap_or(own);
        match wish.prefix {
            Prefix::Always if wish.asked.is_none() => {}
            Prefix::Never => {
                return self.untaken(match self.rule {
                    Rule::Word => legalized(name).into(),
                    Rule::Uri => name.clone(),
                });
            }
            Prefix::OnClash | Prefix::Always if self.is_free(name) => return Ok(name.clone()),
            Prefix::OnClash | Prefix::Always => {}
        }
        match self.rule {
            Rule::Word => Ok(self.prefixed(handler, name)),
            Rule::Uri => self.untaken(format!("{}{name}", qualifier(handler)).into()),
        }
    }

    /// This name, if nothing has it.
    fn untaken(&self, name: Arc<str>) -> Result<Arc<str>, Taken> {
        match self.owners.get(&name).cloned() {
            Some(by) => Err(Taken { name, by }),
            None => Ok(name),
        }
    }

    fn prefixed(&self, handler: &str, name: &str) -> Arc<str> {
        let full = format!("{handler}_{name}");
        let legal = legalized(&full);
        if self.is_free(&legal) {
            return legal.into();
        }
        // Two different names may become one when they are made legal: a hash tells them apart. Where
        // somebody's own name happens to be that one, the next hash is tried.
        let hashed = (0..).map(|attempt| with_hash(&legal, &format!("{full}{}", "#".repeat(attempt))));
        hashed.into_iter().find(|name| self.is_free(name)).unwrap_or(legal).into()
    }
}
