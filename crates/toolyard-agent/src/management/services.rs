//! The servers as a caller sees them.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use toolyard_core::nearest::{did_you_mean, nearest_entries, nearest_names};
use toolyard_core::registry::{EntryKind, RegistryEntry};
use toolyard_core::{BackendPhase, Json, Registry};

use super::args::{excerpt, server_name};
use super::listing::{ServerFilter, ServerListing};
use super::manager::ServerManager;
use crate::summary::SummarySource;

/// Maximum number of tool names in the summary of a server. Its details have all of them.
const MAX_NAMES: usize = 100;

/// Maximum number of names that a "not found" message suggests.
const MAX_SUGGESTED: usize = 20;

/// A server with those of its tools that the caller sees.
pub(super) struct VisibleServer<'a> {
    pub(super) name: &'a Arc<str>,
    phase: &'a BackendPhase,
    tools: Vec<&'a Arc<RegistryEntry>>,
}

/// All servers, in the order of the manifest.
pub(super) struct ServerDirectory<'a> {
    registry: &'a Registry,
    servers: &'a dyn ServerManager,
}

/// A tool in the answer of `mcp_get_service_details`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolDetail<'a> {
    name: &'a str,
    description: String,
    /// JSON Schema as a text, the form that agents know.
    parameters_schema: String,
}

impl<'a> ServerDirectory<'a> {
    /// Returns the servers of a registry.
    pub(super) const fn of(registry: &'a Registry, servers: &'a dyn ServerManager) -> Self {
        Self { registry, servers }
    }

    fn phases(&self) -> impl Iterator<Item = &'a (Arc<str>, BackendPhase)> {
        self.registry.phases().iter().filter(|(name, _)| !self.servers.is_own(name))
    }

    /// Returns the servers that match a filter, in the order of the manifest.
    pub(super) fn listings(
        &self,
        filter: &ServerFilter,
        added: &[Arc<str>],
        summaries: &dyn SummarySource,
    ) -> Vec<ServerListing<'a>> {
        let advertised = grouped(self.registry.entries(EntryKind::Tools));
        let mut away = grouped(self.registry.callable_entries(EntryKind::Tools));
        away.values_mut().for_each(|tools| sort_by_name(tools));
        let service = |(name, phase): &'a (Arc<str>, BackendPhase)| {
            let tools = advertised.get(&**name).or_else(|| away.get(&**name)).cloned().unwrap_or_default();
            VisibleServer { name, phase, tools }.summary(added, summaries)
        };
        self.phases().map(service).filter(|server| filter.matches(server)).collect()
    }

    /// Returns the server of a name, ignoring case.
    ///
    /// # Errors
    /// Returns the message for the model if there is no such server.
    pub(super) fn find(&self, name: &str) -> Result<VisibleServer<'a>, String> {
        let requested = server_name(name);
        let Some((name, phase)) = self.phases().find(|(name, _)| **name == *requested) else {
            let names: Vec<_> = self.phases().map(|(name, _)| &**name).collect();
            let near = nearest_names(&requested, names.iter().copied());
            let others = match (names.is_empty(), near.is_empty()) {
                (true, _) => " There are no servers.".to_owned(),
                (false, true) => format!(" {}", name_list("Servers", names.into_iter())),
                (false, false) => did_you_mean(&near),
            };
            return Err(format!("Server '{}' not found.{others}", excerpt(&requested)));
        };
        let is_its = |entry: &&Arc<RegistryEntry>| entry.handler.name == *name;
        let mut tools: Vec<_> = self.registry.entries(EntryKind::Tools).iter().filter(is_its).collect();
        if tools.is_empty() {
            tools = self.registry.callable_entries(EntryKind::Tools).filter(is_its).collect();
            sort_by_name(&mut tools);
        }
        Ok(VisibleServer { name, phase, tools })
    }
}

/// Groups tools by the names of their handlers.
fn grouped<'a>(
    entries: impl IntoIterator<Item = &'a Arc<RegistryEntry>>,
) -> HashMap<&'a str, Vec<&'a Arc<RegistryEntry>>> {
    let mut tools = HashMap::<_, Vec<_>>::new();
    for entry in entries {
        tools.entry(&*entry.handler.name).or_default().push(entry);
    }
    tools
}

/// Sorts by name tools that are not advertised, which come in no order.
fn sort_by_name(tools: &mut [&Arc<RegistryEntry>]) {
    tools.sort_by(|one, other| one.name.cmp(&other.name));
}

