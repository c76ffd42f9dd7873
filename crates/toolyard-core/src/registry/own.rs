//! The registries of single clients whose dedicated connections have lists of their own.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::{EncodedListing, EntryKind, HandlerEntry, KindIndex, Registry};
use crate::backend::{Catalog, OwnCatalog};
use crate::call::{Caller, ClientIdentity};

/// The registry of one client.
#[derive(Default)]
pub(super) struct OwnRegistry {
    /// The handlers with lists of their own for this client.
    parts: HashMap<Arc<str>, OwnPart>,
    /// The registry with these lists, created on first use.
    registry: OnceLock<Arc<Registry>>,
}

/// The lists of one handler.
struct OwnPart {
    /// `true` for each kind that differs, in the order of [`EntryKind::ALL`].
    kinds: [bool; 4],
    entries: Registry,
}

impl OwnCatalog {
    /// Returns the lists that differ as a catalog.
    pub(super) fn lists(&self) -> Catalog {
        Catalog {
            tools: self.tools.clone().unwrap_or_default(),
            prompts: self.prompts.clone().unwrap_or_default(),
            resources: self.resources.clone().unwrap_or_default(),
            templates: self.templates.clone().unwrap_or_default(),
            ..Catalog::default()
        }
    }
}

impl Registry {
    /// Returns `true` if a list may differ from that of other clients with the same rights.
    #[must_use]
    pub const fn is_of_one_client(&self) -> bool {
        self.is_of_one_client || !self.model_tools.is_empty()
    }

    /// Adds the lists of a handler for one client, of the `kinds` that differ.
    pub(super) fn add_own(
        &mut self,
        client: &ClientIdentity,
        handler: &HandlerEntry,
        kinds: [bool; 4],
        entries: Self,
    ) {
        let own = self.own.entry(client.clone()).or_default();
        own.parts.insert(handler.name.clone(), OwnPart { kinds, entries });
    }

    /// Returns what a caller sees if that differs from what all see.
    pub(super) fn own_registry(&self, caller: &Caller) -> Option<Arc<Self>> {
        if self.own.is_empty() {
            return None;
        }
        let own = self.own.get(&ClientIdentity::of(caller)?)?;
        Some(own.registry.get_or_init(|| Arc::new(self.with_own(&own.parts))).clone())
    }

    /// Returns this registry with other lists of some handlers.
    fn with_own(&self, parts: &HashMap<Arc<str>, OwnPart>) -> Self {
        let model_tools = self.model_tools.clone();
        let base = Self { settled: self.settled, is_of_one_client: true, model_tools, ..Self::default() };
        let (phases, hints, discloses) = (self.phases.clone(), self.hints.clone(), self.discloses.clone());
        let (unlisted, namespaces) = (self.unlisted.candidates(), self.namespaces.clone());
        let starting = self.starting.clone();
        let mut own = Self { phases, hints, discloses, unlisted, namespaces, starting, ..base };
        for kind in EntryKind::ALL {
            *own.part_mut(kind) = self.index_with_own(kind, parts);
        }
        let is_replaced = |handler: &str| replaces(parts, handler, EntryKind::Templates);
        let patterns = self.patterns.iter().filter(|(_, entry)| !is_replaced(&entry.handler.name));
        let own_patterns = parts.values().flat_map(|part| &part.entries.patterns);
        own.patterns = patterns.chain(own_patterns).cloned().collect();
        let names = own.tools.by_name.keys().filter(|name| !self.tools.by_name.contains_key(*name));
        own.own_tools = names.cloned().collect();
        own.bring_hints_together();
        own.learn_origins();
        own.follow_tool_links();
        own
    }

    /// Returns the entries of one kind, in the order of the manifest.
    fn index_with_own(&self, kind: EntryKind, parts: &HashMap<Arc<str>, OwnPart>) -> KindIndex {
        let base = self.part(kind);
        if parts.values().all(|part| !part.kinds[kind as usize]) {
            return KindIndex { listing: base.listing.clone(), by_name: base.by_name.clone(), hint: None };
        }
        let is_replaced = |handler: &str| replaces(parts, handler, kind);
        let others = base.by_name.iter().filter(|(_, entry)| !is_replaced(&entry.handler.name));
        let mut by_name: HashMap<_, _> = others.map(|(name, entry)| (name.clone(), entry.clone())).collect();
        let mut listing = EncodedListing::default();
        let mut entries = base.listing.iter().peekable();
        for (handler, _) in &self.phases {
            let own = parts.get(handler).filter(|part| part.kinds[kind as usize]);
            while let Some((entry, definition)) = entries.next_if(|(entry, _)| entry.handler.name == *handler)
            {
                if own.is_none() {
                    listing.push(entry.clone(), definition.clone());
                }
            }
            let Some(OwnPart { entries, .. }) = own else { continue };
            for (entry, definition) in entries.part(kind).listing.iter() {
                listing.push(entry.clone(), definition.clone());
            }
            by_name
                .extend(entries.part(kind).by_name.iter().map(|(name, entry)| (name.clone(), entry.clone())));
        }
        listing.write();
        KindIndex { listing, by_name, hint: None }
    }
}

fn replaces(parts: &HashMap<Arc<str>, OwnPart>, handler: &str, kind: EntryKind) -> bool {
    parts.get(handler).is_some_and(|part| part.kinds[kind as usize])
}
