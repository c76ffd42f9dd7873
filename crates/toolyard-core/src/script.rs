//! The port for running scripts.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::error::ToolError;

/// Runs Python scripts in isolation: on this machine, or in a pod.
pub trait ScriptExecutor: Send + Sync {
    /// Runs a script to its end. A script that fails or times out is an outcome. Dropping the future ends the script
    /// and all of its processes.
    ///
    /// # Errors
    /// If it was not run: isolation is unavailable, its packages cannot be installed, or too many scripts are running.
    fn run(&self, script: PythonScript) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>>;
}

/// A script to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonScript {
    /// Id of its call, unique among running scripts.
    pub call_id: String,
    /// Source code.
    pub source: String,
    /// Value of the variables `TOOLYARD_INPUT` and `ROCKBOT_INPUT`; empty by default.
    pub input: Option<String>,
    /// Time limit, without the installation of packages.
    pub timeout: Duration,
    /// Packages to install first, as requirements such as `numpy` or `requests>=2`.
    pub packages: Vec<String>,
    /// `traceparent` of its call (W3C Trace Context).
    pub trace_parent: Option<String>,
}

/// The outcome of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptOutcome {
    /// Standard output, up to a limit.
    pub output: String,
    /// Standard error, up to a limit.
    pub stderr: String,
    /// Exit status: 128 plus the number of the signal that ended the script, or [`TIMED_OUT`].
    pub exit_code: i32,
    /// Elapsed time.
    pub elapsed: Duration,
}

/// Exit status of a script that exceeded its time limit.
pub const TIMED_OUT: i32 = -1;

/// Exit status of a script that was killed, such as for exceeding its memory limit: 128 plus SIGKILL.
pub const KILLED: i32 = 137;

impl ScriptOutcome {
    /// Returns `true` if the script succeeded.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.exit_code == 0
    }
}
