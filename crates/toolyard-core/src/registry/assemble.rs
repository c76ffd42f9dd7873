//! From what handlers offer to a registry.

use std::collections::{HashSet, hash_map};
use std::sync::Arc;

use super::{Entry, Handler, Kind, Part, Registry, Remark, What};
use crate::backend::{Catalog, Phase};
use crate::json::{Json, Object};
use crate::names::{Names, Taken};
use crate::overrides::{Override, Published};
use crate::tool::Tool;

impl Registry {
    /// Brings what all handlers offer under unique names, and overrides what the manifest wants otherwise. Of two
    /// things of one handler that share a name, the first one counts. What a handler that is not ready offers is not
    /// listed, but found: who has learnt the names is told that it is unavailable, not that it does not exist.
    ///
    /// `parts` are the handlers in the order of the manifest. `names` is to be kept from one assembly to the next: see
    /// [`Names::forget`] for the handlers that do not come back.
    #[must_use]
    pub fn assemble(parts: &[(Handler, Arc<Catalog>)], names: &mut Names) -> Self {
        names.begin(parts.iter().map(|(handler, _)| handler));
        let mut building = Building::default();
        for (handler, catalog) in parts {
            building.add(handler, catalog, &mut Naming::Unique(names));
            names.trim(handler, catalog);
        }
        let registry = building.finish();
        names.news(&registry.remarks).into_iter().for_each(Remark::log);
        registry
    }

    /// What one handler offers, under its own names: nothing is renamed, and the caller has seen to it that nothing
    /// is offered twice.
    #[must_use]
    pub fn of(handler: &Handler, catalog: &Catalog) -> Self {
        let mut building = Building::default();
        building.add(handler, catalog, &mut Naming::Own);
        building.finish()
    }
}

/// Where names come from.
enum Naming<'a> {
    /// Everything is called what its owner calls it.
    Own,
    Unique(&'a mut Names),
}

/// A registry in the making.
#[derive(Default)]
struct Building {
    registry: Registry,
}

/// Something that is to be published.
struct Offer<'a> {
    kind: Kind,
    own: &'a Arc<str>,
    definition: &'a Object,
    tool: Option<&'a Published>,
}

impl Building {
    fn add(&mut self, handler: &Handler, catalog: &Catalog, naming: &mut Naming<'_>) {
        self.registry.phases.push((handler.name.clone(), catalog.phase.clone()));
        if let Some(disclosure) = &handler.disclosure {
            self.registry.discloses = Some((handler.name.clone(), disclosure.clone()));
        }
        let listed = catalog.phase == Phase::Ready;
        if listed && catalog.hints.iter().any(Option::is_some) {
            self.registry.hints.push((handler.name.clone(), catalog.hints));
        }
        for tool in &catalog.tools {
            self.add_tool(handler, tool, listed, naming);
        }
        if listed {
            self.remark_missing(handler, catalog);
        }
        for prompt in &catalog.prompts {
            let (own, definition) = (&prompt.key, &prompt.definition);
            self.publish(handler, Offer { kind: Kind::Prompts, own, definition, tool: None }, listed, naming);
        }
        for resource in &catalog.resources {
            let (own, definition) = (&resource.key, &resource.definition);
            let offer = Offer { kind: Kind::Resources, own, definition, tool: None };
            self.publish(handler, offer, listed, naming);
        }
        if catalog.unlisted {
            self.registry.unlisted.add(handler);
        }
        for template in &catalog.templates {
            let (own, definition) = (template.uri.text(), &template.definition);
            let offer = Offer { kind: Kind::Templates, own, definition, tool: None };
            if let Some(entry) = self.publish(handler, offer, listed, naming) {
                self.registry.patterns.push((template.uri.clone(), entry));
            }
        }
    }

