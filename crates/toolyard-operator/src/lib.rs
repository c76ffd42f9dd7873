//! What Toolyard does in Kubernetes: scripts in pods of their own.
//!
//! - [`cluster`]: where the cluster is, and who we are there;
//! - [`script`]: scripts in pods: what such a pod is, and who makes it, waits for its end and deletes it;
//! - [`error`]: why a script was not run.
//!
//! This is no sandbox: a pod is as strong as the runtime of its node, and its policies as the network of its cluster.

pub mod cluster;
pub mod error;
pub mod script;

pub use cluster::Cluster;
pub use error::OperatorError;
pub use script::{PodOptions, PodRunner};
