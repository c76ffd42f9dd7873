//! What came of the test cases of a function.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::output::{count, line, lines};

/// The reports on the test cases of a version, as the gateway says it.
#[derive(Deserialize)]
pub(super) struct Reports {
    tests: Vec<Report>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    name: String,
    passed: bool,
    duration_ms: f64,
    problem: Option<String>,
    reply: Option<Box<RawValue>>,
    #[serde(default)]
    output: String,
}

impl Reports {
    /// Whether there are some, and all passed.
    pub(super) fn are_good(&self) -> bool {
        !self.tests.is_empty() && self.failed() == 0
    }

    fn failed(&self) -> usize {
        self.tests.iter().filter(|report| !report.passed).count()
    }

    /// All of them, and what they come to.
    pub(super) fn text(&self) -> String {
        let all = self.tests.len();
        let sum = match self.failed() {
            _ if all == 0 => "there are no test cases, and a function needs one to be published".to_owned(),
            0 if all == 1 => "the test case passed".to_owned(),
            0 => format!("all {all} test cases passed"),
            failed => format!("{failed} of {} failed", count(all, "test case")),
        };
        self.tests.iter().map(|report| report.text() + "\n").collect::<String>() + &sum
    }
}

impl Report {
    /// Of one that passed only what it printed is of interest.
    fn text(&self) -> String {
        let word = if self.passed { "ok" } else { "FAILED" };
        let mut text = format!("{word}: {} after {:.1} ms", line(&self.name), self.duration_ms);
        if let Some(problem) = &self.problem {
            let _ = write!(text, "\n  problem  {}", line(problem));
        }
        if let Some(reply) = self.reply.as_ref().filter(|_| !self.passed) {
            let _ = write!(text, "\n  reply    {}", line(reply.get()));
        }
        text + &printed(&self.output)
    }
}

/// What a handler has printed, below the line that is about its call.
pub(super) fn printed(output: &str) -> String {
    lines(output).lines().map(|line| format!("\n  printed  {line}")).collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[track_caller]
    fn text(reports: &str) -> (bool, String) {
        let reports: Reports = serde_json::from_str(reports).unwrap();
        (reports.are_good(), reports.text())
    }

    #[test]
    fn what_an_author_reads() {
        let (good, none) = text(r#"{"failed": 0, "tests": []}"#);
        assert!(!good);
        assert_snapshot!(none, @"there are no test cases, and a function needs one to be published");
        let (good, one) =
            text(r#"{"tests": [{"name": "a", "passed": true, "durationMs": 1.25, "reply": {}}]}"#);
        assert!(good);
        assert_snapshot!(one, @r"
        ok: a after 1.2 ms
        the test case passed
        ");
        let (good, two) = text(
            r#"{"tests": [
                {"name": "a", "passed": true, "durationMs": 1, "reply": 1, "output": "one\u001b[2J\ntwo\n"},
                {"name": "b\nok: c", "passed": false, "durationMs": 2, "problem": "no\r", "reply": {"a": 1.10}}
            ]}"#,
        );
        assert!(!good);
        assert_snapshot!(two, @r#"
        ok: a after 1.0 ms
          printed  one\u{1b}[2J
          printed  two
        FAILED: b\nok: c after 2.0 ms
          problem  no\r
          reply    {"a": 1.10}
        1 of 2 test cases failed
        "#);
    }
}
