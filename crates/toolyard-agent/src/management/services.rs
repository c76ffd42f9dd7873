//! The servers as a caller sees them.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use toolyard_core::registry::{Entry, Kind};
use toolyard_core::{Json, Phase, Registry};

use super::args::{server_name, shown};
use super::port::Servers;
use crate::summary::Summaries;

/// So many names of tools of a server are listed: who wants to know more asks for its details.
const MOST_NAMES: usize = 100;

/// So many names stand in a message that says that something is not there.
const MOST_SUGGESTED: usize = 20;

/// A server, with those of its tools that its caller sees.
pub(super) struct Service<'a> {
    pub(super) name: &'a Arc<str>,
    phase: &'a Phase,
    tools: Vec<&'a Arc<Entry>>,
}

/// All of them, in the order of the manifest.
pub(super) struct Services<'a> {
    registry: &'a Registry,
    servers: &'a dyn Servers,
}

/// A server as a model reads of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    server_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<Arc<str>>,
    summary: String,
    tool_count: usize,
    tool_names: Vec<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    added_at_run_time: bool,
    /// Said only where it is not so.
    #[serde(skip_serializing_if = "Option::is_none")]
    available: Option<bool>,
}

/// A tool as a model reads of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Detail<'a> {
    name: &'a str,
    description: String,
    /// The text of JSON, as agents of this kind have it.
    parameters_schema: String,
}

impl<'a> Services<'a> {
    /// Those of a registry.
    pub(super) const fn of(registry: &'a Registry, servers: &'a dyn Servers) -> Self {
        Self { registry, servers }
    }

    fn phases(&self) -> impl Iterator<Item = &'a (Arc<str>, Phase)> {
        self.registry.phases().iter().filter(|(name, _)| !self.servers.is_own(name))
    }

    /// What a model reads that asks which there are: a JSON array.
    pub(super) fn listed(&self, added: &[Arc<str>], summaries: &dyn Summaries) -> String {
        let listed = grouped(self.registry.entries(Kind::Tools));
        let mut away = grouped(self.registry.known(Kind::Tools));
        away.values_mut().for_each(|tools| in_order(tools));
        let service = |(name, phase): &'a (Arc<str>, Phase)| {
            let tools = listed.get(&**name).or_else(|| away.get(&**name)).cloned().unwrap_or_default();
            Service { name, phase, tools }.summary(added, summaries)
        };
        let summaries: Vec<_> = self.phases().map(service).collect();
        // Nothing in it can fail to be written.
        serde_json::to_string(&summaries).unwrap_or_default()
    }

    /// The server of a name, in whatever case.
    ///
    /// # Errors
    /// What a model reads where there is none.
    pub(super) fn find(&self, name: &str) -> Result<Service<'a>, String> {
        let wanted = server_name(name);
        let Some((name, phase)) = self.phases().find(|(name, _)| **name == *wanted) else {
            let names: Vec<_> = self.phases().map(|(name, _)| &**name).collect();
            let others = match names.is_empty() {
                true => "There are no servers.".to_owned(),
                false => named("Servers", names.into_iter()),
            };
            return Err(format!("Server '{}' not found. {others}", shown(&wanted)));
        };
        let is_its = |entry: &&Arc<Entry>| entry.handler.name == *name;
        let mut tools: Vec<_> = self.registry.entries(Kind::Tools).iter().filter(is_its).collect();
        if tools.is_empty() {
            tools = self.registry.known(Kind::Tools).filter(is_its).collect();
            in_order(&mut tools);
        }
        Ok(Service { name, phase, tools })
    }
}

/// Tools by the names of their handlers.
fn grouped<'a>(entries: impl IntoIterator<Item = &'a Arc<Entry>>) -> HashMap<&'a str, Vec<&'a Arc<Entry>>> {
    let mut tools = HashMap::<_, Vec<_>>::new();
    for entry in entries {
        tools.entry(&*entry.handler.name).or_default().push(entry);
    }
    tools
}

