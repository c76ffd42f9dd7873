//! The current map: name -> owner and limits, for all that can be called. A snapshot: a call resolves its
//! name once, in one.

use std::collections::HashMap;
use std::collections::hash_map;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Backend, Catalog, Phase};
use crate::call::{Reference, Target};
use crate::error::{Code, ToolError};
use crate::gate::Gate;
use crate::json::{Json, Object};
use crate::names::Names;
use crate::tool::Tool;
use crate::uri_template::UriTemplate;

/// A handler of the manifest, built: a backend with its name and its limits.
#[derive(Clone)]
pub struct Handler {
    /// The name in the manifest.
    pub name: Arc<str>,
    /// Who runs its calls.
    pub backend: Arc<dyn Backend>,
    /// What its calls may take.
    pub limits: Arc<Limits>,
}

/// What the calls of one handler may take.
#[derive(Debug)]
pub struct Limits {
    /// The time of one call.
    pub timeout: Duration,
    /// How many run at once.
    pub gate: Gate,
}

/// One thing that can be called.
pub struct Entry {
    /// What callers call it by: a name, a URI, or the text of a template.
    pub name: Arc<str>,
    /// What its owner calls it by. It differs only where that was taken or illegal.
    pub own: Arc<str>,
    /// The tool, where it is one.
    pub tool: Option<Arc<Tool>>,
    /// Its owner.
    pub handler: Handler,
}

/// Everything there is at one moment, in the order of the manifest.
#[derive(Default)]
pub struct Registry {
    tools: Part,
    prompts: Part,
    resources: Part,
    templates: Part,
    /// Which URIs the templates stand for, in their order.
    patterns: Vec<(UriTemplate, Arc<Entry>)>,
    phases: Vec<(Arc<str>, Phase)>,
    settled: bool,
}

/// Everything of one kind.
struct Part {
    listed: Vec<Arc<Entry>>,
    by_name: HashMap<Arc<str>, Arc<Entry>>,
    list: Json,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
    /// Templates of resources.
    Templates,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];
}

impl Default for Part {
    fn default() -> Self {
        Self { listed: Vec::new(), by_name: HashMap::new(), list: Json::array([]) }
    }
}

impl Registry {
    /// Brings what all handlers offer under unique names. Of two things of one handler that share a
    /// name, the first one counts. What a handler that is not ready offers is not listed, but found:
    /// who has learnt the names is told that it is unavailable, not that it does not exist.
    #[must_use]
    pub fn assemble(parts: &[(Handler, Arc<Catalog>)], names: &mut Names) -> Self {
        let mut building = Building::default();
        for (handler, catalog) in parts {
            building.add(handler, catalog, |tool| names.give(&handler.name, tool));
        }
        building.finish()
    }

    /// What one handler offers, under its own names.
    #[must_use]
    pub fn of(handler: &Handler, catalog: &Catalog) -> Self {
        let mut building = Building::default();
        building.add(handler, catalog, Arc::clone);
        building.finish()
    }

    /// What a call is to reach.
    ///
    /// # Errors
    /// [`Code::ToolNotFound`], [`Code::PromptNotFound`] or [`Code::ResourceNotFound`].
    pub fn resolve(&self, target: &Target) -> Result<&Arc<Entry>, ToolError> {
        match target {
            Target::Tool(name) => self.tool(name),
            Target::Prompt(name) | Target::Completion(Reference::Prompt(name)) => {
                let unknown = || ToolError::new(Code::PromptNotFound, format!("Unknown prompt: {name}"));
                self.prompts.by_name.get(name).ok_or_else(unknown)
            }
            Target::Resource(uri) => self.resource(uri).ok_or_else(|| unknown_resource(uri)),
            Target::Completion(Reference::Template(text)) => {
                // Clients may ask about a plain URI, too.
                let template = self.templates.by_name.get(text).or_else(|| self.resource(text));
                template.ok_or_else(|| unknown_resource(text))
            }
        }
    }

    /// The tool that is called by this name.
    ///
    /// # Errors
    /// [`Code::ToolNotFound`].
    pub fn tool(&self, name: &str) -> Result<&Arc<Entry>, ToolError> {
        self.tools.by_name.get(name).ok_or_else(|| ToolError::unknown_tool(name))
    }

    /// Who has the resource of this URI: whoever lists it, else whose template fits.
    #[must_use]
    pub fn resource(&self, uri: &str) -> Option<&Arc<Entry>> {
        let templated = || self.patterns.iter().find(|(pattern, _)| pattern.matches(uri).is_some());
        self.resources.by_name.get(uri).or_else(|| templated().map(|(_, entry)| entry))
    }

