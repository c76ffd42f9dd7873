//! Assembles the catalogs of handlers into a registry.

use std::borrow::Cow;
use std::collections::{HashSet, hash_map};
use std::sync::Arc;

use super::{EntryKind, HandlerEntry, KindIndex, NoticeReason, PublishNotice, Registry, RegistryEntry};
use crate::backend::{BackendPhase, Catalog};
use crate::definition;
use crate::json::{Json, Object};
use crate::names::{NameConflict, NameRegistry};
use crate::overrides::{Override, PublishedTool};
use crate::tool::Tool;

impl Registry {
    /// Publishes the catalogs of all handlers under unique names, with overrides. Of two items of one handler with the
    /// same name the first one counts. Items of an unavailable handler are not listed, but found: callers that know
    /// their names are told that they are unavailable, not that they do not exist.
    ///
    /// `parts` are the handlers in the order of the manifest. `names` is kept from one assembly to the next: see
    /// [`NameRegistry::forget`] for removed handlers.
    #[must_use]
    pub fn assemble(parts: &[(HandlerEntry, Arc<Catalog>)], names: &mut NameRegistry) -> Self {
        names.begin(parts.iter().map(|(handler, _)| handler));
        let mut building = RegistryBuilder::default();
        for (handler, catalog) in parts {
            building.add(handler, catalog, &mut NameSource::Unique(names));
            building.add_own(handler, catalog, names);
            names.trim(handler, catalog);
        }
        building.registry.namespaces = names.namespaces().clone();
        let registry = building.finish();
        names.new_notices(&registry.notices).into_iter().for_each(PublishNotice::log);
        registry
    }

    /// Publishes the catalog of one handler under its own names, which the caller has checked for duplicates.
    #[must_use]
    pub fn of(handler: &HandlerEntry, catalog: &Catalog) -> Self {
        let mut building = RegistryBuilder::default();
        building.add(handler, catalog, &mut NameSource::Own);
        building.finish()
    }
}

/// The source of published names.
enum NameSource<'a> {
    /// The server's own names.
    Own,
    Unique(&'a mut NameRegistry),
}

/// A registry under construction.
#[derive(Default)]
struct RegistryBuilder {
    registry: Registry,
}

/// An item to be published.
struct CatalogItem<'a> {
    kind: EntryKind,
    own: &'a Arc<str>,
    definition: &'a Object,
    tool: Option<&'a PublishedTool>,
}

impl RegistryBuilder {
    fn add(&mut self, handler: &HandlerEntry, catalog: &Catalog, naming: &mut NameSource<'_>) {
        self.registry.phases.push((handler.name.clone(), catalog.phase.clone()));
        if let Some(version) = &catalog.version {
            self.registry.versions.push((handler.name.clone(), version.clone()));
        }
        if catalog.phase == BackendPhase::Connecting {
            self.registry.starting.push(handler.name.clone());
        }
        if let Some(disclosure) = &handler.disclosure {
            self.registry.discloses = Some((handler.name.clone(), disclosure.clone()));
        }
        if !handler.model_tools.is_empty() {
            self.registry.model_tools.push((handler.name.clone(), handler.model_tools));
        }
        let is_ready = catalog.phase == BackendPhase::Ready;
        // A server that has not answered yet may have the lists of its last run.
        let is_listed = is_ready || catalog.phase == BackendPhase::Connecting;
        if is_ready && catalog.hints.iter().any(Option::is_some) {
            self.registry.hints.push((handler.name.clone(), catalog.hints));
        }
        for tool in &catalog.tools {
            self.add_tool(handler, tool, is_listed, naming);
        }
        if is_ready {
            self.remark_missing(handler, catalog);
            for kind in EntryKind::ALL {
                for item in &catalog.left_out[kind as usize] {
                    self.remark(handler, kind, &item.name, NoticeReason::LeftOut(item.reason.clone()));
                }
            }
        }
        for prompt in &catalog.prompts {
            self.add_item(handler, EntryKind::Prompts, &prompt.key, &prompt.definition, is_listed, naming);
        }
        for resource in &catalog.resources {
            let (own, definition) = (&resource.key, &resource.definition);
            self.add_item(handler, EntryKind::Resources, own, definition, is_listed, naming);
        }
        if catalog.unlisted {
            self.registry.unlisted.add(handler);
        }
        for template in &catalog.templates {
            let (own, definition) = (template.uri.text(), &template.definition);
            let entry = self.add_item(handler, EntryKind::Templates, own, definition, is_listed, naming);
            if let Some(entry) = entry {
                self.registry.patterns.push((template.uri.clone(), entry));
            }
        }
    }

