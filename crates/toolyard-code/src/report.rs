//! The text that a model reads about a script: its value, or its failure with the line.

use std::fmt::Write;
use std::time::Duration;

use toolyard_core::Json;
use toolyard_functions::RunError;

use crate::calls::CallRecord;
use crate::engine::ScriptLanguage;

/// Maximum length of the message of an error, in characters.
const MAX_MESSAGE_CHARS: usize = 4_000;

/// Maximum number of tools that a failure lists.
const MAX_TOOLS: usize = 20;

/// Text for a script without a value.
const NOTHING: &str = "The script returned nothing. End it with `return` and the value that you need.";

/// Returns the text of a value: a text as it is, and anything else as JSON.
#[must_use]
pub fn value_text(value: Option<&Json>) -> String {
    match value {
        None => NOTHING.to_owned(),
        Some(value) => value.to_str().map_or_else(|| value.as_text().to_owned(), String::from),
    }
}

/// Returns the printed output for a model, without its middle if it is too long; `None` if there is none.
#[must_use]
pub fn printed_text(log: &str, limit: usize) -> Option<String> {
    let log = log.trim_end();
    if log.is_empty() {
        return None;
    }
    if log.len() <= limit {
        return Some(format!("Printed:\n{log}"));
    }
    let half = limit / 2;
    let head = (0..=half).rev().find(|end| log.is_char_boundary(*end)).unwrap_or_default();
    let tail = (log.len() - half..=log.len()).find(|start| log.is_char_boundary(*start)).unwrap_or(log.len());
    Some(format!("Printed:\n{}\n[{} bytes left out]\n{}", &log[..head], tail - head, &log[tail..]))
}

/// Returns the text of a failure, with the calls that were made before it: they may have changed something.
#[must_use]
pub fn failure_text(
    error: &RunError,
    language: ScriptLanguage,
    time: Duration,
    record: &CallRecord,
) -> String {
    let mut text = what_failed(error, language, time);
    if record.by_tool.is_empty() {
        return text;
    }
    let counts = record.by_tool.iter().take(MAX_TOOLS).map(|(tool, count)| match count.failed {
        0 => format!("{tool} {}", count.calls),
        failed => format!("{tool} {} ({failed} failed)", count.calls),
    });
    let counts: Vec<_> = counts.collect();
    let more = record.by_tool.len().saturating_sub(MAX_TOOLS);
    let more = if more == 0 { String::new() } else { format!(", and {more} other tools") };
    let _ = write!(text, "\nCalls that had ended by then: {}{more}.", counts.join(", "));
    text
}

fn what_failed(error: &RunError, language: ScriptLanguage, time: Duration) -> String {
    match error {
        RunError::Thrown { kind, message, details, .. } => thrown(language, kind, message, details),
        RunError::TimedOut => format!(
            "The script took longer than {} ms and was stopped. Make fewer calls, make them in parallel, or set \
             `timeout`.",
            time.as_millis()
        ),
        RunError::OutOfMemory => {
            "The script exceeded its memory limit. Keep only the members of results that you need.".to_owned()
        }
        RunError::OutputTooLarge { limit } => format!(
            "The script returned more than {limit} bytes. Return a selection, a count or a summary instead."
        ),
        RunError::Busy => "Too many scripts are running. Try again later.".to_owned(),
        RunError::Died(_) => "The process of the script ended unexpectedly. Simplify the script.".to_owned(),
        RunError::NotLoaded { .. } | RunError::Unavailable(_) => {
            "Scripts cannot run here now. Call the tools one by one.".to_owned()
        }
    }
}

fn thrown(language: ScriptLanguage, kind: &str, message: &str, details: &str) -> String {
    let mark = format!("{}:", language.file());
    let (line, message) = match message.strip_prefix(&*mark).and_then(leading_number) {
        Some((line, rest)) => (Some(line), rest.trim_start_matches(':').trim_start()),
        None => (line_of(details, &mark), message),
    };
    let message = match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => &message[..end],
        None => message,
    };
    let place = line.map_or_else(String::new, |line| format!(" in line {line}"));
    match (language, kind) {
        // A value that is not an error has the name of its type.
        (ScriptLanguage::JavaScript, kind) if kind.starts_with(|char: char| char.is_ascii_uppercase()) => {
            format!("The script failed{place}: {kind}: {message}")
        }
        _ => format!("The script failed{place}: {message}"),
    }
}

