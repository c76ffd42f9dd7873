//! Gateways for `ToolRegistry` resources.
//!
//! A registry becomes a gateway: a ConfigMap with its manifest, a Deployment, a Service and a network policy. What is
//! desired is a pure function of the registries, the Services of the cluster and the configuration
//! ([`gateway::desired_objects`]), and the status is one of what was observed ([`status::status`]).
//!
//! - `resource`: the type, and its definition; `validation`: problems of a resource;
//! - `resolution`: a registry as its gateway reads it, without selectors and references to Services; `secrets`: the
//!   secrets that it refers to;
//! - `gateway`: the objects of a gateway;
//! - `report`: the status of a gateway, read over HTTP; `status`: the status of a resource;
//! - `reconciler`: the controller.

pub mod gateway;
mod reconciler;
pub mod report;
pub mod resolution;
mod resource;
mod secrets;
pub mod status;
mod validation;

pub use reconciler::{controller, controller_with};
pub use resource::{
    DEFINITION, RegistryCondition, RegistryTool, ToolRegistry, ToolRegistrySpec, ToolRegistryStatus,
    definition,
};
pub use validation::{RegistryProblem, problems};
