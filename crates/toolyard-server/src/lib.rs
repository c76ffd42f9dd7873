//! The composition root: starts a gateway from a manifest.
//!
//! - [`start()`]: the list of subsystems, in the order of their start and stop; `context`: what they share; `shutdown`:
//!   their stop;
//! - [`RunningGateway`]: the result; `manifest_edits`: edits of its manifest; [`lifecycle`]: its files and signals;
//! - `gateway`: the gateway that runs all calls, with its layers;
//! - [`build`]: builds a backend for each handler of the manifest;
//! - [`fleet`]: the running handlers, the registry of what they offer, and edits of them;
//! - [`hosting`]: hosted functions and scripts;
//! - [`added_servers`]: servers added while the gateway runs;
//! - [`summaries`]: one-line summaries of servers;
//! - `file_watcher`: detects edits of the manifest's files; [`atomic_file`]: replaces files;
//! - `listeners`: the listening sockets and their certificate;
//! - [`routes`]: all HTTP routes; [`frontends`]: the protocols for callers, MCP and REST;
//! - [`keys`]: authentication by API keys;
//! - [`bus`]: calls over a message bus;
//! - [`audit`]: the audit trail;
//! - [`status`]: the status report;
//! - [`counters`]: totals over all calls;
//! - `definitions`: definitions of the operator's resources;
//! - [`telemetry`]: metrics and traces;
//! - [`log`]: the log filter;
//! - [`openrouter`]: the client of OpenRouter;
//! - [`operator`]: the operator of Kubernetes.
//!
//! This crate joins crates that do not know each other. It contains no protocol logic.

pub mod added_servers;
mod agents;
pub mod atomic_file;
pub mod audit;
pub mod build;
pub mod bus;
mod cluster_members;
mod context;
pub mod counters;
mod definitions;
mod dropped_notices;
mod embeddings;
mod file_watcher;
pub mod fleet;
pub mod frontends;
mod gateway;
mod health;
pub mod hosting;
pub mod keys;
pub mod lifecycle;
mod listeners;
pub mod log;
mod manifest_edits;
mod openai_api;
pub mod openrouter;
pub mod operator;
pub mod routes;
mod running_gateway;
mod schedules;
mod shutdown;
mod start;
pub mod status;
pub mod summaries;
pub mod telemetry;

pub use definitions::resource_definitions;
pub use manifest_edits::AppliedEdit;
pub use running_gateway::RunningGateway;
pub use start::{BusRole, GatewayOptions, StartError, start};
