//! Backends whose servers speak something simpler than MCP.
//!
//! - [`http`]: a tool whose calls are plain HTTP requests;
//! - [`openapi`]: the tools of a service that an OpenAPI document describes;
//! - [`function`]: a tool that is a function, whoever runs it;
//! - [`cortexone`]: functions that a platform elsewhere runs;
//! - [`delivery`]: how the requests of all are sent.

pub mod cortexone;
pub mod delivery;
pub mod function;
pub mod http;
pub mod openapi;
