//! What a person or a program reads of a command.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

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
pub(crate) fn failed(error: &anyhow::Error, format: Format) -> ExitCode {
    let status = if error.is::<BadInput>() { 2 } else { 1 };
    let mut stderr = std::io::stderr().lock();
    let _gone = match format {
        Format::Text => writeln!(stderr, "error: {error:#}"),
        Format::Json => {
            let error = serde_json::json!({"error": format!("{error:#}"), "exitStatus": status});
            writeln!(stderr, "{error}")
        }
    };
    ExitCode::from(status)
}

/// Whether what goes to standard error is to have colours: where a person sees it who has not said otherwise
/// (no-color.org).
pub(crate) fn has_colours() -> bool {
    let wants_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !wants_none
}

/// How long somebody looks at a terminal on which nothing happens before they wonder.
const MOMENT: Duration = Duration::from_secs(1);

/// Waits for something. Who sits at a terminal is told what for, if it takes longer than a moment.
pub(crate) async fn patiently<T>(what: impl Display, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    if std::io::stderr().is_terminal() {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(MOMENT) => {}
        }
        let _gone = writeln!(std::io::stderr().lock(), "waiting for {what} ...");
    }
    work.await
}