    /// Adds what single clients see of a handler. Notices are left out: any client could fill the log.
    fn add_own(&mut self, handler: &HandlerEntry, catalog: &Catalog, names: &mut NameRegistry) {
        for own in &catalog.own {
            let mut building = Self::default();
            let lists = Catalog { phase: catalog.phase.clone(), ..own.lists() };
            building.add(handler, &lists, &mut NameSource::Unique(names));
            let kinds = EntryKind::ALL.map(|kind| own.differs_in(kind));
            self.registry.add_own(&own.client, handler, kinds, building.registry);
        }
    }

    /// Adds an item other than a tool.
    fn add_item(
        &mut self,
        handler: &HandlerEntry,
        kind: EntryKind,
        own: &Arc<str>,
        definition: &Object,
        listed: bool,
        naming: &mut NameSource<'_>,
    ) -> Option<Arc<RegistryEntry>> {
        let repaired = match definition::repair(kind, definition) {
            Ok(repaired) => repaired,
            Err(reason) => {
                self.remark(handler, kind, own, NoticeReason::LeftOut(reason));
                return None;
            }
        };
        let valid = repaired.as_ref().map_or(definition, |repaired| &repaired.definition);
        let entry =
            self.publish(handler, CatalogItem { kind, own, definition: valid, tool: None }, listed, naming)?;
        if let Some(repaired) = repaired {
            self.remark(handler, kind, own, NoticeReason::Repaired(repaired.report));
        }
        Some(entry)
    }

    fn add_tool(
        &mut self,
        handler: &HandlerEntry,
        tool: &Arc<Tool>,
        listed: bool,
        naming: &mut NameSource<'_>,
    ) {
        let changes = handler.overrides.get(&tool.name);
        if let Some(Override::Hide) = changes {
            return self.remark(handler, EntryKind::Tools, &tool.name, NoticeReason::Hidden);
        }
        let (valid, repairs) = match tool.repaired() {
            Ok(None) => (tool, None),
            Ok(Some(repaired)) => (&repaired.tool, Some(&repaired.report)),
            Err(reason) => {
                let left_out = NoticeReason::LeftOut(reason.clone());
                return self.remark(handler, EntryKind::Tools, &tool.name, left_out);
            }
        };
        let published = match changes {
            Some(Override::Change(change)) => change.publish(valid),
            None | Some(Override::Hide) => PublishedTool::unchanged(valid),
        };
        // After the overrides, which refer to the server's own names.
        let published = if handler.renames_arguments { published.with_legal_arguments() } else { published };
        let offer = CatalogItem {
            kind: EntryKind::Tools,
            own: &tool.name,
            definition: &published.tool.definition,
            tool: Some(&published),
        };
        if self.publish(handler, offer, listed, naming).is_some() {
            for argument in published.unknown {
                self.remark(handler, EntryKind::Tools, &tool.name, NoticeReason::NoArgument(argument));
            }
            if let Some(repairs) = repairs {
                self.remark(handler, EntryKind::Tools, &tool.name, NoticeReason::Repaired(repairs.clone()));
            }
        }
    }

    /// Adds notices about overrides of missing tools.
    fn remark_missing(&mut self, handler: &HandlerEntry, catalog: &Catalog) {
        if handler.overrides.is_empty() {
            return;
        }
        let offered: HashSet<_> = catalog.tools.iter().map(|tool| &tool.name).collect();
        for own in handler.overrides.keys().filter(|own| !offered.contains(own)) {
            self.remark(handler, EntryKind::Tools, own, NoticeReason::NotOffered);
        }
    }

