//! The objects of a gateway.
//!
//! The gateway notices changes of its registries itself, in the mounted ConfigMap, so its pods stay and keep their
//! sessions. Only settings of the process and mounted secrets change the pods.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use super::resolution::ResolvedRegistries;
use crate::controller::{ClusterFacts, OperatorConfig};
use crate::labels;
use crate::network_peers::operator_pods;
use crate::pod_security::{restricted_container, restricted_pod};
use crate::text::short_digest;

/// Port of gateways and their Services.
pub const PORT: u16 = 8080;

/// Label of the objects of gateways, and its value. Watches select by it.
pub const COMPONENT: &str = "app.kubernetes.io/component";
/// Value of [`COMPONENT`].
pub const GATEWAY: &str = "gateway";

/// Annotation of pods with the digest of the settings of their process.
const SETTINGS_DIGEST: &str = "toolyard.dev/settings";

/// Folder of the mounted ConfigMap.
const MANIFESTS: &str = "/etc/toolyard/gateway";

/// Folder of the mounted secrets.
const SECRETS: &str = "/etc/toolyard/secrets";

/// Folder of the state of a gateway, which is lost with its pod.
const STATE: &str = "/var/lib/toolyard";

/// User and group of gateways, as in the image.
const USER: i64 = 65532;

/// Name of the gateway of all registries of a namespace.
const SHARED_NAME: &str = "toolyard-shared-gateway";

/// Maximum length of the name of a registry whose gateway is named after it. The names of Services have 63 characters.
const MAX_NAME: usize = 55;

/// The objects of a gateway, as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredObjects {
    /// The manifests.
    pub config_map: Value,
    /// The pods.
    pub deployment: Value,
    /// The address.
    pub service: Value,
    /// Callers that the network admits; `None` if the operator applies no policies.
    pub network_policy: Option<Value>,
}

impl DesiredObjects {
    /// Returns the digest of the manifest, as a gateway reports it that serves the ConfigMap.
    #[must_use]
    pub fn manifest_digest(&self) -> String {
        // A folder is read in the order of the names, which is that of the map.
        let files: BTreeMap<_, _> = self.config_map["data"].as_object().into_iter().flatten().collect();
        toolyard_manifest::digest(files.into_values().filter_map(Value::as_str))
    }
}

/// The identity of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayIdentity {
    /// Name of all its objects.
    pub name: String,
    /// Namespace.
    pub namespace: String,
}

impl GatewayIdentity {
    /// Returns the identity of the gateway of a registry.
    #[must_use]
    pub fn of(registry: &str, namespace: &str, config: &OperatorConfig) -> Self {
        let name = if config.shared_gateway { SHARED_NAME.to_owned() } else { gateway_name(registry) };
        Self { name, namespace: namespace.to_owned() }
    }

    /// Returns the host and port of the gateway's Service.
    #[must_use]
    pub fn authority(&self, config: &OperatorConfig) -> String {
        format!("{}.{}.{}:{PORT}", self.name, self.namespace, config.service_domain)
    }

    /// Returns the URL for MCP clients.
    #[must_use]
    pub fn endpoint(&self, config: &OperatorConfig) -> String {
        format!("http://{}/mcp", self.authority(config))
    }

    fn metadata(&self, owners: &[OwnerReference]) -> Value {
        let mut metadata = json!({
            "name": self.name,
            "namespace": self.namespace,
            "labels": self.labels(),
        });
        if !owners.is_empty() {
            metadata["ownerReferences"] = json!(owners);
        }
        metadata
    }

    fn labels(&self) -> Value {
        json!({labels::NAME: self.name, COMPONENT: GATEWAY, labels::MANAGED_BY: labels::MANAGER})
    }

    fn selector(&self) -> Value {
        json!({labels::NAME: self.name, COMPONENT: GATEWAY})
    }
}

/// Returns the name of a registry's gateway, which is valid for a Service.
fn gateway_name(registry: &str) -> String {
    let is_label = registry.len() <= MAX_NAME
        && registry.starts_with(|c: char| c.is_ascii_lowercase())
        && !registry.contains('.');
    if is_label {
        return format!("{registry}-{GATEWAY}");
    }
    let digest = short_digest(registry);
    let start: String = registry.replace('.', "-").chars().take(35).collect();
    format!("registry-{}-{}-{GATEWAY}", start.trim_matches('-'), &digest[..8])
}

