//! `/schedules`: the scheduled tasks of all keys, for operators.

use std::time::{Duration, UNIX_EPOCH};

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolyard_core::timestamp::iso_8601;
use toolyard_schedule::error::ScheduleError;
use toolyard_schedule::task::{ScheduledTask, TaskRun};
use toolyard_schedule::{ScheduleOwner, TaskRunOutcome};

use super::extract::{AuditRecorder, UrlPath};
use super::key_reference::KeyReference;
use super::query::NoQuery;
use super::{ProblemDetails, Rest, RestResult, RestState, json_value};
use crate::audit::AuditAction;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskList<'a> {
    /// `false`: tasks do not fire, because the manifest does not enable schedules.
    enabled: bool,
    /// Time zone of the cron expressions.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    tasks: Vec<TaskEntry<'a>>,
}

/// A task of a key.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskEntry<'a> {
    id: &'a str,
    /// The key that has scheduled it. None for callers without a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<KeyReference<'a>>,
    name: &'a str,
    cron: &'a str,
    description: &'a str,
    run_once: bool,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<RunEntry<'a>>,
}

#[derive(Serialize)]
struct RunEntry<'a> {
    due: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    outcome: TaskRunOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a str>,
}

#[derive(Serialize)]
struct TaskHistory<'a> {
    runs: Vec<RunEntry<'a>>,
}

/// `GET /schedules`: all tasks, by key and name.
pub(super) async fn list(State(rest): Rest, _: NoQuery) -> RestResult {
    let tasks = rest.schedules.all().await?;
    let time_zone = rest.schedules.time_zone();
    let tasks = tasks.iter().map(|(owner, task)| entry(&rest, owner, task)).collect();
    json_value(StatusCode::OK, &TaskList { enabled: time_zone.is_some(), time_zone, tasks })
}

/// `GET /schedules/{id}/runs`: the last runs of a task, newest first.
pub(super) async fn runs(State(rest): Rest, UrlPath(id): UrlPath<String>, _: NoQuery) -> RestResult {
    let (owner, task) = find(&rest, &id).await?;
    let (_, runs) = rest.schedules.list(&owner).await?;
    let runs = runs.iter().filter(|run| run.is_of(&task)).map(RunEntry::of).collect();
    json_value(StatusCode::OK, &TaskHistory { runs })
}

/// `DELETE /schedules/{id}`: cancels a task. A running one finishes.
pub(super) async fn cancel(
    State(rest): Rest,
    UrlPath(id): UrlPath<String>,
    audit: AuditRecorder,
) -> RestResult {
    let (owner, _) = find(&rest, &id).await?;
    let cancelled = rest.schedules.cancel_id(&owner, &id).await?.ok_or_else(|| unknown(&id))?;
    audit.record(AuditAction::TaskCancelled, &cancelled.name);
    json_value(StatusCode::OK, &entry(&rest, &owner, &cancelled))
}

async fn find(rest: &RestState, id: &str) -> Result<(ScheduleOwner, ScheduledTask), ProblemDetails> {
    let tasks = rest.schedules.all().await?;
    tasks.into_iter().find(|(_, task)| task.id == id).ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> ProblemDetails {
    ProblemDetails::not_found(format!("unknown task {id:?}"))
}

fn entry<'a>(rest: &RestState, owner: &'a ScheduleOwner, task: &'a ScheduledTask) -> TaskEntry<'a> {
    TaskEntry {
        id: &task.id,
        key: owner.key_id().map(|id| KeyReference::of(rest, id)),
        name: &task.name,
        cron: &task.cron,
        description: &task.description,
        run_once: task.run_once,
        created: time(task.created_at),
        next: task.next_at.map(time),
        running: task.running.is_some(),
        last: task.last.map(|last| RunEntry {
            due: time(last.due),
            ended: None,
            outcome: last.outcome,
            result: None,
        }),
    }
}

impl<'a> RunEntry<'a> {
    fn of(run: &'a TaskRun) -> Self {
        Self {
            due: time(run.due),
            ended: Some(time(run.ended_at)),
            outcome: run.outcome,
            result: Some(&run.result),
        }
    }
}

/// Returns a stored time in RFC 3339.
fn time(millis: i64) -> String {
    iso_8601(UNIX_EPOCH + Duration::from_millis(millis.max(0).unsigned_abs()))
}

impl From<ScheduleError> for ProblemDetails {
    fn from(error: ScheduleError) -> Self {
        match error {
            ScheduleError::Store(error) => error.into(),
            other => Self::conflict("schedules", true, &other.to_string()),
        }
    }
}
