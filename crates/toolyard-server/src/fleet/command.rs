//! Commands to the fleet, and their outcomes.

use std::collections::HashMap;
use std::io;

use bytes::Bytes;
use tokio::sync::oneshot;
use toolyard_manifest as manifest;

use super::{AcceptError, DefinitionChange, ServerTrial};

/// A command to the fleet.
pub enum FleetCommand {
    /// Replaces the handlers of the manifest.
    Edit(EditCommand),
    /// Replaces the handlers added at run time. They come after those of the manifest, and one with the name of a
    /// manifest's handler does not run.
    Add(EditCommand),
    /// Starts a server on trial and reports the outcome.
    Try(Box<ServerTrial>),
    /// Refreshes a handler's lists. Reports whether the handler exists.
    Refresh(String, oneshot::Sender<bool>),
    /// Restarts a handler. The running one serves until its successor has answered or failed. Reports whether the
    /// handler exists.
    Restart(String, oneshot::Sender<bool>),
    /// Disables a handler until its restart or an edit of its declaration. Reports whether the handler exists.
    Disable(String, oneshot::Sender<bool>),
    /// Accepts changed tools.
    Accept(AcceptCommand),
    /// Merges acceptances of other gateways, by the keys of the handlers' records.
    MergeAcceptances(HashMap<String, Bytes>),
}

/// The changes to accept.
pub struct AcceptCommand {
    /// The handler.
    pub handler: String,
    /// One of its tools, by the upstream's name. `None`: all changed tools.
    pub tool: Option<String>,
    /// The required digest of the definition. `None`: the offered one.
    pub digest: Option<String>,
    /// Receives the accepted changes.
    pub done: oneshot::Sender<Result<Vec<DefinitionChange>, AcceptError>>,
}

/// The handlers after an edit.
pub struct EditCommand {
    /// The handlers in order.
    pub handlers: Vec<manifest::HandlerConfig>,
    /// Receives the outcome.
    pub done: oneshot::Sender<io::Result<FleetDifference>>,
}

/// The outcome of an edit, by names of handlers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetDifference {
    /// New handlers.
    pub added: Vec<String>,
    /// Handlers that publish their tools differently or were rebuilt. A rebuilt handler serves in its previous form
    /// until its successor has answered.
    pub changed: Vec<String>,
    /// Removed handlers.
    pub removed: Vec<String>,
    /// Number of unchanged handlers.
    pub unchanged: usize,
}
