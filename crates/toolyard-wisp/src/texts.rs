//! The result of `spawn_wisps` that an agent reads.

use std::fmt::Write;

use crate::input::cut;
use crate::report::{StepState, WispReport, WispState};
use crate::run::BatchResult;

/// Returns the result of a batch. Outputs have at most `most` characters.
pub(crate) fn result(batch: &BatchResult, most: usize) -> String {
    let report = &batch.report;
    let mut text = String::new();
    match (report.succeeded, report.failed) {
        (_, 0) => {}
        (0, _) => text.push_str("ALL FAILED\n"),
        _ => text.push_str("PARTIAL FAILURE\n"),
    }
    let wisps = if report.total == 1 { "wisp" } else { "wisps" };
    let seconds = batch.took.as_secs_f64();
    let _ = write!(
        text,
        "{} {wisps}: {} succeeded, {} failed, {seconds:.1} s\n\n",
        report.total, report.succeeded, report.failed
    );
    for wisp in &report.wisps {
        write_wisp(&mut text, wisp, most);
        // Without a summary, the reason is the same.
        if batch.summary.is_ok() {
            write_notes(&mut text, wisp);
        }
    }
    let _ = match &batch.summary {
        Ok(key) => write!(text, "\nBatch `{}`, summary in working memory at key `{key}`", report.batch_id),
        Err(why) => write!(text, "\nBatch `{}`, without a summary in working memory: {why}", report.batch_id),
    };
    text
}

fn write_wisp(text: &mut String, wisp: &WispReport, most: usize) {
    let outcome = if wisp.state == WispState::Succeeded { "ok" } else { "failed" };
    let WispReport { wisp_id, description, milliseconds, .. } = wisp;
    let description = single_line(description);
    let _ = writeln!(text, "- `{wisp_id}` \"{description}\" [{outcome}] {milliseconds} ms");
    if let Some(failure) = &wisp.failure {
        let _ = writeln!(text, "  Error: {failure}");
        if let Some(step) = wisp.failed_step() {
            let _ = writeln!(text, "  Tool: {} (step `{}`)", step.tool, step.id);
        }
    }
    for step in &wisp.steps {
        // The failure that has ended the wisp is above.
        let is_shown = wisp.failure.is_none() && step.state == StepState::Failed;
        if let Some(failure) = step.failure.as_ref().filter(|_| is_shown) {
            let _ = writeln!(text, "  Step `{}` failed and was passed over: {failure}", step.id);
        }
    }
    if let Some(output) = wisp.output.as_deref() {
        write_output(text, wisp, output, most);
    }
}

/// Writes the reasons why outputs are not in working memory.
fn write_notes(text: &mut String, wisp: &WispReport) {
    for step in &wisp.steps {
        if let Some(note) = &step.note {
            let _ = writeln!(text, "  The output of step `{}` is not in working memory: {note}", step.id);
        }
    }
}

/// Writes the output of the last step that has succeeded.
fn write_output(text: &mut String, wisp: &WispReport, output: &str, most: usize) {
    let last = wisp.steps.iter().rev().find(|step| step.state == StepState::Succeeded);
    let (shown, omitted) = cut(output.trim_end(), most);
    let _ = writeln!(text, "  Output: {}", shown.replace('\n', "\n  "));
    if omitted > 0 {
        let key = last.and_then(|step| step.output_key.as_deref());
        let place = key.map_or_else(String::new, |key| format!("; the whole output is at key `{key}`"));
        let _ = writeln!(text, "  [truncated — {omitted} chars omitted{place}]");
    }
}

fn single_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
