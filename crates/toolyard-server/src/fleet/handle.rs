//! The channels between the fleet and the other parts of the gateway. They exist before the fleet, because handlers use
//! parts that use the fleet.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use toolyard_core::Registry;

use super::{FleetCommand, HandlerStatus};

/// A handle to the fleet. It does not keep the fleet running.
pub(crate) struct FleetHandle {
    /// The registry of what can be called.
    pub(crate) registry: watch::Receiver<Arc<Registry>>,
    /// Status of each handler, in the order of the manifest.
    pub(crate) statuses: watch::Receiver<Arc<[HandlerStatus]>>,
    /// Commands to the fleet. Dead once the gateway stops.
    pub(crate) commands: mpsc::WeakSender<FleetCommand>,
}

/// The fleet before its start: its ends of the channels.
pub(crate) struct UnstartedFleet {
    /// The fleet ends when this sender is dropped.
    pub(crate) commands: mpsc::Sender<FleetCommand>,
    pub(super) received_commands: mpsc::Receiver<FleetCommand>,
    pub(super) registry: watch::Sender<Arc<Registry>>,
    pub(super) statuses: watch::Sender<Arc<[HandlerStatus]>>,
}

impl UnstartedFleet {
    /// Creates the channels of a fleet.
    pub(crate) fn new() -> (Self, FleetHandle) {
        let (registry, registry_now) = watch::channel(Arc::default());
        let (statuses, statuses_now) = watch::channel(Arc::default());
        let (commands, received_commands) = mpsc::channel(1);
        let handle =
            FleetHandle { registry: registry_now, statuses: statuses_now, commands: commands.downgrade() };
        (Self { commands, received_commands, registry, statuses }, handle)
    }
}
