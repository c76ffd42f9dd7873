//! Texts that agents read.

use std::fmt::Write;

use jiff::Timestamp;

use crate::task::{ScheduledTask, TaskRun, single_spaced, timestamp};
use crate::zone::ScheduleZone;

/// Maximum characters of a description in a table.
const CELL_LENGTH: usize = 80;

/// Number of runs in the list of tasks.
const LISTED_RUNS: usize = 5;

/// Maximum characters of a result in the list of tasks.
const RESULT_LENGTH: usize = 120;

pub(crate) fn scheduled(task: &ScheduledTask, replaced: bool, zone: &ScheduleZone, now: Timestamp) -> String {
    let verb = if replaced { "Replaced" } else { "Scheduled" };
    let once = if task.run_once { "Runs once: " } else { "Next run: " };
    let next = task.next_at.map_or_else(|| "none".to_owned(), |next| zone.local(timestamp(next)));
    let (name, cron) = (&task.name, &task.cron);
    format!(
        "{verb} task '{name}' with cron `{cron}`. {once}{next} ({}). {}.",
        zone.name(),
        zone.current_time(now)
    )
}

pub(crate) fn cancelled(name: &str, task: Option<&ScheduledTask>) -> String {
    match task {
        Some(task) => format!("Cancelled scheduled task '{}'.", task.name),
        None => {
            let name: String = name.trim().chars().filter(|c| !c.is_control()).take(100).collect();
            format!("No scheduled task named '{name}' was found. Call list_scheduled_tasks to see the tasks.")
        }
    }
}

/// Returns the table of tasks, with the last runs.
pub(crate) fn list(tasks: &[ScheduledTask], runs: &[TaskRun], zone: &ScheduleZone, now: Timestamp) -> String {
    let mut text = match tasks {
        [] => format!("No scheduled tasks. {}.", zone.current_time(now)),
        _ => format!(
            "{}. {} scheduled:\n\n{}",
            zone.current_time(now),
            counted(tasks.len()),
            table(tasks, zone)
        ),
    };
    if !runs.is_empty() {
        text.push_str("\n\nLast runs, newest first:\n");
        for run in runs.iter().take(LISTED_RUNS) {
            let due = zone.local(timestamp(run.due));
            let result = cut(&one_line(&run.result), RESULT_LENGTH);
            let _ = write!(text, "\n- {due} {}: {}: {result}", one_line(&run.task), run.outcome.word());
        }
    }
    text
}

fn counted(tasks: usize) -> String {
    if tasks == 1 { "1 task".to_owned() } else { format!("{tasks} tasks") }
}

fn table(tasks: &[ScheduledTask], zone: &ScheduleZone) -> String {
    let mut text =
        "| Name | Cron | Next run | Once | Last run | Description |\n| --- | --- | --- | --- | --- | --- |"
            .to_owned();
    for task in tasks {
        let next = task.next_at.map(|next| zone.local(timestamp(next)));
        let running = task.running.as_ref().map(|_| "running".to_owned());
        let next = next.into_iter().chain(running).collect::<Vec<_>>().join(", ");
        let last = task.last.map_or_else(String::new, |last| {
            format!("{} {}", zone.local(timestamp(last.due)), last.outcome.word())
        });
        let once = if task.run_once { "yes" } else { "no" };
        let (name, description) = (cell(&task.name, CELL_LENGTH * 2), cell(&task.description, CELL_LENGTH));
        let _ = write!(text, "\n| {name} | `{}` | {next} | {once} | {last} | {description} |", task.cron);
    }
    text
}

/// Returns the history of an owner, or of one of its tasks, with whole results. They are fenced, so that no result
/// passes for another run.
pub(crate) fn history<'a>(runs: impl Iterator<Item = &'a TaskRun>, zone: &ScheduleZone) -> String {
    let mut text = String::new();
    for run in runs {
        let (due, fence) = (zone.local(timestamp(run.due)), fence(&run.result));
        let (task, outcome) = (one_line(&run.task), run.outcome.word());
        let _ = write!(text, "\n\n## {due} {task}: {outcome}\n\n{fence}text\n{}\n{fence}", run.result);
    }
    if text.is_empty() { "\n\nNo runs yet.".to_owned() } else { text }
}

/// Returns a fence of a code block that the text does not contain.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

/// Returns a text for a cell of a table.
fn cell(text: &str, length: usize) -> String {
    cut(&one_line(text), length).replace('\\', r"\\").replace('|', r"\|")
}

/// Returns the text of a cell.
pub(crate) fn cell_text(cell: &str) -> String {
    cell.replace(r"\|", "|").replace(r"\\", r"\")
}

/// Returns a text in one line, without control characters.
fn one_line(text: &str) -> String {
    let mut line = single_spaced(text);
    line.retain(|c| !c.is_control());
    line
}

fn cut(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{} …", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// Cuts a result to a size in bytes.
pub(crate) fn bounded(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        let omitted = text[end..].chars().count();
        text.truncate(end);
        let _ = write!(text, "\n[result truncated — {omitted} chars omitted]");
    }
    text
}
