//! Tables and snapshots.

use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::net::IpAddr;

use futures_util::future::BoxFuture;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::discovery::due_source;
use super::resolve::resolve;
use super::*;
use crate::controller::{ClusterFacts, ListedTool, OperatorConfig};

const OLD: ClusterFacts = ClusterFacts { minor: 20 };
const NEW: ClusterFacts = ClusterFacts { minor: 33 };

fn tool(spec: Value) -> LanguageTool {
    named_tool("mem0-memory", spec)
}

fn named_tool(name: &str, spec: Value) -> LanguageTool {
    let object = json!({
        "apiVersion": "langop.io/v1alpha1",
        "kind": "LanguageTool",
        "metadata": {
            "name": name, "namespace": "language-operator-myapp", "uid": "a-uid", "generation": 2,
        },
        "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// The sample of the contract.
fn sample() -> LanguageTool {
    tool(json!({"image": "myregistry/mem0-mcp:latest", "port": 8080}))
}

/// Returns all desired objects as JSON.
fn objects(tool: &LanguageTool, facts: ClusterFacts, config: &OperatorConfig) -> String {
    assert_eq!(problems(tool), []);
    let resolved = [("api.example.com", "192.0.2.2"), ("example.org", "2001:db8::1")];
    let resolved = resolved
        .map(|(name, address)| (name.to_owned(), BTreeSet::from([address.parse::<IpAddr>().unwrap()])));
    let desired = desired(tool, facts, config, &ResolvedNames::from(resolved));
    let objects = json!([desired.deployment, desired.service, desired.network_policy, desired.autoscaler]);
    serde_json::to_string_pretty(&objects).unwrap()
}

#[test]
fn sample_becomes_deployment_service_and_policy() {
    insta::assert_snapshot!(objects(&sample(), NEW, &OperatorConfig::default()));
}

#[test]
fn sidecar_has_no_objects() {
    let tool = tool(json!({"image": "a", "deploymentMode": "sidecar"}));
    assert_eq!(
        desired(&tool, NEW, &OperatorConfig::default(), &ResolvedNames::new()),
        DesiredTool::default()
    );
    assert_eq!(endpoint(&tool, &OperatorConfig::default()), "http://localhost:8080");
}

#[test]
fn endpoint_has_no_path() {
    let expected = "http://mem0-memory.language-operator-myapp.svc.cluster.local:8080";
    assert_eq!(endpoint(&sample(), &OperatorConfig::default()), expected);
}

/// A specification with every field.
fn full_spec() -> Value {
    json!({
        "image": "registry.example.com/tool:1",
        "type": "mcp",
        "deploymentMode": "service",
        "port": 9000,
        "deployment": {
            "autoscaling": {"minReplicas": 2, "maxReplicas": 5, "metrics": [{
                "type": "Pods",
                "pods": {"metric": {"name": "calls"}, "target": {"type": "AverageValue", "averageValue": 20}},
            }]},
            "imagePullPolicy": "Always",
            "imagePullSecrets": [{"name": "pull"}],
            "command": ["serve"],
            "args": ["--all"],
            "env": [{"name": "A", "value": "1"}, {"name": "OTEL_SERVICE_NAME", "value": "mine"}],
            "envFrom": [{"secretRef": {"name": "keys"}}],
            "resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
            ],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}},
            ]}},
            "serviceAccountName": "tool",
            "securityContext": {"runAsUser": 7},
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": 1000}}],
            "volumeMounts": [{"name": "tmp", "mountPath": "/scratch"}],
            "initContainers": [{"name": "init", "image": "b", "resources": {"requests": {"cpu": 0.5}}}],
            "livenessProbe": {"tcpSocket": {"port": 9000}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
            "startupProbe": {"tcpSocket": {"port": "http"}},
            "serviceType": "NodePort",
            "serviceAnnotations": {"a": "b"},
            "podAnnotations": {"c": "d"},
            "podLabels": {"team": "platform"},
        },
        "networkPolicies": {
            "ingress": [{"from": {"group": "ops"}, "ports": [{"port": 9090}]}],
            "egress": [
                {"description": "a service", "to": {"service": {"name": "db", "namespace": "data"}}},
                {"to": {"dns": ["api.example.com", "*.example.org", "gone.example.com"], "cidr": "10.0.0.0/8"},
                 "ports": [{"port": 443}, {"port": 53, "protocol": "UDP"}]},
                {"to": {"dns": ["gone.example.com"]}},
                {"to": {"dns": ["*"]}},
                {"to": {"namespaceSelector": {}, "podSelector": {"matchLabels": {"x": "y"}}}},
            ],
        },
    })
}