    /// Adds an entry for an item, if its name is free.
    fn publish(
        &mut self,
        handler: &HandlerEntry,
        offer: CatalogItem<'_>,
        listed: bool,
        naming: &mut NameSource<'_>,
    ) -> Option<Arc<RegistryEntry>> {
        let CatalogItem { kind, own, definition, tool } = offer;
        let name = self.name(handler, kind, own, naming)?;
        let entry = Arc::new(RegistryEntry {
            name,
            own: own.clone(),
            tool: tool.map(|published| published.tool.clone()),
            additions: tool.and_then(|published| published.additions.clone()),
            price: tool.and_then(|published| published.price).or(handler.price),
            chunking: tool.map(|published| published.chunking).unwrap_or_default().or(handler.chunking),
            handler: handler.clone(),
        });
        let part = self.registry.part_mut(kind);
        if let Err(other) = part.add(&entry) {
            let (name, by) = (entry.name.clone(), other.handler.name.clone());
            let twice = by == handler.name;
            let what =
                if twice { NoticeReason::Twice } else { NoticeReason::Taken { name, by, instead: None } };
            self.remark(handler, kind, own, what);
            return None;
        }
        if listed {
            part.listing.push(entry.clone(), published_definition(&entry, kind, definition));
        }
        Some(entry)
    }

    /// Returns the published name; `None` if the item cannot be published.
    fn name(
        &mut self,
        handler: &HandlerEntry,
        kind: EntryKind,
        own: &Arc<str>,
        naming: &mut NameSource<'_>,
    ) -> Option<Arc<str>> {
        let NameSource::Unique(names) = naming else { return Some(own.clone()) };
        match names.give(kind, handler, own) {
            Ok(name) => {
                if let Some(NameConflict { name: asked, by }) = names.missed(kind, handler, own, &name) {
                    let what = NoticeReason::Taken { name: asked, by, instead: Some(name.clone()) };
                    self.remark(handler, kind, own, what);
                }
                if let Some(other) = names.imitated(kind, handler, own) {
                    self.remark(handler, kind, own, NoticeReason::Imitates { other, instead: name.clone() });
                }
                Some(name)
            }
            Err(NameConflict { name, by }) => {
                self.remark(handler, kind, own, NoticeReason::Taken { name, by, instead: None });
                None
            }
        }
    }

    fn remark(&mut self, handler: &HandlerEntry, kind: EntryKind, own: &Arc<str>, what: NoticeReason) {
        // A server can repeat what it was told in the names of its items.
        let own = match handler.secrets.hide(own) {
            Cow::Borrowed(_) => own.clone(),
            Cow::Owned(hidden) => hidden.into(),
        };
        self.registry.notices.push(PublishNotice { handler: handler.name.clone(), kind, own, what });
    }

    fn finish(mut self) -> Registry {
        EntryKind::ALL.into_iter().for_each(|kind| self.registry.part_mut(kind).listing.write());
        self.registry.bring_hints_together();
        self.registry.learn_origins();
        self.registry.follow_tool_links();
        self.registry.settled = true;
        self.registry
    }
}

/// Returns a definition with the published name in place of the server's own.
fn published_definition(entry: &RegistryEntry, kind: EntryKind, definition: &Object) -> Json {
    let member = match kind {
        EntryKind::Tools | EntryKind::Prompts => "name",
        EntryKind::Resources => "uri",
        EntryKind::Templates => "uriTemplate",
    };
    match entry.name == entry.own {
        true => definition.to_json(),
        false => definition.clone().with(member, Json::string(&entry.name)).to_json(),
    }
}

impl KindIndex {
    /// Adds an entry.
    ///
    /// # Errors
    /// Returns the entry that has the name.
    fn add(&mut self, entry: &Arc<RegistryEntry>) -> Result<(), Arc<RegistryEntry>> {
        match self.by_name.entry(entry.name.clone()) {
            hash_map::Entry::Occupied(other) => Err(other.get().clone()),
            hash_map::Entry::Vacant(place) => {
                place.insert(entry.clone());
                Ok(())
            }
        }
    }
}
