//! Backends whose upstreams speak a simpler protocol than MCP.
//!
//! - [`http`]: a tool whose calls are plain HTTP requests;
//! - [`openapi`]: the tools of a service with an OpenAPI description;
//! - [`function`]: a tool that is a hosted function;
//! - [`cortexone`]: functions on the `CortexOne` platform;
//! - [`delivery`]: sending of requests, with retries and a circuit breaker;
//! - [`health`]: whether a service can be reached, by its calls and by probes.

pub mod cortexone;
pub mod delivery;
pub mod function;
pub mod health;
pub mod http;
pub mod openapi;
