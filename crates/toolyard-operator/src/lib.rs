//! Kubernetes integration of Toolyard: scripts in pods.
//!
//! - [`cluster`]: connection to the cluster;
//! - [`script`]: pods of scripts, and the runner that creates, observes and deletes them;
//! - [`error`]: errors of running scripts.
//!
//! Isolation depends on the cluster: on the container runtime of its nodes, and on its network for network policies.

pub mod cluster;
pub mod error;
pub mod script;

pub use cluster::ClusterConfig;
pub use error::OperatorError;
pub use script::{PodOptions, PodRunner};
