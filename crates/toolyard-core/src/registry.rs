//! The current map: name -> owner and limits, for all that can be called. A snapshot: a call resolves its
//! name once, in one.

mod assemble;
mod disclosure;
mod listing;
mod remark;
#[cfg(test)]
mod tests;
mod unlisted;
mod uri;
mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::access::{Price, Scope};
use crate::backend::{Backend, Phase};
use crate::cache::CacheHint;
use crate::call::{Caller, Reference, Target, Task};
use crate::error::{Code, ToolError};
use crate::function;
use crate::gate::Gate;
use crate::json::Json;
use crate::names::Prefix;
use crate::overrides::{Additions, Chunking, Overrides};
use crate::secrets::Secrets;
use crate::tool::Tool;
use crate::uri_template::UriTemplate;

pub use disclosure::{Disclosure, Show};
pub use listing::Listing;
pub use remark::{Remark, What};
use unlisted::Unlisted;
pub(crate) use uri::qualify_contents;

/// A handler of the manifest, built: a backend with its name and its limits.
#[derive(Clone)]
pub struct Handler {
    /// The name in the manifest.
    pub name: Arc<str>,
    /// Who runs its calls.
    pub backend: Arc<dyn Backend>,
    /// What its calls may take.
    pub limits: Arc<Limits>,
    /// When its name stands before those of its tools and prompts.
    pub prefix: Prefix,
    /// What is changed about its tools.
    pub overrides: Arc<Overrides>,
    /// What a call costs of what has no price of its own. `None`: what its backend says.
    pub price: Option<Price>,
    /// What people call it, where the manifest says so.
    pub display_name: Option<Arc<str>>,
    /// What it is for, where the manifest says so.
    pub description: Option<Arc<str>>,
    /// What becomes of large results of tools of which nothing is said.
    pub chunking: Chunking,
    /// What is kept out of what is said of it.
    pub secrets: Secrets,
    /// What is shown of all tools, where some of this handler's find the others.
    pub disclosure: Option<Arc<Disclosure>>,
}

impl Handler {
    /// A handler whose tools are published as its backend offers them.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, backend: Arc<dyn Backend>, limits: Limits) -> Self {
        Self {
            name: name.into(),
            backend,
            limits: Arc::new(limits),
            prefix: Prefix::default(),
            overrides: Arc::default(),
            price: None,
            display_name: None,
            description: None,
            chunking: Chunking::default(),
            secrets: Secrets::default(),
            disclosure: None,
        }
    }
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
    /// What its owner calls it by. It differs where that was taken or illegal, or the manifest wants it to.
    pub own: Arc<str>,
    /// The tool as it is published, the name apart, where it is one.
    pub tool: Option<Arc<Tool>>,
    /// What is put into the arguments of its calls.
    pub additions: Option<Arc<Additions>>,
    /// What a call costs. `None`: what its owner says.
    pub price: Option<Price>,
    /// What becomes of its large results.
    pub chunking: Chunking,
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
    /// Which URIs the templates stand for, in their order, as their owners have them.
    patterns: Vec<(UriTemplate, Arc<Entry>)>,
    unlisted: Unlisted,
    phases: Vec<(Arc<str>, Phase)>,
    /// The handlers that say how long their lists may be kept.
    hints: Vec<(Arc<str>, [Option<CacheHint>; 4])>,
    remarks: Vec<Remark>,
    settled: bool,
    /// The handler that says what is shown of all tools, and what it says.
    discloses: Option<(Arc<str>, Arc<Disclosure>)>,
    /// The tools that are shown if not all are, once somebody has asked.
    shown: OnceLock<Option<Listing>>,
    /// What of it exists for callers with these scopes, made when the first of them asks.
    views: Mutex<HashMap<Scope, Arc<Registry>>>,
}

/// Everything of one kind.
#[derive(Default)]
struct Part {
    listing: Listing,
    by_name: HashMap<Arc<str>, Arc<Entry>>,
    hint: Option<CacheHint>,
}

/// Scopes whose views are kept. Each is one that an operator has written down.
const MOST_VIEWS: usize = 256;

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

impl Registry {
    /// The registry as a caller sees it: what it may not use does not exist.
    #[must_use]
    pub fn seen_by(registry: Arc<Self>, caller: &Caller) -> Arc<Self> {
        let Some(scope) = caller.grant.as_ref().map(|grant| &grant.scope) else { return registry };
        if scope.is_everything() {
            return registry;
        }
        let mut views = registry.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = views.get(scope) {
            return view.clone();
        }
        if views.len() >= MOST_VIEWS {
            views.clear();
        }
        let view = Arc::new(registry.view(scope));
        views.insert(scope.clone(), view.clone());
        view
    }

