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
//! - `file_watcher`: detects edits of the manifest's files;
//! - `listeners`: the listening sockets and their certificate;
//! - [`routes`]: all HTTP routes; [`frontends`]: the protocols for callers, MCP and REST;
//! - [`keys`]: authentication by API keys;
//! - [`audit`]: the audit trail;
//! - [`status`]: the status report;
//! - [`counters`]: totals over all calls;
//! - [`telemetry`]: metrics and traces;
//! - [`log`]: the log filter.
//!
//! This crate joins crates that do not know each other. It contains no protocol logic.

pub mod added_servers;
pub mod audit;
pub mod build;
mod context;
pub mod counters;
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
pub mod routes;
mod running_gateway;
mod shutdown;
mod start;
pub mod status;
pub mod summaries;
pub mod telemetry;

pub use manifest_edits::AppliedEdit;
pub use running_gateway::RunningGateway;
pub use start::{GatewayOptions, StartError, start};