/// Returns the first line number of the script in a stack trace.
fn line_of<'a>(details: &'a str, mark: &str) -> Option<&'a str> {
    details
        .match_indices(mark)
        .find_map(|(at, _)| leading_number(&details[at + mark.len()..]))
        .map(|(line, _)| line)
}

fn leading_number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::CallCount;

    fn thrown_error(kind: &str, message: &str, details: &str) -> RunError {
        let (kind, message, details) = (kind.to_owned(), message.to_owned(), details.to_owned());
        RunError::Thrown { kind, message, details, log: String::new() }
    }

    #[test]
    fn failures_name_line_and_calls() {
        let (js, lua) = (ScriptLanguage::JavaScript, ScriptLanguage::Lua);
        let time = Duration::from_millis(1500);
        let none = CallRecord::default();
        let count = |calls, failed| CallCount { calls, failed };
        let some = CallRecord {
            by_tool: [("create".into(), count(3, 1)), ("list".into(), count(1, 0))].into(),
            ..CallRecord::default()
        };
        let stack = "    at call (cortexone_function.js:30:5)\n    at <anonymous> (script.js:12:20)\n";
        let seen = [
            failure_text(&thrown_error("ToolError", "list: gone (unavailable)", stack), js, time, &some),
            failure_text(
                &thrown_error("SyntaxError", "unexpected token", "    at script.js:3:5\n"),
                js,
                time,
                &none,
            ),
            failure_text(&thrown_error("string", "a text", ""), js, time, &none),
            failure_text(
                &thrown_error("error", "script:7: attempt to index a nil value", ""),
                lua,
                time,
                &none,
            ),
            failure_text(&thrown_error("table", "script:2: ToolError: gone", ""), lua, time, &none),
            failure_text(
                &thrown_error("table", "{}", "[C]: in error\n\tscript:9: in main chunk"),
                lua,
                time,
                &none,
            ),
            failure_text(&RunError::TimedOut, js, time, &some),
            failure_text(&RunError::OutOfMemory, js, time, &none),
            failure_text(&RunError::OutputTooLarge { limit: 1024 }, js, time, &none),
            failure_text(&RunError::Busy, js, time, &none),
            failure_text(&RunError::Died("signal 9".to_owned()), js, time, &none),
            failure_text(&RunError::Unavailable("/no/sandbox".to_owned()), js, time, &none),
        ];
        insta::assert_snapshot!(seen.join("\n\n"), @"
        The script failed in line 12: ToolError: list: gone (unavailable)
        Calls that had ended by then: create 3 (1 failed), list 1.

        The script failed in line 3: SyntaxError: unexpected token

        The script failed: a text

        The script failed in line 7: attempt to index a nil value

        The script failed in line 2: ToolError: gone

        The script failed in line 9: {}

        The script took longer than 1500 ms and was stopped. Make fewer calls, make them in parallel, or set `timeout`.
        Calls that had ended by then: create 3 (1 failed), list 1.

        The script exceeded its memory limit. Keep only the members of results that you need.

        The script returned more than 1024 bytes. Return a selection, a count or a summary instead.

        Too many scripts are running. Try again later.

        The process of the script ended unexpectedly. Simplify the script.

        Scripts cannot run here now. Call the tools one by one.
        ");
    }

    #[test]
    fn values_are_texts_or_json() {
        let check = |json: &str, expected: &str| {
            assert_eq!(value_text(Some(&Json::parse(json.to_owned()).expect("JSON"))), expected);
        };
        check("\"a \\\"text\\\"\"", "a \"text\"");
        check("{\"a\": 1}", "{\"a\": 1}");
        check("null", "null");
        assert_eq!(value_text(None), NOTHING);
    }

    #[test]
    fn printed_output_keeps_beginning_and_end() {
        assert_eq!(printed_text(" \n", 100), None);
        assert_eq!(printed_text("a\nb\n", 100).as_deref(), Some("Printed:\na\nb"));
        let long = printed_text(&format!("é{}é", "x".repeat(1000)), 11).expect("a text");
        assert_eq!(long, "Printed:\néxxx\n[994 bytes left out]\nxxxé");
    }
}