impl<'a> VisibleServer<'a> {
    fn summary(&self, added: &[Arc<str>], summaries: &dyn SummarySource) -> ServerListing<'a> {
        let names: Vec<&str> = self.tools.iter().map(|entry| &**entry.service_name()).collect();
        let handler = self.tools.first().map(|entry| &entry.handler);
        let summary = match handler {
            Some(handler) => summaries.of(handler, &names),
            None => "Has no tools now.".to_owned(),
        };
        ServerListing {
            server_name: self.name,
            display_name: handler.and_then(|handler| handler.display_name.clone()),
            summary: Some(summary),
            tool_count: names.len(),
            tool_names: Some(names.into_iter().take(MAX_NAMES).collect()),
            added_at_run_time: added.iter().any(|added| **added == **self.name),
            available: (*self.phase != BackendPhase::Ready).then_some(false),
        }
    }

    /// Returns the JSON array that describes its tools, or one of them.
    ///
    /// # Errors
    /// As [`VisibleServer::tool`].
    pub(super) fn details(&self, tool: Option<&str>) -> Result<String, String> {
        let details: Vec<_> = match tool {
            Some(tool) => vec![ToolDetail::of(self.tool(tool)?)],
            None => self.tools.iter().map(|entry| ToolDetail::of(entry)).collect(),
        };
        Ok(serde_json::to_string(&details).unwrap_or_default())
    }

    /// Returns the tool of a name: a published name, or else the server's own name; first with, then without regard to
    /// case.
    ///
    /// # Errors
    /// Returns the message for the model if no tool or more than one matches.
    pub(super) fn tool(&self, name: &str) -> Result<&'a Arc<RegistryEntry>, String> {
        let name = name.trim();
        let exact = |own: bool| {
            let is_it =
                move |entry: &&&Arc<RegistryEntry>| **(if own { &entry.own } else { &entry.name }) == *name;
            self.tools.iter().find(is_it)
        };
        if let Some(entry) = exact(false).or_else(|| exact(true)) {
            return Ok(entry);
        }
        let lower = name.to_lowercase();
        let fits = |entry: &&&Arc<RegistryEntry>| {
            [&entry.name, &entry.own].iter().any(|it| it.to_lowercase() == lower)
        };
        match *self.tools.iter().filter(fits).collect::<Vec<_>>() {
            [entry] => Ok(entry),
            [] => Err(self.no_such_tool(name)),
            ref several => Err(self.no_tool(name, several.iter().map(|entry| &*entry.name))),
        }
    }

    /// Returns the message about a tool that does not exist, with the most similar ones, or else with the first ones.
    fn no_such_tool(&self, name: &str) -> String {
        let near = nearest_entries(name, self.tools.iter().copied());
        let near: Vec<_> = near.into_iter().map(|entry| entry.service_name()).collect();
        match near.is_empty() {
            true => self.no_tool(name, self.tools.iter().map(|entry| &**entry.service_name())),
            false => {
                let question = did_you_mean(&near);
                format!("No tool named '{}' found on server '{}'.{question}", excerpt(name), self.name)
            }
        }
    }

    fn no_tool<'b>(&self, name: &str, others: impl ExactSizeIterator<Item = &'b str>) -> String {
        if *self.phase != BackendPhase::Ready && self.tools.is_empty() {
            return format!("Server '{}' is not available now, so that its tools are not known.", self.name);
        }
        let no_tool = format!("No tool named '{}' found on server '{}'.", excerpt(name), self.name);
        if others.len() == 0 { no_tool } else { format!("{no_tool} {}", name_list("Tools", others)) }
    }
}

impl<'a> ToolDetail<'a> {
    fn of(entry: &'a RegistryEntry) -> Self {
        let tool = entry.tool.as_ref();
        let description = tool.and_then(|tool| tool.definition.get_str("description"));
        let schema = tool.and_then(|tool| tool.input_schema());
        Self {
            name: entry.service_name(),
            description: description.unwrap_or_default().into_owned(),
            parameters_schema: schema.map_or(r#"{"type":"object"}"#, Json::as_text).to_owned(),
        }
    }
}

/// Lists the names that exist, for a model that asked for another one.
fn name_list<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    let more = names.len().saturating_sub(MAX_SUGGESTED);
    let shortlist = names[..names.len() - more].join(", ");
    if more == 0 { format!("{what}: {shortlist}.") } else { format!("{what}: {shortlist} and {more} more.") }
}
