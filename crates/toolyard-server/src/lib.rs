//! The composition root: a manifest becomes a running gateway.
//!
//! - [`server`]: starts everything in its order, and stops it;
//! - [`build`]: a handler of the manifest becomes a backend;
//! - [`fleet`]: the handlers that run, what they offer as one registry, and how an edit changes them;
//! - [`hosting`]: hosted functions, and scripts;
//! - [`added`]: servers that are added while the gateway runs;
//! - [`summaries`]: what servers are for, in a line;
//! - [`edits`]: the files of the manifest, followed;
//! - `site`: where the gateway listens, and its certificate;
//! - [`routes`]: the doors; [`keys`]: who may come in; [`rest`]: what is behind the doors that are not MCP's;
//! - [`status`]: how the gateway is;
//! - [`counters`]: what is known of all calls;
//! - [`telemetry`]: metrics and traces;
//! - [`log`]: what is logged, as far as it can be changed.
//!
//! Here crates meet that do not know each other. There is no logic of a protocol.

pub mod added;
pub mod audit;
pub mod build;
pub mod counters;
pub mod edits;
pub mod fleet;
pub mod hosting;
pub mod keys;
pub mod log;
pub mod rest;
pub mod routes;
pub mod server;
mod site;
pub mod status;
pub mod summaries;
pub mod telemetry;

pub use server::{Applied, Options, Running, StartError, start};
