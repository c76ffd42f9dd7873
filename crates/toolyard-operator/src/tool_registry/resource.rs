//! The resource `ToolRegistry`, and its definition.

use kube::{CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::crd::structural::SchemaSource;

/// Name of the definition.
pub const DEFINITION: &str = "toolregistries.omnia.altairalabs.ai";

/// Content of a registry as JSON. `toolyard-manifest` reads it.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "omnia.altairalabs.ai",
    version = "v1alpha1",
    kind = "ToolRegistry",
    plural = "toolregistries",
    namespaced,
    schema = "disabled",
    status = "ToolRegistryStatus"
)]
pub struct ToolRegistrySpec {
    /// `handlers`, `guides` and `probe`.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// Status of a registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolRegistryStatus {
    /// Generation that the status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Pending`, `Ready`, `Degraded` or `Failed`.
    pub phase: String,
    /// URL of the gateway for MCP clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Number of tools.
    pub discovered_tools_count: usize,
    /// Number of tools that are available.
    pub available_tools_count: usize,
    /// Time of the last change of the tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_discovery_time: Option<String>,
    /// The tools. A long list is cut, which the condition `ToolsDiscovered` says.
    pub discovered_tools: Vec<RegistryTool>,
    /// The conditions.
    pub conditions: Vec<RegistryCondition>,
}

/// A tool of a registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryTool {
    /// Name of the handler in the resource.
    pub handler_name: String,
    /// Name of the tool.
    pub name: String,
    /// `Available`, `Unavailable` or `Unknown`.
    pub status: String,
    /// Address of the server, without secrets.
    pub endpoint: String,
    /// Reason why the tool is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A condition of a registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryCondition {
    /// Type.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason for programs.
    pub reason: String,
    /// Message for people.
    pub message: String,
    /// Time of the last change of `status`.
    pub last_transition_time: String,
    /// Generation that the condition is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl ToolRegistry {
    /// Returns the resource as a document of a manifest, without what servers write.
    #[must_use]
    pub fn document(&self) -> Value {
        json!({
            "apiVersion": "omnia.altairalabs.ai/v1alpha1",
            "kind": "ToolRegistry",
            "metadata": {"name": self.name_any(), "namespace": self.namespace().unwrap_or_default()},
            "spec": self.spec.fields,
        })
    }
}

/// Returns the definition of the resource. Its schema is that of the manifests of `toolyard-manifest`.
#[must_use]
pub fn definition() -> Value {
    let column = |name: &str, kind: &str, path: &str, description: &str| json!({"name": name, "type": kind, "jsonPath": path, "description": description});
    let schema = json!({
        "description": "Declares handlers, the sources of tools. The operator runs a gateway that serves them.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec_schema(),
            "status": status_schema(),
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": "omnia.altairalabs.ai",
            "names": {
                "kind": "ToolRegistry",
                "listKind": "ToolRegistryList",
                "plural": "toolregistries",
                "singular": "toolregistry",
                "shortNames": ["tr"],
                "categories": ["toolyard"],
            },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "additionalPrinterColumns": [
                    column("Tools", "integer", ".status.discoveredToolsCount", "Number of tools"),
                    column("Available", "integer", ".status.availableToolsCount", "Number of available tools"),
                    column("Phase", "string", ".status.phase", "Pending, Ready, Degraded or Failed"),
                    column("Age", "date", ".metadata.creationTimestamp", "Time since the creation"),
                ],
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// Returns the schema of `spec`. Names of handlers are unique, and server-side apply merges the list by them.
fn spec_schema() -> Value {
    // The text is part of the program, and a test of `toolyard-manifest` parses it.
    let manifest = serde_json::from_str(toolyard_manifest::schema::TOOL_REGISTRY).unwrap_or_default();
    let mut spec = SchemaSource::new(&manifest).definition("spec");
    let handlers = &mut spec["properties"]["handlers"];
    handlers["x-kubernetes-list-type"] = "map".into();
    handlers["x-kubernetes-list-map-keys"] = json!(["name"]);
    spec["description"] = "Content of the registry.".into();
    spec
}

fn status_schema() -> Value {
    let text = |description: &str| json!({"description": description, "type": "string"});
    let count = |description: &str| json!({"description": description, "type": "integer", "minimum": 0});
    let generation = json!({"description": "Generation of the resource that this is about.", "type": "integer", "format": "int64"});
    json!({
        "description": "State of the registry, written by the operator.",
        "type": "object",
        "properties": {
            "observedGeneration": generation,
            "phase": {
                "description": "Pending: discovering tools. Ready: all handlers available. Degraded: some handlers unavailable. Failed: no handlers available, or an invalid resource.",
                "type": "string",
                "enum": ["Pending", "Ready", "Degraded", "Failed"],
            },
            "endpoint": text("URL of the gateway for MCP clients in the cluster."),
            "discoveredToolsCount": count("Number of tools discovered across all handlers."),
            "availableToolsCount": count("Number of tools currently available."),
            "lastDiscoveryTime": {"description": "Time of the last change of the tools.", "type": "string", "format": "date-time"},
            "discoveredTools": {
                "description": "The tools. A long list is cut, which the condition ToolsDiscovered says.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["handlerName", "name", "status"],
                    "properties": {
                        "handlerName": text("Name of the handler."),
                        "name": text("Name of the tool."),
                        "status": {"description": "Availability.", "type": "string", "enum": ["Available", "Unavailable", "Unknown"]},
                        "endpoint": text("Address of the server."),
                        "error": text("Reason why the tool is not available."),
                    },
                },
            },
            "conditions": {
                "description": "HandlersAvailable, AllHandlersReady, ToolsDiscovered and HandlersValid.",
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {
                    "type": "object",
                    "required": ["type", "status"],
                    "properties": {
                        "type": text("Type of the condition."),
                        "status": {"description": "State of the condition.", "type": "string", "enum": ["True", "False", "Unknown"]},
                        "reason": text("Reason for programs."),
                        "message": text("Message for people."),
                        "lastTransitionTime": {"description": "Time of the last change of the state.", "type": "string", "format": "date-time"},
                        "observedGeneration": generation,
                    },
                },
            },
        },
    })
}
