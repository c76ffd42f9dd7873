//! Backends whose servers speak something simpler than MCP.
//!
//! - [`http`]: a tool whose calls are plain HTTP requests.

pub mod http;
