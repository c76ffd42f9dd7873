//! The resources that hold the results of tasks. Each caller reads those of its owner.

use std::sync::Arc;

use futures_util::stream::BoxStream;
use toolyard_core::{Backend, BackendWrapper, Caller, Object, UriTemplate, resource_updates};
use toolyard_manifest::ScheduleSettings;
use toolyard_sdk::{Context, NotFound, RegisterError, Resource, ResourceTemplate, Server, ToolFailure};

use crate::schedules::Schedules;
use crate::task::{ScheduleOwner, folded};
use crate::texts;
use crate::tools::owner;

/// URI of the tasks and the history of a caller.
pub const TASKS_URI: &str = "toolyard://schedules";

/// URI of a task, with its name percent-encoded.
pub const TASK_URI: &str = "toolyard://schedules/{name}";

/// Adds the resources to a server.
pub(crate) fn add(server: Server, schedules: &Schedules) -> Result<Server, RegisterError> {
    let [all, one] = [(); 2].map(|()| schedules.clone());
    let tasks = Resource::new(TASKS_URI, "scheduled-tasks")
        .description("Scheduled tasks and the results of their last runs.")
        .mime_type("text/markdown");
    let task = ResourceTemplate::new(TASK_URI, "scheduled-task")
        .description("Results of the last runs of a scheduled task.")
        .mime_type("text/markdown");
    server
        .resource(tasks, async move |context: Context| read_tasks(&all, &owner(&context)).await)?
        .resource_template(task, async move |context: Context, name: String| {
            read_task(&one, &owner(&context), &name).await
        })
}

async fn read_tasks(schedules: &Schedules, owner: &ScheduleOwner) -> Result<String, ToolFailure> {
    let (_, zone) = schedules.current()?;
    let (tasks, runs) = schedules.list(owner).await?;
    let list = texts::list(&tasks, &[], &zone, schedules.now());
    Ok(format!("# Scheduled tasks\n\n{list}{}", texts::history(runs.iter(), &zone)))
}

async fn read_task(schedules: &Schedules, owner: &ScheduleOwner, name: &str) -> Result<String, ToolFailure> {
    let (_, zone) = schedules.current()?;
    let (mut tasks, runs) = schedules.list(owner).await?;
    let name = folded(name);
    tasks.retain(|task| folded(&task.name) == name);
    let mut runs = runs.iter().filter(|run| folded(&run.task) == name).peekable();
    if tasks.is_empty() && runs.peek().is_none() {
        return Err(NotFound.into());
    }
    let list = texts::list(&tasks, &[], &zone, schedules.now());
    Ok(format!("# Scheduled task\n\n{list}{}", texts::history(runs, &zone)))
}

/// A backend that notifies the subscribers of these resources of the changes of their own tasks. Tasks are scheduled and
/// fired while it exists.
pub struct ScheduleBackend {
    inner: Arc<dyn Backend>,
    schedules: Schedules,
    settings: Arc<ScheduleSettings>,
    task_uri: Option<UriTemplate>,
}

impl ScheduleBackend {
    /// Wraps a backend with these resources, and enables the schedules with these settings.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, schedules: Schedules, settings: ScheduleSettings) -> Self {
        let settings = Arc::new(settings);
        schedules.enable(Some(settings.clone()));
        Self { inner, schedules, settings, task_uri: UriTemplate::parse(TASK_URI).ok() }
    }

    /// Returns the name of the task with this URI.
    fn task(&self, uri: &str) -> Option<String> {
        let variables = self.task_uri.as_ref()?.matches(uri)?;
        variables.into_iter().next().map(|(_, name)| folded(&name))
    }
}

impl Drop for ScheduleBackend {
    fn drop(&mut self) {
        self.schedules.disable(&self.settings);
    }
}

impl BackendWrapper for ScheduleBackend {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn follow(&self, uri: &str, caller: &Caller) -> BoxStream<'static, Object> {
        let task = match uri == TASKS_URI {
            true => None,
            false => match self.task(uri) {
                Some(task) => Some(task),
                None => return self.inner.follow(uri, caller),
            },
        };
        let owner = ScheduleOwner::of(caller);
        resource_updates(self.schedules.updates().subscribe(), uri, move |update| {
            update.owner == owner && task.as_ref().is_none_or(|task| *task == update.task)
        })
    }
}
