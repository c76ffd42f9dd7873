//! Outcomes of calls. Every form keeps its body as the backend sent it.

use std::sync::Arc;

use crate::json::{Json, Object};

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The tool has run.
    Done(CallOutput),
    /// The tool needs answers of the client, and is to be called again with them (MCP 2026-07-28, basic/patterns/mrtr).
    /// The body has the questions and an opaque state.
    NeedsInput(Object),
    /// The work continues as a task.
    Task(StartedTask),
}

/// A task that a server has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedTask {
    /// Description of the task.
    pub body: Object,
    /// Owner of the task, set by [`Gateway::invoke`](crate::Gateway::invoke): a backend does not know the published
    /// names.
    pub owner: Option<TaskOwner>,
    /// True for a task in this process, which other gateways cannot reach.
    pub is_here: bool,
}

/// The tool and handler of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOwner {
    /// Published name of the called tool; of the intended one, if the call stood for
    /// [another](crate::Backend::forward).
    pub tool: Arc<str>,
    /// Handler that had the tool when the task began.
    pub handler: Arc<str>,
}

impl From<Object> for StartedTask {
    fn from(body: Object) -> Self {
        Self { body, owner: None, is_here: false }
    }
}

/// A complete result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOutput {
    /// The result object.
    pub body: Object,
    /// `true` if the tool reports a failure. The body has the reason, which the model may read.
    pub is_error: bool,
}

impl CallOutput {
    /// Creates a result with one text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::from_text(text, false)
    }

    /// Creates a failure of the tool with one text.
    #[must_use]
    pub fn failure(text: &str) -> Self {
        Self::from_text(text, true)
    }

    fn from_text(text: &str, is_error: bool) -> Self {
        let block = Object::new().with("type", Json::string("text")).with("text", Json::string(text));
        let mut body = Object::new().with("content", Json::array([&block.to_json()]));
        if is_error {
            body.set("isError", Json::boolean(true));
        }
        Self { body, is_error }
    }
}
