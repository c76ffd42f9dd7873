//! The status of a tool.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::desired::endpoint;
use super::resource::{DeploymentMode, LanguageTool, LanguageToolStatus, ToolPhase, ToolSchema};
use crate::controller::OperatorConfig;

/// Facts that a status is computed of, besides the resource.
#[derive(Debug, Clone)]
pub struct ToolObservation<'a> {
    /// The Deployment, as last seen.
    pub deployment: Option<&'a Deployment>,
    /// State of the network policy.
    pub policy: PolicyState,
    /// State of the discovery.
    pub discovery: DiscoveryState,
    /// The reason why objects of the tool were not applied.
    pub failure: Option<ReconcileFailure>,
    /// Current time.
    pub now: Timestamp,
}

/// State of the network policy of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyState {
    /// Nothing was applied.
    Unknown,
    /// It is applied with all peers.
    Ready,
    /// The operator, or the mode of the tool, has none.
    Disabled(String),
    /// Names were not resolved in time.
    Timeout(String),
    /// Names cannot be resolved, or the policy was refused.
    Error(String),
}

/// State of the discovery of tools.
#[derive(Debug, Clone, PartialEq)]
pub enum DiscoveryState {
    /// No pod is ready yet, or there is nothing to change.
    Unchanged,
    /// The tools were listed.
    Found {
        /// Tools for the status.
        tools: Vec<ToolSchema>,
        /// Number of tools that are left out.
        omitted: usize,
        /// Pods that were asked.
        source: String,
    },
    /// The tools could not be listed.
    Failed(String),
    /// No pod of an agent runs the sidecar.
    NoAgentPod,
}

/// A failure before the pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcileFailure {
    /// Reason of the condition `Ready`.
    pub reason: &'static str,
    /// Message of the condition.
    pub message: String,
    /// `true` if only an edit of the resource helps.
    pub is_final: bool,
}

/// Reason of an image from a registry that is not admitted.
pub(super) const REGISTRY_NOT_ALLOWED: &str = "RegistryNotAllowed";

/// Returns the status of a tool.
#[must_use]
pub fn status(
    tool: &LanguageTool,
    observation: &ToolObservation<'_>,
    config: &OperatorConfig,
) -> LanguageToolStatus {
    let previous = tool.status.clone().unwrap_or_default();
    let is_sidecar = tool.spec.deployment_mode == DeploymentMode::Sidecar;
    let replicas =
        observation.deployment.and_then(|deployment| deployment.status.clone()).unwrap_or_default();
    let (phase, ready) = phase(observation, is_sidecar, &previous, &replicas);
    let mut status = LanguageToolStatus {
        observed_generation: tool.metadata.generation,
        phase: Some(phase),
        ready_replicas: replicas.ready_replicas,
        available_replicas: replicas.available_replicas,
        updated_replicas: replicas.updated_replicas,
        unavailable_replicas: replicas.unavailable_replicas,
        ..LanguageToolStatus::default()
    };
    let is_reachable = is_sidecar || replicas.ready_replicas.unwrap_or_default() > 0;
    if observation.failure.is_none() && (is_reachable || previous.endpoint.is_some()) {
        status.endpoint = Some(endpoint(tool, config));
    }
    let schemas = set_tools(&mut status, &previous, &observation.discovery);
    let facts = [ready, registry(observation), policy(&observation.policy), schemas];
    status.conditions = facts
        .into_iter()
        .map(|fact| condition(fact, &previous.conditions, tool.metadata.generation, observation.now))
        .collect();
    status
}

/// A condition without its times.
struct ConditionFact {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl ConditionFact {
    fn new(
        kind: &'static str,
        status: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, status, reason, message: message.into() }
    }
}

/// Keeps the time of the last transition of an equal status.
fn condition(
    fact: ConditionFact,
    previous: &[Condition],
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let same =
        previous.iter().find(|condition| condition.type_ == fact.kind && condition.status == fact.status);
    // The server stores whole seconds.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    Condition {
        last_transition_time: same.map_or(Time(now), |condition| condition.last_transition_time.clone()),
        type_: fact.kind.to_owned(),
        status: fact.status.to_owned(),
        reason: fact.reason.to_owned(),
        message: fact.message,
        observed_generation: generation,
    }
}

