//! Which name a tool or a prompt is called by, and which URI a resource or a template.
//!
//! A tool is called what its owner calls it as long as that is legal and free; else
//! `{handler}_{tool}`. A handler's [`Prefix`] may say otherwise, and an override may name a tool in full: such
//! a name goes before all others, and is kept for its tool also while that is not there.
//!
//! A resource has the URI that its owner gives it, or that with its handler in front: see `qualifier`.
//!
//! A name once given stays with its tool while the gateway runs: what a model has learnt, and what a policy
//! names, does not change because another server came up. Only the manifest changes it: with a handler's prefix, with an
//! override, or by removing the handler ([`Names::forget`]).

mod legal;
mod qualifier;
mod table;

use std::collections::HashSet;
use std::sync::Arc;

use self::table::{Table, Wish};
use crate::backend::{Catalog, Phase};
use crate::overrides::Override;
use crate::registry::{Handler, Kind, Remark};

pub use self::legal::{MAX_LENGTH, is_legal};
pub(crate) use self::qualifier::qualifier;
pub(crate) use self::table::Taken;

/// When the name of a handler stands before those of its tools and prompts. Before URIs it never stands but on a clash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Prefix {
    /// Where the owner's name is taken or illegal.
    #[default]
    OnClash,
    /// Before each of them.
    Always,
    /// Before none: what has no legal name of its own gets one that is near to it, and what has the same name
    /// as something else is not published.
    Never,
}

/// The names that were given out, and to whom. Tools and prompts have each their own: they are called by
/// different methods.
#[derive(Debug)]
pub struct Names {
    tools: Table,
    prompts: Table,
    resources: Table,
    templates: Table,
    /// What was remarked at the last assembly, so that it is said once.
    remarked: HashSet<Remark>,
}

/// A name, and to whom it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// What is called by it.
    pub named: Named,
    /// Whose that is.
    pub handler: Arc<str>,
    /// What its owner calls it.
    pub own: Arc<str>,
    /// What callers call it.
    pub name: Arc<str>,
    /// The name that the manifest asked for when it was given.
    pub asked: Option<Arc<str>>,
    /// What the manifest said of prefixes then.
    pub prefix: Prefix,
}

/// What has a name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
}

// === impl Names ===

impl Default for Names {
    fn default() -> Self {
        Self {
            tools: Table::default(),
            prompts: Table::default(),
            resources: Table::of_uris(),
            templates: Table::of_uris(),
            remarked: HashSet::new(),
        }
    }
}

impl Names {
    /// Every name that was given out, for whoever keeps them beyond the end of the process. URIs last as long as that.
    pub fn given(&self) -> impl Iterator<Item = Given> {
        let tables = [(Named::Tool, &self.tools), (Named::Prompt, &self.prompts)];
        tables.into_iter().flat_map(|(named, table)| table.given(named))
    }

    /// Gives names out as they were before. Only those of handlers that there are: others will not come to claim theirs.
    #[must_use]
    pub fn restored(given: impl IntoIterator<Item = Given>, is_there: impl Fn(&str) -> bool) -> Self {
        let mut names = Self::default();
        for given in given.into_iter().filter(|given| is_there(&given.handler)) {
            let table = match given.named {
                Named::Tool => &mut names.tools,
                Named::Prompt => &mut names.prompts,
            };
            table.restore(given);
        }
        names
    }

    /// A number that grows with every name that is given out or becomes free.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.tools.changes + self.prompts.changes
    }

    /// Gives the names of a handler free. To be called when a manifest does not have it any more, before the next
    /// assembly; never for a handler whose server is gone and may come back.
    pub fn forget(&mut self, handler: &str) {
        Kind::ALL.into_iter().for_each(|kind| self.table(kind).forget(handler));
    }

    /// Begins an assembly of these handlers, in the order of the manifest: what that wants now wins over what is
    /// remembered, and the names that it asks for are given first.
    pub(crate) fn begin<'a>(&mut self, handlers: impl Iterator<Item = &'a Handler> + Clone) {
        for handler in handlers.clone() {
            for kind in Kind::ALL {
                self.table(kind).retain(&handler.name, |own, given_for| {
                    wish(handler, kind, own).as_ref() == Some(given_for)
                });
            }
        }
        for handler in handlers {
            for own in handler.overrides.keys() {
                if let Some(wish) = wish(handler, Kind::Tools, own) {
                    self.tools.claim(&handler.name, own, wish);
                }
            }
        }
    }

    /// The name of something of a handler: the one that it has, or a new one.
    ///
    /// # Errors
    /// When it is taken, and the handler wants no other.
    pub(crate) fn give(&mut self, kind: Kind, handler: &Handler, own: &Arc<str>) -> Result<Arc<str>, Taken> {
        match wish(handler, kind, own) {
            Some(wish) => self.table(kind).give(&handler.name, own, wish),
            // What is hidden does not come here.
            None => Ok(own.clone()),
        }
    }

    /// The name that the manifest asks for and that another tool has, where that is why this one has `name`.
    pub(crate) fn missed(&self, kind: Kind, handler: &Handler, own: &str, name: &str) -> Option<Taken> {
        let asked = wish(handler, kind, own)?.asked.filter(|asked| **asked != *name)?;
        let by = self.tools.owners.get(&asked)?.clone();
        Some(Taken { name: asked, by })
    }

    /// Lets go of what a handler does not offer any more, if that has become too much to remember.
    pub(crate) fn trim(&mut self, handler: &Handler, catalog: &Catalog) {
        if catalog.phase == Phase::Ready {
            self.tools.trim(&handler.name, catalog.tools.iter().map(|tool| &tool.name));
            self.prompts.trim(&handler.name, catalog.prompts.iter().map(|prompt| &prompt.key));
            self.resources.trim(&handler.name, catalog.resources.iter().map(|resource| &resource.key));
            self.templates.trim(&handler.name, catalog.templates.iter().map(|template| template.uri.text()));
        }
    }

    /// What was not remarked the last time. The first assembly remarks everything, the next one what has changed.
    pub(crate) fn news<'a>(&mut self, remarks: &'a [Remark]) -> Vec<&'a Remark> {
        let news = remarks.iter().filter(|remark| !self.remarked.contains(remark)).collect();
        self.remarked = remarks.iter().cloned().collect();
        news
    }

    const fn table(&mut self, kind: Kind) -> &mut Table {
        match kind {
            Kind::Tools => &mut self.tools,
            Kind::Prompts => &mut self.prompts,
            Kind::Resources => &mut self.resources,
            Kind::Templates => &mut self.templates,
        }
    }
}

/// What the manifest says of the name of something; `None` where it is to have none.
fn wish(handler: &Handler, kind: Kind, own: &str) -> Option<Wish> {
    let changed = handler.overrides.get(own).filter(|_| kind == Kind::Tools);
    let asked = match changed {
        Some(Override::Hide) => return None,
        Some(Override::Change(change)) => change.name.clone(),
        None => None,
    };
    let prefix = match (kind, handler.prefix) {
        (Kind::Resources | Kind::Templates, Prefix::Always) => Prefix::OnClash,
        (_, prefix) => prefix,
    };
    Some(Wish { asked, prefix })
}

#[cfg(test)]
mod tests;
