//! `/agents`: the other agents that the gateway knows, for operators.

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolyard_a2a::directory::{AgentSource, KnownAgent};
use toolyard_core::timestamp::iso_8601;

use super::query::NoQuery;
use super::{Rest, RestResult, json_value};

#[derive(Serialize)]
struct AgentList<'a> {
    /// `false`: the manifest has no other agents.
    enabled: bool,
    agents: Vec<AgentEntry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentEntry<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    source: &'static str,
    /// `true` if the file has the agent.
    well_known: bool,
    /// Time at which the card was last read or announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen: Option<String>,
    /// Reason why the agent is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
    skills: Vec<SkillEntry<'a>>,
}

#[derive(Serialize)]
struct SkillEntry<'a> {
    id: &'a str,
    name: &'a str,
    description: &'a str,
}

/// `GET /agents`: the agents, by name.
pub(super) async fn list(State(rest): Rest, _: NoQuery) -> RestResult {
    let enabled = rest.agents.is_enabled();
    let known = if enabled { rest.agents.directory().all() } else { Vec::new() };
    let agents = known.iter().map(AgentEntry::of).collect();
    json_value(StatusCode::OK, &AgentList { enabled, agents })
}

impl<'a> AgentEntry<'a> {
    fn of(agent: &'a KnownAgent) -> Self {
        let KnownAgent { card, source, is_well_known, last_seen, problem } = agent;
        Self {
            name: &card.name,
            description: &card.description,
            version: &card.version,
            source: match source {
                AgentSource::Card(_) => "card",
                AgentSource::File => "file",
                AgentSource::Bus => "bus",
            },
            well_known: *is_well_known,
            last_seen: last_seen.map(iso_8601),
            problem: problem.as_deref(),
            skills: card
                .skills
                .iter()
                .map(|skill| SkillEntry { id: &skill.id, name: &skill.name, description: &skill.description })
                .collect(),
        }
    }
}
