//! Hosted functions: tools written in Python, JavaScript or Lua, in versions.
//!
//! - [`code`]: a version as it runs: its files, its language, and what it may take;
//! - [`run`]: the port of whatever has code answer events;
//! - [`runtime`]: has it answer them, in worker processes that can be killed;
//! - [`version`]: numbers of versions, and which of them a caller means;
//! - [`project`]: what an author makes, in memory and in a folder;
//! - `record`, `parts`, `shelf`: what is kept of functions, and how a gateway knows of it;
//! - [`edition`]: a version that is ready to run; [`invoke`]: one call of it; [`calls`]: the log of calls;
//! - [`exchange`]: functions as whatever answers JSON-RPC requests;
//! - [`host`]: all of this together, which is what others use;
//! - [`error`]: why something could not be done.

pub mod calls;
pub mod code;
pub mod edition;
pub mod error;
pub mod exchange;
pub mod host;
pub mod invoke;
mod parts;
pub mod project;
mod record;
pub mod run;
pub mod runtime;
mod shelf;
pub mod version;

pub use calls::{LogEntry, LogPage, LogQuery};
pub use edition::Edition;
pub use error::FunctionError;
pub use exchange::{FolderExchange, FunctionExchange};
pub use host::{Host, HostOptions};
pub use invoke::{InvokeError, Invoked, Reply};
pub use project::{Kind, Project, TestCase};
pub use run::{Ran, Run, RunError};
pub use version::{Bump, Version, Wanted};