#[test]
fn every_field_has_its_place() {
    let config = OperatorConfig {
        telemetry_env: vec![
            ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), "http://collector:4317".to_owned()),
            ("OTEL_SERVICE_NAME".to_owned(), "operator".to_owned()),
        ],
        api_server: vec!["10.0.0.1:443".parse().unwrap()],
        ..OperatorConfig::default()
    };
    insta::assert_snapshot!(objects(&tool(full_spec()), OLD, &config));
}

#[test]
fn version_of_the_cluster_decides_the_autoscaler() {
    let check = |minor, expected: Option<&str>| {
        let facts = ClusterFacts { minor };
        let desired = desired(&tool(full_spec()), facts, &OperatorConfig::default(), &ResolvedNames::new());
        let version =
            desired.autoscaler.as_ref().map(|autoscaler| autoscaler["apiVersion"].as_str().unwrap());
        assert_eq!(version, expected, "{minor}");
        // Its owner is the autoscaler, where there is one.
        assert_eq!(desired.deployment.unwrap().spec.replicas, None, "{minor}");
    };
    check(11, None);
    check(20, Some("autoscaling/v2beta2"));
    check(33, Some("autoscaling/v2"));
}

#[track_caller]
fn check_problems(name: &str, change: &Value, expected: &[&str]) {
    let mut spec = json!({"image": "a"});
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    let problems = problems(&named_tool(name, spec));
    let actual: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(actual, expected, "{name} {change}");
}

#[test]
fn problems_name_field_and_remedy() {
    let check = |name: &str, change: Value, expected: &[&str]| check_problems(name, &change, expected);
    let (long, longer) = ("a".repeat(58), "a".repeat(59));
    check("a", json!({}), &[]);
    check(&long, json!({"deploymentMode": "sidecar"}), &[]);
    check(&longer, json!({}), &[]);
    check(
        &longer,
        json!({"deploymentMode": "sidecar"}),
        &[
            "metadata.name: the name of a sidecar has at most 58 characters, this one has 59: its container is `tool-NAME`",
        ],
    );
    for name in ["1a", "a.b", "a-", &"a".repeat(64)] {
        let message = format!(
            "metadata.name: `{name}` is not a name of a Service: use at most 63 lower-case letters, digits and `-`, a letter first"
        );
        check(name, json!({}), &[&message]);
    }
    check(
        "a",
        json!({"image": "a b"}),
        &["spec.image: not a reference of an image, such as `registry.example.com/tool:1.0`"],
    );
    check(
        "a",
        json!({"deployment": {"autoscaling": {"minReplicas": 3, "maxReplicas": 2}}}),
        &["spec.deployment.autoscaling.maxReplicas: less than `minReplicas`, which is 3"],
    );
    check(
        "a",
        json!({"deployment": {"podLabels": {"app.kubernetes.io/name": "b"}}}),
        &["spec.deployment.podLabels: `app.kubernetes.io/name` is set by the operator: remove it"],
    );
    check(
        "a",
        json!({"deployment": {"initContainers": [{"name": "tool", "ports": [{"containerPort": 8080}]}]}}),
        &[
            "spec.deployment.initContainers[0].name: another container of the pod is named `tool`: rename it",
            "spec.deployment.initContainers[0].ports: port 8080 is the tool's own, `spec.port`: choose another",
        ],
    );
    check(
        "a",
        json!({"deployment": {"volumeMounts": [{"name": "x", "mountPath": "/x"}]}}),
        &[
            "spec.deployment.volumeMounts[0].name: no volume is named `x`: add it to `spec.deployment.volumes`",
        ],
    );
}

