//! A build without the message bus: refuses what needs a broker.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, ready};
use toolyard_core::ErrorCode;
use toolyard_core::store::Store;
use toolyard_manifest::BusSettings;
use toolyard_schedule::{MessagePublisher, TaskMessage};

use super::{BusFailure, DeadLetterQuery, DeadMessage};
use crate::context::GatewayContext;
use crate::frontends::FrontendDeps;
use crate::shutdown::Subsystem;

const REFUSAL: &str =
    "this build has no message bus: use the program of a release, or build it with `--features full`";

fn refusal<T>() -> Result<T, BusFailure> {
    Err(BusFailure { code: ErrorCode::Unavailable, message: REFUSAL.to_owned() })
}

pub(super) fn check(_: &BusSettings) -> Result<(), BusFailure> {
    refusal()
}

pub(super) fn start_worker(
    _: &GatewayContext,
    _: &FrontendDeps<'_>,
) -> Result<Box<dyn Subsystem>, BusFailure> {
    refusal()
}

/// Returns the publisher of the messages of scheduled tasks. The manifest refuses such tasks in this build.
pub(crate) fn publisher(_: &BusSettings) -> Arc<dyn MessagePublisher> {
    Arc::new(MissingBus)
}

struct MissingBus;

impl MessagePublisher for MissingBus {
    fn publish(&self, _: TaskMessage) -> BoxFuture<'_, Result<(), String>> {
        ready(Err(REFUSAL.to_owned())).boxed()
    }
}

/// Refuses to read: this build has no message bus.
///
/// # Errors
/// Always.
pub async fn dead_letters(_: &BusSettings, _: &DeadLetterQuery) -> Result<Vec<DeadMessage>, BusFailure> {
    refusal()
}

pub(super) mod agents {
    use toolyard_a2a::bus::AgentBus;
    use toolyard_a2a::server::A2aServer;
    use toolyard_manifest::A2aSettings;

    use super::*;

    pub(in crate::bus) fn bus(_: &BusSettings, _: &Arc<dyn Store>) -> Option<Arc<dyn AgentBus>> {
        None
    }

    pub(in crate::bus) fn start(
        _: &GatewayContext,
        _: &FrontendDeps<'_>,
        _: &A2aServer,
        _: &A2aSettings,
    ) -> Result<Box<dyn Subsystem>, BusFailure> {
        refusal()
    }
}

pub(super) mod bridge {
    use toolyard_agent::management::BridgeManager;

    use super::*;
    use crate::summaries::ServerSummaries;

    pub(in crate::bus) fn start(
        _: &GatewayContext,
        _: &FrontendDeps<'_>,
        _: &Arc<ServerSummaries>,
    ) -> Result<Box<dyn Subsystem>, BusFailure> {
        refusal()
    }

    pub(in crate::bus) fn servers(
        _: &BusSettings,
        _: &Arc<dyn Store>,
    ) -> Result<Arc<dyn BridgeManager>, BusFailure> {
        refusal()
    }
}

pub(super) mod scripts {
    use toolyard_core::ScriptExecutor;

    use super::*;

    pub(in crate::bus) fn start_manager(
        _: &GatewayContext,
        _: &FrontendDeps<'_>,
    ) -> Result<Box<dyn Subsystem>, BusFailure> {
        refusal()
    }

    pub(in crate::bus) fn runner(
        _: &BusSettings,
        _: &Arc<dyn Store>,
    ) -> Result<Arc<dyn ScriptExecutor>, BusFailure> {
        refusal()
    }
}