/// What is not listed comes in no order.
fn in_order(tools: &mut [&Arc<Entry>]) {
    tools.sort_by(|one, other| one.name.cmp(&other.name));
}

impl<'a> Service<'a> {
    fn summary(&self, added: &[Arc<str>], summaries: &dyn Summaries) -> Summary<'a> {
        let names: Vec<&str> = self.tools.iter().map(|entry| &*entry.name).collect();
        let handler = self.tools.first().map(|entry| &entry.handler);
        let summary = match handler {
            Some(handler) => summaries.of(handler, &names),
            None => "Has no tools now.".to_owned(),
        };
        Summary {
            server_name: self.name,
            display_name: handler.and_then(|handler| handler.display_name.clone()),
            summary,
            tool_count: names.len(),
            tool_names: names.into_iter().take(MOST_NAMES).collect(),
            added_at_run_time: added.iter().any(|added| **added == **self.name),
            available: (*self.phase != Phase::Ready).then_some(false),
        }
    }

    /// What a model reads that asks for its tools, or for one of them: a JSON array.
    ///
    /// # Errors
    /// As [`Service::tool`].
    pub(super) fn details(&self, tool: Option<&str>) -> Result<String, String> {
        let details: Vec<_> = match tool {
            Some(tool) => vec![Detail::of(self.tool(tool)?)],
            None => self.tools.iter().map(|entry| Detail::of(entry)).collect(),
        };
        Ok(serde_json::to_string(&details).unwrap_or_default())
    }

    /// The tool of a name: the one that callers have for it, else its server's own; as it is written, else in another case.
    ///
    /// # Errors
    /// What a model reads where there is none, or where several are meant.
    pub(super) fn tool(&self, name: &str) -> Result<&'a Arc<Entry>, String> {
        let name = name.trim();
        let exact = |own: bool| {
            let is_it = move |entry: &&&Arc<Entry>| **(if own { &entry.own } else { &entry.name }) == *name;
            self.tools.iter().find(is_it)
        };
        if let Some(entry) = exact(false).or_else(|| exact(true)) {
            return Ok(entry);
        }
        let lower = name.to_lowercase();
        let fits =
            |entry: &&&Arc<Entry>| [&entry.name, &entry.own].iter().any(|it| it.to_lowercase() == lower);
        match *self.tools.iter().filter(fits).collect::<Vec<_>>() {
            [entry] => Ok(entry),
            [] => Err(self.no_tool(name, self.tools.iter().map(|entry| &*entry.name))),
            ref several => Err(self.no_tool(name, several.iter().map(|entry| &*entry.name))),
        }
    }

    fn no_tool<'b>(&self, name: &str, others: impl ExactSizeIterator<Item = &'b str>) -> String {
        if *self.phase != Phase::Ready && self.tools.is_empty() {
            return format!("Server '{}' is not available now, so that its tools are not known.", self.name);
        }
        let no_tool = format!("No tool named '{}' found on server '{}'.", shown(name), self.name);
        if others.len() == 0 { no_tool } else { format!("{no_tool} {}", named("Tools", others)) }
    }
}

impl<'a> Detail<'a> {
    fn of(entry: &'a Entry) -> Self {
        let tool = entry.tool.as_ref();
        let description = tool.and_then(|tool| tool.definition.get_str("description"));
        let schema = tool.and_then(|tool| tool.input_schema());
        Self {
            name: &entry.name,
            description: description.unwrap_or_default().into_owned(),
            parameters_schema: schema.map_or(r#"{"type":"object"}"#, Json::as_text).to_owned(),
        }
    }
}

/// What there is, for who has asked for something else.
fn named<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    let more = names.len().saturating_sub(MOST_SUGGESTED);
    let listed = names[..names.len() - more].join(", ");
    if more == 0 { format!("{what}: {listed}.") } else { format!("{what}: {listed} and {more} more.") }
}