#[test]
fn problems_of_network_rules_name_field_and_remedy() {
    let check = |name: &str, change: Value, expected: &[&str]| check_problems(name, &change, expected);
    let policies = |direction: &str, rule: Value| json!({"networkPolicies": {direction: [rule]}});
    check(
        "a",
        policies("ingress", json!({"to": {"cidr": "10.0.0.0/8"}})),
        &["spec.networkPolicies.ingress[0].to: not for ingress: use `from`"],
    );
    check(
        "a",
        policies("egress", json!({"from": {"cidr": "10.0.0.0/8"}})),
        &["spec.networkPolicies.egress[0].from: not for egress: use `to`"],
    );
    check(
        "a",
        policies("egress", json!({"to": {}})),
        &[
            "spec.networkPolicies.egress[0].to: empty: set `group`, `cidr`, `dns`, `service`, `namespaceSelector` or `podSelector`, or remove it to admit any peer",
        ],
    );
    for cidr in ["10.0.0.0", "10.0.0.0/33", "a/8", "::/129", "10.0.0.0/-1"] {
        let message = format!(
            "spec.networkPolicies.egress[0].to.cidr: `{cidr}` is not a block of addresses, such as `10.0.0.0/8`"
        );
        check("a", policies("egress", json!({"to": {"cidr": cidr}})), &[&message]);
    }
    check(
        "a",
        policies("ingress", json!({"from": {"dns": ["a.example.com"]}})),
        &[
            "spec.networkPolicies.ingress[0].from.dns: names are for egress only: the source of traffic is an address",
        ],
    );
    for name in ["https://a", "a b", "", "*.", "a.*.b", "-a"] {
        let message = format!(
            "spec.networkPolicies.egress[0].to.dns[0]: `{name}` is not a name, such as `api.example.com`, `*.example.com` or `*`"
        );
        check("a", policies("egress", json!({"to": {"dns": [name]}})), &[&message]);
    }
    check("a", policies("egress", json!({"to": {"dns": ["*", "*.a.com", "A.b.", "_x.a"]}})), &[]);
}

/// Returns a Deployment of one pod with these numbers of ready, available, updated and unavailable pods.
fn deployment_with(numbers: [i32; 4]) -> Deployment {
    let mut deployment =
        desired(&sample(), NEW, &OperatorConfig::default(), &ResolvedNames::new()).deployment.unwrap();
    deployment.metadata.generation = Some(3);
    deployment.metadata.uid = Some("d-uid".to_owned());
    let [ready, available, updated, unavailable] = numbers;
    deployment.status = serde_json::from_value(json!({
        "observedGeneration": 3, "readyReplicas": ready, "availableReplicas": available,
        "updatedReplicas": updated, "unavailableReplicas": unavailable,
    }))
    .unwrap();
    deployment
}

const NOW: i64 = 1_800_000_000;

fn observation(deployment: Option<&Deployment>) -> ToolObservation<'_> {
    ToolObservation {
        deployment,
        policy: PolicyState::Ready,
        discovery: DiscoveryState::Unchanged,
        failure: None,
        now: Timestamp::from_second(NOW).unwrap(),
    }
}

/// Formats phase, endpoint and conditions of a status.
fn summary(status: &LanguageToolStatus) -> String {
    let phase = status.phase.map(|phase| format!("{phase:?}")).unwrap_or_default();
    let endpoint = if status.endpoint.is_some() { "endpoint" } else { "none" };
    let conditions =
        status.conditions.iter().map(|condition| format!("{}={}", condition.type_, condition.reason));
    format!("{phase} {endpoint} {}", conditions.collect::<Vec<_>>().join(" "))
}

