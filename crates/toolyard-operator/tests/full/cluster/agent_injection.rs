//! Injection of tools into the workloads of agents.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolyard_operator::agent_injection;
use toolyard_operator::controller::{
    ClusterFacts, Context, DiscoveryError, ListedTool, OperatorConfig, OperatorMetrics, ToolDiscovery,
};

use super::server::Server;

/// Injection asks no tool.
pub(crate) struct NoDiscovery;

impl ToolDiscovery for NoDiscovery {
    fn tools<'a>(&'a self, _endpoint: &'a str) -> BoxFuture<'a, Result<Vec<ListedTool>, DiscoveryError>> {
        async { Err(DiscoveryError("asked".to_owned())) }.boxed()
    }
}

/// A running controller, which ends when dropped.
struct RunningController {
    metrics: Arc<OperatorMetrics>,
    task: JoinHandle<()>,
}

impl Drop for RunningController {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningController {
    fn start(client: Client) -> Self {
        let metrics = Arc::new(OperatorMetrics::default());
        let (config, facts) = (OperatorConfig::default(), ClusterFacts { minor: 20 });
        let context = Context::new(client, config, facts, Arc::new(NoDiscovery), metrics.clone());
        let task = tokio::spawn(agent_injection::controller(Arc::new(context)));
        Self { metrics, task }
    }

    /// Returns the lines of the metrics that begin with a name, without that name.
    fn lines(&self, name: &str) -> Vec<String> {
        let text = self.metrics.text();
        text.lines().filter_map(|line| line.strip_prefix(name)).map(str::to_owned).collect()
    }

    fn writes(&self) -> Vec<String> {
        self.lines("toolyard_operator_writes_total")
    }
}

/// Calls `check` until it returns something.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(case: &str, check: impl Fn() -> F) -> T {
    let waited = async {
        loop {
            if let Some(found) = check().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waited).await.unwrap_or_else(|_| panic!("never: {case}"))
}

/// Installs a definition that admits any specification.
pub(crate) async fn define(admin: &Client, kind: &str) {
    let plural = format!("{}s", kind.to_lowercase());
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.langop.io")},
        "spec": {
            "group": "langop.io", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }}}],
        },
    });
    let api = Api::<CustomResourceDefinition>::all(admin.clone());
    let definition = serde_json::from_value(definition).unwrap();
    api.create(&PostParams::default(), &definition).await.unwrap();
    let name = definition.metadata.name.as_deref().unwrap();
    await_condition(api, name, conditions::is_crd_established()).await.unwrap();
}

/// Applies an object of the group `langop.io`.
pub(crate) async fn apply(admin: &Client, kind: &str, name: &str, spec: Value) {
    let body = json!({
        "apiVersion": "langop.io/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    });
    let path = format!(
        "/apis/langop.io/v1alpha1/namespaces/default/{}s/{name}?fieldManager=test&force=true",
        kind.to_lowercase()
    );
    let request = http::Request::patch(path).header("content-type", "application/apply-patch+yaml");
    let _applied: Value = admin.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap();
}

pub(crate) async fn remove(admin: &Client, kind: &str, name: &str) {
    let path = format!("/apis/langop.io/v1alpha1/namespaces/default/{}s/{name}", kind.to_lowercase());
    let _status: Value = admin.request(http::Request::delete(path).body(Vec::new()).unwrap()).await.unwrap();
}

pub(crate) fn deployment(name: &str, tools: Option<&str>) -> Deployment {
    let labels = json!({"app": name});
    let containers = json!([{
        "name": "agent", "image": "agent:1", "env": [{"name": "OWN", "value": "1"}],
        "volumeMounts": [{"name": "work", "mountPath": "/workspace"}],
    }]);
    let init = json!([{"name": "prepare", "image": "prepare:1"}]);
    let volumes = json!([{"name": "work", "emptyDir": {}}]);
    let mut object = json!({
        "metadata": {"name": name, "namespace": "default", "annotations": {"mine": "kept"}},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": containers, "initContainers": init, "volumes": volumes},
        }},
    });
    if let Some(tools) = tools {
        object["metadata"]["annotations"]["langop.io/tools"] = tools.into();
    }
    serde_json::from_value(object).unwrap()
}

