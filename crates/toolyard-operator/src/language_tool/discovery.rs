//! Discovery of the tools of a server.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use super::desired::endpoint;
use super::resource::{DeploymentMode, LanguageTool, ToolSchema};
use super::status::DiscoveryState;
use crate::agent_injection::SidecarTool;
use crate::controller::{Context, ControllerError, ListedTool};
use crate::labels;
use crate::text::shortened;

/// Maximum number of pods that are searched for a sidecar.
const PODS: u32 = 100;

/// Maximum length of a failure in a status, in bytes.
const FAILURE_BYTES: usize = 500;

/// Returns the pods whose tools should be listed: the UID and generation of the Deployment, if they are all updated, one
/// of them is ready, and they were not asked yet.
pub(super) fn due_source(tool: &LanguageTool, deployment: Option<&Deployment>) -> Option<String> {
    let deployment = deployment?;
    let status = deployment.status.as_ref()?;
    let replicas = deployment.spec.replicas.unwrap_or(1);
    let is_updated = status.observed_generation >= deployment.metadata.generation
        && status.updated_replicas.unwrap_or_default() >= replicas;
    let is_ready = status.ready_replicas.unwrap_or_default() > 0;
    let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
    let source = format!("{uid}/{}", deployment.metadata.generation.unwrap_or_default());
    let known = tool.status.as_ref().and_then(|status| status.discovered_from.as_ref());
    (is_updated && is_ready && known != Some(&source)).then_some(source)
}

/// Lists the tools of a server if they are due.
pub(super) async fn discover(
    context: &Context,
    tool: &LanguageTool,
    deployment: Option<&Deployment>,
) -> Result<DiscoveryState, ControllerError> {
    let (source, endpoint) = match tool.spec.deployment_mode {
        DeploymentMode::Service => match due_source(tool, deployment) {
            Some(source) => (source, endpoint(tool, &context.config)),
            None => return Ok(DiscoveryState::Unchanged),
        },
        DeploymentMode::Sidecar => {
            let source = format!("sidecar/{}", tool.metadata.generation.unwrap_or_default());
            let known = tool.status.as_ref().and_then(|status| status.discovered_from.as_ref());
            if known == Some(&source) {
                return Ok(DiscoveryState::Unchanged);
            }
            // Without injection no pod of an agent has a sidecar, and the operator may list none.
            if !context.config.injection {
                return Ok(DiscoveryState::NoAgentPod);
            }
            match agent_address(context, tool).await? {
                Some(address) => (source, format!("http://{address}:{}", tool.spec.port)),
                None => return Ok(DiscoveryState::NoAgentPod),
            }
        }
    };
    let listed = tokio::time::timeout(time_limit(context), context.tools.tools(&endpoint)).await;
    Ok(match listed {
        Ok(Ok(tools)) => {
            let (tools, omitted) =
                bounded_schemas(tools, context.config.status_tools, context.config.status_bytes);
            DiscoveryState::Found { tools, omitted, source }
        }
        Ok(Err(error)) => DiscoveryState::Failed(shortened(&error.0, FAILURE_BYTES)),
        Err(_) => DiscoveryState::Failed(format!("no answer within {} s", time_limit(context).as_secs_f32())),
    })
}

/// Bare request and handshake have a limit each.
fn time_limit(context: &Context) -> Duration {
    context.config.probe_timeout * 2
}

/// Returns the address of a running pod of an agent that has the sidecar.
async fn agent_address(context: &Context, tool: &LanguageTool) -> Result<Option<String>, ControllerError> {
    let namespace = tool.metadata.namespace.as_deref().unwrap_or_default();
    let name = SidecarTool::container_name(tool.metadata.name.as_deref().unwrap_or_default());
    let pods = Api::<Pod>::namespaced(context.client.clone(), namespace);
    for selector in [
        format!("{}={}", labels::LANGOP_KIND, labels::LANGUAGE_AGENT),
        format!("{}=true", labels::USES_TOOLS),
    ] {
        let params = ListParams::default().labels(&selector).fields("status.phase=Running").limit(PODS);
        let found = pods.list(&params).await?;
        let found = found.items.iter().filter(|pod| has_container(pod, &name));
        if let Some(address) = found.filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).next() {
            return Ok(Some(address));
        }
    }
    Ok(None)
}

fn has_container(pod: &Pod, name: &str) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    containers.into_iter().any(|container| container.name == name)
}

/// Returns the tools that fit into a status, and the number of the others.
#[must_use]
pub fn bounded_schemas(tools: Vec<ListedTool>, count: usize, bytes: usize) -> (Vec<ToolSchema>, usize) {
    let all = tools.len();
    let mut left = bytes;
    let fits = |tool: &ToolSchema| {
        let length = serde_json::to_vec(tool).map_or(usize::MAX, |text| text.len());
        left.checked_sub(length).is_some_and(|rest| {
            left = rest;
            true
        })
    };
    let schema = |tool: ListedTool| ToolSchema {
        name: tool.name,
        description: tool.description.filter(|description| !description.is_empty()),
        // The definition of the resource admits objects only; `true` means the same.
        input_schema: if tool.input_schema.is_object() {
            tool.input_schema
        } else {
            json!({"type": "object"})
        },
    };
    let schemas: Vec<_> = tools.into_iter().take(count).map(schema).take_while(fits).collect();
    let omitted = all - schemas.len();
    (schemas, omitted)
}
