//! The operator in the process of a test, with scripted lists of tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolyard_operator::controller::{self, DiscoveryError, ListedTool, OperatorConfig, ToolDiscovery};

/// Time limit of a condition on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// Waits until a condition has a value.
pub(crate) async fn until<T>(what: &str, condition: impl AsyncFn() -> Option<T>) -> T {
    let value = async {
        loop {
            if let Some(value) = condition().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LIMIT, value).await.unwrap_or_else(|_| panic!("it does not happen: {what}"))
}

/// Returns a schema with everything that storage might change: lists of types, nulls, empty texts, objects and lists.
pub(crate) fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "content": {"type": ["string", "null"], "default": null},
            "any": {},
            "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}, "default": []},
            "name": {"type": "string", "default": "", "enum": ["", "a", null]},
            "nested": {"$ref": "#/$defs/nested"},
        },
        "required": [],
        "additionalProperties": false,
        "$defs": {"nested": {"type": "object", "properties": {}, "default": {}}},
    })
}

/// Lists of tools by endpoint. Other endpoints fail.
#[derive(Default)]
pub(crate) struct ScriptedTools {
    tools: Mutex<HashMap<String, Vec<ListedTool>>>,
    asked: Mutex<Vec<String>>,
}

impl ScriptedTools {
    pub(crate) fn set(&self, endpoint: &str, names: &[&str]) {
        let tool = |name: &&str| ListedTool {
            name: (*name).to_owned(),
            description: Some(format!("Does {name}.")),
            input_schema: input_schema(),
        };
        self.tools.lock().unwrap().insert(endpoint.to_owned(), names.iter().map(tool).collect());
    }

    /// Returns the number of times that an endpoint was asked.
    pub(crate) fn asked(&self, endpoint: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| *asked == endpoint).count()
    }
}

impl ToolDiscovery for ScriptedTools {
    fn tools<'a>(&'a self, endpoint: &'a str) -> BoxFuture<'a, Result<Vec<ListedTool>, DiscoveryError>> {
        self.asked.lock().unwrap().push(endpoint.to_owned());
        let tools = self.tools.lock().unwrap().get(endpoint).cloned();
        let tools = tools.ok_or_else(|| DiscoveryError("connection refused".to_owned()));
        Box::pin(std::future::ready(tools))
    }
}

/// A running operator, which is killed when it is dropped.
pub(crate) struct RunningOperator {
    task: JoinHandle<()>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Drop for RunningOperator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningOperator {
    pub(crate) fn start(client: Client, config: OperatorConfig, tools: &Arc<ScriptedTools>) -> Self {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let tools = tools.clone();
        let task = tokio::spawn(async move {
            let stopped = async move { drop(stopped.await) };
            controller::run(client, config, tools, stopped).await.unwrap();
        });
        Self { task, stop: Some(stop) }
    }

    /// Stops the operator as SIGTERM does.
    pub(crate) async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.task).await.unwrap();
    }
}

pub(crate) async fn create_namespace(admin: &Client, name: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let namespaces = Api::<Namespace>::all(admin.clone());
    namespaces.patch(name, &PatchParams::apply("test"), &Patch::Apply(namespace)).await.unwrap();
}

/// Installs a definition, and waits until it is established without problems of its schema.
pub(crate) async fn install(admin: &Client, definition: &CustomResourceDefinition) {
    let name = definition.metadata.name.clone().unwrap();
    let definitions = Api::<CustomResourceDefinition>::all(admin.clone());
    definitions.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(definition)).await.unwrap();
    until("the definition is established", async || {
        let definition = definitions.get(&name).await.unwrap();
        let conditions = definition.status?.conditions?;
        let problem = conditions.iter().find(|condition| condition.type_ == "NonStructuralSchema");
        assert_eq!(problem, None);
        conditions
            .iter()
            .any(|condition| condition.type_ == "Established" && condition.status == "True")
            .then_some(())
    })
    .await;
}

/// Sets the readiness of all pods of a tool, in the role of their nodes. Returns their images.
pub(crate) async fn set_pods(pods: &Api<Pod>, tool: &str, is_ready: bool) -> Vec<String> {
    let params = ListParams::default().labels(&format!("app.kubernetes.io/name={tool}"));
    let mut images = Vec::new();
    for pod in pods.list(&params).await.unwrap() {
        if pod.metadata.deletion_timestamp.is_some() {
            // No kubelet runs: a pod that is to end is gone at once.
            let at_once = kube::api::DeleteParams::default().grace_period(0);
            pods.delete(pod.metadata.name.as_ref().unwrap(), &at_once).await.ok();
            continue;
        }
        let state = if is_ready { "True" } else { "False" };
        let condition =
            |kind: &str| json!({"type": kind, "status": state, "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status: Value = json!({"status": {
            "phase": "Running", "podIP": "127.0.0.1",
            "conditions": [condition("Ready"), condition("ContainersReady")],
        }});
        let name = pod.metadata.name.as_ref().unwrap();
        // The pod may be gone by now.
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.ok();
        images.extend(pod.spec.unwrap().containers.into_iter().filter_map(|container| container.image));
    }
    images
}
