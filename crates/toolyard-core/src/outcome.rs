//! What comes out of a call. Every form keeps its body as the backend sent it.

use std::sync::Arc;

use crate::json::{Json, Object};

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The tool ran to its end.
    Done(Output),
    /// The tool asks the client first, and is to be called again with the answers
    /// (MCP 2026-07-28, basic/patterns/mrtr). The body carries the questions and an opaque state.
    NeedsInput(Object),
    /// The work goes on after this answer.
    Task(Started),
}

/// A task that a server has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// What describes it.
    pub body: Object,
    /// Whose it is. [`Gateway::invoke`](crate::Gateway::invoke) says so: a backend does not know what its tools are called.
    pub owner: Option<Owner>,
}

/// Who goes on with a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The tool that was called, as it is published: the one that was meant, where the call was [another
    /// one's](crate::Backend::forward).
    pub tool: Arc<str>,
    /// The handler that had it then.
    pub handler: Arc<str>,
}

impl From<Object> for Started {
    fn from(body: Object) -> Self {
        Self { body, owner: None }
    }
}

/// A whole result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The result object.
    pub body: Object,
    /// The tool says that it failed. The body says why, and the model may read it.
    pub is_error: bool,
}

impl Output {
    /// A result of one text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::from_text(text, false)
    }

    /// A tool's own failure, told in one text.
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
