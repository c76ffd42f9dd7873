//! Why a script was not run, as its caller reads it.

use std::time::Duration;

use toolyard_core::{Code, ToolError};
use toolyard_process::SpawnError;

use crate::SandboxError;
use crate::packages::PackageError;

pub(super) fn full(concurrent: usize) -> ToolError {
    ToolError::new(
        Code::Overloaded,
        format!("As many scripts run as may run ({concurrent}): try again later"),
    )
}

pub(super) fn of_sandbox(error: SandboxError) -> ToolError {
    let code = match &error {
        SandboxError::Spawn(SpawnError::Full(_)) => Code::Overloaded,
        _ => Code::Unavailable,
    };
    ToolError::new(code, format!("The script was not run: {error}")).caused_by(error).unsent()
}

/// Why it never began.
pub(super) fn of_walls(why: Option<&str>) -> ToolError {
    let why = why.unwrap_or("nobody knows why");
    ToolError::new(Code::Unavailable, format!("The script was not run: {why}")).unsent()
}

pub(super) fn lost() -> ToolError {
    ToolError::new(Code::ExecutionFailed, "The script was killed, and nobody knows by whom")
}

pub(super) fn slow_packages(patience: Duration) -> ToolError {
    let seconds = patience.as_secs();
    let why = format!("The packages are still being installed after {seconds} s: try again later");
    ToolError::new(Code::Timeout, why).unsent()
}

pub(super) fn of_packages(error: &PackageError) -> ToolError {
    let code = match error {
        PackageError::BadLine { .. } | PackageError::TooMany(_) => Code::InvalidArguments,
        PackageError::Busy => Code::Overloaded,
        PackageError::TimedOut(_) => Code::Timeout,
        PackageError::NoPython(_) | PackageError::Cache(_) => Code::Unavailable,
        PackageError::Failed(_) | PackageError::TooLarge(_) => Code::ExecutionFailed,
    };
    let why = without_credentials(&error.to_string());
    ToolError::new(code, format!("The script was not run: {why}")).unsent()
}

/// The same without what stands before `@` in the hosts of URLs: pip may name the index that it asked.
fn without_credentials(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let host = part.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(part.len());
        let begins = part[..host].rfind('@').unwrap_or_default();
        shown.push_str("://");
        shown.push_str(&part[begins..]);
    }
    shown
}
