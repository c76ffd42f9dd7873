//! The documents of tools for the ranking.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolyard_core::registry::EntryKind;
use toolyard_core::{Registry, RegistryEntry, Tool};

/// A tool under its published name. It does not keep the tool's handler alive.
#[derive(Debug, Clone)]
pub(super) struct IndexedTool {
    name: Arc<str>,
    /// The server's own name, if the published one is that with the server's name in front.
    own: Option<Arc<str>>,
    tool: Arc<Tool>,
}

/// Compares definitions, because a tool with an override is created anew with each registry.
impl PartialEq for IndexedTool {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && (Arc::ptr_eq(&self.tool, &other.tool) || self.tool == other.tool)
    }
}

/// Groups the advertised tools by their handlers, without those of the handler `own`.
pub(super) fn by_handler(registry: &Registry, own: &str) -> BTreeMap<Arc<str>, Vec<IndexedTool>> {
    let mut handlers: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let entries = registry.entries(EntryKind::Tools).iter();
    for entry in entries.filter(|entry| &*entry.handler.name != own) {
        let tools = handlers.entry(entry.handler.name.clone()).or_default();
        tools.extend(IndexedTool::of(entry));
    }
    handlers
}

impl IndexedTool {
    fn of(entry: &RegistryEntry) -> Option<Self> {
        let tool = entry.tool.clone()?;
        let unprefixed =
            entry.name.strip_prefix(&*entry.handler.name).and_then(|rest| rest.strip_prefix('_'));
        let own = (unprefixed == Some(&*entry.own)).then(|| entry.own.clone());
        Some(Self { name: entry.name.clone(), own, tool })
    }

    /// Returns the published name.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the document of the tool for the ranking.
    pub(super) fn ranked(&self) -> toolyard_rank::ToolDocument {
        let definition = self.tool.definition.to_json().to_value();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        // The server is indexed separately, so a prefix would count twice. A name that an operator chose is indexed
        // unchanged.
        let name = self.own.as_ref().unwrap_or(&self.name);
        toolyard_rank::ToolDocument {
            key: self.name.to_string(),
            name: name.to_string(),
            title: text(&definition["title"]).or_else(|| text(&definition["annotations"]["title"])),
            description: text(&definition["description"]).unwrap_or_default(),
            parameters: toolyard_rank::schema_parameters(&definition["inputSchema"]),
        }
    }
}
