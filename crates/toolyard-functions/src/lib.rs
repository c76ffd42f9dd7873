//! Hosted functions: versioned tools in Python, JavaScript or Lua.
//!
//! - [`code`]: an executable version: files, language and limits;
//! - [`run`]: the port for executing code;
//! - [`runtime`]: its implementation with worker processes that can be killed;
//! - [`version`]: version numbers and selectors;
//! - [`project`]: the source of a function, in memory and in a folder;
//! - `record`, `parts`, `function_index`: stored functions, and the index that a gateway keeps of them;
//! - [`loaded_version`]: a version that is ready to run; [`invoke`]: one call of it; [`calls`]: the log of calls;
//! - [`exchange`]: functions as adapters that answer JSON-RPC requests;
//! - [`host`]: the interface of all this for other crates;
//! - [`error`]: errors of functions.

pub mod calls;
pub mod code;
pub mod error;
pub mod exchange;
mod function_index;
pub mod host;
pub mod invoke;
pub mod loaded_version;
mod parts;
pub mod project;
mod record;
pub mod run;
pub mod runtime;
pub mod version;

pub use calls::{CallOutcome, LogEntry, LogPage, LogQuery};
pub use error::FunctionError;
pub use exchange::{FolderExchange, FunctionExchange};
pub use host::{FunctionHost, HostOptions, LentVariable};
pub use invoke::{FunctionReply, InvocationResult, InvokeError};
pub use loaded_version::LoadedVersion;
pub use project::{FunctionKind, FunctionProject, TestCase};
pub use run::{CodeRunner, RunError, RunOutput};
pub use version::{FunctionVersion, VersionBump, VersionSelector};
