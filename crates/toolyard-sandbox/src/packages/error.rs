//! Errors of package installation.

use std::time::Duration;

/// Error of package installation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// A line of the list is invalid.
    #[error(
        "line {number} of the packages, {line:?}, is not `name`, `name[extra]` or `name==1.2` with an optional marker: {reason}"
    )]
    InvalidLine {
        /// Line number, starting at 1.
        number: usize,
        /// Beginning of the line.
        line: String,
        /// Fault.
        reason: &'static str,
    },
    /// The list is too long.
    #[error("the list of packages exceeds {0} lines or 64 KiB")]
    TooLong(usize),
    /// The interpreter is missing or has no pip.
    #[error("no Python with pip: {0}")]
    NoInterpreter(String),
    /// The installer failed.
    #[error("{installer} cannot install the packages: {reason}")]
    Failed {
        /// `pip` or `uv`.
        installer: &'static str,
        /// Error of the installer.
        reason: String,
    },
    /// The installation was interrupted.
    #[error("the installation of the packages was interrupted")]
    Interrupted,
    /// The installed files include one that is not permitted.
    #[error("the packages are refused: {0}")]
    Refused(String),
    /// The sandbox of the installer could not be started.
    #[error("cannot start the sandbox of the installer: {0}")]
    Sandbox(String),
    /// The installation exceeded its time limit.
    #[error("the packages were not installed within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The packages exceed the maximum size.
    #[error("the packages exceed {0} bytes")]
    TooLarge(u64),
    /// The maximum number of installations is waiting.
    #[error("too many waiting installations of packages; try again later")]
    Busy,
    /// The cache cannot be read or written.
    #[error("the package cache failed: {0}")]
    Cache(String),
}
