//! Shared parts of all controllers, and [`run`], which runs them.
//!
//! A controller is a future that ends only when it is dropped: `controller(context)` of [`crate::language_tool`],
//! [`crate::tool_registry`] and [`crate::agent_injection`]. It waits for its definition ([`wait_for_definition`]),
//! watches its resource and the objects that it manages, computes the desired objects by a pure function, and sends only
//! differences ([`apply`], [`apply_status`], [`delete`]). [`error_policy`] repeats a failed reconciliation.
//!
//! - `config`: [`OperatorConfig`]; `context`: [`Context`]; `facts`: [`ClusterFacts`];
//! - `apply`: requests to the server; `difference`: the comparison before them; `contention`: [`RestoredObjects`], which
//!   delays writes that other managers undo;
//! - `discovery`: [`ToolDiscovery`], which the composition root implements;
//! - `leader`: election of the replica that runs the controllers; `listener`: health and metrics;
//! - `watches`: streams of changes;
//! - `run`: the start and the end of all of it.

mod apply;
mod config;
mod contention;
mod context;
mod definition;
pub mod difference;
mod discovery;
mod error;
mod facts;
pub mod leader;
mod listener;
mod metrics;
mod run;
mod watches;

pub(crate) use apply::to_value;
pub use apply::{
    Applied, apply, apply_status, apply_status_value, apply_value, delete, delete_value, owner_of,
};
pub use config::{LeaderElection, OperatorConfig};
pub use contention::RestoredObjects;
pub use context::Context;
pub use definition::wait_for_definition;
pub use discovery::{DiscoveryError, ListedTool, ToolDiscovery};
pub(crate) use error::resource_key;
pub use error::{ControllerError, RetryDelays, error_policy};
pub use facts::ClusterFacts;
pub use listener::serve as serve_health;
pub use metrics::OperatorMetrics;
pub use run::run;
pub(crate) use watches::{
    WatchedKind, watch, watched, watched_api, watched_dynamic_api, with_labels, without_errors,
    without_managed_fields,
};
