//! What the ranker is told of the tools in a registry.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolyard_core::registry::Kind;
use toolyard_core::{Entry, Registry, Tool};

/// Deeper parameters are not read.
const DEEPEST: usize = 3;

/// A tool under its published name. It does not hold the tool's owner, which may go.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    name: Arc<str>,
    own: Arc<str>,
    tool: Arc<Tool>,
}

/// A tool that an override changes is another one each time that the registry is made, with the same definition.
impl PartialEq for Listed {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && (Arc::ptr_eq(&self.tool, &other.tool) || self.tool == other.tool)
    }
}

/// The tools that are listed, by their handlers, without those of the handler `own`.
pub(super) fn by_handler(registry: &Registry, own: &str) -> BTreeMap<Arc<str>, Vec<Listed>> {
    let mut handlers: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let entries = registry.entries(Kind::Tools).iter();
    for entry in entries.filter(|entry| &*entry.handler.name != own) {
        let listed = handlers.entry(entry.handler.name.clone()).or_default();
        listed.extend(Listed::of(entry));
    }
    handlers
}

impl Listed {
    fn of(entry: &Entry) -> Option<Self> {
        let tool = entry.tool.clone()?;
        Some(Self { name: entry.name.clone(), own: entry.own.clone(), tool })
    }

    /// The tool as the ranker reads it.
    pub(super) fn ranked(&self) -> toolyard_rank::Tool {
        let definition = self.tool.definition.to_json().to_value();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let mut parameters = Vec::new();
        read_parameters(&definition["inputSchema"], 0, &mut parameters);
        // The server is read anyway: a prefix would say it twice. What an operator calls a tool is read as it is.
        let name = if self.name.ends_with(&*self.own) { &self.own } else { &self.name };
        toolyard_rank::Tool {
            key: self.name.to_string(),
            name: name.to_string(),
            title: text(&definition["title"]).or_else(|| text(&definition["annotations"]["title"])),
            description: text(&definition["description"]).unwrap_or_default(),
            parameters,
        }
    }
}

fn read_parameters(schema: &Value, depth: usize, into: &mut Vec<(String, String)>) {
    for (name, schema) in schema["properties"].as_object().into_iter().flat_map(Map::iter) {
        let description = schema["description"].as_str().unwrap_or_default();
        into.push((name.clone(), description.to_owned()));
        if depth < DEEPEST {
            read_parameters(schema, depth + 1, into);
        }
    }
}
