//! The nouns of Toolyard and the one door that every call passes.
//!
//! This crate does no I/O and spawns no task: frontends bring [`Call`]s, backends run them, and
//! [`Gateway::invoke`] stands in between. In suggested reading order:
//!
//! - [`json`]: JSON text that is relayed as it came;
//! - [`call`], [`outcome`], [`error`]: what goes in and what comes out;
//! - [`tool`], [`backend`]: who runs calls, and what it offers;
//! - [`registry`], [`names`]: which name belongs to whom;
//! - [`gateway`], [`layers`], [`gate`]: the door, and what stands around a backend.

pub mod json;

pub mod call;
pub mod error;
pub mod outcome;

pub mod backend;
pub mod tool;

pub mod names;
pub mod registry;

pub mod gate;
pub mod gateway;
pub mod layers;

#[cfg(test)]
mod testing;

pub use backend::{Backend, Catalog, Phase};
pub use call::{Call, Caller, Client, NoClient, Notice, Target};
pub use error::{Code, ToolError};
pub use gateway::Gateway;
pub use json::{Json, JsonError, Object};
pub use outcome::{Outcome, Output};
pub use registry::{Entry, Registry};
pub use tool::Tool;
