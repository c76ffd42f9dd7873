//! The message bus: the part of this process on it, the services of other processes, and dead letters.
//!
//! - `connected`: everything that needs a broker; a build without the bus has `not_in_this_build` in its place;
//! - `scripts`: the runner that sends scripts to a scripts manager;
//! - `bridge`: the servers of a bridge;
//! - `agents`: agents of other processes, and the gateway as an agent.

pub(crate) mod agents;
mod bridge;
mod connected;
pub(crate) mod scripts;

use std::sync::Arc;

use serde::Serialize;
use tokio::task::JoinSet;
use toolyard_core::ErrorCode;
use toolyard_manifest::BusSettings;

use crate::context::GatewayContext;
use crate::frontends::FrontendDeps;
use crate::shutdown::Subsystem;
use crate::start::{BusRole, StartError};
use crate::summaries::ServerSummaries;

pub(crate) use bridge::bridged_servers;
pub(crate) use connected::connect;
pub use connected::dead_letters;
pub(crate) use connected::publisher;

/// A dead letter, for its reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadMessage {
    /// Topic of the message.
    pub topic: String,
    /// Id of the message.
    pub message_id: String,
    /// Type of the message.
    pub message_type: String,
    /// Name of the sender.
    pub source: String,
    /// Time of sending in RFC 3339, if it is known.
    pub time: Option<String>,
    /// Reason why it is a dead letter.
    pub reason: String,
    /// Number of deliveries, if it is known.
    pub attempts: Option<u32>,
    /// Size of the body in bytes.
    pub bytes: usize,
    /// The body, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// A selection of dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterQuery {
    /// Topic or pattern that the group has subscribed to.
    pub topic: String,
    /// Name of the group.
    pub group: String,
    /// Maximum number of messages, the oldest first.
    pub limit: usize,
    /// Includes the bodies, which may contain secrets.
    pub bodies: bool,
}

/// A failure of the bus, for its reader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BusFailure {
    /// Code of the failure.
    pub code: ErrorCode,
    /// Message, with the cause.
    pub message: String,
}

/// Checks that a process with a part on the bus has a broker. The check precedes all subsystems, so that a refusal stops
/// none.
///
/// # Errors
/// If the settings have no URL, or if this build has no bus.
pub(crate) fn check(role: BusRole, settings: &BusSettings) -> Result<(), StartError> {
    match role {
        BusRole::None => Ok(()),
        BusRole::Worker | BusRole::Bridge | BusRole::ScriptsManager => {
            connected::check(settings).map_err(StartError::Bus)
        }
    }
}

/// Starts the part of this process on the bus.
///
/// # Errors
/// If the settings have no URL that a broker's client accepts, or if this build has no bus.
pub(crate) fn start(
    context: &GatewayContext,
    role: BusRole,
    deps: &FrontendDeps<'_>,
    summaries: &Arc<ServerSummaries>,
) -> Result<Box<dyn Subsystem>, StartError> {
    let started = match role {
        BusRole::None => Ok(Box::new(JoinSet::new()) as Box<dyn Subsystem>),
        BusRole::Worker => connected::start_worker(context, deps),
        BusRole::Bridge => connected::bridge::start(context, deps, summaries),
        BusRole::ScriptsManager => connected::scripts::start_manager(context, deps),
    };
    started.map_err(StartError::Bus)
}
