//! Tools and their calls as records of JSON, for hosts that find tools in a registry and send calls over a bus.
//!
//! - [`wire`]: the records, as they are written and read;
//! - [`convert`]: what they are in the yard: tools, calls, outcomes, errors;
//! - [`registry`]: which tools a host has, and who runs them; one that runs them all is the gateway;
//! - [`host`]: a registered tool as the function that a model calls.
//!
//! ```text
//! ToolInvokeRequest ──to_call──▶ Call ──Gateway::invoke──▶ Outcome | ToolError ──answer──▶ ToolInvokeResponse | ToolError
//! ```

pub mod convert;
pub mod host;
pub mod registry;
pub mod wire;

#[cfg(test)]
mod tests;

pub use host::HostFunction;
pub use registry::{AlreadyRegistered, Executor, GatewayExecutor, ToolRegistry};
pub use wire::{BadRecord, ToolError, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration, codes};
