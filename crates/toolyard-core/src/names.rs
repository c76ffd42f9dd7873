//! Published names of tools and prompts, and published URIs of resources and templates.
//!
//! A tool keeps its own name if that is legal and free; otherwise it is called `{handler}_{tool}`. A handler's
//! [`PrefixPolicy`] may change that, and an override may give a full name, which takes precedence over all others and
//! is reserved while its tool is away.
//!
//! A name that looks like one of another handler (`good_echo` beside a handler `good`) is always `{handler}_{tool}`,
//! unless an override gives it: see `namespace`.
//!
//! A resource keeps its own URI, or gets its handler in it: see `qualifier`. A URI that names another handler always gets
//! its own.
//!
//! A name stays with its tool while the gateway runs: names that a model has learnt, and that a policy contains, do not
//! change because another server came up. Only the manifest changes a name: by a handler's prefix, by an override, or
//! by removing the handler ([`NameRegistry::forget`]). Names follow the order of the manifest: those that a handler gets
//! for the first time while one before it is still connecting for the first time are provisional.

mod legal;
mod namespace;
mod qualifier;
mod table;

use std::collections::HashSet;
use std::sync::Arc;

pub(crate) use self::legal::hash;
pub(crate) use self::namespace::HandlerNamespaces;
use self::table::{NamePreference, NameTable};
use crate::backend::{BackendPhase, Catalog};
use crate::overrides::Override;
use crate::registry::{EntryKind, HandlerEntry, PublishNotice};

pub use self::legal::{MAX_LENGTH, is_legal, with_site_hash};
pub(crate) use self::qualifier::{is_ui, qualified, qualifier, unqualified};
pub(crate) use self::table::NameConflict;

/// The rule for prefixing names with their handler. URIs are qualified after a clash only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PrefixPolicy {
    /// If the own name is taken or illegal.
    #[default]
    OnClash,
    /// Always.
    Always,
    /// Never: an illegal name is replaced by a similar legal one, and an item with a taken name is not published.
    Never,
}

/// All assigned names. Tools and prompts have separate names, because they are called by different methods.
#[derive(Debug)]
pub struct NameRegistry {
    tools: NameTable,
    prompts: NameTable,
    resources: NameTable,
    templates: NameTable,
    /// Handlers of this assembly.
    namespaces: Arc<HandlerNamespaces>,
    /// Notices of the last assembly, so that each is logged once.
    reported_notices: HashSet<PublishNotice>,
}

/// An assigned name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedName {
    /// Kind of the item.
    pub named: NamedKind,
    /// Handler of the item.
    pub handler: Arc<str>,
    /// The server's own name.
    pub own: Arc<str>,
    /// The published name.
    pub name: Arc<str>,
    /// Name from an override at the time of assignment.
    pub asked: Option<Arc<str>>,
    /// Prefix policy at the time of assignment.
    pub prefix: PrefixPolicy,
}

/// The kinds of items with names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
}

// === impl NameRegistry ===

impl Default for NameRegistry {
    fn default() -> Self {
        Self {
            tools: NameTable::default(),
            prompts: NameTable::default(),
            resources: NameTable::of_uris(),
            templates: NameTable::of_uris(),
            namespaces: Arc::default(),
            reported_notices: HashSet::new(),
        }
    }
}

impl NameRegistry {
    /// Returns every assigned name, to be stored beyond the end of the process. URIs are not stored.
    pub fn assigned_names(&self) -> impl Iterator<Item = AssignedName> {
        let tables = [(NamedKind::Tool, &self.tools), (NamedKind::Prompt, &self.prompts)];
        tables.into_iter().flat_map(|(named, table)| table.assigned_names(named))
    }

    /// Restores earlier assignments of handlers that still exist.
    #[must_use]
    pub fn restored(given: impl IntoIterator<Item = AssignedName>, is_there: impl Fn(&str) -> bool) -> Self {
        let mut names = Self::default();
        for given in given.into_iter().filter(|given| is_there(&given.handler)) {
            let table = match given.named {
                NamedKind::Tool => &mut names.tools,
                NamedKind::Prompt => &mut names.prompts,
            };
            table.restore(given);
        }
        names
    }