/// Returns the objects of a gateway. `owners` are the registries that it serves.
#[must_use]
pub fn desired_objects(
    gateway: &GatewayIdentity,
    registries: &ResolvedRegistries,
    owners: &[OwnerReference],
    facts: ClusterFacts,
    config: &OperatorConfig,
) -> DesiredObjects {
    let settings = toolyard_manifest::to_yaml(&settings());
    let documents: Vec<_> = registries.documents.iter().map(toolyard_manifest::to_yaml).collect();
    let metadata = gateway.metadata(owners);
    DesiredObjects {
        config_map: json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"toolyard.yaml": settings, "registries.yaml": documents.join("---\n")},
        }),
        deployment: json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": gateway.selector()},
                "template": {
                    "metadata": {
                        "labels": gateway.labels(),
                        "annotations": {SETTINGS_DIGEST: short_digest(&settings)},
                    },
                    "spec": pod(gateway, registries, config),
                },
            },
        }),
        service: json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {
                "type": "ClusterIP",
                "selector": gateway.selector(),
                "ports": [{"name": "http", "port": PORT, "targetPort": "http", "protocol": "TCP"}],
            },
        }),
        network_policy: config.network_policies.then(|| {
            json!({
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": metadata,
                "spec": {
                    "podSelector": {"matchLabels": gateway.selector()},
                    "policyTypes": ["Ingress"],
                    "ingress": [{
                        "from": [{"podSelector": {}}, operator_pods(facts, config)],
                        "ports": [{"protocol": "TCP", "port": "http"}],
                    }],
                },
            })
        }),
    }
}

/// Returns the settings of the process. The network policy admits the callers, so they need no keys.
fn settings() -> Value {
    json!({
        "apiVersion": "toolyard.dev/v1alpha1",
        "kind": "Toolyard",
        "metadata": {"name": GATEWAY},
        "spec": {
            "listen": format!("0.0.0.0:{PORT}"),
            "allowUnauthenticated": true,
            "unauthenticatedAdmin": false,
            "secretsDir": SECRETS,
            "store": {"memory": true},
        },
    })
}

fn pod(gateway: &GatewayIdentity, registries: &ResolvedRegistries, config: &OperatorConfig) -> Value {
    let mut volumes = vec![
        json!({"name": "manifests", "configMap": {"name": gateway.name}}),
        json!({"name": "state", "emptyDir": {}}),
        json!({"name": "tmp", "emptyDir": {}}),
    ];
    let mut mounts = vec![
        json!({"name": "manifests", "mountPath": MANIFESTS, "readOnly": true}),
        json!({"name": "state", "mountPath": STATE}),
        json!({"name": "tmp", "mountPath": "/tmp"}),
    ];
    for (index, (secret, keys)) in registries.secrets.iter().enumerate() {
        let name = format!("secret-{index}");
        let items: Vec<_> = keys.iter().map(|key| json!({"key": key, "path": key})).collect();
        // A missing secret fails the calls that need it, not the pod.
        volumes
            .push(json!({"name": name, "secret": {"secretName": secret, "items": items, "optional": true}}));
        mounts.push(json!({"name": name, "mountPath": format!("{SECRETS}/{secret}"), "readOnly": true}));
    }
    let mut security_context = restricted_pod(USER);
    security_context["runAsGroup"] = USER.into();
    security_context["fsGroup"] = USER.into();
    json!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": security_context,
        "containers": [{
            "name": GATEWAY,
            "image": config.gateway_image,
            "args": ["serve", "-f", MANIFESTS],
            "env": [{"name": "TOOLYARD_STATE_DIR", "value": STATE}],
            "envFrom": [{"secretRef": {"name": format!("{}-environment", gateway.name), "optional": true}}],
            "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
            "startupProbe": probe("/health", 2, 60),
            "readinessProbe": probe("/health", 5, 2),
            "livenessProbe": probe("/live", 10, 6),
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
            "securityContext": restricted_container(),
            "volumeMounts": mounts,
        }],
        "volumes": volumes,
    })
}

fn probe(path: &str, period: u32, failures: u32) -> Value {
    json!({
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_gateways_are_labels() {
        let check = |registry: &str, expected: &str| {
            let name = gateway_name(registry);
            assert_eq!(name, expected);
            assert!(name.len() <= 63, "{name}");
        };
        check("agent-tools", "agent-tools-gateway");
        check(&"a".repeat(55), &format!("{}-gateway", "a".repeat(55)));
        check("9-lives", "registry-9-lives-e6af7a36-gateway");
        check("a.b", "registry-a-b-2e7336dc-gateway");
        check(&"a".repeat(253), &format!("registry-{}-32859a3a-gateway", "a".repeat(35)));
    }
}