#[test]
fn pods_decide_the_phase() {
    let check = |before: Option<&str>, numbers: Option<[i32; 4]>, expected: &str| {
        let mut tool = sample();
        if let Some(phase) = before {
            let status = json!({"phase": phase, "endpoint": "http://old"});
            tool.status = Some(serde_json::from_value(status).unwrap());
        }
        let deployment = numbers.map(deployment_with);
        let status = status(&tool, &observation(deployment.as_ref()), &OperatorConfig::default());
        let summary = summary(&status);
        let start = summary.split(" RegistryValidated").next().unwrap();
        assert_eq!(start, expected, "{before:?} {numbers:?}");
    };
    check(None, None, "Pending none Ready=DeploymentNotFound");
    check(None, Some([0, 0, 0, 1]), "Pending none Ready=Pending");
    check(None, Some([0, 0, 1, 1]), "Pending none Ready=PodsNotReady");
    check(None, Some([1, 1, 1, 0]), "Running endpoint Ready=ReconcileSuccess");
    check(Some("Running"), Some([1, 1, 0, 0]), "Updating endpoint Ready=Updating");
    check(Some("Running"), Some([1, 1, 1, 1]), "Running endpoint Ready=ReconcileSuccess");
    check(Some("Running"), Some([0, 0, 1, 1]), "Failed endpoint Ready=PodsNotReady");
    check(Some("Failed"), Some([0, 0, 1, 1]), "Failed endpoint Ready=PodsNotReady");
    check(Some("Failed"), Some([1, 1, 1, 0]), "Running endpoint Ready=ReconcileSuccess");
    check(Some("Running"), Some([0, 0, 1, 0]), "Pending endpoint Ready=PodsNotReady");
}

#[test]
fn rollout_without_progress_has_failed() {
    let check = |condition: Value, expected: &str| {
        let mut deployment = deployment_with([0, 0, 1, 1]);
        deployment.status.as_mut().unwrap().conditions =
            Some(vec![serde_json::from_value(condition.clone()).unwrap()]);
        let status = status(&sample(), &observation(Some(&deployment)), &OperatorConfig::default());
        let actual = format!("{:?} {}", status.phase.unwrap(), status.conditions[0].message);
        assert_eq!(actual, expected, "{condition}");
    };
    check(
        json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"}),
        "Failed late",
    );
    check(
        json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}),
        "Failed FailedCreate",
    );
    check(json!({"type": "Progressing", "status": "True"}), "Pending 0 of 1 pods are ready");
}

#[test]
fn policy_failure_and_discovery_decide_the_conditions() {
    let deployment = deployment_with([1, 1, 1, 0]);
    let running = || observation(Some(&deployment));
    let check = |tool: &LanguageTool, observation: ToolObservation<'_>, expected: &str| {
        assert_eq!(summary(&status(tool, &observation, &OperatorConfig::default())), expected);
    };
    let sidecar = tool(json!({"image": "a", "deploymentMode": "sidecar"}));
    let text = || "why".to_owned();
    check(
        &sample(),
        running(),
        "Running endpoint Ready=ReconcileSuccess RegistryValidated=Validated NetworkPolicyReady=NetworkPolicyReady SchemasDiscovered=Pending",
    );
    check(
        &sample(),
        ToolObservation { policy: PolicyState::Timeout(text()), ..running() },
        "Degraded endpoint Ready=ReconcileSuccess RegistryValidated=Validated NetworkPolicyReady=Timeout SchemasDiscovered=Pending",
    );
    check(
        &sample(),
        ToolObservation { policy: PolicyState::Error(text()), ..running() },
        "Degraded endpoint Ready=ReconcileSuccess RegistryValidated=Validated NetworkPolicyReady=Error SchemasDiscovered=Pending",
    );
    check(
        &sample(),
        ToolObservation { discovery: DiscoveryState::Failed(text()), ..running() },
        "Running endpoint Ready=ReconcileSuccess RegistryValidated=Validated NetworkPolicyReady=NetworkPolicyReady SchemasDiscovered=SchemaDiscoveryFailed",
    );
    check(
        &sidecar,
        ToolObservation {
            policy: PolicyState::Disabled(text()),
            discovery: DiscoveryState::NoAgentPod,
            ..observation(None)
        },
        "Running endpoint Ready=ReconcileSuccess RegistryValidated=Validated NetworkPolicyReady=Disabled SchemasDiscovered=NoRunningAgentPod",
    );
    let failure = |reason| Some(ReconcileFailure { reason, message: text(), is_final: true });
    check(
        &sample(),
        ToolObservation { failure: failure("InvalidSpec"), ..observation(None) },
        "Failed none Ready=InvalidSpec RegistryValidated=Validated NetworkPolicyReady=NetworkPolicyReady SchemasDiscovered=Pending",
    );
    check(
        &sample(),
        ToolObservation { failure: failure("RegistryNotAllowed"), ..observation(None) },
        "Failed none Ready=RegistryNotAllowed RegistryValidated=RegistryNotAllowed NetworkPolicyReady=NetworkPolicyReady SchemasDiscovered=Pending",
    );
}