    /// Returns a number that grows with every assigned or released name.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.tools.changes + self.prompts.changes
    }

    /// Returns `true` if tools or prompts of a handler have names, or had some in an earlier run.
    #[must_use]
    pub fn has_names(&self, handler: &str) -> bool {
        [&self.tools, &self.prompts].into_iter().any(|table| table.has_names(handler))
    }

    /// Releases the names of a handler. To be called when the manifest no longer has it, before the next assembly;
    /// never for a handler whose server is down and may return.
    pub fn forget(&mut self, handler: &str) {
        EntryKind::ALL.into_iter().for_each(|kind| self.table(kind).forget(handler));
    }

    /// Begins an assembly of these handlers, in the order of the manifest: its current preferences override remembered
    /// names, and names from overrides are assigned first.
    pub(crate) fn begin<'a>(&mut self, handlers: impl Iterator<Item = &'a HandlerEntry> + Clone) {
        let namespaces = Arc::new(HandlerNamespaces::of(handlers.clone().map(|handler| &handler.name)));
        self.namespaces = namespaces.clone();
        for handler in handlers.clone() {
            for kind in EntryKind::ALL {
                self.table(kind).retain(&handler.name, |own, given_for| {
                    wish(&namespaces, handler, kind, own).as_ref() == Some(given_for)
                });
            }
        }
        for handler in handlers {
            for own in handler.overrides.keys() {
                if let Some(wish) = wish(&namespaces, handler, EntryKind::Tools, own) {
                    self.tools.claim(&handler.name, own, wish);
                }
            }
        }
    }

    /// Returns the name of an item, assigning one if necessary.
    ///
    /// # Errors
    /// If the name is taken and the handler accepts no other.
    pub(crate) fn give(
        &mut self,
        kind: EntryKind,
        handler: &HandlerEntry,
        own: &Arc<str>,
    ) -> Result<Arc<str>, NameConflict> {
        match wish(&self.namespaces, handler, kind, own) {
            Some(wish) => self.table(kind).give(&handler.name, own, wish),
            // Hidden items are skipped before.
            None => Ok(own.clone()),
        }
    }

    /// Returns the name from an override that another tool has, if this is the reason for `name`.
    pub(crate) fn missed(
        &self,
        kind: EntryKind,
        handler: &HandlerEntry,
        own: &str,
        name: &str,
    ) -> Option<NameConflict> {
        let asked = wish(&self.namespaces, handler, kind, own)?.asked.filter(|asked| **asked != *name)?;
        let by = self.tools.owners.get(&asked)?.clone();
        Some(NameConflict { name: asked, by })
    }

    /// Returns the imitated handler, if this is the reason for the prefix.
    pub(crate) fn imitated(&self, kind: EntryKind, handler: &HandlerEntry, own: &str) -> Option<Arc<str>> {
        let wish = wish(&self.namespaces, handler, kind, own)?;
        let is_forced = wish.asked.is_none() && handler.prefix != PrefixPolicy::Always;
        imitated(&self.namespaces, handler, kind, own).filter(|_| is_forced).cloned()
    }

    /// Forgets names that a handler does not offer any more, if there are too many.
    pub(crate) fn trim(&mut self, handler: &HandlerEntry, catalog: &Catalog) {
        if catalog.phase == BackendPhase::Ready {
            let own = &catalog.own;
            let tools = own.iter().flat_map(|own| own.tools.iter().flatten()).chain(&catalog.tools);
            self.tools.trim(&handler.name, tools.map(|tool| &tool.name));
            let prompts = own.iter().flat_map(|own| own.prompts.iter().flatten()).chain(&catalog.prompts);
            self.prompts.trim(&handler.name, prompts.map(|prompt| &prompt.key));
            let resources =
                own.iter().flat_map(|own| own.resources.iter().flatten()).chain(&catalog.resources);
            self.resources.trim(&handler.name, resources.map(|resource| &resource.key));
            let templates =
                own.iter().flat_map(|own| own.templates.iter().flatten()).chain(&catalog.templates);
            self.templates.trim(&handler.name, templates.map(|template| template.uri.text()));
        }
    }

    /// Returns the namespaces of the handlers of this assembly.
    pub(crate) const fn namespaces(&self) -> &Arc<HandlerNamespaces> {
        &self.namespaces
    }

    /// Returns notices that the last assembly did not have: all of them after the first assembly, then the changes.
    pub(crate) fn new_notices<'a>(&mut self, notices: &'a [PublishNotice]) -> Vec<&'a PublishNotice> {
        let new_notices = notices.iter().filter(|notice| !self.reported_notices.contains(notice)).collect();
        self.reported_notices = notices.iter().cloned().collect();
        new_notices
    }

    const fn table(&mut self, kind: EntryKind) -> &mut NameTable {
        match kind {
            EntryKind::Tools => &mut self.tools,
            EntryKind::Prompts => &mut self.prompts,
            EntryKind::Resources => &mut self.resources,
            EntryKind::Templates => &mut self.templates,
        }
    }
}

/// Returns the manifest's preference for a name; `None` for hidden items.
fn wish(
    namespaces: &HandlerNamespaces,
    handler: &HandlerEntry,
    kind: EntryKind,
    own: &str,
) -> Option<NamePreference> {
    let changed = handler.overrides.get(own).filter(|_| kind == EntryKind::Tools);
    let asked = match changed {
        Some(Override::Hide) => return None,
        Some(Override::Change(change)) => change.name.clone(),
        None => None,
    };
    let prefix = match (kind, handler.prefix) {
        _ if asked.is_none() && imitated(namespaces, handler, kind, own).is_some() => PrefixPolicy::Always,
        (EntryKind::Resources | EntryKind::Templates, PrefixPolicy::Always) => PrefixPolicy::OnClash,
        (_, prefix) => prefix,
    };
    Some(NamePreference { asked, prefix })
}

/// Returns the other handler that the own name of an item imitates.
fn imitated<'a>(
    namespaces: &'a HandlerNamespaces,
    handler: &HandlerEntry,
    kind: EntryKind,
    own: &str,
) -> Option<&'a Arc<str>> {
    let owner = match kind {
        _ if handler.is_builtin => None,
        EntryKind::Tools | EntryKind::Prompts => namespaces.owner_of(own),
        EntryKind::Resources | EntryKind::Templates => namespaces.owner_of_uri(own),
    };
    owner.filter(|owner| **owner != handler.name)
}

#[cfg(test)]
mod tests;
