//! The Deployment, Service and autoscaler of a tool.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::resource::{LanguageTool, ToolAutoscaling, ToolDeployment};
use crate::controller::OperatorConfig;
use crate::labels as names;
use crate::pod_security::{TOOL_USER, restricted_container, restricted_pod};

/// Name of the container of a tool.
const CONTAINER: &str = "tool";

/// Name of the port of a tool.
const PORT: &str = "http";

/// Group of the volumes of a tool.
const GROUP: i64 = 101;

/// Annotation of a Deployment that has an autoscaler.
pub(super) const AUTOSCALED: &str = "toolyard.dev/autoscaled";

/// Maximum number of pods if the specification does not set it.
const MAX_REPLICAS: i32 = 10;

/// Returns the labels that identify the pods of a tool. They cannot change: selectors of Deployments are immutable.
pub(super) fn selector_labels(tool: &LanguageTool) -> BTreeMap<&'static str, String> {
    let name = tool.metadata.name.clone().unwrap_or_default();
    BTreeMap::from([(names::NAME, name), (names::LANGOP_KIND, "LanguageTool".to_owned())])
}

/// Returns the labels of all objects of a tool.
pub(super) fn labels(tool: &LanguageTool) -> BTreeMap<&'static str, String> {
    let mut labels = selector_labels(tool);
    labels.insert(names::MANAGED_BY, names::MANAGER.to_owned());
    labels.insert("app.kubernetes.io/part-of", "langop".to_owned());
    labels
}

/// Returns the labels that a specification must not set.
pub(super) const fn reserved_labels() -> [&'static str; 4] {
    [names::NAME, names::LANGOP_KIND, names::MANAGED_BY, names::USES_TOOLS]
}

/// Makes an object of its JSON. The shapes are those of Kubernetes, which the tests prove.
pub(super) fn to_object<K: DeserializeOwned>(value: Value) -> Option<K> {
    serde_json::from_value(value).inspect_err(|error| tracing::error!(%error, "an object is not valid")).ok()
}

/// Returns the Deployment.
pub(super) fn deployment(tool: &LanguageTool, config: &OperatorConfig) -> Option<Deployment> {
    let settings = tool.spec.deployment.clone().unwrap_or_default();
    let mut pod_labels: BTreeMap<&str, String> =
        settings.pod_labels.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    pod_labels.extend(labels(tool));
    let mut object = json!({
        "metadata": {
            "name": tool.metadata.name, "namespace": tool.metadata.namespace, "labels": labels(tool),
        },
        "spec": {
            "selector": {"matchLabels": selector_labels(tool)},
            "template": {
                "metadata": {"labels": pod_labels},
                "spec": pod(tool, &settings, config),
            },
        },
    });
    match settings.autoscaling {
        // The autoscaler owns the number of pods.
        Some(_) => object["metadata"]["annotations"] = json!({AUTOSCALED: "true"}),
        // Without a number, one pod is the default of the server, and an autoscaler of the user may own it.
        None => {
            if let Some(replicas) = settings.replicas {
                object["spec"]["replicas"] = replicas.into();
            }
        }
    }
    if !settings.pod_annotations.is_empty() {
        object["spec"]["template"]["metadata"]["annotations"] = json!(settings.pod_annotations);
    }
    to_object(object)
}

fn pod(tool: &LanguageTool, settings: &ToolDeployment, config: &OperatorConfig) -> Value {
    let has_tmp = settings.volume_mounts.iter().any(|mount| mount.mount_path == "/tmp")
        || settings.volumes.iter().any(|volume| volume.name == "tmp");
    let mut volumes: Vec<Value> = settings.volumes.iter().map(|volume| json!(volume)).collect();
    let mut container = container(tool, settings, config);
    if !has_tmp {
        volumes.push(json!({"name": "tmp", "emptyDir": {}}));
        let mounts = settings.volume_mounts.iter().map(|mount| json!(mount));
        let mounts = mounts.chain([json!({"name": "tmp", "mountPath": "/tmp"})]);
        container["volumeMounts"] = mounts.collect();
    }
    let mut default_context = restricted_pod(TOOL_USER);
    default_context["fsGroup"] = GROUP.into();
    let mut pod = json!({
        "containers": [container],
        "securityContext": settings.security_context.as_ref().map_or(default_context, |context| json!(context)),
    });
    let mut set = |name: &str, is_set: bool, value: Value| {
        if is_set {
            pod[name] = value;
        }
    };
    set("volumes", !volumes.is_empty(), volumes.into());
    set("initContainers", !settings.init_containers.is_empty(), json!(settings.init_containers));
    set("imagePullSecrets", !settings.image_pull_secrets.is_empty(), json!(settings.image_pull_secrets));
    set("nodeSelector", !settings.node_selector.is_empty(), json!(settings.node_selector));
    set("tolerations", !settings.tolerations.is_empty(), json!(settings.tolerations));
    let spread = &settings.topology_spread_constraints;
    set("topologySpreadConstraints", !spread.is_empty(), json!(spread));
    set("affinity", settings.affinity.is_some(), json!(settings.affinity));
    set("serviceAccountName", settings.service_account_name.is_some(), json!(settings.service_account_name));
    // Without an account of its own a tool has no business with the API server.
    set("automountServiceAccountToken", settings.service_account_name.is_none(), false.into());
    pod
}

