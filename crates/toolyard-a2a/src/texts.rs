//! Texts that a model reads.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::directory::KnownAgent;
use crate::directory::age::{age, last_seen};
use crate::tasks::{AgentTask, CUT_MARK};

/// Maximum number of names in a text about an unknown one.
const MAX_NAMES: usize = 20;

/// An agent in the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedAgent<'a> {
    agent_name: &'a str,
    description: &'a str,
    last_seen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<&'a str>,
    skills: Vec<ListedSkill<'a>>,
}

#[derive(Serialize)]
struct ListedSkill<'a> {
    id: &'a str,
    description: &'a str,
}

/// All that is known about an agent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentDetails<'a> {
    agent_name: &'a str,
    description: &'a str,
    version: &'a str,
    url: Option<&'a str>,
    has_auth: bool,
    supports_streaming: bool,
    is_well_known: bool,
    last_seen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<&'a str>,
    skills: Vec<DetailedSkill<'a>>,
}

#[derive(Serialize)]
struct DetailedSkill<'a> {
    id: &'a str,
    name: &'a str,
    description: &'a str,
    tags: &'a [String],
    examples: &'a [String],
}

/// Returns the text of `list_known_agents`.
pub(crate) fn agent_list(agents: &[KnownAgent], skill: Option<&str>, now: SystemTime) -> String {
    if agents.is_empty() {
        return match skill {
            None => "No agents have announced themselves yet.".to_owned(),
            Some(skill) => format!("No agents found with skill '{skill}'."),
        };
    }
    let listed = agents.iter().map(|agent| ListedAgent {
        agent_name: &agent.card.name,
        description: &agent.card.description,
        last_seen: last_seen(agent, now),
        unavailable: agent.problem.as_deref(),
        skills: agent
            .card
            .skills
            .iter()
            .map(|skill| ListedSkill { id: &skill.id, description: &skill.description })
            .collect(),
    });
    json(&listed.collect::<Vec<_>>())
}

/// Returns the text of `get_agent_details`.
pub(crate) fn agent_details(agent: &KnownAgent, now: SystemTime) -> String {
    let card = &agent.card;
    json(&AgentDetails {
        agent_name: &card.name,
        description: &card.description,
        version: &card.version,
        url: card.json_rpc().map(|(interface, _)| without_query(&interface.url)),
        has_auth: card.has_authentication(),
        supports_streaming: card.capabilities.streaming,
        is_well_known: agent.is_well_known,
        last_seen: last_seen(agent, now),
        unavailable: agent.problem.as_deref(),
        skills: card
            .skills
            .iter()
            .map(|skill| DetailedSkill {
                id: &skill.id,
                name: &skill.name,
                description: &skill.description,
                tags: &skill.tags,
                examples: &skill.examples,
            })
            .collect(),
    })
}

/// Returns the text about an agent that is not known.
pub(crate) fn unknown_agent(name: &str, known: &[KnownAgent]) -> String {
    let name = name.trim();
    let names: Vec<_> = known.iter().take(MAX_NAMES).map(|agent| agent.card.name.as_str()).collect();
    match names.is_empty() {
        true => format!("No agent named '{name}' is known. No agents have announced themselves yet."),
        false => format!("No agent named '{name}' is known. Known agents: {}.", names.join(", ")),
    }
}

/// Returns the text about a skill that an agent does not have.
pub(crate) fn unknown_skill(agent: &KnownAgent, skill: &str) -> String {
    let ids: Vec<_> = agent.card.skills.iter().take(MAX_NAMES).map(|skill| skill.id.as_str()).collect();
    format!(
        "The agent '{}' has no skill '{}'. Its skills: {}.",
        agent.card.name,
        skill.trim(),
        ids.join(", ")
    )
}

/// Returns the text of `invoke_agent`.
pub(crate) fn dispatched(task: &AgentTask, uri: &str) -> String {
    let AgentTask { id, agent, result_key, .. } = task;
    let mut text = format!(
        "Task dispatched to agent '{agent}' with task_id: {id}. The result will arrive asynchronously and fold into the \
         conversation."
    );
    if let Some(key) = result_key {
        let _ =
            write!(text, " It will be in working memory under the key `{key}`, and in the resource {uri}.");
    } else {
        let _ = write!(text, " It will be in the resource {uri}.");
    }
    text
}

/// Returns the tasks of a caller as Markdown.
pub(crate) fn task_list(tasks: &[AgentTask], now: SystemTime) -> String {
    if tasks.is_empty() {
        return "# Tasks of agents\n\nNo tasks.\n".to_owned();
    }
    let mut text = "# Tasks of agents\n\n".to_owned();
    for task in tasks {
        let AgentTask { id, agent, skill, state, .. } = task;
        let _ =
            writeln!(text, "- {id}: {agent} ({skill}), {}, started {}", state.word(), ago(task.started, now));
    }
    text
}

/// Returns a task with its result as Markdown.
pub(crate) fn task_result(task: &AgentTask, now: SystemTime) -> String {
    let AgentTask { id, agent, skill, state, .. } = task;
    let mut text = format!(
        "# Task {id}\n\n- agent: {agent}\n- skill: {skill}\n- state: {}\n- started: {}\n",
        state.word(),
        ago(task.started, now)
    );
    if let Some(ended) = task.ended {
        let _ = writeln!(text, "- ended: {}", ago(ended, now));
    }
    if let Some(key) = task.result_key.as_ref().filter(|_| task.ended.is_some()) {
        let _ = writeln!(text, "- whole result in working memory: `{key}`");
    }
    if !task.text.is_empty() {
        let _ = writeln!(text, "\n{}", task.text);
    }
    text
}

/// Returns the answer of the agent, as the result of the call that has started the task.
pub(crate) fn task_answer(task: &AgentTask) -> String {
    let AgentTask { text, result_key, .. } = task;
    match result_key.as_ref().filter(|_| text.ends_with(CUT_MARK)) {
        Some(key) => format!("{text}\n\nThe whole result is in working memory under the key `{key}`."),
        None => text.clone(),
    }
}

fn ago(time: u64, now: SystemTime) -> String {
    age(now.duration_since(UNIX_EPOCH + Duration::from_millis(time)).unwrap_or_default())
}

/// Returns a URL without its query, which may be a secret.
fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(url, _)| url)
}

fn json(value: &impl Serialize) -> String {
    // It has only strings as keys.
    serde_json::to_string_pretty(value).unwrap_or_default()
}
