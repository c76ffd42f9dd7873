//! Tools and their calls as JSON records, for hosts that find tools in a registry and send calls over the bus.
//!
//! - [`wire`], `members`: the records, and their serialization;
//! - [`convert`]: conversions to tools, calls, results and errors of the gateway;
//! - [`registry`]: the tools of a host and their executors; the gateway is an executor for all its tools;
//! - [`host`]: a registered tool as a function that a model calls.
//!
//! ```text
//! ToolInvokeRequest ──to_call──▶ Call ──Gateway::invoke──▶ Outcome | ToolError ──answer──▶ ToolInvokeResponse | ToolInvokeError
//! ```

pub mod convert;
pub mod host;
pub(crate) mod members;
pub mod registry;
pub mod wire;

#[cfg(test)]
mod tests;

pub(crate) use convert::is_repeatable;
pub use host::HostFunction;
pub use registry::{AlreadyRegistered, GatewayExecutor, ToolExecutor, ToolRegistry};
pub use wire::{BadRecord, ToolInvokeError, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration, codes};
