//! The resources that hold the results of tasks. Each caller reads those of its own key.

use toolyard_core::UriTemplate;
use toolyard_sdk::{Context, NotFound, RegisterError, Resource, ResourceTemplate, Server, ToolFailure};

use crate::agents::Agents;
use crate::tasks::AgentTaskOwner;
use crate::texts;

/// URI of the tasks of a caller.
pub const TASKS_URI: &str = "toolyard://agents/tasks";

/// URI of a task.
pub const TASK_URI: &str = "toolyard://agents/tasks/{id}";

/// Returns the URI of a task.
pub(crate) fn task_uri(id: &str) -> String {
    format!("{TASKS_URI}/{id}")
}

/// Adds the resources to a server.
pub(crate) fn add(server: Server, agents: &Agents) -> Result<Server, RegisterError> {
    let [all, one] = [(); 2].map(|()| agents.clone());
    let tasks = Resource::new(TASKS_URI, "agent-tasks")
        .description("Tasks of other agents and their states.")
        .mime_type("text/markdown");
    let task = ResourceTemplate::new(TASK_URI, "agent-task")
        .description("Result of a task of another agent.")
        .mime_type("text/markdown");
    server
        .resource(tasks, async move |context: Context| read_tasks(&all, &owner(&context)).await)?
        .resource_template(task, async move |context: Context, id: String| {
            read_task(&one, &owner(&context), &id).await
        })
}

fn owner(context: &Context) -> AgentTaskOwner {
    AgentTaskOwner::of(context.caller())
}

async fn read_tasks(agents: &Agents, owner: &AgentTaskOwner) -> Result<String, ToolFailure> {
    Ok(texts::task_list(&agents.tasks(owner).await?, agents.directory().now()))
}

async fn read_task(agents: &Agents, owner: &AgentTaskOwner, id: &str) -> Result<String, ToolFailure> {
    let tasks = agents.tasks(owner).await?;
    match tasks.iter().find(|task| task.id == id) {
        Some(task) => Ok(texts::task_result(task, agents.directory().now())),
        None => Err(NotFound.into()),
    }
}

/// A resource of tasks.
pub(crate) enum TaskResource {
    /// The list of a caller's tasks.
    List,
    /// The task of this id.
    One(String),
}

/// The URIs of the resources.
pub(crate) struct TaskResources(Option<UriTemplate>);

impl TaskResources {
    pub(crate) fn new() -> Self {
        Self(UriTemplate::parse(TASK_URI).ok())
    }

    /// Returns the resource of this URI; `None` for a URI of others.
    pub(crate) fn find(&self, uri: &str) -> Option<TaskResource> {
        if uri == TASKS_URI {
            return Some(TaskResource::List);
        }
        let variables = self.0.as_ref()?.matches(uri)?;
        variables.into_iter().next().map(|(_, id)| TaskResource::One(id))
    }
}
