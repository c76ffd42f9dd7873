//! The current map: name -> tool, owner, limits. A snapshot: a call resolves its name once, in one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Backend, Catalog, Phase};
use crate::error::ToolError;
use crate::gate::Gate;
use crate::json::Json;
use crate::names::Names;
use crate::tool::Tool;

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

/// One tool in the registry.
pub struct Entry {
    /// The name that callers use. It differs from the owner's only where that was taken or illegal.
    pub name: Arc<str>,
    /// The tool.
    pub tool: Arc<Tool>,
    /// Its owner.
    pub handler: Handler,
}

impl Entry {
    /// What the owner says of the tool, with the name that callers use in the place of the owner's.
    fn definition(&self) -> Json {
        let definition = &self.tool.definition;
        if self.name == self.tool.name {
            return definition.to_json();
        }
        definition.clone().with("name", Json::string(&self.name)).to_json()
    }
}

/// Every tool there is at one moment, in the order of the manifest.
pub struct Registry {
    entries: Vec<Arc<Entry>>,
    by_name: HashMap<Arc<str>, Arc<Entry>>,
    phases: Vec<(Arc<str>, Phase)>,
    list: Json,
    settled: bool,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            by_name: HashMap::new(),
            phases: Vec::new(),
            list: Json::array([]),
            settled: false,
        }
    }
}

impl Registry {
    /// Brings what all handlers offer under unique names. Of two tools of one handler that share a
    /// name, the first one counts. The tools of a handler that is not ready are not listed, but found:
    /// who has learnt their names is told that they are unavailable, not that they do not exist.
    #[must_use]
    pub fn assemble(parts: &[(Handler, Arc<Catalog>)], names: &mut Names) -> Self {
        let mut registry = Self { settled: true, ..Self::default() };
        for (handler, catalog) in parts {
            registry.phases.push((handler.name.clone(), catalog.phase.clone()));
            for tool in &catalog.tools {
                let name = names.give(&handler.name, &tool.name);
                let entry = Entry { name, tool: tool.clone(), handler: handler.clone() };
                registry.add(entry, catalog.phase == Phase::Ready);
            }
        }
        registry.list =
            Json::array(&registry.entries.iter().map(|entry| entry.definition()).collect::<Vec<_>>());
        registry
    }

    fn add(&mut self, entry: Entry, listed: bool) {
        let entry = Arc::new(entry);
        if self.by_name.contains_key(&entry.name) {
            tracing::warn!(handler = %entry.handler.name, tool = %entry.tool.name, "offered twice: the first one counts");
            return;
        }
        self.by_name.insert(entry.name.clone(), entry.clone());
        if listed {
            self.entries.push(entry);
        }
    }

    /// The tool that is called by this name.
    ///
    /// # Errors
    /// [`crate::Code::ToolNotFound`].
    pub fn resolve(&self, name: &str) -> Result<&Arc<Entry>, ToolError> {
        self.by_name.get(name).ok_or_else(|| ToolError::unknown_tool(name))
    }

    /// Every listed tool, in the order of the manifest and of its owner.
    #[must_use]
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The definitions of all listed tools under their published names: an array, written once, so that a list
    /// of thousands costs a reader nothing but the sending.
    #[must_use]
    pub const fn list(&self) -> &Json {
        &self.list
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
