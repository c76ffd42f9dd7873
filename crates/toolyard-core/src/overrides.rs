//! What an operator changes about the tools of a handler.
//!
//! A definition is changed member by member: what nobody overrides stays as it came, in its order.
//!
//! An argument is looked for where a schema names the arguments themselves: in its `properties` and `required`,
//! and in those of the schemas in its `allOf`. What it says of an argument elsewhere (behind a `$ref`, in one of several
//! forms, in `dependentRequired`) would mean something else without it, and stays. A schema that goes on asking for a
//! pinned argument there makes its tool refuse every call, which is safe, and a remark of the registry says why.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::access::Price;
use crate::error::{Code, ToolError};
use crate::json::{Json, Object};
use crate::tool::Tool;

/// What is changed, by the name that the owner calls a tool by.
pub type Overrides = BTreeMap<Arc<str>, Override>;

/// What is changed about one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Override {
    /// It is not there: not listed, and unknown to whoever calls it.
    Hide,
    /// It is another one to callers than to its owner.
    Change(Change),
}

/// How a tool differs from what its owner says of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// What it is called, in full: no prefix is put before it.
    pub name: Option<Arc<str>>,
    /// What people read as its name.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// Its arguments that are changed, by their names.
    pub arguments: BTreeMap<String, Argument>,
    /// What a call costs.
    pub price: Option<Price>,
    /// What becomes of its large results.
    pub chunking: Chunking,
}

/// What becomes of results that are too large for a model, where something is said of a tool or of a handler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chunking {
    /// Whether they are put into working memory in chunks though the tool promises their structure by an output schema,
    /// which it then has no more for those whose results they are. They are not.
    pub structured: Option<bool>,
    /// From how many characters on they are large.
    pub threshold: Option<usize>,
}

impl Chunking {
    /// What is said here, or else there.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            structured: self.structured.or(other.structured),
            threshold: self.threshold.or(other.threshold),
        }
    }
}

/// What is changed about one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// Every call has this value. Callers neither see the argument nor may send it.
    Pin(Json),
    /// Callers see it changed.
    Show {
        /// What it is where a caller does not send it, which then no caller has to.
        default: Option<Json>,
        /// What it is for.
        description: Option<String>,
    },
}

/// What is put into the arguments of a tool's calls.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Additions {
    pinned: Vec<(String, Json)>,
    defaults: Vec<(String, Json)>,
}

/// A tool as callers see it.
pub(crate) struct Published {
    pub(crate) tool: Arc<Tool>,
    pub(crate) additions: Option<Arc<Additions>>,
    /// The arguments that were to be changed and are not in the schema.
    pub(crate) unknown: Vec<String>,
    pub(crate) price: Option<Price>,
    pub(crate) chunking: Chunking,
}

impl Published {
    pub(crate) fn unchanged(tool: &Arc<Tool>) -> Self {
        let (additions, unknown, price, chunking) = (None, Vec::new(), None, Chunking::default());
        Self { tool: tool.clone(), additions, unknown, price, chunking }
    }
}

// === impl Change ===

impl Change {
    /// What callers see of a tool, and what they do not.
    pub(crate) fn publish(&self, tool: &Arc<Tool>) -> Published {
        let additions = Additions::of(&self.arguments).map(Arc::new);
        let mut unknown: Vec<_> = self.arguments.keys().cloned().collect();
        let (price, chunking) = (self.price, self.chunking);
        if self.title.is_none() && self.description.is_none() && self.arguments.is_empty() {
            return Published { additions, unknown, price, chunking, ..Published::unchanged(tool) };
        }
        let texts = [("title", &self.title), ("description", &self.description)];
        let describe = |definition: &mut Object| {
            for (member, text) in texts {
                if let Some(text) = text {
                    definition.set(member, Json::string(text));
                }
            }
        };
        let tool = tool.changed(describe, |schema| self.schema(schema, &mut unknown));
        Published { tool: Arc::new(tool), additions, unknown, price, chunking }
    }

    /// The schema of the arguments that are left to callers. Takes those that it has off `unknown`.
    fn schema(&self, schema: &Json, unknown: &mut Vec<String>) -> Json {
        // `true` and `false` are schemas, too, and name nothing.
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
            // The oldest schemas must not have an empty one.
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

    /// Whether the gateway has a value for the argument of this name.
    fn supplies(&self, name: &Json) -> bool {
        let argument = name.to_str().and_then(|name| self.arguments.get(&*name));
        matches!(argument, Some(Argument::Pin(_) | Argument::Show { default: Some(_), .. }))
    }
}

impl Argument {
    /// Changes the argument's own schema among those of all; says whether there is one.
    fn change(&self, name: &str, properties: &mut Object) -> bool {
        let Self::Show { default, description } = self else {
            return properties.remove(name).is_some();
        };
        let Some(schema) = properties.get(name) else { return false };
        let mut schema = match schema.to_bool() {
            // Which is what an object without members means.
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

// === impl Additions ===

impl Additions {
    /// `None` where there is nothing to add.
    fn of(arguments: &BTreeMap<String, Argument>) -> Option<Self> {
        let mut additions = Self::default();
        for (name, argument) in arguments {
            match argument {
                Argument::Pin(value) => additions.pinned.push((name.clone(), value.clone())),
                Argument::Show { default: Some(value), .. } => {
                    additions.defaults.push((name.clone(), value.clone()));
                }
                Argument::Show { default: None, .. } => {}
            }
        }
        (additions != Self::default()).then_some(additions)
    }

    /// The arguments as the owner gets them: those that were sent, as they came, and the others behind them.
    ///
    /// # Errors
    /// [`Code::InvalidArguments`] where a pinned one was sent. It is not replaced in silence: the caller would take the
    /// result to be one for the value that it sent. The words are those of a schema that knows no such argument.
    pub(crate) fn add_to(&self, arguments: Option<&Json>) -> Result<Json, ToolError> {
        let sent = arguments.map_or_else(|| Ok(Object::new()), Json::to_object);
        let mut arguments = sent.map_err(|error| invalid(error.problem))?;
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
    ToolError::new(Code::InvalidArguments, format!("Invalid arguments: {problem}"))
}

#[cfg(test)]
mod tests;
