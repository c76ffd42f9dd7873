//! Output of the commands: results, notes, errors and confirmations.

use std::fmt::Display;
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;

use crate::BadInput;

/// Output format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Readable text
    Text,
    /// One JSON text, for programs
    Json,
}

/// Prints to standard output. A closed pipe, such as that of `head`, is not an error.
pub(crate) fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _closed = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush());
}

/// Escapes untrusted text for one line: control characters, line breaks and invisible characters.
pub(crate) fn escape_line(text: &str) -> String {
    escape(text, |_| false)
}

/// Escapes untrusted text but keeps line breaks and tabs.
pub(crate) fn escape_lines(text: &str) -> String {
    escape(text, |character| matches!(character, '\n' | '\t'))
}

/// Prints the output of another program: unchanged, or escaped by [`escape_lines`] on a terminal.
pub(crate) fn print_untrusted(text: &str) {
    if std::io::stdout().is_terminal() { print(&escape_lines(text)) } else { print(text) }
}

fn escape(text: &str, is_allowed: impl Fn(char) -> bool) -> String {
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            _ if is_allowed(character) || !(character.is_control() || is_invisible(character)) => {
                result.push(character);
            }
            _ => result.extend(character.escape_default()),
        }
    }
    result
}

/// True if a character is invisible but affects the text: it changes the direction (Unicode UAX 9), has no width, ends a
/// line, or is a tag character.
const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// A writer that escapes invisible characters. Other control characters pass, because the log contains colours.
pub(crate) struct EscapingWriter<W>(pub(crate) W);

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) if text.contains(is_invisible) => {
                self.0.write_all(escape(text, |character| !is_invisible(character)).as_bytes())?;
            }
            _ => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Formats a count with its noun, such as `1 tool` or `2 tools`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Prints an error with its causes and returns the exit status.
pub(crate) fn report_error(error: &anyhow::Error, format: OutputFormat) -> ExitCode {
    let status = if error.is::<BadInput>() { 2 } else { 1 };
    let mut stderr = std::io::stderr().lock();
    let _closed = match format {
        OutputFormat::Text => writeln!(stderr, "error: {}", escape_lines(&format!("{error:#}"))),
        OutputFormat::Json => {
            let error = serde_json::json!({"error": format!("{error:#}"), "exitStatus": status});
            writeln!(stderr, "{error}")
        }
    };
    ExitCode::from(status)
}

/// Prints a note on standard error.
pub(crate) fn note(text: &str) {
    let _closed = writeln!(std::io::stderr().lock(), "note: {}", escape_line(text));
}

/// Asks at the terminal whether to write a change. Returns true if the answer is yes.
///
/// # Errors
/// Fails without a terminal, and with JSON output.
pub(crate) fn confirm(format: OutputFormat) -> anyhow::Result<bool> {
    if !is_interactive(format) {
        let advice = "confirmation needed, but there is no terminal; use `--yes`, or `--dry-run` to only show the change";
        return Err(BadInput(advice.to_owned()).into());
    }
    ask("Write the change? [y/N] ", false)
}

/// True if questions can be asked: at a terminal, with text output.
pub(crate) fn is_interactive(format: OutputFormat) -> bool {
    format == OutputFormat::Text && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks a question at the terminal. An empty answer is the default; at the end of the input the answer is no.
///
/// # Errors
/// If the terminal cannot be read.
pub(crate) fn ask(question: &str, default: bool) -> anyhow::Result<bool> {
    write!(std::io::stderr(), "{question}")?;
    let mut answer = String::new();
    let length = std::io::stdin().lock().read_line(&mut answer)?;
    Ok(match answer.trim().to_ascii_lowercase().as_str() {
        "" => default && length > 0,
        "y" | "yes" => true,
        _ => false,
    })
}

/// True if standard error is a terminal and `NO_COLOR` (no-color.org) is not set.
pub(crate) fn has_colours() -> bool {
    let is_disabled = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !is_disabled
}

/// Delay before a notice about a long wait.
const NOTICE_DELAY: Duration = Duration::from_secs(1);

/// Awaits `work`. On a terminal, prints a notice if it takes longer than [`NOTICE_DELAY`].
pub(crate) async fn with_wait_notice<T>(what: impl Display, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    if std::io::stderr().is_terminal() {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(NOTICE_DELAY) => {}
        }
        let _closed = writeln!(std::io::stderr().lock(), "waiting for {what} ...");
    }
    work.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_invisible_characters_are_escaped() {
        let check = |text: &str, on_one: &str, on_several: &str| {
            assert_eq!(
                (escape_line(text).as_str(), escape_lines(text).as_str()),
                (on_one, on_several),
                "{text:?}"
            );
        };
        check("plain \u{fc}\u{1f600} \\n", "plain \u{fc}\u{1f600} \\n", "plain \u{fc}\u{1f600} \\n");
        check("a\nb\tc", r"a\nb\tc", "a\nb\tc");
        for invisible in [
            "202a", "202e", "2066", "2069", "200b", "200d", "200e", "200f", "61c", "2060", "feff", "2028",
            "e0041",
        ] {
            let character = char::from_u32(u32::from_str_radix(invisible, 16).unwrap()).unwrap();
            let expected = format!("a\\u{{{invisible}}}b");
            check(&format!("a{character}b"), &expected, &expected);
            let mut logged = Vec::new();
            EscapingWriter(&mut logged).write_all(format!("\u{1b}[1ma{character}b\n").as_bytes()).unwrap();
            assert_eq!(String::from_utf8(logged).unwrap(), format!("\u{1b}[1m{expected}\n"));
        }
        check("\u{1b}[2J", r"\u{1b}[2J", r"\u{1b}[2J");
        check("\u{9b}2J\r\u{7f}\u{7}", r"\u{9b}2J\r\u{7f}\u{7}", r"\u{9b}2J\r\u{7f}\u{7}");
    }
}