    /// Everything of one kind that is listed, in the order of the manifest and of its owner.
    #[must_use]
    pub fn entries(&self, kind: Kind) -> &[Arc<Entry>] {
        &self.part(kind).listed
    }

    /// Everything of one kind that a call finds, in no order: also what is not listed because its handler is not ready.
    pub fn known(&self, kind: Kind) -> impl Iterator<Item = &Arc<Entry>> {
        self.part(kind).by_name.values()
    }

    /// The definitions of everything of one kind that is listed, under their published names: an array, written
    /// once, so that a list of thousands costs a reader nothing but the sending.
    #[must_use]
    pub const fn list(&self, kind: Kind) -> &Json {
        &self.part(kind).list
    }

    const fn part(&self, kind: Kind) -> &Part {
        match kind {
            Kind::Tools => &self.tools,
            Kind::Prompts => &self.prompts,
            Kind::Resources => &self.resources,
            Kind::Templates => &self.templates,
        }
    }

    /// Whether the handlers have had their time to answer. A registry that was not assembled yet has no
    /// tools, and nobody should conclude anything from that.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.settled
    }

    /// How each handler is, in the order of the manifest.
    #[must_use]
    pub fn phases(&self) -> &[(Arc<str>, Phase)] {
        &self.phases
    }
}

fn unknown_resource(uri: &str) -> ToolError {
    ToolError::new(Code::ResourceNotFound, format!("Resource not found: {uri}"))
}

/// A registry in the making.
#[derive(Default)]
struct Building {
    registry: Registry,
    tools: Definitions,
    prompts: Definitions,
    resources: Definitions,
    templates: Definitions,
}

type Definitions = Vec<Json>;

impl Building {
    fn add(&mut self, handler: &Handler, catalog: &Catalog, mut name_of: impl FnMut(&Arc<str>) -> Arc<str>) {
        let listed = catalog.phase == Phase::Ready;
        let Self { registry, .. } = self;
        registry.phases.push((handler.name.clone(), catalog.phase.clone()));
        let entry = |name: Arc<str>, own: &Arc<str>, tool: Option<&Arc<Tool>>| {
            Arc::new(Entry { name, own: own.clone(), tool: tool.cloned(), handler: handler.clone() })
        };
        for tool in &catalog.tools {
            let entry = entry(name_of(&tool.name), &tool.name, Some(tool));
            registry.tools.add(&entry, &tool.definition, "name", listed.then_some(&mut self.tools));
        }
        for prompt in &catalog.prompts {
            let entry = entry(name_of(&prompt.key), &prompt.key, None);
            registry.prompts.add(&entry, &prompt.definition, "name", listed.then_some(&mut self.prompts));
        }
        for resource in &catalog.resources {
            let entry = entry(resource.key.clone(), &resource.key, None);
            registry.resources.add(
                &entry,
                &resource.definition,
                "uri",
                listed.then_some(&mut self.resources),
            );
        }
        for template in &catalog.templates {
            let entry = entry(template.uri.text().clone(), template.uri.text(), None);
            let list = listed.then_some(&mut self.templates);
            registry.templates.add(&entry, &template.definition, "uriTemplate", list);
            registry.patterns.push((template.uri.clone(), entry));
        }
    }

    fn finish(mut self) -> Registry {
        self.registry.tools.list = Json::array(&self.tools);
        self.registry.prompts.list = Json::array(&self.prompts);
        self.registry.resources.list = Json::array(&self.resources);
        self.registry.templates.list = Json::array(&self.templates);
        self.registry.settled = true;
        self.registry
    }
}

impl Part {
    /// Adds an entry, and what its owner says of it where it is to be listed: with what callers call it by in
    /// the place of the owner's word for it.
    fn add(&mut self, entry: &Arc<Entry>, definition: &Object, member: &str, list: Option<&mut Definitions>) {
        let hash_map::Entry::Vacant(place) = self.by_name.entry(entry.name.clone()) else {
            tracing::warn!(handler = %entry.handler.name, name = %entry.own, "offered twice: the first one counts");
            return;
        };
        place.insert(entry.clone());
        let Some(list) = list else { return };
        self.listed.push(entry.clone());
        list.push(match entry.name == entry.own {
            true => definition.to_json(),
            false => definition.clone().with(member, Json::string(&entry.name)).to_json(),
        });
    }
}
