//! What a person or a program reads of a command.

use std::io::Write;
use std::process::ExitCode;

use clap::ValueEnum;

use crate::BadInput;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs: one JSON text
    Json,
}

/// Prints to standard output. A reader that has gone, such as `head`, is no failure.
pub(crate) fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _gone = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush());
}

/// So many of something, such as `1 tool` or `2 tools`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Says why a command failed, causes included.
pub(crate) fn failed(error: &anyhow::Error) -> ExitCode {
    let mut stderr = std::io::stderr().lock();
    let _gone = writeln!(stderr, "error: {error:#}");
    match error.downcast_ref::<BadInput>() {
        Some(_) => ExitCode::from(2),
        None => ExitCode::FAILURE,
    }
}