    /// What a call is to reach. Functions are not here: see [`Functions`](crate::Functions).
    ///
    /// # Errors
    /// [`Code::ToolNotFound`], [`Code::PromptNotFound`] or [`Code::ResourceNotFound`].
    pub fn resolve(&self, target: &Target) -> Result<&Arc<Entry>, ToolError> {
        match target {
            Target::Tool(name) => self.tool(name),
            Target::Task(Task { tool, handler, .. }) => {
                let entry = self.tool(tool)?;
                let is_owner = entry.handler.name == *handler;
                is_owner.then_some(entry).ok_or_else(|| ToolError::unknown_tool(tool))
            }
            Target::Prompt(name) | Target::Completion(Reference::Prompt(name)) => {
                let unknown = || ToolError::new(Code::PromptNotFound, format!("Unknown prompt: {name}"));
                self.prompts.by_name.get(name).ok_or_else(unknown)
            }
            Target::Resource(uri) => self.resource(uri).ok_or_else(|| unknown_resource(uri)),
            Target::Function(name) => Err(function::unknown(name)),
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

    /// Who has the resource of this URI: whoever lists it, else whose template fits, else who may have it though nobody
    /// says so.
    #[must_use]
    pub fn resource(&self, uri: &str) -> Option<&Arc<Entry>> {
        let fits = |(pattern, entry): &&(UriTemplate, Arc<Entry>)| {
            entry.own_uri(uri).is_some_and(|own| pattern.matches(own).is_some())
        };
        let templated = || self.patterns.iter().find(fits).map(|(_, entry)| entry);
        self.resources.by_name.get(uri).or_else(templated).or_else(|| self.unlisted.find(uri))
    }

    /// Everything of one kind that is listed, in the order of the manifest and of its owner.
    #[must_use]
    pub fn entries(&self, kind: Kind) -> &[Arc<Entry>] {
        self.part(kind).listing.entries()
    }

    /// The same, as it is listed where all is.
    #[must_use]
    pub const fn all(&self, kind: Kind) -> &Listing {
        &self.part(kind).listing
    }

    /// The same, each with its definition under its published name.
    pub fn listed(&self, kind: Kind) -> impl Iterator<Item = (&Arc<Entry>, &Json)> {
        self.part(kind).listing.iter()
    }

    /// Everything of one kind that a call finds, in no order: also what is not listed because its handler is not ready.
    pub fn known(&self, kind: Kind) -> impl Iterator<Item = &Arc<Entry>> {
        self.part(kind).by_name.values()
    }

    /// Who runs what can be called, each once.
    pub fn backends(&self) -> impl Iterator<Item = &Arc<dyn Backend>> {
        let entries = Kind::ALL.into_iter().flat_map(|kind| self.known(kind));
        let by_name: HashMap<_, _> =
            entries.map(|entry| (&entry.handler.name, &entry.handler.backend)).collect();
        by_name.into_values()
    }

    /// The definitions of everything of one kind that is listed, under their published names: an array, written
    /// once, so that a list of thousands costs a reader nothing but the sending.
    #[must_use]
    pub const fn list(&self, kind: Kind) -> &Json {
        self.part(kind).listing.json()
    }

    /// How long that list may be kept, and for whom, by what the handlers say that it is made of; `None` where none of
    /// them says so.
    #[must_use]
    pub const fn hint(&self, kind: Kind) -> Option<CacheHint> {
        self.part(kind).hint
    }

    /// Brings together what the handlers say of how long their lists may be kept. One with an empty list counts too:
    /// that it has nothing may be kept no longer than what others have.
    fn bring_hints_together(&mut self) {
        for kind in Kind::ALL {
            let said = self.hints.iter().filter_map(|(_, hints)| hints[kind as usize]);
            self.part_mut(kind).hint = said.reduce(CacheHint::and);
        }
    }

    /// Notes whose resources begin how.
    fn learn_origins(&mut self) {
        self.unlisted.learn(self.resources.by_name.values().chain(self.templates.by_name.values()));
    }

    const fn part_mut(&mut self, kind: Kind) -> &mut Part {
        match kind {
            Kind::Tools => &mut self.tools,
            Kind::Prompts => &mut self.prompts,
            Kind::Resources => &mut self.resources,
            Kind::Templates => &mut self.templates,
        }
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

    /// What is not published as it is offered, or as the manifest wants it, and why.
    #[must_use]
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }
}

fn unknown_resource(uri: &str) -> ToolError {
    ToolError::new(Code::ResourceNotFound, format!("Resource not found: {uri}"))
}
