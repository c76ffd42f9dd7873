//! Subagents: agents that work on a task in the background, with the tools of their caller.
//!
//! - [`model`]: language models;
//! - [`run`]: the loop of an agent; [`toolset`]: its tools; [`budget`]: its tokens and its cost;
//! - [`subagents`]: starts, cancels and lists subagents; [`record`]: subagents as stored;
//! - `own_tools`: the tools that only a subagent has;
//! - [`whiteboard`]: texts that a caller and its subagents share;
//! - [`tools`], [`resources`]: what agents see; [`backend`]: subagents as tasks, and changes of resources;
//! - [`error`]: errors that a model reads.
//!
//! # Models
//!
//! The model is a configured one, or that of the caller's client. A legacy client is asked in its session. A modern one
//! can only be asked by the input that a task requests, so that the subagent is the task of its call.
//!
//! # Rights
//!
//! Each call of a subagent is a call of its caller, with the rights and the quotas that the key has at that time.
//!
//! # Several gateways
//!
//! A subagent runs in the gateway that has started it, and stores a sign of life every few seconds. All gateways of a
//! store list it; without a sign of life it has failed. Whiteboards are in the memory of one gateway.

pub mod backend;
pub mod budget;
pub mod error;
pub mod model;
mod own_tools;
pub mod record;
pub mod resources;
pub mod run;
pub mod subagents;
mod texts;
pub mod tools;
pub mod toolset;
pub mod whiteboard;

pub use backend::SubagentBackend;
pub use run::{AgentAnswer, AgentRun, RunError, RunLimits};
pub use subagents::{ModelSource, RunningSubagents, SubagentDeps, SubagentSettings, Subagents};
pub use tools::{NAMES, add};

/// Name, summary and text of the guide for models.
pub const GUIDE: [&str; 3] = [
    "subagents",
    "Start agents that work on tasks in the background with your tools, and share a whiteboard with them",
    include_str!("guide.md"),
];
