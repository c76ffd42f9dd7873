//! The composition root: starts a gateway from a manifest.
//!
//! - [`server`]: startup order and shutdown;
//! - [`build`]: builds a backend for each handler of the manifest;
//! - [`fleet`]: the running handlers, the registry of what they offer, and edits of them;
//! - [`hosting`]: hosted functions and scripts;
//! - [`added_servers`]: servers added while the gateway runs;
//! - [`summaries`]: one-line summaries of servers;
//! - [`file_watcher`]: detects edits of the manifest's files;
//! - `listeners`: the listening sockets and their certificate;
//! - [`routes`]: all HTTP routes; [`keys`]: authentication by API keys; [`rest`]: the REST API;
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
pub mod counters;
pub mod file_watcher;
pub mod fleet;
pub mod hosting;
pub mod keys;
mod listeners;
pub mod log;
pub mod rest;
pub mod routes;
pub mod server;
pub mod status;
pub mod summaries;
pub mod telemetry;

pub use server::{AppliedEdit, GatewayOptions, RunningGateway, StartError, start};
