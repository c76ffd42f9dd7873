//! The resource: its fields, defaults and schema.

use std::collections::BTreeMap;

use k8s_openapi::api::autoscaling::v2::MetricSpec;
use k8s_openapi::api::core::v1::{
    Affinity, Container, EnvFromSource, EnvVar, LocalObjectReference, PodSecurityContext, Probe,
    ResourceRequirements, Toleration, TopologySpreadConstraint, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantities::with_text_quantities;

/// An MCP server in the cluster.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "langop.io",
    version = "v1alpha1",
    kind = "LanguageTool",
    namespaced,
    status = "LanguageToolStatus",
    derive = "PartialEq",
    shortname = "ltool",
    category = "langop",
    category = "toolyard",
    printcolumn = r#"{"name": "Type", "type": "string", "jsonPath": ".spec.type"}"#,
    printcolumn = r#"{"name": "Image", "type": "string", "jsonPath": ".spec.image"}"#,
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "Endpoint", "type": "string", "jsonPath": ".status.endpoint"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct LanguageToolSpec {
    /// Image of the server.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// Protocol of the server.
    #[serde(default, rename = "type")]
    pub protocol: ToolProtocol,
    /// `service`: one Deployment and Service for all agents. `sidecar`: a container in each pod of an agent.
    #[serde(default)]
    pub deployment_mode: DeploymentMode,
    /// Port that the server listens on.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Settings of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<ToolDeployment>,
    /// Network traffic of the pods in addition to the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_policies: Option<NetworkRules>,
}

impl LanguageToolSpec {
    /// Creates a specification with the defaults of all other fields.
    #[must_use]
    pub const fn with_image(image: String) -> Self {
        Self {
            image,
            protocol: ToolProtocol::Mcp,
            deployment_mode: DeploymentMode::Service,
            port: default_port(),
            deployment: None,
            network_policies: None,
        }
    }
}

const fn default_port() -> i32 {
    8080
}

/// Protocol of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolProtocol {
    /// Model Context Protocol.
    #[default]
    Mcp,
}

/// Mode of running a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeploymentMode {
    /// A Deployment and a Service.
    #[default]
    Service,
    /// A container in each pod of an agent.
    Sidecar,
}

/// Settings of the pods of a tool, in the terms of Kubernetes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolDeployment {
    /// Number of pods. Default: 1. Ignored with `autoscaling`.
    #[schemars(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Automatic number of pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<ToolAutoscaling>,
    /// Policy of pulling the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Secrets for pulling images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Entry point of the container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Arguments of the entry point.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Sources of environment variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<EnvFromSource>,
    /// Resources of the container. Default: 50m and 128Mi requested, at most 200m and 512Mi.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "with_text_quantities")]
    pub resources: Option<ResourceRequirements>,
    /// Labels of nodes for the pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerated taints of nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Distribution of the pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// Affinity of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Service account of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Security context of the pods. Default: user 1000, group 101, the runtime's seccomp profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<PodSecurityContext>,
    /// Volumes of the pods.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "with_text_quantities")]
    pub volumes: Vec<Volume>,
    /// Mounts of the container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Containers that run before the server.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "with_text_quantities")]
    pub init_containers: Vec<Container>,
    /// Probe of liveness. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveness_probe: Option<Probe>,
    /// Probe of readiness. Default: `GET /health`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<Probe>,
    /// Probe of the start. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_probe: Option<Probe>,
    /// Type of the Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_type: Option<ToolServiceType>,
    /// Annotations of the Service.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub service_annotations: BTreeMap<String, String>,
    /// Annotations of the pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_annotations: BTreeMap<String, String>,
    /// Labels of the pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_labels: BTreeMap<String, String>,
}

/// Policy of pulling an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImagePullPolicy {
    /// Pull before each start.
    Always,
    /// Pull if the node lacks it.
    IfNotPresent,
    /// Never pull.
    Never,
}

impl ImagePullPolicy {
    /// Returns the name in Kubernetes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

/// Type of the Service of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ToolServiceType {
    /// Reachable in the cluster.
    #[default]
    ClusterIP,
    /// Reachable at each node.
    NodePort,
    /// Reachable through a load balancer.
    LoadBalancer,
}

impl ToolServiceType {
    /// Returns the name in Kubernetes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClusterIP => "ClusterIP",
            Self::NodePort => "NodePort",
            Self::LoadBalancer => "LoadBalancer",
        }
    }
}

/// Automatic number of pods.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolAutoscaling {
    /// Minimum number of pods. Default: 1.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Maximum number of pods. Default: 10, or the minimum if this is more.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,
    /// Metrics. Default: 80 % of the requested processor time.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "with_text_quantities")]
    pub metrics: Vec<MetricSpec>,
}

/// Network traffic in addition to the default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkRules {
    /// Traffic to the pods. Agents always reach the port.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ingress: Vec<NetworkRule>,
    /// Traffic of the pods. They always reach pods of their namespace and the DNS of the cluster.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<NetworkRule>,
}

/// Traffic that is admitted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkRule {
    /// Description of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Source of the traffic, in `ingress`. Default: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<NetworkPeer>,
    /// Destination of the traffic, in `egress`. Default: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<NetworkPeer>,
    /// Ports of the destination. Default: all.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<NetworkPort>,
}

/// Source or destination of traffic. Each member that is set adds one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPeer {
    /// Pods of the namespace with this value of the label `langop.io/group`.
    #[schemars(length(min = 1, max = 63))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Block of addresses, such as `10.0.0.0/8`.
    #[schemars(length(min = 1, max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidr: Option<String>,
    /// Names whose addresses are resolved. `*` is any address, `*.example.com` means `example.com`.
    #[schemars(length(max = 32), inner(length(min = 1, max = 255)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dns: Vec<String>,
    /// Pods with the name of a Service as `app.kubernetes.io/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<PeerService>,
    /// Namespaces of pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Pods, in the selected namespaces or in the tool's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
}

/// Service of a network rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeerService {
    /// Name of the Service.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Namespace of the Service. Default: the tool's own.
    #[schemars(length(min = 1, max = 63))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Port of a network rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkPort {
    /// Protocol of the port.
    #[serde(default)]
    pub protocol: PortProtocol,
    /// Number of the port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

/// Protocol of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum PortProtocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl PortProtocol {
    /// Returns the name in Kubernetes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }
}

/// Status of a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LanguageToolStatus {
    /// Generation of the resource that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Summary of the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<ToolPhase>,
    /// Conditions: `Ready`, `RegistryValidated`, `NetworkPolicyReady` and `SchemasDiscovered`.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// URL of the server, without a path: MCP is at `/mcp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Tools of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_schemas: Vec<ToolSchema>,
    /// Number of tools that are left out of `toolSchemas`, because the resource would be too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_tools: Option<i32>,
    /// Pods from which the tools were read: UID and generation of the Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discovered_from: Option<String>,
    /// Number of ready pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Number of available pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Number of pods of the current specification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
    /// Number of unavailable pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable_replicas: Option<i32>,
}

/// Summary of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ToolPhase {
    /// The server is starting.
    Pending,
    /// The server is ready.
    Running,
    /// The specification is refused, or no pod is available.
    Failed,
    /// Pods are being replaced.
    Updating,
    /// The server is ready, but its network policy is not.
    Degraded,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSchema {
    /// Name.
    pub name: String,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments, unchanged.
    #[schemars(schema_with = "free_object")]
    pub input_schema: serde_json::Value,
}

fn free_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
