//! The tools for other agents.

use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use toolyard_agent::memory::{MemoryCaller, WorkingMemory};
use toolyard_core::Call;
use toolyard_sdk::{Context, RegisterError, Server, Tool, ToolAnnotations, ToolFailure};

use crate::agents::{Agents, NewAgentTask, TaskCaller};
use crate::error::InvokeError;
use crate::tasks::AgentTask;
use crate::{resources, texts};

/// Names of the tools, as agents know them.
pub const INVOKE: &str = "invoke_agent";
/// See [`INVOKE`].
pub const LIST: &str = "list_known_agents";
/// See [`INVOKE`].
pub const DETAILS: &str = "get_agent_details";
/// Names of all tools.
pub const NAMES: [&str; 3] = [INVOKE, LIST, DETAILS];

/// Time limit of a task whose caller names none, in minutes.
const DEFAULT_MINUTES: f64 = 5.0;

const ABOUT_INVOKE: &str = "\
Invokes another agent by its name and one of its skills. Returns a task_id at once; the agent's result arrives later, in \
working memory and in a resource. Call list_known_agents first to see the agents and their skills.";

const ABOUT_LIST: &str = "Lists the other agents that are known, with their skills.";

const ABOUT_DETAILS: &str = "Returns all that is known about an agent, such as examples for its skills.";

// Arguments of `invoke_agent`. The texts of documentation are part of the schema.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct InvokeAgentArgs {
    /// As list_known_agents shows it
    agent_name: String,
    /// Id of a skill of the agent
    skill: String,
    /// Instruction for the agent, with all that it needs
    message: String,
    /// Time limit in minutes, 5 by default
    #[serde(default)]
    timeout_minutes: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ListAgentsArgs {
    /// Only agents with the skill of this id
    #[serde(default)]
    skill: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct AgentDetailsArgs {
    /// As list_known_agents shows it
    agent_name: String,
}

/// Adds the tools and the resources to a server. Results go to `memory`, if there is one.
///
/// # Errors
/// Returns an error if the server already has a tool or a resource of one of these names.
pub fn add(server: Server, agents: &Agents, memory: Option<WorkingMemory>) -> Result<Server, RegisterError> {
    let [to_invoke, to_list, to_describe] = [(); 3].map(|()| agents.clone());
    let server = server
        .register_tool(invoke_tool(), async move |context: Context, args: InvokeAgentArgs| {
            let invocation = invoke_agent(&to_invoke, memory.as_ref(), context.call(), args).await?;
            Ok::<_, ToolFailure>(invocation.into_text())
        })?
        .register_tool(read_only(LIST, ABOUT_LIST), async move |args: ListAgentsArgs| {
            list_known_agents(&to_list, args.skill.as_deref())
        })?
        .register_tool(read_only(DETAILS, ABOUT_DETAILS), async move |args: AgentDetailsArgs| {
            get_agent_details(&to_describe, &args.agent_name)
        })?;
    resources::add(server, agents)
}

/// Outcome of [`INVOKE`].
pub(crate) enum Invocation {
    /// The task has started.
    Started(AgentTask),
    /// There is no such agent or skill: a text about those that are known.
    Text(String),
}

impl Invocation {
    /// Returns the text for a model that reads the answer of the agent later.
    fn into_text(self) -> String {
        match self {
            Self::Started(task) => texts::dispatched(&task, &resources::task_uri(&task.id)),
            Self::Text(text) => text,
        }
    }
}

/// Starts the task that a call describes.
///
/// # Errors
/// If the task cannot start.
pub(crate) async fn invoke_agent(
    agents: &Agents,
    memory: Option<&WorkingMemory>,
    call: &Call,
    args: InvokeAgentArgs,
) -> Result<Invocation, InvokeError> {
    let InvokeAgentArgs { agent_name, skill, message, timeout_minutes } = args;
    let settings = agents.settings()?;
    if agents.is_own(&agent_name) {
        return Err(InvokeError::OwnAgent(agent_name.trim().to_owned()));
    }
    let Some(agent) = agents.directory().find(&agent_name) else {
        return Ok(Invocation::Text(texts::unknown_agent(&agent_name, &agents.directory().all())));
    };
    if let Some(reason) = agent.problem {
        return Err(InvokeError::Unavailable { agent: agent.card.name.clone(), reason });
    }
    let skill = match agent.card.skill(skill.trim()) {
        Some(known) => known.id.clone(),
        // A card without skills says nothing about them.
        None if agent.card.skills.is_empty() => skill.trim().to_owned(),
        None => return Ok(Invocation::Text(texts::unknown_skill(&agent, &skill))),
    };
    if message.trim().is_empty() {
        return Err(InvokeError::NoMessage);
    }
    let time = task_time(timeout_minutes.unwrap_or(DEFAULT_MINUTES), settings.max_task_time)?;
    let caller = TaskCaller {
        caller: call.caller.clone(),
        memory: memory.map(|memory| (memory.clone(), MemoryCaller::of_call(call))),
    };
    let task = agents.start(&caller, NewAgentTask { agent, skill, message, time }).await?;
    Ok(Invocation::Started(task))
}

/// Returns the time limit of a task.
fn task_time(minutes: f64, longest: Duration) -> Result<Duration, InvokeError> {
    let time = Duration::try_from_secs_f64(minutes * 60.0).ok();
    let time = time.filter(|time| !time.is_zero() && *time <= longest);
    time.ok_or(InvokeError::BadTimeout(longest.as_secs_f64() / 60.0))
}

fn list_known_agents(agents: &Agents, skill: Option<&str>) -> Result<String, ToolFailure> {
    agents.settings()?;
    let skill = skill.map(str::trim).filter(|skill| !skill.is_empty());
    let mut known = agents.directory().all();
    if let Some(skill) = skill {
        known.retain(|agent| agent.card.skill(skill).is_some());
    }
    Ok(texts::agent_list(&known, skill, agents.directory().now()))
}

fn get_agent_details(agents: &Agents, name: &str) -> Result<String, ToolFailure> {
    agents.settings()?;
    let directory = agents.directory();
    Ok(match directory.find(name) {
        Some(agent) => texts::agent_details(&agent, directory.now()),
        None => texts::unknown_agent(name, &directory.all()),
    })
}

fn invoke_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true);
    Tool::new(INVOKE, ABOUT_INVOKE).annotations(hints)
}

fn read_only(name: &str, about: &str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(name, about).annotations(hints)
}

#[cfg(test)]
mod tests;
