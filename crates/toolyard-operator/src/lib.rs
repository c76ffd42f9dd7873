//! Kubernetes integration of Toolyard: the operator of its resources, and scripts in pods.
//!
//! - [`cluster`]: connection to the cluster;
//! - [`controller`]: what all controllers share, and [`controller::run`], which runs them;
//! - [`language_tool`]: MCP servers that a `LanguageTool` describes;
//! - [`tool_registry`]: gateways for `ToolRegistry` resources;
//! - [`agent_injection`]: tools in the pods of agents;
//! - [`webhook`]: admission of resources;
//! - [`crd`]: definitions of the resources;
//! - [`rbac`]: the rights of the operator;
//! - [`labels`]: labels and annotations that several controllers use; `pod_security`, `network_peers`, `text`: parts of
//!   objects that several of them write;
//! - `connections`: connections of the listeners of health and webhook;
//! - [`script`]: pods of scripts, and the runner that creates, observes and deletes them;
//! - [`error`]: errors of running scripts.
//!
//! Isolation depends on the cluster: on the container runtime of its nodes, and on its network for network policies.

pub mod agent_injection;
pub mod cluster;
mod connections;
pub mod controller;
pub mod crd;
pub mod error;
pub mod labels;
pub mod language_tool;
mod network_peers;
mod pod_security;
pub mod rbac;
pub mod script;
mod text;
pub mod tool_registry;
pub mod webhook;

pub use cluster::ClusterConfig;
pub use error::OperatorError;
pub use script::{PodOptions, PodRunner};
