//! Scripts over the bus: a manager runs those that others send, so that their senders need no right to run anything.
//!
//! - [`ScriptsManager`]: runs the scripts of `script.invoke` with a [`ScriptExecutor`](toolyard_core::ScriptExecutor) of its
//!   process;
//! - [`BusScriptRunner`]: the executor of a process that sends its scripts to a manager.
//!
//! A script may have effects, such as requests to other hosts. It is acknowledged before it runs, and runs at most once.

mod manager;
mod runner;

pub use manager::{ScriptsManager, ScriptsManagerOptions};
pub use runner::BusScriptRunner;

use std::time::Duration;

/// Exit status of a script that was not run: that of a shell for a command that it cannot execute.
pub const NOT_RUN: i32 = 126;

/// Name of the tool in errors.
const TOOL: &str = "execute_python_script";

/// Time limit of a script whose request has none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
