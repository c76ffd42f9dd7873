//! The tools for scheduled tasks.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{Context, RegisterError, Server, Tool, ToolAnnotations, ToolFailure};

use crate::error::ScheduleError;
use crate::resources;
use crate::schedules::{NewTask, Schedules};
use crate::task::ScheduleOwner;
use crate::texts;

/// Names of the tools, as agents know them.
pub const SCHEDULE: &str = "schedule_task";
/// See [`SCHEDULE`].
pub const LIST: &str = "list_scheduled_tasks";
/// See [`SCHEDULE`].
pub const CANCEL: &str = "cancel_scheduled_task";
/// Names of all tools.
pub const NAMES: [&str; 3] = [SCHEDULE, LIST, CANCEL];

const ABOUT_SCHEDULE: &str = "\
Schedules a task that the gateway fires later with its description, or replaces the task of this name. For a time such \
as \"in two hours\", read the current time with list_scheduled_tasks, pin the cron fields to the target time and set \
run_once.";

const ABOUT_LIST: &str =
    "Lists your scheduled tasks with their next runs, the last runs, and the current time and time zone.";

const ABOUT_CANCEL: &str = "Removes a scheduled task.";

#[derive(Debug, Deserialize, JsonSchema)]
struct ScheduleTaskArgs {
    /// Such as "morning-report"
    name: String,
    /// 5 fields "minute hour day-of-month month day-of-week", or 6 with the second first; both day fields must match. Such as
    /// "0 9 * * 1-5"
    cron: String,
    /// Instruction for the run, with all that it needs
    description: String,
    /// Remove the task after its first run
    #[serde(default, alias = "runOnce")]
    run_once: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct CancelTaskArgs {
    /// As list_scheduled_tasks shows it
    name: String,
}

/// Adds the tools and the resources to a server.
///
/// # Errors
/// Returns an error if the server already has a tool or a resource of one of these names.
pub fn add(server: Server, schedules: &Schedules) -> Result<Server, RegisterError> {
    let [to_schedule, to_list, to_cancel] = [(); 3].map(|()| schedules.clone());
    let server = server
        .register_tool(schedule_tool(), async move |context: Context, args: ScheduleTaskArgs| {
            schedule_task(&to_schedule, &owner(&context), args).await
        })?
        .register_tool(list_tool(), async move |context: Context| {
            list_tasks(&to_list, &owner(&context)).await
        })?
        .register_tool(cancel_tool(), async move |context: Context, args: CancelTaskArgs| {
            cancel_task(&to_cancel, &owner(&context), &args.name).await
        })?;
    resources::add(server, schedules)
}

pub(crate) fn owner(context: &Context) -> ScheduleOwner {
    ScheduleOwner::of(context.caller())
}

async fn schedule_task(
    schedules: &Schedules,
    owner: &ScheduleOwner,
    args: ScheduleTaskArgs,
) -> Result<String, ToolFailure> {
    let ScheduleTaskArgs { name, cron, description, run_once } = args;
    let cron = cron.parse().map_err(ScheduleError::Cron)?;
    let new = NewTask { name, cron, description, run_once: run_once.unwrap_or_default() };
    let (task, replaced) = schedules.schedule(owner, new).await?;
    let (_, zone) = schedules.current()?;
    Ok(texts::scheduled(&task, replaced, &zone, schedules.now()))
}

async fn list_tasks(schedules: &Schedules, owner: &ScheduleOwner) -> Result<String, ToolFailure> {
    let (_, zone) = schedules.current()?;
    let (tasks, runs) = schedules.list(owner).await?;
    Ok(texts::list(&tasks, &runs, &zone, schedules.now()))
}

async fn cancel_task(
    schedules: &Schedules,
    owner: &ScheduleOwner,
    name: &str,
) -> Result<String, ToolFailure> {
    let mut cancelled = schedules.cancel(owner, name).await?;
    if cancelled.is_none() {
        // The table escapes the name.
        cancelled = schedules.cancel(owner, &texts::cell_text(name)).await?;
    }
    Ok(texts::cancelled(name, cancelled.as_ref()))
}

fn schedule_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(true).idempotent(true).open_world(false);
    Tool::new(SCHEDULE, ABOUT_SCHEDULE).annotations(hints)
}

fn list_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(LIST, ABOUT_LIST).annotations(hints)
}

fn cancel_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(true).idempotent(true).open_world(false);
    Tool::new(CANCEL, ABOUT_CANCEL).annotations(hints)
}

#[cfg(test)]
mod tests;
