//! Backends whose servers speak something simpler than MCP.
//!
//! - [`http`]: a tool whose calls are plain HTTP requests;
//! - [`openapi`]: the tools of a service that an OpenAPI document describes;
//! - [`delivery`]: how the requests of both are sent.

pub mod delivery;
pub mod http;
pub mod openapi;
