//! The nouns of Toolyard and the one door that every call passes.
//!
//! This crate does no I/O and spawns no task: frontends bring [`Call`]s, backends run them, and
//! [`Gateway::invoke`] stands in between. In suggested reading order:
//!
//! - [`json`]: JSON text that is relayed as it came;
//! - [`call`], [`client`], [`outcome`], [`error`]: what goes in, the way back meanwhile, and what comes out;
//! - [`tool`], [`item`], [`cache`], [`backend`]: who runs calls, what it offers, and how long that may be kept;
//! - [`registry`], [`names`], [`overrides`]: which name belongs to whom, and what callers see of it;
//! - [`access`]: what a caller may use;
//! - [`gateway`], [`layers`], [`gate`]: the door, and what stands around a backend;
//! - [`retry`], [`breaker`]: what backends share whose servers fail now and then;
//! - [`tokens`]: how much of a model's context a list takes;
//! - [`secrets`]: what nobody is to see, kept out of what is said;
//! - [`timestamp`]: points in time, as JSON has them;
//! - [`store`], [`function`], [`exchange`], [`script`]: ports for what outlives the process, hosted functions, what answers
//!   messages, and who runs scripts.

pub mod json;

pub mod call;
pub mod client;
pub mod error;
pub mod outcome;

pub mod backend;
pub mod cache;
pub mod item;
pub mod tool;
pub mod uri_template;

pub mod names;
pub mod overrides;
pub mod registry;

pub mod access;
pub mod gate;
pub mod gateway;
pub mod layers;

pub mod breaker;
pub mod exchange;
pub mod function;
pub mod retry;
pub mod script;
pub mod secrets;
pub mod store;
pub mod timestamp;
pub mod tokens;

#[cfg(test)]
mod testing;

pub use backend::{Backend, Catalog, Phase};
pub use breaker::Breaker;
pub use cache::{CacheHint, CacheScope};
pub use call::{Call, Caller, Reference, Target, Task, TaskAction};
pub use client::{Ask, AskError, AskKind, Client, ClientWrapper, LogLevel, NoClient, Notice};
pub use error::{Code, ToolError};
pub use exchange::{Exchange, Standing};
pub use function::Functions;
pub use gateway::{Gateway, Observers};
pub use item::{Item, Prompt, Resource, Template};
pub use json::{Json, JsonError, Object};
pub use outcome::{Outcome, Output, Owner, Started};
pub use registry::{Entry, Registry};
pub use retry::{Retry, Tried, Verdict};
pub use script::{Runner, Script, ScriptOutcome};
pub use secrets::Secrets;
pub use tool::Tool;
pub use uri_template::UriTemplate;
