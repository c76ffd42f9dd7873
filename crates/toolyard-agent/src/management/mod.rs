//! The servers behind the gateway, for a model: which there are, what their tools take, their calls; and servers that are
//! added and removed while the gateway runs.
//!
//! A server is a handler of the gateway, whatever it speaks, but for the gateway's own tools. What a caller may not use does
//! not exist for it: all that is told is of the registry as the caller sees it.

mod args;
mod invoke;
mod port;
mod services;
#[cfg(test)]
pub(crate) mod tests;
mod tools;
mod wanted;

pub use invoke::Invoking;
pub use port::{NewServer, Reach, Refusal, Registered, Servers, Transport};
pub use tools::{DETAILS, INVOKE, LIST, Management, NAMES, REGISTER, UNREGISTER, add};