fn schema(name: &str) -> ToolSchema {
    let input_schema =
        json!({"type": "object", "properties": {"a": {"type": ["string", "null"], "default": null}}});
    ToolSchema { name: name.to_owned(), description: None, input_schema }
}

#[test]
fn discovered_tools_stay_until_others_are_found() {
    let deployment = deployment_with([1, 1, 1, 0]);
    let mut tool = sample();
    let mut next = |discovery: DiscoveryState| {
        let observation = ToolObservation { discovery, ..observation(Some(&deployment)) };
        let status = status(&tool, &observation, &OperatorConfig::default());
        // The resource is stored as JSON.
        tool.status = serde_json::from_str(&serde_json::to_string(&status).unwrap()).unwrap();
        let names: Vec<_> = status.tool_schemas.iter().map(|tool| tool.name.clone()).collect();
        let condition = status.conditions.last().unwrap();
        (
            names.join(","),
            condition.status.clone(),
            condition.message.clone(),
            due_source(&tool, Some(&deployment)),
        )
    };
    let source = || "d-uid/3".to_owned();
    let found = |names: [&str; 2], omitted| DiscoveryState::Found {
        tools: names.map(schema).to_vec(),
        omitted,
        source: source(),
    };
    let text = |text: &str| text.to_owned();
    assert_eq!(
        next(DiscoveryState::Failed(text("down"))),
        (text(""), text("False"), text("down"), Some(source()))
    );
    assert_eq!(next(DiscoveryState::Unchanged), (text(""), text("False"), text("down"), Some(source())));
    assert_eq!(next(found(["a", "b"], 0)), (text("a,b"), text("True"), text("2 tools"), None));
    assert_eq!(next(DiscoveryState::Unchanged), (text("a,b"), text("True"), text("2 tools"), None));
    let left_out = text("5 tools, 3 of them left out");
    assert_eq!(next(found(["b", "c"], 3)), (text("b,c"), text("True"), left_out, None));
    assert_eq!(next(DiscoveryState::Failed(text("gone"))), (text("b,c"), text("False"), text("gone"), None));
}

#[test]
fn time_of_a_transition_is_kept() {
    let deployment = deployment_with([1, 1, 1, 0]);
    let mut tool = sample();
    let config = OperatorConfig::default();
    let first = status(&tool, &observation(Some(&deployment)), &config);
    tool.status = Some(first.clone());
    let later =
        ToolObservation { now: Timestamp::from_second(NOW + 60).unwrap(), ..observation(Some(&deployment)) };
    assert_eq!(status(&tool, &later, &config), first);
    let later = ToolObservation { policy: PolicyState::Error("why".to_owned()), ..later };
    let times: Vec<_> = status(&tool, &later, &config)
        .conditions
        .iter()
        .map(|condition| condition.last_transition_time.0.as_second() - NOW)
        .collect();
    assert_eq!(times, [0, 0, 60, 0]);
}

#[test]
fn tools_are_listed_when_all_pods_are_updated_and_one_is_ready() {
    let check = |numbers, expected: Option<&str>| {
        let source = due_source(&sample(), Some(&deployment_with(numbers)));
        assert_eq!(source.as_deref(), expected, "{numbers:?}");
    };
    check([0, 0, 1, 1], None);
    check([1, 1, 0, 0], None);
    check([1, 0, 1, 1], Some("d-uid/3"));
    assert_eq!(due_source(&sample(), None), None);
}

