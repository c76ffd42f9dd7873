//! Errors of scripts that were not run, as callers read them.

use std::time::Duration;

use toolyard_core::{ErrorCode, ToolError};
use toolyard_process::SpawnError;

use crate::SandboxError;
use crate::packages::PackageError;

pub(super) fn too_many_scripts(concurrent: usize) -> ToolError {
    ToolError::new(
        ErrorCode::Overloaded,
        format!("The maximum number of scripts is running ({concurrent}): try again later"),
    )
}

pub(super) fn sandbox_error(error: SandboxError) -> ToolError {
    let code = match &error {
        SandboxError::Spawn(SpawnError::Full(_)) => ErrorCode::Overloaded,
        _ => ErrorCode::Unavailable,
    };
    ToolError::new(code, format!("The script was not run: {error}")).caused_by(error).unsent()
}

/// Error of a script whose sandbox could not be set up.
pub(super) fn setup_error(why: Option<&str>) -> ToolError {
    let why = why.unwrap_or("unknown reason");
    ToolError::new(ErrorCode::Unavailable, format!("The script was not run: {why}")).unsent()
}

pub(super) fn killed_externally() -> ToolError {
    ToolError::new(ErrorCode::ExecutionFailed, "The script was killed by another process")
}

pub(super) fn packages_timed_out(patience: Duration) -> ToolError {
    let seconds = patience.as_secs();
    let why = format!("The packages are still being installed after {seconds} s: try again later");
    ToolError::new(ErrorCode::Timeout, why).unsent()
}

pub(super) fn package_error(error: &PackageError) -> ToolError {
    let code = match error {
        PackageError::InvalidLine { .. } | PackageError::TooLong(_) => ErrorCode::InvalidArguments,
        PackageError::Busy => ErrorCode::Overloaded,
        PackageError::TimedOut(_) => ErrorCode::Timeout,
        PackageError::NoInterpreter(_) | PackageError::Cache(_) | PackageError::Sandbox(_) => {
            ErrorCode::Unavailable
        }
        PackageError::Failed { .. }
        | PackageError::Interrupted
        | PackageError::Refused(_)
        | PackageError::TooLarge(_) => ErrorCode::ExecutionFailed,
    };
    ToolError::new(code, format!("The script was not run: {error}")).unsent()
}
