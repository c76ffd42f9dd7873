//! Containers of tools in the pods of agents.

use serde_json::{Map, Value, json};

use super::workload::WorkspaceMount;
use crate::pod_security::{TOOL_USER, restricted_container, restricted_pod};

/// Prefix of the names of containers.
const PREFIX: &str = "tool-";

/// Maximum length of the name of a tool, as names of containers have at most 63 characters.
pub const MAX_NAME: usize = 63 - PREFIX.len();

/// Name of the port of a container.
const PORT_NAME: &str = "mcp";

/// Fields of `spec.deployment` of a LanguageTool that its container takes over. The others describe a Deployment of its
/// own, or a pod, which is the agent's here.
const CONTAINER_FIELDS: [&str; 9] = [
    "imagePullPolicy",
    "command",
    "args",
    "env",
    "envFrom",
    "resources",
    "volumeMounts",
    "livenessProbe",
    "startupProbe",
];

/// A tool that runs in the pods of its agents.
#[derive(Debug, Clone, PartialEq)]
pub struct SidecarTool {
    /// The image.
    pub image: String,
    /// The port that it listens on.
    pub port: u16,
    /// `spec.deployment` of the tool.
    pub deployment: Value,
}

impl SidecarTool {
    /// Returns the name of a tool's container.
    #[must_use]
    pub fn container_name(tool: &str) -> String {
        format!("{PREFIX}{tool}")
    }

    /// Returns the names of the volumes that the tool brings.
    pub fn volume_names(&self) -> impl Iterator<Item = &str> {
        self.volumes().iter().filter_map(|volume| volume["name"].as_str())
    }

    /// Returns the volumes that the tool brings.
    #[must_use]
    pub fn volumes(&self) -> &[Value] {
        self.deployment["volumes"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the container. `is_native` makes it one that starts before the agent and ends after it: an init container
    /// that the node restarts, from Kubernetes 1.29.
    #[must_use]
    pub fn container(&self, tool: &str, workspace: Option<&WorkspaceMount>, is_native: bool) -> Value {
        let mut container = Map::new();
        container.insert("name".to_owned(), Self::container_name(tool).into());
        container.insert("image".to_owned(), self.image.clone().into());
        container.insert(
            "ports".to_owned(),
            json!([{"name": PORT_NAME, "containerPort": self.port, "protocol": "TCP"}]),
        );
        container.insert("resources".to_owned(), default_resources());
        container.insert("securityContext".to_owned(), self.security_context());
        for field in CONTAINER_FIELDS {
            if let Some(value) = self.deployment.get(field).filter(|value| !is_empty(value)) {
                container.insert(field.to_owned(), value.clone());
            }
        }
        let probe = self.deployment.get("readinessProbe").filter(|probe| !is_empty(probe));
        container.insert("readinessProbe".to_owned(), probe.cloned().unwrap_or_else(readiness_probe));
        if let Some(workspace) = workspace {
            add_workspace(&mut container, workspace);
        }
        if is_native {
            container.insert("restartPolicy".to_owned(), "Always".into());
        }
        Value::Object(container)
    }

    /// Returns the security context, with the users of the tool's pod: the pod is the agent's.
    fn security_context(&self) -> Value {
        let mut context = restricted_container();
        if let (Value::Object(context), Value::Object(of_pod)) = (&mut context, restricted_pod(TOOL_USER)) {
            context.extend(of_pod);
        }
        for field in ["runAsUser", "runAsGroup", "seccompProfile"] {
            if let Some(value) =
                self.deployment["securityContext"].get(field).filter(|value| !value.is_null())
            {
                context[field] = value.clone();
            }
        }
        context
    }
}

fn add_workspace(container: &mut Map<String, Value>, workspace: &WorkspaceMount) {
    let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
    let Some(mounts) = mounts.as_array_mut() else { return };
    // A tool may mount something of its own there.
    if mounts.iter().all(|mount| mount["mountPath"] != workspace.path.as_str()) {
        let mut mount = json!({"name": workspace.volume, "mountPath": workspace.path});
        if let Some(sub_path) = &workspace.sub_path {
            mount["subPath"] = sub_path.as_str().into();
        }
        mounts.push(mount);
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn default_resources() -> Value {
    json!({"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"cpu": "500m", "memory": "1Gi"}})
}

fn readiness_probe() -> Value {
    json!({
        "tcpSocket": {"port": PORT_NAME},
        "initialDelaySeconds": 2, "periodSeconds": 2, "timeoutSeconds": 1, "failureThreshold": 3,
    })
}
