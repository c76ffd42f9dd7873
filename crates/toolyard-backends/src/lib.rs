//! Backends whose servers speak something simpler than MCP.
//!
//! - [`http`]: a tool whose calls are plain HTTP requests;
//! - [`openapi`]: the tools of a service that an OpenAPI document describes;
//! - [`exchange`]: how the requests of both are sent.

pub mod exchange;
pub mod http;
pub mod openapi;
