//! `spawn_wisps`: small pipelines of tool calls that an agent defines, and that run in parallel.
//!
//! - [`definition`]: wisps and their steps;
//! - [`parse`]: reads definitions, and reports every problem of them;
//! - [`template`]: references to earlier steps in texts;
//! - [`shared_path`], [`shared_folder`]: paths of outputs, and the folder for them;
//! - [`output`]: the output of a step;
//! - [`failure`]: the failure of a step, and its category;
//! - `route`: the tool that a step calls;
//! - `input`: the input of a step;
//! - [`model`]: the interface to a language model;
//! - `memory`: outputs and summaries in working memory;
//! - [`repeats`]: the limit of identical wisps;
//! - `run`: runs a batch;
//! - `report`: the state of a batch as it runs;
//! - `texts`: the result that an agent reads;
//! - [`tools`]: the tool.
//!
//! # Calls
//!
//! Every call of a step is a call of the gateway by the agent itself ([`NestedCalls`](toolyard_core::NestedCalls)):
//! rights, quotas, limits and the audit trail apply to it as if the agent had made it.
//!
//! # Lifetime
//!
//! A batch runs within the call of `spawn_wisps` and owns all that it starts: if the call is cancelled, nothing keeps
//! running. A summary in working memory shows the progress of each step, and the time at which the batch ends at the
//! latest, so that it stays true if the gateway stops in between.

pub mod definition;
pub mod failure;
mod input;
mod memory;
pub mod model;
pub mod output;
pub mod parse;
pub mod repeats;
mod report;
mod route;
mod run;
pub mod shared_folder;
pub mod shared_path;
pub mod template;
mod texts;
pub mod tools;

#[cfg(test)]
mod testing;

use toolyard_agent::guides::GuideDocument;

pub use model::{LlmStepRequest, StepModel, StepModelError};
pub use tools::{SPAWN, Wisps, add};

/// Guide to wisps.
pub const GUIDE: GuideDocument = GuideDocument::new(
    "wisps",
    "Run several small pipelines of tool calls in parallel with one call, and pass outputs from step to step",
    GUIDE_TEXT,
);

/// Text of the guide.
const GUIDE_TEXT: &str = include_str!("guide.md");
