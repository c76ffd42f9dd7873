//! Agents on the bus, in the forms of RockBot: their announcements, and tasks that they give each other.
//!
//! - [`record`]: the messages;
//! - [`AgentListener`]: the announcements of agents;
//! - [`AgentCaller`]: gives tasks to agents;
//! - [`BusAgent`]: an agent of this process, which announces itself and takes tasks.
//!
//! Every program with the right to write to a topic can announce agents, and send tasks and their results: the permissions
//! of the broker are the only protection.

mod announcer;
mod caller;
mod listener;
pub mod record;
mod server;

pub use caller::{AgentAnswer, AgentCaller, SentTask};
pub use listener::AgentListener;
pub use server::{AgentTaskHandler, AgentTaskOutcome, BusAgent};

use crate::bus::BusError;
use crate::topic::Topic;

/// Returns the topics of tasks, and of cancellations of tasks, for an agent.
///
/// # Errors
/// If the name cannot be part of a topic.
fn topics_of(agent: &str) -> Result<[Topic; 2], BusError> {
    let invalid = |_| {
        BusError::invalid(format!(
            "the name of the agent, {agent:?}, cannot be part of a topic: use letters, digits, `-` and `_`"
        ))
    };
    Ok([Topic::agent_task_of(agent).map_err(invalid)?, Topic::agent_cancel_of(agent).map_err(invalid)?])
}
