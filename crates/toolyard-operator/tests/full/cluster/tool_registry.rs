//! Registries at a real API server. The tests set the status of Deployments in the role of the cluster's controllers, and
//! have the report of the gateway.

mod definition;
mod sharing;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use insta::assert_snapshot;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolyard_operator::controller::{
    ClusterFacts, Context, DiscoveryError, ListedTool, OperatorConfig, OperatorMetrics, ToolDiscovery,
};
use toolyard_operator::crd;
use toolyard_operator::tool_registry::report::{GatewayReader, GatewayReport};
use toolyard_operator::tool_registry::{self, DEFINITION, ToolRegistry, problems};

use super::operator::until;
use super::server::Server;
use crate::tool_registry::COMPLETE_EXAMPLE;

pub(super) const NAMESPACE: &str = "agents";

/// A server with the definition of registries, and a namespace.
pub(super) struct RegistryCluster {
    server: Server,
    pub(super) admin: Client,
    registries: Api<ToolRegistry>,
}

impl RegistryCluster {
    pub(super) async fn new() -> Self {
        let server = Server::start().await;
        let admin = server.admin().await;
        for definition in crd::definitions() {
            let name = definition["metadata"]["name"].as_str().unwrap().to_owned();
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            apply(&admin, &path, &definition.to_string()).await.unwrap();
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        apply(&admin, &format!("/api/v1/namespaces/{NAMESPACE}"), &namespace.to_string()).await.unwrap();
        let registries = Api::namespaced(admin.clone(), NAMESPACE);
        let cluster = Self { server, admin, registries };
        cluster.definition_is_established().await;
        cluster
    }

    async fn definition_is_established(&self) -> CustomResourceDefinition {
        let definitions = Api::<CustomResourceDefinition>::all(self.admin.clone());
        loop {
            let definition = definitions.get(DEFINITION).await.unwrap();
            let conditions =
                definition.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
            if conditions
                .clone()
                .any(|condition| condition.type_ == "Established" && condition.status == "True")
            {
                // The paths are served a moment later.
                if self.registries.list(&ListParams::default()).await.is_ok() {
                    return definition;
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Applies a registry in YAML or JSON. Returns the message of a refusal.
    pub(super) async fn apply(&self, name: &str, document: &str) -> Result<Value, String> {
        let path =
            format!("/apis/omnia.altairalabs.ai/v1alpha1/namespaces/{NAMESPACE}/toolregistries/{name}");
        apply(&self.admin, &path, document).await
    }

    /// Waits until the status of a registry meets a condition, and returns the registry.
    pub(super) async fn wait_for(
        &self,
        name: &str,
        what: &str,
        is_met: impl Fn(&ToolRegistry) -> bool,
    ) -> ToolRegistry {
        for _ in 0..600 {
            let registry = self.registries.get(name).await.unwrap();
            if is_met(&registry) {
                return registry;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let registry = self.registries.get(name).await.unwrap();
        panic!("{name} is not {what}: {:#}", json!(registry.status));
    }

    pub(super) async fn wait_for_phase(&self, name: &str, phase: &str) -> ToolRegistry {
        self.wait_for(name, phase, |registry| {
            registry.status.as_ref().is_some_and(|status| status.phase == phase)
        })
        .await
    }

    /// Reports a ready pod of a Deployment, as the controller of Deployments does.
    pub(super) async fn start_pod(&self, name: &str) {
        let deployments = Api::<Deployment>::namespaced(self.admin.clone(), NAMESPACE);
        let patch = json!({"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1}});
        deployments.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    async fn manifests(&self, name: &str) -> String {
        self.files(name).await["registries.yaml"].clone()
    }

    /// The files of a gateway, by name.
    async fn files(&self, name: &str) -> BTreeMap<String, String> {
        let maps = Api::<ConfigMap>::namespaced(self.admin.clone(), NAMESPACE);
        maps.get(name).await.unwrap().data.unwrap()
    }
}

async fn apply(client: &Client, path: &str, document: &str) -> Result<Value, String> {
    let request = http::Request::patch(format!("{path}?fieldManager=test&force=true"));
    let request = request.header("content-type", "application/apply-patch+yaml");
    match client.request(request.body(document.as_bytes().to_vec()).unwrap()).await {
        Ok(applied) => Ok(applied),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(error) => panic!("{error}"),
    }
}

/// Gateways with a report that the test sets.
#[derive(Default)]
struct ScriptedGateways {
    report: Mutex<Value>,
}

impl GatewayReader for ScriptedGateways {
    fn read<'a>(&'a self, _authority: &'a str) -> BoxFuture<'a, Result<GatewayReport, String>> {
        let report = self.report.lock().unwrap().clone();
        ready(serde_json::from_value(report).map_err(|_| "connection refused".to_owned())).boxed()
    }
}

pub(super) struct NoTools;

impl ToolDiscovery for NoTools {
    fn tools<'a>(&'a self, _endpoint: &'a str) -> BoxFuture<'a, Result<Vec<ListedTool>, DiscoveryError>> {
        ready(Ok(Vec::new())).boxed()
    }
}

/// A running controller.
struct RunningController {
    gateways: Arc<ScriptedGateways>,
    metrics: Arc<OperatorMetrics>,
    task: JoinHandle<()>,
}

impl Drop for RunningController {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningController {
    fn start(client: &Client, config: OperatorConfig) -> Self {
        let (gateways, metrics) =
            (Arc::new(ScriptedGateways::default()), Arc::new(OperatorMetrics::default()));
        let facts = ClusterFacts { minor: 20 };
        let context =
            Arc::new(Context::new(client.clone(), config, facts, Arc::new(NoTools), metrics.clone()));
        let task = tokio::spawn(tool_registry::controller_with(context, gateways.clone()));
        Self { gateways, metrics, task }
    }

    /// Lets the gateway report these handlers as ready, with a tool each.
    fn report(&self, handlers: &[(&str, &str, &str)]) {
        let phases: Vec<_> =
            handlers.iter().map(|(handler, _, phase)| json!({"name": handler, "phase": phase})).collect();
        let tools: Vec<_> = handlers
            .iter()
            .filter(|(_, tool, _)| !tool.is_empty())
            .map(|(handler, tool, phase)| {
                let status = if *phase == "Ready" { "Available" } else { "Unavailable" };
                json!({"handlerName": handler, "name": tool, "status": status, "endpoint": "http://x"})
            })
            .collect();
        *self.gateways.report.lock().unwrap() = json!({"handlers": phases, "discoveredTools": tools});
    }

    /// Lets the gateway report that it serves these files, or none.
    fn serve(&self, files: Option<&BTreeMap<String, String>>) {
        let digest = files.map(|files| toolyard_manifest::digest(files.values().map(String::as_str)));
        self.gateways.report.lock().unwrap()["manifestDigest"] = json!(digest);
    }

    /// Returns the number of writes by kind and verb.
    fn writes(&self) -> String {
        let text = self.metrics.text();
        let lines = text.lines().filter_map(|line| line.strip_prefix("toolyard_operator_writes_total"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn config() -> OperatorConfig {
    OperatorConfig { poll_interval: Duration::from_millis(200), ..OperatorConfig::default() }
}

pub(super) fn http_registry(name: &str, handlers: &Value) -> String {
    json!({
        "apiVersion": "omnia.altairalabs.ai/v1alpha1", "kind": "ToolRegistry",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"handlers": handlers},
    })
    .to_string()
}

#[tokio::test]
async fn registry_has_a_gateway_and_a_status() {
    let cluster = RegistryCluster::new().await;
    let controller = RunningController::start(&cluster.admin, config());
    cluster.apply("agent-tools", COMPLETE_EXAMPLE).await.unwrap();
    let registry = cluster.wait_for_phase("agent-tools", "Pending").await;
    assert!(registry.finalizers().is_empty());
    let name = "agent-tools-gateway";
    let deployment = Api::<Deployment>::namespaced(cluster.admin.clone(), NAMESPACE).get(name).await.unwrap();
    assert_eq!(deployment.owner_references()[0].uid, registry.uid().unwrap());
    Api::<Service>::namespaced(cluster.admin.clone(), NAMESPACE).get(name).await.unwrap();
    Api::<NetworkPolicy>::namespaced(cluster.admin.clone(), NAMESPACE).get(name).await.unwrap();

    // The gateway starts, and its servers answer one after the other.
    let handlers = |last: &'static str| {
        [
            ("calculator", "calculate", "Ready"),
            ("user-service", "get_user", "Ready"),
            ("code-tools", "read_file", "Ready"),
            ("external-api", "searchProducts", last),
        ]
    };
    controller.report(&handlers("Pending"));
    cluster.start_pod(name).await;
    cluster
        .wait_for("agent-tools", "discovered", |registry| {
            registry
                .status
                .as_ref()
                .is_some_and(|status| status.discovered_tools_count == 4 && status.phase == "Pending")
        })
        .await;
    controller.report(&handlers("Ready"));
    let ready = cluster.wait_for_phase("agent-tools", "Ready").await;
    assert_ready_status(&ready);

    idle_registry_is_not_written(&cluster, &controller, &ready).await;
    server_that_fails_degrades_the_registry(&cluster, &controller).await;
    edits_reach_the_gateway(&cluster, &controller).await;
    edit_is_pending_until_the_gateway_serves_it(&cluster, &controller).await;
    invalid_edit_fails_and_keeps_the_gateway(&cluster).await;
    deleted_objects_are_created_again(&cluster, name).await;
    let events = Api::<Event>::namespaced(cluster.admin.clone(), NAMESPACE)
        .list(&ListParams::default())
        .await
        .unwrap();
    let reasons: std::collections::BTreeSet<_> =
        events.iter().filter_map(|event| event.reason.clone()).collect();
    assert_eq!(reasons.into_iter().collect::<Vec<_>>(), ["Degraded", "Failed", "Pending", "Ready"]);
    cluster.registries.delete("agent-tools", &DeleteParams::default()).await.unwrap();
    assert!(cluster.registries.get_opt("agent-tools").await.unwrap().is_none());
}

fn assert_ready_status(ready: &ToolRegistry) {
    assert_snapshot!(shown(ready), @r#"
    observedGeneration: 1
    phase: Ready
    endpoint: http://agent-tools-gateway.agents.svc.cluster.local:8080/mcp
    discoveredToolsCount: 4
    availableToolsCount: 4
    lastDiscoveryTime: null
    discoveredTools:
      - handlerName: calculator
        name: calculate
        status: Available
        endpoint: http://x
      - handlerName: user-service
        name: get_user
        status: Available
        endpoint: http://x
      - handlerName: code-tools
        name: read_file
        status: Available
        endpoint: http://x
      - handlerName: external-api
        name: searchProducts
        status: Available
        endpoint: http://x
    conditions:
      - type: HandlersAvailable
        status: "True"
        reason: HandlerReady
        message: "4 of 4 handlers are ready"
        lastTransitionTime: null
        observedGeneration: 1
      - type: AllHandlersReady
        status: "True"
        reason: AllReady
        message: "4 of 4 handlers are ready"
        lastTransitionTime: null
        observedGeneration: 1
      - type: ToolsDiscovered
        status: "True"
        reason: ToolsFound
        message: "4 tools are known"
        lastTransitionTime: null
        observedGeneration: 1
      - type: HandlersValid
        status: "True"
        reason: Valid
        message: "the resource is valid"
        lastTransitionTime: null
        observedGeneration: 1
    "#);
}

/// Describes a status without its times.
fn shown(registry: &ToolRegistry) -> String {
    let mut status = json!(registry.status);
    let now = status["lastDiscoveryTime"].take();
    assert!(now.as_str().unwrap().starts_with("20"), "{now}");
    for condition in status["conditions"].as_array_mut().unwrap() {
        condition["lastTransitionTime"].take();
    }
    toolyard_manifest::to_yaml(&status)
}

async fn idle_registry_is_not_written(
    cluster: &RegistryCluster,
    controller: &RunningController,
    ready: &ToolRegistry,
) {
    let before = controller.writes();
    // Several readings of the gateway.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(controller.writes(), before);
    let current = cluster.registries.get("agent-tools").await.unwrap();
    assert_eq!(current.resource_version(), ready.resource_version());
    assert_snapshot!(before.lines().filter(|line| !line.contains("status")).collect::<Vec<_>>().join("\n"), @r#"
    {kind="ConfigMap",verb="apply"} 1
    {kind="Deployment",verb="apply"} 1
    {kind="NetworkPolicy",verb="apply"} 1
    {kind="Service",verb="apply"} 1
    "#);
}

async fn server_that_fails_degrades_the_registry(cluster: &RegistryCluster, controller: &RunningController) {
    controller.report(&[
        ("calculator", "calculate", "Unavailable"),
        ("user-service", "get_user", "Ready"),
        ("code-tools", "read_file", "Ready"),
        ("external-api", "searchProducts", "Ready"),
    ]);
    let status = cluster.wait_for_phase("agent-tools", "Degraded").await.status.unwrap();
    assert_eq!((status.available_tools_count, status.discovered_tools_count), (3, 4));
    controller.report(&[
        ("calculator", "calculate", "Ready"),
        ("user-service", "get_user", "Ready"),
        ("code-tools", "read_file", "Ready"),
        ("external-api", "searchProducts", "Ready"),
    ]);
    cluster.wait_for_phase("agent-tools", "Ready").await;
}

async fn edits_reach_the_gateway(cluster: &RegistryCluster, controller: &RunningController) {
    let selecting = json!([
        {"name": "platform-tools", "selector": {"matchLabels": {"omnia.altairalabs.ai/tool": "true"}}},
    ]);
    cluster.apply("agent-tools", &http_registry("agent-tools", &selecting)).await.unwrap();
    cluster.wait_for_phase("agent-tools", "Failed").await;
    assert!(!cluster.manifests("agent-tools-gateway").await.contains("weather"));
    // The annotated Service of the contract.
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "weather-api", "labels": {"omnia.altairalabs.ai/tool": "true"}, "annotations": {
            "omnia.altairalabs.ai/tool-path": "/v1/weather",
            "omnia.altairalabs.ai/tool-description": "Get weather forecasts",
        }},
        "spec": {"selector": {"app": "weather-service"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]},
    });
    let path = format!("/api/v1/namespaces/{NAMESPACE}/services/weather-api");
    apply(&cluster.admin, &path, &service.to_string()).await.unwrap();
    controller.report(&[("platform-tools-weather-api", "weather_api", "Ready")]);
    let status = cluster.wait_for_phase("agent-tools", "Ready").await.status.unwrap();
    assert_eq!(status.discovered_tools[0].handler_name, "platform-tools");
    assert_snapshot!(cluster.manifests("agent-tools-gateway").await, @r#"
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: agent-tools
      namespace: agents
    spec:
      handlers:
        - name: platform-tools-weather-api
          type: http
          endpoint:
            url: http://weather-api.agents.svc.cluster.local:80/v1/weather
          tool:
            name: weather_api
            description: "Get weather forecasts"
            inputSchema:
              type: object
    "#);
    // Another label, and the Service is no tool any longer.
    let services = Api::<Service>::namespaced(cluster.admin.clone(), NAMESPACE);
    let relabel = Patch::Merge(json!({"metadata": {"labels": {"omnia.altairalabs.ai/tool": "false"}}}));
    services.patch("weather-api", &PatchParams::default(), &relabel).await.unwrap();
    cluster.wait_for_phase("agent-tools", "Failed").await;
    let relabel = Patch::Merge(json!({"metadata": {"labels": {"omnia.altairalabs.ai/tool": "true"}}}));
    services.patch("weather-api", &PatchParams::default(), &relabel).await.unwrap();
    cluster.wait_for_phase("agent-tools", "Ready").await;
    services.delete("weather-api", &DeleteParams::default()).await.unwrap();
    cluster.wait_for_phase("agent-tools", "Failed").await;
}

/// The kubelet passes changed files to the pod later.
async fn edit_is_pending_until_the_gateway_serves_it(
    cluster: &RegistryCluster,
    controller: &RunningController,
) {
    let sse = |endpoint: &str| {
        let config = json!({"transport": "sse", "endpoint": endpoint});
        http_registry("agent-tools", &json!([{"name": "a", "type": "mcp", "mcpConfig": config}]))
    };
    cluster.apply("agent-tools", &sse("http://a/sse")).await.unwrap();
    controller.report(&[("a", "get", "Ready")]);
    cluster.wait_for_phase("agent-tools", "Ready").await;
    let before = cluster.files("agent-tools-gateway").await;
    controller.serve(Some(&before));
    cluster.apply("agent-tools", &sse("http://b/sse")).await.unwrap();
    // The name of the handler is the same, and its state is that of the earlier address.
    let pending = cluster.wait_for_phase("agent-tools", "Pending").await;
    let condition = pending.status.unwrap().conditions.swap_remove(1);
    assert_eq!((&*condition.r#type, &*condition.reason), ("AllHandlersReady", "ManifestNotServed"));
    let after = cluster.files("agent-tools-gateway").await;
    assert_ne!(after, before);
    controller.serve(Some(&after));
    cluster.wait_for_phase("agent-tools", "Ready").await;
    controller.serve(None);
}

async fn invalid_edit_fails_and_keeps_the_gateway(cluster: &RegistryCluster) {
    let before = cluster.manifests("agent-tools-gateway").await;
    let invalid = json!([{"name": "a", "type": "mcp", "mcpConfig": {"transport": "stdio", "command": "x"}, "timeuot": "1s"}]);
    cluster.apply("agent-tools", &http_registry("agent-tools", &invalid)).await.unwrap();
    let registry = cluster
        .wait_for("agent-tools", "invalid", |registry| {
            let conditions = registry.status.iter().flat_map(|status| &status.conditions);
            conditions
                .into_iter()
                .any(|condition| condition.r#type == "HandlersValid" && condition.status == "False")
        })
        .await;
    let status = registry.status.unwrap();
    assert_eq!(status.phase, "Failed");
    let message =
        &status.conditions.iter().find(|condition| condition.r#type == "HandlersValid").unwrap().message;
    assert!(
        message.starts_with("spec.handlers[0].timeuot: unknown field")
            && message.contains("did you mean `timeout`"),
        "{message}"
    );
    assert_eq!(cluster.manifests("agent-tools-gateway").await, before);
    cluster.apply("agent-tools", COMPLETE_EXAMPLE).await.unwrap();
    cluster.wait_for_phase("agent-tools", "Pending").await;
}

async fn deleted_objects_are_created_again(cluster: &RegistryCluster, name: &str) {
    let maps = Api::<ConfigMap>::namespaced(cluster.admin.clone(), NAMESPACE);
    let uid = maps.get(name).await.unwrap().uid();
    maps.delete(name, &DeleteParams::default()).await.unwrap();
    for _ in 0..600 {
        if maps.get_opt(name).await.unwrap().is_some_and(|map| map.uid() != uid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the ConfigMap was not created again");
}

#[tokio::test]
async fn registry_survives_a_restart_of_the_api_server() {
    let mut cluster = RegistryCluster::new().await;
    let controller = RunningController::start(&cluster.admin, config());
    let handlers = |url: &str| {
        let tool = json!({"name": "get", "description": "Gets", "inputSchema": {"type": "object"}});
        json!([
            {"name": "a", "type": "http", "endpoint": {"url": url}, "tool": tool},
            {"name": "selected", "selector": {"matchLabels": {"team": "tools"}}},
        ])
    };
    cluster.apply("agent-tools", &http_registry("agent-tools", &handlers("http://a/"))).await.unwrap();
    controller.report(&[("a", "get", "Ready")]);
    cluster.wait_for_phase("agent-tools", "Pending").await;
    let name = "agent-tools-gateway";
    cluster.start_pod(name).await;
    cluster.wait_for_phase("agent-tools", "Degraded").await;

    // The gateway changes while there is no server to write its status to.
    controller.report(&[("a", "get", "Unavailable")]);
    cluster.server.restart_api().await;
    cluster.wait_for_phase("agent-tools", "Failed").await;

    // All watches go on: those of registries, of Services and of the objects of the gateway.
    cluster.apply("agent-tools", &http_registry("agent-tools", &handlers("http://b/"))).await.unwrap();
    until("the edit reaches the gateway", async || {
        cluster.manifests(name).await.contains("http://b/").then_some(())
    })
    .await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "found", "labels": {"team": "tools"}},
        "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    });
    let path = format!("/api/v1/namespaces/{NAMESPACE}/services/found");
    apply(&cluster.admin, &path, &service.to_string()).await.unwrap();
    until("the Service is selected", async || {
        cluster.manifests(name).await.contains("selected-found").then_some(())
    })
    .await;
    deleted_objects_are_created_again(&cluster, name).await;
}