#[test]
fn tools_beyond_the_limits_are_left_out() {
    let listed = |name: &str, input_schema: Value| ListedTool {
        name: name.to_owned(),
        description: None,
        input_schema,
    };
    let tools = || vec![listed("a", json!({})), listed("b", json!(true)), listed("c", json!({}))];
    let check = |count, bytes, expected: &[&str], omitted| {
        let (schemas, left_out) = bounded_schemas(tools(), count, bytes);
        let names: Vec<_> = schemas.iter().map(|schema| schema.name.as_str()).collect();
        assert_eq!((names, left_out), (expected.to_vec(), omitted), "{count} {bytes}");
    };
    check(3, 1000, &["a", "b", "c"], 0);
    check(2, 1000, &["a", "b"], 1);
    check(3, 40, &["a"], 2);
    check(3, 0, &[], 3);
    // The schema of the resource admits objects only.
    assert_eq!(bounded_schemas(tools(), 3, 1000).0[1].input_schema, json!({"type": "object"}));
}

/// Knows `known`, is slow with `slow`, and fails otherwise.
struct TestResolver;

impl NameResolver for TestResolver {
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            match name {
                "known" => Ok((0..100).map(|last| IpAddr::from([192, 0, 2, last])).collect()),
                "slow" => std::future::pending().await,
                "empty" => Ok(Vec::new()),
                _ => Err(Error::from(ErrorKind::NotFound)),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn unresolved_names_are_closed_and_reported() {
    let check = async |names: &[&str], expected: &str, state: PolicyState| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let (resolved, actual) = resolve(&TestResolver, names, Duration::from_secs(3)).await;
        let resolved: Vec<_> =
            resolved.iter().map(|(name, addresses)| format!("{name} {}", addresses.len())).collect();
        assert_eq!((resolved.join(","), actual), (expected.to_owned(), state));
    };
    let failed = "no addresses, so egress to them is closed: empty, unknown";
    let late = "not resolved in time, so egress to them is closed: slow";
    check(&[], "", PolicyState::Ready).await;
    check(&["known"], "known 32", PolicyState::Ready).await;
    check(&["known", "slow"], "known 32", PolicyState::Timeout(late.to_owned())).await;
    check(&["unknown", "slow", "empty"], "", PolicyState::Error(failed.to_owned())).await;
}

#[test]
fn definition_has_defaults_bounds_and_columns() {
    let definition = serde_json::to_value(definition()).unwrap();
    let version = &definition["spec"]["versions"][0];
    let schema = &version["schema"]["openAPIV3Schema"]["properties"];
    let check = |path: &str, expected: Value| {
        let actual = schema.pointer(path).unwrap_or(&Value::Null);
        assert_eq!(actual, &expected, "{path}");
    };
    check("/spec/properties/type/default", json!("mcp"));
    check("/spec/properties/type/enum", json!(["mcp"]));
    check("/spec/properties/deploymentMode/default", json!("service"));
    check("/spec/properties/deploymentMode/enum", json!(["service", "sidecar"]));
    check("/spec/properties/port/default", json!(8080));
    check("/spec/properties/port/minimum", json!(1.0));
    check("/spec/properties/port/maximum", json!(65535.0));
    check("/spec/properties/image/minLength", json!(1));
    check("/spec/required", json!(["image"]));
    check("/metadata/properties/name/maxLength", json!(63));
    check(
        "/status/properties/toolSchemas/items/properties/inputSchema/x-kubernetes-preserve-unknown-fields",
        json!(true),
    );
    let limits = "/spec/properties/deployment/properties/resources/properties/limits/additionalProperties";
    check(limits, json!({"x-kubernetes-int-or-string": true}));
    let columns: Vec<_> = version["additionalPrinterColumns"].as_array().unwrap().iter().collect();
    let columns: Vec<_> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["Type", "Image", "Phase", "Endpoint", "Age"]);
    assert_eq!(definition["spec"]["names"]["shortNames"], json!(["ltool"]));
    // `kubectl apply` stores the whole definition in an annotation of at most 262144 bytes.
    assert!(definition.to_string().len() < 200_000, "{}", definition.to_string().len());
}
