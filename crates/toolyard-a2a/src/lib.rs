//! The A2A protocol in both directions: other agents as tools, and tools of the gateway as an agent.
//!
//! - [`wire`]: messages of the protocol;
//! - [`client`]: requests to agents;
//! - [`bus`]: agents on a message bus, which another crate has;
//! - [`directory`]: the agents that are known;
//! - [`tasks`]: tasks of agents, as stored;
//! - [`agents`]: the agents as the tools and the searches share them, and the runs of tasks;
//! - [`tools`], [`resources`]: what models see;
//! - [`backend`]: tasks of agents as tasks of MCP, and changes of resources;
//! - [`signature`]: signatures of agent cards;
//! - [`server`]: the gateway as an agent;
//! - [`error`]: errors that a model reads.
//!
//! # Trust
//!
//! An agent chooses what its card says. Its texts are shown to models as they are, within limits. The URL that it names gets
//! the credentials of the manifest, and may have a private address, only if its origin is that of the URL in the manifest.

pub mod agents;
pub mod backend;
pub mod bus;
pub mod client;
pub mod directory;
pub mod error;
mod mcp_task;
pub mod resources;
pub mod server;
pub mod signature;
pub mod tasks;
mod texts;
pub mod tools;
pub mod wire;

#[cfg(test)]
mod testing;

use toolyard_agent::guides::GuideDocument;

pub use agents::{Agents, OwnAgent, PushError};
pub use backend::AgentBackend;

/// Guide to other agents.
pub const GUIDE: GuideDocument = GuideDocument::new(
    "agents",
    "Give tasks to other agents (A2A), and read their answers later",
    include_str!("guide.md"),
);
