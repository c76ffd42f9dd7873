//! Calls of tools by their names, for clients that do not list them.

use std::sync::Arc;

use tokio::task::JoinSet;
use toolyard_core::{Backend, BackendWrapper, Call, Json, JsonError, Object, Registry};

use super::tools::CALL;

/// A backend that forwards calls of [`CALL`]: the call of the named tool passes all layers instead. The wrapped backend
/// may forward calls itself.
pub struct CallToolBackend {
    inner: Arc<dyn Backend>,
    /// Tasks that end with the backend.
    _following: JoinSet<()>,
}

impl CallToolBackend {
    /// Wraps a backend with the tool [`CALL`], which explains a call that cannot be forwarded. `following` are tasks
    /// that end with the backend, such as [`ToolFinder::follow`](super::ToolFinder::follow).
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, following: JoinSet<()>) -> Self {
        Self { inner, _following: following }
    }
}

impl BackendWrapper for CallToolBackend {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn forward(&self, own: &str, call: &Call, registry: &Registry) -> Option<Call> {
        match own {
            CALL => forwarded_call(call, registry),
            _ => self.inner.forward(own, call, registry),
        }
    }
}

/// Returns the call of the named tool, if there is such a tool.
fn forwarded_call(call: &Call, registry: &Registry) -> Option<Call> {
    let CallToolArgs { name, arguments } = CallToolArgs::read(call.arguments()).ok()?;
    let entry = registry.tool(&name).ok().or_else(|| registry.tool_of_added_server(&name))?;
    // The tool cannot forward to itself.
    if *entry.name == **call.target.name() {
        return None;
    }
    Some(call.of(entry.name.clone(), arguments.to_json()))
}

/// Arguments of a call of [`CALL`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallToolArgs {
    /// Name of the tool.
    pub(super) name: String,
    /// Arguments of the tool.
    pub(super) arguments: Object,
}

/// Maximum length in characters of an unknown member that an error message repeats.
const MAX_MEMBER_LENGTH: usize = 64;

/// Error in the arguments. A model reads the texts.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallToolError {
    #[error(
        "`name` is required. Give the name of a tool as search_tools shows it, and its parameters in `arguments`."
    )]
    NoName,
    #[error("{0}: unknown parameter. Put the parameters of the tool into `arguments`.")]
    Misplaced(String),
    #[error("arguments: not a JSON object, which tools expect: {0}")]
    Arguments(JsonError),
    #[error("arguments: not a JSON object, which tools expect")]
    NoObject,
}

impl CallToolArgs {
    /// Parses the arguments of a call. Those of the tool may be a text with JSON, which some models write.
    pub(super) fn read(arguments: Option<&Json>) -> Result<Self, CallToolError> {
        let members = arguments.and_then(|arguments| arguments.to_object().ok()).unwrap_or_default();
        if let Some((member, _)) =
            members.iter().find(|(member, _)| *member != "name" && *member != "arguments")
        {
            let member = member.chars().filter(|c| !c.is_control()).take(MAX_MEMBER_LENGTH).collect();
            return Err(CallToolError::Misplaced(member));
        }
        let name = members.get_str("name").map(|name| name.trim().to_owned());
        let name = name.filter(|name| !name.is_empty()).ok_or(CallToolError::NoName)?;
        let arguments = match members.get("arguments") {
            None => Object::new(),
            Some(none) if none.is_null() => Object::new(),
            Some(arguments) => object(arguments)?,
        };
        Ok(Self { name, arguments })
    }
}

fn object(arguments: &Json) -> Result<Object, CallToolError> {
    match arguments.to_str() {
        Some(text) if text.trim().is_empty() => Ok(Object::new()),
        Some(text) => Object::parse(text.into_owned()).map_err(CallToolError::Arguments),
        None if arguments.is_object() => arguments.to_object().map_err(|_| CallToolError::NoObject),
        None => Err(CallToolError::NoObject),
    }
}

#[cfg(test)]
mod tests;