async fn pod_spec(deployments: &Api<Deployment>, name: &str) -> Value {
    let template = deployments.get(name).await.unwrap().spec.template;
    serde_json::to_value(template).unwrap()
}

pub(crate) async fn annotate(deployments: &Api<Deployment>, name: &str, tools: Option<&str>) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"langop.io/tools": tools}}}));
    deployments.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

fn servers(template: &Value) -> Option<String> {
    let variables = template["spec"]["containers"][0]["env"].as_array()?;
    let variable = variables.iter().find(|variable| variable["name"] == "MCP_SERVERS")?;
    variable["value"].as_str().map(str::to_owned)
}

/// Waits until the agent has these tools, and returns the pod template.
async fn wait_for(deployments: &Api<Deployment>, name: &str, expected: Option<&str>) -> Value {
    eventually(&format!("{name} has {expected:?}"), || async {
        let template = pod_spec(deployments, name).await;
        (servers(&template).as_deref() == expected).then_some(template)
    })
    .await
}

const MEMORY: &str = "http://memory.default.svc.cluster.local:8080";

#[tokio::test(flavor = "multi_thread")]
pub(crate) async fn annotated_workload_has_its_tools_until_the_annotation_is_removed() {
    let mut server = Server::start().await;
    let admin = server.admin().await;
    define(&admin, "LanguageTool").await;
    apply(&admin, "LanguageTool", "memory", json!({"image": "memory:1"})).await;
    let sidecar = json!({"image": "shell:1", "port": 9000, "deploymentMode": "sidecar"});
    apply(&admin, "LanguageTool", "shell", sidecar).await;
    let deployments = Api::<Deployment>::default_namespaced(admin.clone());
    let config_maps = Api::<ConfigMap>::default_namespaced(admin.clone());
    let created = deployments.create(&PostParams::default(), &deployment("helper", None)).await.unwrap();
    let before = pod_spec(&deployments, "helper").await;
    let running = RunningController::start(admin.clone());

    annotate(&deployments, "helper", Some("memory, shell, missing")).await;
    let both = format!("{MEMORY},http://localhost:9000");
    let template = wait_for(&deployments, "helper", Some(&both)).await;
    let names = |list: &str| {
        let items = template["spec"][list].as_array().into_iter().flatten();
        items.map(|item| item["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("containers"), "agent tool-shell");
    assert_eq!(names("initContainers"), "prepare");
    assert_eq!(names("volumes"), "work langop-agent-config");
    assert_eq!(template["spec"]["containers"][0]["env"][0]["name"], "OWN");
    assert_eq!(template["spec"]["containers"][1]["volumeMounts"][0]["mountPath"], "/workspace");
    assert_eq!(template["spec"]["initContainers"][0]["env"][0]["value"], both);
    let hash = template["metadata"]["annotations"]["langop.io/tools-hash"].as_str().unwrap().to_owned();
    let config_map = config_maps.get("helper-agent").await.unwrap();
    let config = format!(
        "tools:\n  memory:\n    endpoint: {MEMORY}\n    protocol: mcp\n  shell:\n    endpoint: \
         http://localhost:9000\n    protocol: mcp\n"
    );
    assert_eq!(config_map.data.unwrap()["config.yaml"], config);
    assert_eq!(config_map.metadata.owner_references.unwrap()[0].uid, created.metadata.uid.unwrap());
    let note = eventually("the missing tool is reported", || async {
        let events = Api::<Event>::default_namespaced(admin.clone()).list(&Default::default()).await.unwrap();
        events.items.into_iter().find(|event| event.reason.as_deref() == Some("ToolNotInjected"))?.message
    })
    .await;
    assert_eq!(
        note,
        "LanguageTool `missing` does not exist in namespace `default`: create it, or remove the reference"
    );

    // The next controller finds everything done: it reads the agent, and writes nothing.
    drop(running);
    let running = RunningController::start(admin.clone());
    eventually("reconciled", || async { running.lines("toolyard_operator_reconciliations_total").pop() })
        .await;
    assert_eq!(running.writes(), Vec::<String>::new());

    // A tool that changes is rolled out, one that appears is added.
    apply(&admin, "LanguageTool", "memory", json!({"image": "memory:1", "port": 8081})).await;
    let moved = "http://memory.default.svc.cluster.local:8081,http://localhost:9000";
    let template = wait_for(&deployments, "helper", Some(moved)).await;
    assert_ne!(template["metadata"]["annotations"]["langop.io/tools-hash"], hash.as_str());
    apply(&admin, "LanguageTool", "missing", json!({"image": "missing:1"})).await;
    let three = format!("{moved},http://missing.default.svc.cluster.local:8080");
    wait_for(&deployments, "helper", Some(&three)).await;

    // The ConfigMap is restored.
    config_maps.delete("helper-agent", &DeleteParams::default()).await.unwrap();
    eventually("the ConfigMap is restored", || async { config_maps.get_opt("helper-agent").await.unwrap() })
        .await;

    // After a restart of the server, tools, workloads and ConfigMaps are watched as before.
    server.restart_api().await;
    apply(&admin, "LanguageTool", "memory", json!({"image": "memory:1", "port": 8082})).await;
    let moved = three.replace(":8081", ":8082");
    wait_for(&deployments, "helper", Some(&moved)).await;
    annotate(&deployments, "helper", Some("memory")).await;
    wait_for(&deployments, "helper", Some("http://memory.default.svc.cluster.local:8082")).await;
    config_maps.delete("helper-agent", &DeleteParams::default()).await.unwrap();
    eventually("the ConfigMap is restored", || async { config_maps.get_opt("helper-agent").await.unwrap() })
        .await;

    // Without the annotation the workload is as it was.
    annotate(&deployments, "helper", None).await;
    let after = wait_for(&deployments, "helper", None).await;
    assert_eq!(after, before);
    eventually("the ConfigMap is deleted", || async {
        config_maps.get_opt("helper-agent").await.unwrap().is_none().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workload_of_a_language_agent_has_its_tools_once_agents_are_defined() {
    let server = Server::start().await;
    let admin = server.admin().await;
    define(&admin, "LanguageTool").await;
    apply(&admin, "LanguageTool", "memory", json!({"image": "memory:1"})).await;
    let deployments = Api::<Deployment>::default_namespaced(admin.clone());
    deployments.create(&PostParams::default(), &deployment("annotated", Some("memory"))).await.unwrap();
    deployments.create(&PostParams::default(), &deployment("writer", None)).await.unwrap();
    let before = pod_spec(&deployments, "writer").await;
    let _running = RunningController::start(admin.clone());
    // Without the definition of agents, annotations are read.
    wait_for(&deployments, "annotated", Some(MEMORY)).await;

    define(&admin, "LanguageAgent").await;
    let tools = json!([{"name": "memory"}, {"name": "off", "enabled": false}]);
    apply(&admin, "LanguageAgent", "writer", json!({"tools": tools})).await;
    wait_for(&deployments, "writer", Some(MEMORY)).await;
    remove(&admin, "LanguageAgent", "writer").await;
    assert_eq!(wait_for(&deployments, "writer", None).await, before);

    // Those of an older operator, and agents that end with their definition.
    let references = json!([{"name": "memory", "namespace": "default", "enabled": true}]);
    apply(&admin, "LanguageAgent", "writer", json!({"toolRefs": references})).await;
    wait_for(&deployments, "writer", Some(MEMORY)).await;
    let definitions = Api::<CustomResourceDefinition>::all(admin.clone());
    definitions.delete("languageagents.langop.io", &DeleteParams::default()).await.unwrap();
    assert_eq!(wait_for(&deployments, "writer", None).await, before);
    wait_for(&deployments, "annotated", Some(MEMORY)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_the_user_stay_and_objects_of_others_are_not_taken_over() {
    let server = Server::start().await;
    let admin = server.admin().await;
    define(&admin, "LanguageTool").await;
    apply(&admin, "LanguageTool", "memory", json!({"image": "memory:1"})).await;
    let deployments = Api::<Deployment>::default_namespaced(admin.clone());
    let config_maps = Api::<ConfigMap>::default_namespaced(admin.clone());
    let foreign = json!({"metadata": {"name": "helper-agent"}, "data": {"config.yaml": "mine"}});
    config_maps.create(&PostParams::default(), &serde_json::from_value(foreign).unwrap()).await.unwrap();
    deployments.create(&PostParams::default(), &deployment("helper", Some("memory"))).await.unwrap();
    let _running = RunningController::start(admin.clone());
    let template = wait_for(&deployments, "helper", Some(MEMORY)).await;
    assert_eq!(template["spec"]["volumes"].as_array().unwrap().len(), 1);
    let config_map = config_maps.get("helper-agent").await.unwrap();
    assert_eq!(config_map.data.unwrap()["config.yaml"], "mine");

    // A value that the user sets later is theirs, also when the tools change.
    let variable = json!({"name": "MCP_SERVERS", "value": "http://mine"});
    let container = json!({"name": "agent", "env": [variable]});
    let patch = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
    deployments.patch("helper", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    apply(&admin, "LanguageTool", "memory", json!({"image": "memory:1", "port": 8081})).await;
    let moved = "http://memory.default.svc.cluster.local:8081";
    let template = eventually("the init container has the new endpoint", || async {
        let template = pod_spec(&deployments, "helper").await;
        (template["spec"]["initContainers"][0]["env"][0]["value"] == moved).then_some(template)
    })
    .await;
    assert_eq!(servers(&template).as_deref(), Some("http://mine"));
}

/// Removes the injected variable of `helper` as often as it appears.
async fn undo(deployments: Api<Deployment>) {
    let mut changes = pin!(watcher(deployments.clone(), watcher::Config::default()).applied_objects());
    while let Some(Ok(deployment)) = changes.next().await {
        let template = serde_json::to_value(deployment.spec.template).unwrap();
        if servers(&template).is_some() {
            let variable = json!({"name": "MCP_SERVERS", "$patch": "delete"});
            let container = json!({"name": "agent", "env": [variable]});
            let patch =
                Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [container]}}}}));
            deployments.patch("helper", &PatchParams::default(), &patch).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn injection_that_another_manager_undoes_is_repeated_less_and_less_often() {
    let server = Server::start().await;
    let admin = server.admin().await;
    define(&admin, "LanguageTool").await;
    apply(&admin, "LanguageTool", "memory", json!({"image": "memory:1"})).await;
    let deployments = Api::<Deployment>::default_namespaced(admin.clone());
    deployments.create(&PostParams::default(), &deployment("helper", Some("memory"))).await.unwrap();
    let other = tokio::spawn(undo(deployments.clone()));
    let running = RunningController::start(admin.clone());
    let undone = async || {
        let events = Api::<Event>::default_namespaced(admin.clone()).list(&Default::default()).await.unwrap();
        let undone =
            events.items.into_iter().filter(|event| event.reason.as_deref() == Some("InjectionUndone"));
        undone.collect::<Vec<_>>()
    };
    eventually("the contention is reported", || async { undone().await.pop() }).await;
    let applied = |running: &RunningController| {
        let line = running
            .writes()
            .into_iter()
            .find_map(|line| line.strip_prefix("{kind=\"Deployment\",verb=\"apply\"} ").map(str::to_owned));
        line.unwrap().parse::<u32>().unwrap()
    };
    // The injection, three restorations at once, and perhaps the first ones after a delay.
    let number = applied(&running);
    assert!((4..=6).contains(&number), "{number}");
    eventually("it is repeated", || async { (applied(&running) > number).then_some(()) }).await;
    assert_eq!(undone().await.len(), 1);

    // Without the other manager it stays.
    other.abort();
    wait_for(&deployments, "helper", Some(MEMORY)).await;
}
