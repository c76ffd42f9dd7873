//! Tools for the servers behind the gateway: a model lists them, reads the parameters of their tools, calls these
//! tools, and adds and removes servers at run time.
//!
//! A server is any handler of the gateway except the gateway's own tools. All tools use the registry as the caller sees
//! it: servers and tools that a caller may not use do not exist for it.

mod args;
mod bridge;
mod invoke;
mod listing;
mod manager;
mod new_server;
mod services;
#[cfg(test)]
pub(crate) mod tests;
mod tools;

pub use bridge::{BridgeManager, BridgedCall, BridgedResult, BridgedServer, BridgedTool};
pub use invoke::InvokeToolBackend;
pub use manager::{
    HttpTransportKind, NewServer, RegisteredServer, RegistrationError, ServerAddress, ServerManager,
};
pub use tools::{DETAILS, INVOKE, LIST, NAMES, REGISTER, ServerManagement, UNREGISTER, add};
