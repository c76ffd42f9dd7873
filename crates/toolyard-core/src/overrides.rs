//! Overrides: changes of an operator to the tools of a handler.
//!
//! A definition is changed member by member: members without an override stay as they arrived, in their order.
//!
//! An argument is found where a schema names arguments themselves: in its `properties` and `required`, and in those of
//! the schemas in its `allOf`. Statements about an argument elsewhere (behind a `$ref`, in one of several forms, in
//! `dependentRequired`) would change their meaning without it, and stay. A schema that still requires a pinned argument
//! there makes its tool refuse every call, which is safe, and a publish notice states the reason.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::access::CallPrice;
use crate::argument_names::ArgumentNames;
use crate::error::{ErrorCode, ToolError};
use crate::json::{Json, Object};
use crate::output_schema::OutputSchemaMode;
use crate::tool::Tool;

/// Overrides by the server's own names of the tools.
pub type Overrides = BTreeMap<Arc<str>, Override>;

/// The override of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Override {
    /// The tool is not published: neither listed nor found.
    Hide,
    /// The tool is published with another definition.
    Change(DefinitionOverride),
}

/// Differences between the published definition of a tool and the server's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefinitionOverride {
    /// Full published name: no prefix is added.
    pub name: Option<Arc<str>>,
    /// Display name.
    pub title: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Changes to arguments, by their names.
    pub arguments: BTreeMap<String, ArgumentChange>,
    /// Price of a call.
    pub price: Option<CallPrice>,
    /// Treatment of large results.
    pub chunking: ChunkingPolicy,
}

/// The treatment of results that are too large for a model, for a tool or a handler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChunkingPolicy {
    /// Treatment of the output schema: `true` withdraws it, so that structured results can be stored; `false` keeps it:
    /// structured content passes at any length, and long texts are stored. Default: that of the [disclosure
    /// policy](crate::registry::DisclosurePolicy::output_schemas).
    pub structured: Option<bool>,
    /// Number of characters above which results are large.
    pub threshold: Option<usize>,
}

impl ChunkingPolicy {
    /// Returns the treatment of the output schema.
    #[must_use]
    pub const fn output_schemas(self, default: OutputSchemaMode) -> OutputSchemaMode {
        match self.structured {
            Some(true) => OutputSchemaMode::Withdraw,
            Some(false) => OutputSchemaMode::Keep,
            None => default,
        }
    }

    /// Returns this policy with the other one's values for missing members.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            structured: self.structured.or(other.structured),
            threshold: self.threshold.or(other.threshold),
        }
    }
}

/// The override of one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentChange {
    /// Every call has this value. Callers neither see nor may send the argument.
    Pin(Json),
    /// Callers see a changed argument.
    Show {
        /// Default value; the argument becomes optional.
        default: Option<Json>,
        /// Description.
        description: Option<String>,
    },
}

/// Arguments that are added to the calls of a tool, or renamed in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddedArguments {
    pinned: Vec<(String, Json)>,
    defaults: Vec<(String, Json)>,
    /// Arguments that callers send under other names.
    renamed: Option<Arc<ArgumentNames>>,
}

/// A tool as callers see it.
pub(crate) struct PublishedTool {
    pub(crate) tool: Arc<Tool>,
    pub(crate) additions: Option<Arc<AddedArguments>>,
    /// Overridden arguments that the schema does not have.
    pub(crate) unknown: Vec<String>,
    pub(crate) price: Option<CallPrice>,
    pub(crate) chunking: ChunkingPolicy,
}

impl PublishedTool {
    pub(crate) fn unchanged(tool: &Arc<Tool>) -> Self {
        let (additions, unknown, price, chunking) = (None, Vec::new(), None, ChunkingPolicy::default());
        Self { tool: tool.clone(), additions, unknown, price, chunking }
    }

    /// Returns the tool with names of arguments that the interfaces of models accept.
    pub(crate) fn with_legal_arguments(self) -> Self {
        let Some(renamed) = self.tool.renamed() else { return self };
        let mut additions = self.additions.as_deref().cloned().unwrap_or_default();
        additions.renamed = Some(renamed.names.clone());
        Self { tool: renamed.tool.clone(), additions: Some(Arc::new(additions)), ..self }
    }
}

// === impl DefinitionOverride ===

