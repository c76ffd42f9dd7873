//! What a person or a program reads of a command.

use std::fmt::Display;
use std::io::{BufRead, IsTerminal, Write};
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

/// A text of somebody else on one line: what could steer a terminal, or pass for another line, is shown as an escape.
pub(crate) fn line(text: &str) -> String {
    escaped(text, |_| false)
}

/// A text of somebody else that may have several lines.
pub(crate) fn lines(text: &str) -> String {
    escaped(text, |character| matches!(character, '\n' | '\t'))
}

/// What a program has sent, which is not changed: only on a terminal it is escaped like [`lines`].
pub(crate) fn print_foreign(text: &str) {
    if std::io::stdout().is_terminal() { print(&lines(text)) } else { print(text) }
}

fn escaped(text: &str, is_welcome: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            _ if !character.is_control() || is_welcome(character) => shown.push(character),
            _ => shown.extend(character.escape_default()),
        }
    }
    shown
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
        Format::Text => writeln!(stderr, "error: {}", lines(&format!("{error:#}"))),
        Format::Json => {
            let error = serde_json::json!({"error": format!("{error:#}"), "exitStatus": status});
            writeln!(stderr, "{error}")
        }
    };
    ExitCode::from(status)
}

/// Says something beside a result, on standard error: what is to be known of it, but is not part of it.
pub(crate) fn note(text: &str) {
    let _gone = writeln!(std::io::stderr().lock(), "note: {}", line(text));
}

/// Whether a change that was shown is to be written: asks whoever sits at the terminal.
///
/// # Errors
/// When nobody does.
pub(crate) fn agreed(format: Format) -> anyhow::Result<bool> {
    let (stdin, mut stderr) = (std::io::stdin(), std::io::stderr());
    if format == Format::Json || !stdin.is_terminal() || !stderr.is_terminal() {
        let advice =
            "nobody can be asked, so nothing is written: use `--yes`, or `--dry-run` to only see the change";
        return Err(BadInput(advice.to_owned()).into());
    }
    write!(stderr, "Write this? [y/N] ")?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_steer_a_terminal_is_escaped() {
        let check = |text: &str, on_one: &str, on_several: &str| {
            assert_eq!((line(text).as_str(), lines(text).as_str()), (on_one, on_several), "{text:?}");
        };
        check("plain \u{fc}\u{1f600} \\n", "plain \u{fc}\u{1f600} \\n", "plain \u{fc}\u{1f600} \\n");
        check("a\nb\tc", r"a\nb\tc", "a\nb\tc");
        check("\u{1b}[2J", r"\u{1b}[2J", r"\u{1b}[2J");
        check("\u{9b}2J\r\u{7f}\u{7}", r"\u{9b}2J\r\u{7f}\u{7}", r"\u{9b}2J\r\u{7f}\u{7}");
    }
}
