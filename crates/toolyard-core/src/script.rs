//! Scripts that somebody wants run once, and the port for who runs them.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::error::ToolError;

/// Runs scripts in Python, each once and where it can do no harm: on this machine, or in a pod of a cluster.
pub trait Runner: Send + Sync {
    /// Runs a script to its end. A script that fails, or takes too long, is an outcome. Dropping the future ends the
    /// script and all that it has started.
    ///
    /// # Errors
    /// When it was not run: what keeps it from doing harm cannot be had here, its packages cannot be installed, or
    /// too many run already.
    fn run(&self, script: Script) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>>;
}

/// A script that is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Which call it is for, unique among those that run.
    pub call_id: String,
    /// Its source.
    pub source: String,
    /// What it finds in the variables `TOOLYARD_INPUT` and `ROCKBOT_INPUT`; nothing is the empty text.
    pub input: Option<String>,
    /// How long it may take. The installation of packages is not counted.
    pub timeout: Duration,
    /// What is installed for it first: requirements as `pip` has them, such as `numpy` or `requests>=2`.
    pub packages: Vec<String>,
}

/// How a script has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptOutcome {
    /// What it wrote to its standard output, as far as that is kept.
    pub output: String,
    /// What it wrote to its standard error.
    pub stderr: String,
    /// Its exit status: 128 and the signal's number where a signal has ended it, and [`TIMED_OUT`] where it took too
    /// long.
    pub exit_code: i32,
    /// How long it took.
    pub elapsed: Duration,
}

/// The exit status of a script that took too long.
pub const TIMED_OUT: i32 = -1;

/// The exit status of a script that was killed, as when it needed more memory than it has: 128 and SIGKILL.
pub const KILLED: i32 = 137;

impl ScriptOutcome {
    /// Whether it did what it was to do.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.exit_code == 0
    }
}
