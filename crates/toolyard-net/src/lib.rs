//! HTTP plumbing, both ways. It knows nothing of tools, calls or MCP.
//!
//! - [`listener`]: accepts connections, within bounds, until it is told to drain;
//! - [`workers`]: the threads that serve them;
//! - [`guard`]: refuses what a browser was lured into sending;
//! - [`client`]: requests to other servers;
//! - [`auth`]: who these are made for;
//! - [`reach`]: which addresses these may go to;
//! - [`body`]: bodies that are bounded when read and not copied when written;
//! - [`trace`]: which trace a request belongs to;
//! - [`sse`]: server-sent events, read and written.

pub mod auth;
pub mod body;
pub mod client;
pub mod guard;
pub mod listener;
pub mod reach;
pub mod sse;
pub mod trace;
pub mod workers;