    fn add_tool(&mut self, handler: &Handler, tool: &Arc<Tool>, listed: bool, naming: &mut Naming<'_>) {
        let published = match handler.overrides.get(&tool.name) {
            None => Published::unchanged(tool),
            Some(Override::Change(change)) => change.publish(tool),
            Some(Override::Hide) => return self.remark(handler, Kind::Tools, &tool.name, What::Hidden),
        };
        let offer = Offer {
            kind: Kind::Tools,
            own: &tool.name,
            definition: &published.tool.definition,
            tool: Some(&published),
        };
        if self.publish(handler, offer, listed, naming).is_some() {
            for argument in published.unknown {
                self.remark(handler, Kind::Tools, &tool.name, What::NoArgument(argument));
            }
        }
    }

    /// What is overridden and is not there.
    fn remark_missing(&mut self, handler: &Handler, catalog: &Catalog) {
        if handler.overrides.is_empty() {
            return;
        }
        let offered: HashSet<_> = catalog.tools.iter().map(|tool| &tool.name).collect();
        for own in handler.overrides.keys().filter(|own| !offered.contains(own)) {
            self.remark(handler, Kind::Tools, own, What::NotOffered);
        }
    }

    /// Adds an entry for an offer, if it has a name that nothing else has.
    fn publish(
        &mut self,
        handler: &Handler,
        offer: Offer<'_>,
        listed: bool,
        naming: &mut Naming<'_>,
    ) -> Option<Arc<Entry>> {
        let Offer { kind, own, definition, tool } = offer;
        let name = self.name(handler, kind, own, naming)?;
        let entry = Arc::new(Entry {
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
            let what = if twice { What::Twice } else { What::Taken { name, by, instead: None } };
            self.remark(handler, kind, own, what);
            return None;
        }
        if listed {
            part.listing.push(entry.clone(), written(&entry, kind, definition));
        }
        Some(entry)
    }

    /// What something is called; `None` where it cannot be published.
    fn name(
        &mut self,
        handler: &Handler,
        kind: Kind,
        own: &Arc<str>,
        naming: &mut Naming<'_>,
    ) -> Option<Arc<str>> {
        let Naming::Unique(names) = naming else { return Some(own.clone()) };
        match names.give(kind, handler, own) {
            Ok(name) => {
                if let Some(Taken { name: asked, by }) = names.missed(kind, handler, own, &name) {
                    let what = What::Taken { name: asked, by, instead: Some(name.clone()) };
                    self.remark(handler, kind, own, what);
                }
                Some(name)
            }
            Err(Taken { name, by }) => {
                self.remark(handler, kind, own, What::Taken { name, by, instead: None });
                None
            }
        }
    }

    fn remark(&mut self, handler: &Handler, kind: Kind, own: &Arc<str>, what: What) {
        self.registry.remarks.push(Remark { handler: handler.name.clone(), kind, own: own.clone(), what });
    }

    fn finish(mut self) -> Registry {
        Kind::ALL.into_iter().for_each(|kind| self.registry.part_mut(kind).listing.write());
        self.registry.bring_hints_together();
        self.registry.learn_origins();
        self.registry.settled = true;
        self.registry
    }
}

/// A definition as it is listed: with what callers call it by in the place of the owner's word for it.
fn written(entry: &Entry, kind: Kind, definition: &Object) -> Json {
    let member = match kind {
        Kind::Tools | Kind::Prompts => "name",
        Kind::Resources => "uri",
        Kind::Templates => "uriTemplate",
    };
    match entry.name == entry.own {
        true => definition.to_json(),
        false => definition.clone().with(member, Json::string(&entry.name)).to_json(),
    }
}

impl Part {
    /// Adds an entry.
    ///
    /// # Errors
    /// Gives the entry that has the name.
    fn add(&mut self, entry: &Arc<Entry>) -> Result<(), Arc<Entry>> {
        match self.by_name.entry(entry.name.clone()) {
            hash_map::Entry::Occupied(other) => Err(other.get().clone()),
            hash_map::Entry::Vacant(place) => {
                place.insert(entry.clone());
                Ok(())
            }
        }
    }
}
