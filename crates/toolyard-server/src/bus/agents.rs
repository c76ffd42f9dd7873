//! Agents on the bus: those of other processes, and the gateway itself.

use std::sync::Arc;

use tokio::task::JoinSet;
use toolyard_a2a::Agents;
use toolyard_a2a::server::A2aServer;
use toolyard_core::store::Store;
use toolyard_manifest::ProcessSettings;

use super::connected;
use crate::context::GatewayContext;
use crate::frontends::FrontendDeps;
use crate::shutdown::Subsystem;
use crate::start::{BusRole, StartError};

/// Gives the agents of a gateway the bus of its settings, if there is one. It is connected to once agents are used.
pub(crate) fn connect(agents: &Agents, process: &ProcessSettings, store: &Arc<dyn Store>) {
    if process.bus.url.is_some()
        && let Some(bus) = connected::agents::bus(&process.bus, store)
    {
        agents.connect(bus);
    }
}

/// Starts the gateway as an agent on the bus, if it is one. A bridge and a scripts manager are none.
///
/// # Errors
/// If the settings have no URL that a broker's client accepts, or the name cannot be part of a topic.
pub(crate) fn start(
    context: &GatewayContext,
    role: BusRole,
    deps: &FrontendDeps<'_>,
) -> Result<Box<dyn Subsystem>, StartError> {
    let process = &context.process;
    let is_agent = matches!(role, BusRole::None | BusRole::Worker) && process.bus.url.is_some();
    let agent: Option<(&A2aServer, _)> = deps.a2a.zip(process.a2a.as_ref());
    match agent.filter(|(_, settings)| is_agent && settings.bus) {
        Some((server, settings)) => {
            connected::agents::start(context, deps, server, settings).map_err(StartError::Bus)
        }
        None => Ok(Box::new(JoinSet::new())),
    }
}