fn phase(
    observation: &ToolObservation<'_>,
    is_sidecar: bool,
    previous: &LanguageToolStatus,
    replicas: &DeploymentStatus,
) -> (ToolPhase, ConditionFact) {
    let fact = |status, reason, message: &str| ConditionFact::new("Ready", status, reason, message);
    if let Some(failure) = &observation.failure {
        // Pods of an earlier specification may still serve, but not what the resource says.
        return (ToolPhase::Failed, fact("False", failure.reason, &failure.message));
    }
    let is_policy_ready = matches!(observation.policy, PolicyState::Ready | PolicyState::Disabled(_));
    let running = if is_policy_ready { ToolPhase::Running } else { ToolPhase::Degraded };
    if is_sidecar {
        return (running, fact("True", "ReconcileSuccess", "a sidecar in the pods of agents"));
    }
    let Some(deployment) = observation.deployment else {
        return (
            ToolPhase::Pending,
            fact("False", "DeploymentNotFound", "the Deployment does not exist yet"),
        );
    };
    let spec_replicas = deployment.spec.replicas.unwrap_or(1);
    let count = |number: Option<i32>| number.unwrap_or_default();
    let (ready, updated) = (count(replicas.ready_replicas), count(replicas.updated_replicas));
    let (available, unavailable) = (count(replicas.available_replicas), count(replicas.unavailable_replicas));
    let was_up = matches!(
        previous.phase,
        Some(ToolPhase::Running | ToolPhase::Degraded | ToolPhase::Failed | ToolPhase::Updating)
    ) && previous.endpoint.is_some();
    if let Some(message) = rollout_failure(replicas).filter(|_| available == 0) {
        return (ToolPhase::Failed, fact("False", "PodsNotReady", &message));
    }
    let is_seen = replicas.observed_generation >= deployment.metadata.generation;
    // As `kubectl rollout status` sees it: until the pods of the earlier specification are gone.
    let earlier = (count(replicas.replicas) - updated).max(0);
    if was_up && (!is_seen || updated < spec_replicas || earlier > 0) {
        let message = format!("{updated} of {spec_replicas} pods are updated, {earlier} earlier ones remain");
        return (ToolPhase::Updating, fact("False", "Updating", &message));
    }
    if ready > 0 {
        let message = format!("{ready} of {spec_replicas} pods are ready");
        return (running, fact("True", "ReconcileSuccess", &message));
    }
    if was_up && available == 0 && unavailable > 0 {
        let message = format!("none of {spec_replicas} pods is available");
        return (ToolPhase::Failed, fact("False", "PodsNotReady", &message));
    }
    let message = format!("{ready} of {spec_replicas} pods are ready");
    let reason = if updated > 0 { "PodsNotReady" } else { "Pending" };
    (ToolPhase::Pending, fact("False", reason, &message))
}

/// Returns the message of a rollout that does not progress.
fn rollout_failure(replicas: &DeploymentStatus) -> Option<String> {
    let conditions = replicas.conditions.iter().flatten();
    let mut failures = conditions.filter(|condition| {
        let state = (condition.type_.as_deref(), condition.status.as_deref());
        matches!(state, (Some("Progressing"), Some("False")) | (Some("ReplicaFailure"), Some("True")))
    });
    let failure = failures.next()?;
    Some(failure.message.clone().or_else(|| failure.reason.clone()).unwrap_or_default())
}

fn registry(observation: &ToolObservation<'_>) -> ConditionFact {
    match &observation.failure {
        Some(failure) if failure.reason == REGISTRY_NOT_ALLOWED => {
            ConditionFact::new("RegistryValidated", "False", REGISTRY_NOT_ALLOWED, failure.message.as_str())
        }
        _ => ConditionFact::new(
            "RegistryValidated",
            "True",
            "Validated",
            "the registry of the image is admitted",
        ),
    }
}

fn policy(policy: &PolicyState) -> ConditionFact {
    let (status, reason, message) = match policy {
        PolicyState::Unknown => ("Unknown", "Unknown", "the tool is refused: no network policy is applied"),
        PolicyState::Ready => ("True", "NetworkPolicyReady", "the network policy is applied"),
        PolicyState::Disabled(message) => ("False", "Disabled", message.as_str()),
        PolicyState::Timeout(message) => ("False", "Timeout", message.as_str()),
        PolicyState::Error(message) => ("False", "Error", message.as_str()),
    };
    ConditionFact::new("NetworkPolicyReady", status, reason, message)
}

/// Sets the tools of a status, and returns the condition of their discovery. Tools that were found once stay until others
/// are found: a failure says nothing about them.
fn set_tools(
    status: &mut LanguageToolStatus,
    previous: &LanguageToolStatus,
    discovery: &DiscoveryState,
) -> ConditionFact {
    let fact =
        |status, reason, message: String| ConditionFact::new("SchemasDiscovered", status, reason, message);
    if let DiscoveryState::Found { tools, omitted, source } = discovery {
        status.tool_schemas.clone_from(tools);
        status.omitted_tools = i32::try_from(*omitted).ok().filter(|omitted| *omitted > 0);
        status.discovered_from = Some(source.clone());
        let left_out = if *omitted > 0 { format!(", {omitted} of them left out") } else { String::new() };
        let message = format!("{} tools{left_out}", tools.len() + omitted);
        return fact("True", "SchemasDiscovered", message);
    }
    status.tool_schemas.clone_from(&previous.tool_schemas);
    status.omitted_tools = previous.omitted_tools;
    status.discovered_from.clone_from(&previous.discovered_from);
    match discovery {
        DiscoveryState::Failed(message) => fact("False", "SchemaDiscoveryFailed", message.clone()),
        DiscoveryState::NoAgentPod => {
            let message = "no pod of an agent runs the sidecar yet";
            fact("False", "NoRunningAgentPod", message.to_owned())
        }
        DiscoveryState::Unchanged | DiscoveryState::Found { .. } => {
            let before = previous.conditions.iter().find(|condition| condition.type_ == "SchemasDiscovered");
            match before {
                Some(before) if before.status == "True" => {
                    fact("True", "SchemasDiscovered", before.message.clone())
                }
                Some(before) if before.reason == "SchemaDiscoveryFailed" => {
                    fact("False", "SchemaDiscoveryFailed", before.message.clone())
                }
                _ => fact("False", "Pending", "no pod is ready yet".to_owned()),
            }
        }
    }
}
