//! Reports on the test cases of a function.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::output::{count, escape_line, escape_lines};

/// The reports on the test cases of a version, in the form of the REST API.
#[derive(Deserialize)]
pub(super) struct TestReports {
    tests: Vec<TestCaseReport>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TestCaseReport {
    name: String,
    passed: bool,
    duration_ms: f64,
    problem: Option<String>,
    reply: Option<Box<RawValue>>,
    #[serde(default)]
    output: String,
}

impl TestReports {
    /// True if there is at least one test case and all passed.
    pub(super) fn all_passed(&self) -> bool {
        !self.tests.is_empty() && self.failed() == 0
    }

    fn failed(&self) -> usize {
        self.tests.iter().filter(|report| !report.passed).count()
    }

    /// Formats all reports with a summary.
    pub(super) fn text(&self) -> String {
        let all = self.tests.len();
        let summary = match self.failed() {
            _ if all == 0 => "no test cases; a function needs at least one to be published".to_owned(),
            0 if all == 1 => "the test case passed".to_owned(),
            0 => format!("all {all} test cases passed"),
            failed => format!("{failed} of {} failed", count(all, "test case")),
        };
        self.tests.iter().map(|report| report.text() + "\n").collect::<String>() + &summary
    }
}

impl TestCaseReport {
    /// Formats the report. The reply is shown only after a failure.
    fn text(&self) -> String {
        let word = if self.passed { "ok" } else { "FAILED" };
        let mut text = format!("{word}: {} after {:.1} ms", escape_line(&self.name), self.duration_ms);
        if let Some(problem) = &self.problem {
            let _ = write!(text, "\n  problem  {}", escape_line(problem));
        }
        if let Some(reply) = self.reply.as_ref().filter(|_| !self.passed) {
            let _ = write!(text, "\n  reply    {}", escape_line(reply.get()));
        }
        text + &printed_lines(&self.output)
    }
}

/// Formats the output of a handler as lines below the line of its call.
pub(super) fn printed_lines(output: &str) -> String {
    escape_lines(output).lines().map(|line| format!("\n  printed  {line}")).collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[track_caller]
    fn text(reports: &str) -> (bool, String) {
        let reports: TestReports = serde_json::from_str(reports).unwrap();
        (reports.all_passed(), reports.text())
    }

    #[test]
    fn test_reports_as_text() {
        let (good, none) = text(r#"{"failed": 0, "tests": []}"#);
        assert!(!good);
        assert_snapshot!(none, @"no test cases; a function needs at least one to be published");
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
