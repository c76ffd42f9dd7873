//! Wisps and their steps, as an agent defines them.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::shared_path::SharedPath;

/// A wisp: steps that run in order.
#[derive(Debug, Clone, PartialEq)]
pub struct WispDefinition {
    /// Description by the agent.
    pub description: String,
    /// Tools that the models of its steps can call, in addition to those of its direct steps.
    pub tools: Vec<String>,
    /// Steps, at least one.
    pub steps: Vec<WispStep>,
    /// Digest of the definition as written: 16 hexadecimal digits.
    pub digest: String,
}

/// A step of a wisp.
#[derive(Debug, Clone, PartialEq)]
pub struct WispStep {
    /// Id, unique in the wisp whatever its case.
    pub id: String,
    /// Action of the step.
    pub action: StepAction,
    /// Source of the input.
    pub input_from: Option<InputSource>,
    /// Name of the output, which is also a file in the shared folder if there is one.
    pub output_to: Option<SharedPath>,
    /// Reaction to a failure.
    pub on_failure: FailureReaction,
    /// Time limit of the step; of an agent, for its task.
    pub timeout: Option<Duration>,
}

/// The action of a step. Its texts may have references to earlier steps: see [`template`](crate::template).
#[derive(Debug, Clone, PartialEq)]
pub enum StepAction {
    /// `Direct`: the call of a tool.
    Direct(DirectAction),
    /// `Llm`: a prompt for a language model.
    Llm(String),
}

/// The call of a tool, by the gateway of the step.
#[derive(Debug, Clone, PartialEq)]
pub enum DirectAction {
    /// `Mcp`: a tool of a server.
    Mcp {
        /// Name of the server.
        server: String,
        /// Name of the tool.
        tool: String,
        /// Arguments.
        params: Map<String, Value>,
    },
    /// `A2A`: a message to another agent.
    A2a {
        /// Name of the agent.
        agent: String,
        /// Skill of the agent.
        skill: String,
        /// Text of the message.
        message: String,
    },
    /// `Script`: a script.
    Script {
        /// Language, such as `python`.
        language: String,
        /// Arguments, with the source as `script`.
        params: Map<String, Value>,
    },
    /// `Web`: a search, or a page.
    Web {
        /// The tool.
        tool: WebTool,
        /// Arguments.
        params: Map<String, Value>,
    },
}

/// A tool for the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebTool {
    /// `web_search`.
    Search,
    /// `web_browse`.
    Browse,
}

impl WebTool {
    /// Returns the name of the tool.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Search => "web_search",
            Self::Browse => "web_browse",
        }
    }
}

/// The source of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputSource {
    /// A text with references to earlier steps.
    Template(String),
    /// The output of the earlier step with this number in the wisp.
    Step(usize),
    /// A file in the shared folder.
    File(SharedPath),
}

/// The reaction to the failure of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailureReaction {
    /// `abort`: the wisp fails.
    #[default]
    Abort,
    /// `skip_to`: the wisp continues with the later step of this number; those in between are skipped.
    SkipTo(usize),
}
