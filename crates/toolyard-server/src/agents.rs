//! Other agents: reads their cards, and ends their tasks with the gateway.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use toolyard_a2a::Agents;

use crate::shutdown::Subsystem;

/// The tasks of other agents, and the reader of their cards.
pub(crate) struct AgentService {
    agents: Agents,
    _follower: JoinSet<()>,
}

/// Starts to read the cards of other agents while the built-in tools have them.
pub(crate) fn start(agents: &Agents) -> AgentService {
    let (agents, following) = (agents.clone(), agents.clone());
    let mut follower = JoinSet::new();
    follower.spawn(async move { following.follow().await });
    AgentService { agents, _follower: follower }
}

impl Subsystem for AgentService {
    fn stop(self: Box<Self>, _drain: Duration) -> BoxFuture<'static, ()> {
        // An agent may take an hour, which no drain time grants.
        Box::pin(async move { self.agents.stop().await })
    }
}