fn container(tool: &LanguageTool, settings: &ToolDeployment, config: &OperatorConfig) -> Value {
    let default_resources = json!({
        "requests": {"cpu": "50m", "memory": "128Mi"},
        "limits": {"cpu": "200m", "memory": "512Mi"},
    });
    let default_readiness = json!({
        "httpGet": {"path": "/health", "port": PORT},
        "periodSeconds": 5,
        "timeoutSeconds": 2,
        "failureThreshold": 3,
    });
    let mut container = json!({
        "name": CONTAINER,
        "image": tool.spec.image,
        "ports": [{"name": PORT, "containerPort": tool.spec.port, "protocol": "TCP"}],
        "resources": settings.resources.as_ref().map_or(default_resources, |resources| json!(resources)),
        "readinessProbe": settings.readiness_probe.as_ref().map_or(default_readiness, |probe| json!(probe)),
        "securityContext": restricted_container(),
    });
    let own: Vec<&str> = settings.env.iter().map(|variable| variable.name.as_str()).collect();
    let passed = config.telemetry_env.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    let passed = passed.map(|(name, value)| json!({"name": name, "value": value}));
    let env: Vec<Value> = passed.chain(settings.env.iter().map(|variable| json!(variable))).collect();
    let mut set = |name: &str, is_set: bool, value: Value| {
        if is_set {
            container[name] = value;
        }
    };
    set("env", !env.is_empty(), env.into());
    set("envFrom", !settings.env_from.is_empty(), json!(settings.env_from));
    set("command", !settings.command.is_empty(), json!(settings.command));
    set("args", !settings.args.is_empty(), json!(settings.args));
    set("volumeMounts", !settings.volume_mounts.is_empty(), json!(settings.volume_mounts));
    set("livenessProbe", settings.liveness_probe.is_some(), json!(settings.liveness_probe));
    set("startupProbe", settings.startup_probe.is_some(), json!(settings.startup_probe));
    let policy = settings.image_pull_policy;
    set("imagePullPolicy", policy.is_some(), json!(policy.map(super::resource::ImagePullPolicy::name)));
    container
}

/// Returns the Service.
pub(super) fn service(tool: &LanguageTool) -> Option<Service> {
    let settings = tool.spec.deployment.clone().unwrap_or_default();
    let mut object = json!({
        "metadata": {
            "name": tool.metadata.name, "namespace": tool.metadata.namespace, "labels": labels(tool),
        },
        "spec": {
            "type": settings.service_type.unwrap_or_default().name(),
            "selector": selector_labels(tool),
            "ports": [{"name": PORT, "port": tool.spec.port, "targetPort": PORT, "protocol": "TCP"}],
        },
    });
    if !settings.service_annotations.is_empty() {
        object["metadata"]["annotations"] = json!(settings.service_annotations);
    }
    to_object(object)
}

/// Returns the autoscaler as JSON of a version of its API.
pub(super) fn autoscaler(tool: &LanguageTool, scaling: &ToolAutoscaling, version: &str) -> Value {
    let minimum = scaling.min_replicas.unwrap_or(1);
    let default_metrics = json!([{
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }]);
    let metrics = if scaling.metrics.is_empty() { default_metrics } else { json!(scaling.metrics) };
    json!({
        "apiVersion": format!("autoscaling/{version}"),
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": tool.metadata.name, "namespace": tool.metadata.namespace, "labels": labels(tool),
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": tool.metadata.name},
            "minReplicas": minimum,
            "maxReplicas": scaling.max_replicas.unwrap_or_else(|| MAX_REPLICAS.max(minimum)),
            "metrics": metrics,
        },
    })
}