impl DefinitionOverride {
    /// Returns the published tool and its added arguments.
    pub(crate) fn publish(&self, tool: &Arc<Tool>) -> PublishedTool {
        let additions = AddedArguments::of(&self.arguments).map(Arc::new);
        let mut unknown: Vec<_> = self.arguments.keys().cloned().collect();
        let (price, chunking) = (self.price, self.chunking);
        if self.title.is_none() && self.description.is_none() && self.arguments.is_empty() {
            return PublishedTool { additions, unknown, price, chunking, ..PublishedTool::unchanged(tool) };
        }
        let texts = [("title", &self.title), ("description", &self.description)];
        let describe = |definition: &mut Object| {
            for (member, text) in texts {
                if let Some(text) = text {
                    definition.set(member, Json::string(text));
                }
            }
        };
        let changed = tool.changed(describe, |schema| self.schema(schema, &mut unknown));
        // The manifest's description stands for the whole text.
        let tool = if self.description.is_some() { changed.with_manual(None) } else { changed };
        PublishedTool { tool: Arc::new(tool), additions, unknown, price, chunking }
    }

    /// Returns the schema of the arguments that callers see. Removes the names that it finds from `unknown`.
    fn schema(&self, schema: &Json, unknown: &mut Vec<String>) -> Json {
        // `true` and `false` are schemas too, without properties.
        let Ok(mut schema) = schema.to_object() else { return schema.clone() };
        if let Some(Ok(mut properties)) = schema.get("properties").map(Json::to_object) {
            for (name, argument) in &self.arguments {
                if argument.change(name, &mut properties) {
                    unknown.retain(|unknown| unknown != name);
                }
            }
            schema.set("properties", properties.to_json());
        }
        if let Some(Ok(required)) = schema.get("required").map(Json::to_items) {
            let left: Vec<_> = required.into_iter().filter(|name| !self.supplies(name)).collect();
            // In the oldest drafts `required` must not be empty.
            match left.is_empty() {
                true => drop(schema.remove("required")),
                false => schema.set("required", Json::array(&left)),
            }
        }
        if let Some(Ok(all)) = schema.get("allOf").map(Json::to_items) {
            let all: Vec<_> = all.iter().map(|schema| self.schema(schema, unknown)).collect();
            schema.set("allOf", Json::array(&all));
        }
        schema.to_json()
    }

    /// Returns `true` if the gateway has a value for the argument.
    fn supplies(&self, name: &Json) -> bool {
        let argument = name.to_str().and_then(|name| self.arguments.get(&*name));
        matches!(argument, Some(ArgumentChange::Pin(_) | ArgumentChange::Show { default: Some(_), .. }))
    }
}

impl ArgumentChange {
    /// Changes the argument's own schema in `properties`. Returns `true` if there is one.
    fn change(&self, name: &str, properties: &mut Object) -> bool {
        let Self::Show { default, description } = self else {
            return properties.remove(name).is_some();
        };
        let Some(schema) = properties.get(name) else { return false };
        let mut schema = match schema.to_bool() {
            // Equivalent to an empty object.
            Some(true) => Object::new(),
            _ => schema.to_object().unwrap_or_default(),
        };
        if let Some(description) = description {
            schema.set("description", Json::string(description));
        }
        if let Some(default) = default {
            schema.set("default", default.clone());
        }
        properties.set(name, schema.to_json());
        true
    }
}

// === impl AddedArguments ===

impl AddedArguments {
    /// Returns `None` if no argument is added.
    fn of(arguments: &BTreeMap<String, ArgumentChange>) -> Option<Self> {
        let mut additions = Self::default();
        for (name, argument) in arguments {
            match argument {
                ArgumentChange::Pin(value) => additions.pinned.push((name.clone(), value.clone())),
                ArgumentChange::Show { default: Some(value), .. } => {
                    additions.defaults.push((name.clone(), value.clone()));
                }
                ArgumentChange::Show { default: None, .. } => {}
            }
        }
        (additions != Self::default()).then_some(additions)
    }

    /// Returns the number of arguments that callers send under other names.
    #[must_use]
    pub fn renamed(&self) -> usize {
        self.renamed.as_ref().map_or(0, |names| names.len())
    }

    /// Returns the arguments for the server: the sent ones as they arrived, followed by the added ones.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArguments`] if a pinned argument was sent. Replacing it silently would pass the result off
    /// as one for the sent value. The message is that of a schema without the argument.
    pub(crate) fn add_to(&self, arguments: Option<&Json>) -> Result<Json, ToolError> {
        let sent = arguments.map_or_else(|| Ok(Object::new()), Json::to_object);
        let mut arguments = sent.map_err(|error| invalid(error.problem))?;
        if let Some(names) = &self.renamed {
            names.restore(&mut arguments)?;
        }
        if let Some((name, _)) = self.pinned.iter().find(|(name, _)| arguments.get(name).is_some()) {
            return Err(invalid(&format!("Additional properties are not allowed ('{name}' was unexpected)")));
        }
        for (name, value) in self.pinned.iter().chain(&self.defaults) {
            if arguments.get(name).is_none() {
                arguments.set(name, value.clone());
            }
        }
        Ok(arguments.to_json())
    }
}

fn invalid(problem: &str) -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, format!("Invalid arguments: {problem}"))
}

#[cfg(test)]
mod tests;
