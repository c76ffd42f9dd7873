//! The nouns of Toolyard, and the gateway that every call passes.
//!
//! This crate does no I/O, except in [`mod@file`], and spawns no task: frontends create [`Call`]s, backends run them, and
//! [`Gateway::invoke`] stands in between. In suggested reading order:
//!
//! - [`json`]: JSON text that is relayed unchanged;
//! - [`call`], [`client`], [`outcome`], [`error`]: a call, its client, its outcome, and its errors;
//! - [`tool`], [`schema`], [`output_schema`], [`item`], [`cache`], [`backend`]: backends, their catalogs, and validation
//!   of arguments and results; [`mod@resource_updates`]: changes of their resources;
//! - [`registry`], [`names`], [`overrides`], [`argument_names`]: published names and definitions;
//! - [`access`]: rights of callers; [`uri_path`]: URIs that leave a scope;
//! - [`gateway`], [`layers`], [`gate`], [`long_work`]: the path of a call, and work beside the threads of connections;
//! - [`nested`]: calls that a tool makes for its caller;
//! - [`growth`]: the cost of JMESPath expressions;
//! - [`retry`], [`breaker`], [`cause`], [`failure_log`]: retries and circuit breakers for backends, and causes of their
//!   failures;
//! - [`tokens`]: estimates of tokens in a model's context;
//! - [`secrets`], [`seal`]: redaction of secrets, and texts that only this gateway can open;
//! - [`timestamp`]: points in time in JSON; [`mod@file`]: bounded reads;
//! - [`store`], [`function`], [`exchange`], [`script`]: ports for persistence, hosted functions, message exchanges, and
//!   scripts.

pub mod json;

pub mod call;
pub mod client;
pub mod error;
pub mod outcome;

pub mod backend;
pub mod cache;
pub mod cause;
pub mod item;
pub mod log_level;
pub mod output_schema;
pub mod resource_updates;
pub mod schema;
pub mod task;
pub mod tool;
pub mod uri_path;
pub mod uri_template;

pub mod argument_names;
mod definition;
pub mod identifier_words;
pub mod names;
pub mod nearest;
pub mod overrides;
pub mod random;
pub mod registry;

pub mod access;
pub mod gate;
pub mod gateway;
pub mod growth;
pub mod layers;
pub mod long_work;
pub mod nested;
mod turns;

pub mod breaker;
pub mod exchange;
pub mod failure_log;
pub mod file;
pub mod function;
pub mod retry;
pub mod script;
pub mod seal;
pub mod secrets;
pub mod store;
pub mod text;
pub mod timestamp;
pub mod tokens;

#[cfg(test)]
mod testing;

pub use backend::{Backend, BackendPhase, BackendWrapper, Catalog, LeftOutItem, OwnCatalog};
pub use breaker::CircuitBreaker;
pub use cache::{CacheHint, CacheScope};
pub use call::{
    Call, CallTarget, CallTimeLimit, Caller, CallerPeer, ClientIdentity, CompletionReference, SESSION_META,
    TaskAction, TaskReference,
};
pub use cause::{CauseCode, FailureCause};
pub use client::{
    Client, ClientNotification, ClientSession, ClientWrapper, InputRequest, InputRequestError,
    InputRequestKind, NoClient, NotificationBody,
};
pub use error::{ErrorCode, ToolError, timed_out_after};
pub use exchange::{FunctionStatus, MessageExchange};
pub use failure_log::FailureLog;
pub use function::FunctionLookup;
pub use gateway::{Gateway, Observers};
pub use item::{Prompt, PublishedItem, PublishedTemplate, Resource};
pub use json::{Json, JsonError, Object};
pub use log_level::LogLevel;
pub use long_work::LongWork;
pub use nested::{CallerDirectory, NestedCalls, NestedGateway, ParentCall};
pub use outcome::{CallOutput, Outcome, StartedTask, TaskOwner};
pub use registry::{Registry, RegistryEntry};
pub use resource_updates::resource_updates;
pub use retry::{AttemptVerdict, RetryOutcome, RetrySchedule};
pub use script::{PythonScript, ScriptExecutor, ScriptOutcome};
pub use secrets::SecretRedactor;
pub use task::{TaskDescription, TaskStatus};
pub use tool::Tool;
pub use uri_template::UriTemplate;
