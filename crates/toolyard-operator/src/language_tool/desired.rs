//! The desired objects of a tool.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::api::ApiResource;
use serde_json::{Value, json};

use super::network::{ResolvedNames, network_policy};
use super::resource::{DeploymentMode, LanguageTool};
use super::workload::{autoscaler, deployment, service};
use crate::controller::{ClusterFacts, OperatorConfig};

/// The desired objects of a tool. One that is absent is deleted if it exists.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DesiredTool {
    /// Deployment.
    pub deployment: Option<Deployment>,
    /// Service.
    pub service: Option<Service>,
    /// Network policy.
    pub network_policy: Option<NetworkPolicy>,
    /// Autoscaler, as JSON: the version of its API depends on the cluster.
    pub autoscaler: Option<Value>,
}

/// Returns the desired objects of a tool whose specification has no problems. A sidecar has none: it is part of the pods
/// of agents.
#[must_use]
pub fn desired(
    tool: &LanguageTool,
    facts: ClusterFacts,
    config: &OperatorConfig,
    resolved: &ResolvedNames,
) -> DesiredTool {
    if tool.spec.deployment_mode == DeploymentMode::Sidecar {
        return DesiredTool::default();
    }
    let scaling = tool.spec.deployment.as_ref().and_then(|deployment| deployment.autoscaling.as_ref());
    let mut desired = DesiredTool {
        deployment: deployment(tool, config),
        service: service(tool),
        network_policy: match config.network_policies {
            true => network_policy(tool, facts, config, resolved),
            false => None,
        },
        autoscaler: scaling
            .zip(facts.autoscaling())
            .map(|(scaling, version)| autoscaler(tool, scaling, version)),
    };
    set_owner(&mut desired, tool);
    desired
}

/// Makes the tool the owner of its objects, so that the cluster deletes them with it.
fn set_owner(desired: &mut DesiredTool, tool: &LanguageTool) {
    let owner: Option<Vec<OwnerReference>> = tool.controller_owner_ref(&()).map(|owner| vec![owner]);
    if let Some(deployment) = &mut desired.deployment {
        deployment.metadata.owner_references.clone_from(&owner);
    }
    if let Some(service) = &mut desired.service {
        service.metadata.owner_references.clone_from(&owner);
    }
    if let Some(policy) = &mut desired.network_policy {
        policy.metadata.owner_references.clone_from(&owner);
    }
    if let Some(autoscaler) = &mut desired.autoscaler {
        autoscaler["metadata"]["ownerReferences"] = json!(owner);
    }
}

/// Returns the API of autoscalers in a cluster.
#[must_use]
pub fn autoscaler_api(facts: ClusterFacts) -> Option<ApiResource> {
    let version = facts.autoscaling()?;
    Some(ApiResource {
        group: "autoscaling".to_owned(),
        version: version.to_owned(),
        api_version: format!("autoscaling/{version}"),
        kind: "HorizontalPodAutoscaler".to_owned(),
        plural: "horizontalpodautoscalers".to_owned(),
    })
}

/// Returns the URL of a tool, without a path: `http://NAME.NAMESPACE.svc.cluster.local:PORT`, or that of a sidecar.
#[must_use]
pub fn endpoint(tool: &LanguageTool, config: &OperatorConfig) -> String {
    let port = tool.spec.port;
    let name = tool.metadata.name.as_deref().unwrap_or_default();
    let namespace = tool.metadata.namespace.as_deref().unwrap_or_default();
    match tool.spec.deployment_mode {
        DeploymentMode::Service => service_endpoint(name, namespace, &config.service_domain, port),
        DeploymentMode::Sidecar => format!("http://localhost:{port}"),
    }
}

/// Returns the URL of a Service, without a path.
pub(crate) fn service_endpoint(
    name: &str,
    namespace: &str,
    domain: &str,
    port: impl std::fmt::Display,
) -> String {
    format!("http://{name}.{namespace}.{domain}:{port}")
}
