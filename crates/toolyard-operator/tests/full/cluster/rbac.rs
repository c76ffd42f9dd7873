//! The controllers with the rights of [`toolyard_operator::rbac`] and no others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolyard_operator::controller::{self, LeaderElection, OperatorConfig};
use toolyard_operator::rbac::{self, RbacConfig, RuleSet};
use toolyard_operator::{language_tool, tool_registry};

use super::agent_injection::{NoDiscovery, annotate, apply, define, deployment, eventually, remove};
use super::deployed;
use super::recorder::RecordedRequests;
use super::server::Server;

/// Applies an object of any kind.
pub(crate) async fn apply_object(admin: &Client, object: &Value) {
    try_apply(admin, object).await.unwrap();
}

/// Applies an object, and returns the message of a refusal.
pub(crate) async fn try_apply(admin: &Client, object: &Value) -> Result<Value, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let version = match text(&object["apiVersion"]).as_str() {
        "v1" => "/api/v1".to_owned(),
        group => format!("/apis/{group}"),
    };
    let namespace = object["metadata"]["namespace"].as_str();
    let namespace = namespace.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    let (kind, name) = (text(&object["kind"]).to_lowercase(), text(&object["metadata"]["name"]));
    let plural = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"));
    let path = format!("{version}{namespace}/{plural}/{name}?fieldManager=test&force=true");
    let request = http::Request::patch(path).header("content-type", "application/apply-patch+yaml");
    let request = request.body(object.to_string().into_bytes()).unwrap();
    admin.request(request).await.map_err(|error| error.to_string())
}

/// The rights as `group/resource verb`.
fn rights() -> BTreeSet<String> {
    let rules = RuleSet::ALL.iter().flat_map(|set| set.rules());
    let of_rule = |rule: &rbac::AccessRule| {
        let group = if rule.group.is_empty() { String::new() } else { format!("{}/", rule.group) };
        let pairs =
            rule.resources.iter().flat_map(|resource| rule.verbs.iter().map(move |verb| (resource, verb)));
        pairs.map(|(resource, verb)| format!("{group}{resource} {verb}")).collect::<Vec<_>>()
    };
    rules.flat_map(of_rule).collect()
}

async fn namespace(admin: &Client, name: &str) {
    let namespace = json!({"metadata": {"name": name}});
    let namespaces = Api::<Namespace>::all(admin.clone());
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
}

/// An operator with an account of its own, which has the rights of the controllers and no others.
struct RestrictedOperator {
    _server: Server,
    admin: Client,
    requests: RecordedRequests,
    task: JoinHandle<()>,
}

impl Drop for RestrictedOperator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RestrictedOperator {
    /// Starts the operator, and installs the definitions.
    async fn start(injection: bool) -> Self {
        let server = Server::start().await;
        let admin = server.admin().await;
        namespace(&admin, "toolyard").await;
        let account = RbacConfig {
            name: "toolyard-operator".to_owned(),
            namespace: "toolyard".to_owned(),
            watched_namespace: None,
            injection,
        };
        for object in rbac::objects(&account) {
            apply_object(&admin, &object).await;
        }
        let token = deployed::token(&admin, "toolyard", "toolyard-operator").await;
        let requests = RecordedRequests::default();
        let client = requests.client(server.with_token(&token).await);
        let config = OperatorConfig {
            leader_election: Some(LeaderElection {
                lease: "operator".to_owned(),
                namespace: "toolyard".to_owned(),
                identity: "test".to_owned(),
                duration: Duration::from_secs(15),
            }),
            injection,
            ..OperatorConfig::default()
        };
        let run = controller::run(client, config, Arc::new(NoDiscovery), std::future::pending());
        let task = tokio::spawn(async move { run.await.unwrap() });
        apply_object(&admin, &serde_json::to_value(language_tool::definition()).unwrap()).await;
        apply_object(&admin, &tool_registry::definition()).await;
        define(&admin, "LanguageAgent").await;
        eventually("the definition is served", || async {
            let path = "/apis/langop.io/v1alpha1/namespaces/default/languagetools";
            let request = http::Request::get(path).body(Vec::new()).unwrap();
            admin.request::<Value>(request).await.ok()
        })
        .await;
        Self { _server: server, admin, requests, task }
    }

    async fn uses(&self, access: &str) {
        eventually(access, || async { self.requests.used().contains(access).then_some(()) }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_need_all_of_their_rights_and_no_others() {
    let operator = RestrictedOperator::start(true).await;
    exercise(&operator).await;
    assert_eq!(operator.requests.forbidden(), Vec::<String>::new());
    let rights = rights();
    let unused: Vec<_> = rights.difference(&operator.requests.used()).cloned().collect();
    assert_eq!(unused, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_without_injection_needs_fewer_rights() {
    let operator = RestrictedOperator::start(false).await;
    let admin = &operator.admin;
    let deployments = Api::<Deployment>::default_namespaced(admin.clone());
    deployments.create(&PostParams::default(), &deployment("helper", Some("memory"))).await.unwrap();
    let sidecar = json!({"image": "memory:1", "deploymentMode": "sidecar"});
    apply(admin, "LanguageTool", "memory", sidecar).await;
    operator.uses("langop.io/languagetools/status patch").await;
    eventually("the registry is stored", || async { try_apply(admin, &registry()).await.ok() }).await;
    operator.uses("omnia.altairalabs.ai/toolregistries/status patch").await;
    assert_eq!(operator.requests.forbidden(), Vec::<String>::new());
    let used = operator.requests.used();
    let other = ["apps/statefulsets", "langop.io/languageagents", "pods"];
    let other: Vec<_> =
        used.iter().filter(|access| other.iter().any(|name| access.starts_with(name))).collect();
    assert_eq!(other, Vec::<&String>::new());
    assert_eq!(deployments.get("helper").await.unwrap().metadata.managed_fields.unwrap().len(), 1);
}

/// A registry with a server that does not answer.
fn registry() -> Value {
    let mcp = json!({"transport": "streamable-http", "endpoint": "http://127.0.0.1:9/mcp"});
    json!({
        "apiVersion": "omnia.altairalabs.ai/v1alpha1", "kind": "ToolRegistry",
        "metadata": {"name": "tools", "namespace": "default"},
        "spec": {"handlers": [{"name": "one", "type": "mcp", "mcpConfig": mcp}]},
    })
}

/// Creates, changes and removes objects of all kinds.
async fn exercise(operator: &RestrictedOperator) {
    let admin = &operator.admin;
    let deployments = Api::<Deployment>::default_namespaced(admin.clone());
    let autoscaling = json!({"autoscaling": {"maxReplicas": 3}});
    apply(admin, "LanguageTool", "memory", json!({"image": "memory:1", "deployment": autoscaling})).await;
    operator.uses("autoscaling/horizontalpodautoscalers create").await;
    operator.uses("langop.io/languagetools/status patch").await;
    deployments.create(&PostParams::default(), &deployment("helper", Some("memory"))).await.unwrap();
    let mut stateful = serde_json::to_value(deployment("stateful", Some("memory"))).unwrap();
    stateful["kind"] = "StatefulSet".into();
    stateful["spec"]["serviceName"] = "stateful".into();
    let stateful_sets = Api::<StatefulSet>::default_namespaced(admin.clone());
    stateful_sets.create(&PostParams::default(), &serde_json::from_value(stateful).unwrap()).await.unwrap();
    operator.uses("apps/statefulsets patch").await;
    let config_maps = Api::<ConfigMap>::default_namespaced(admin.clone());
    eventually("the ConfigMap", || async { config_maps.get_opt("helper-agent").await.unwrap() }).await;
    annotate(&deployments, "helper", Some("missing")).await;
    // Other controllers publish events, too.
    let events = Api::<Event>::default_namespaced(admin.clone());
    eventually("the missing tool is reported", || async {
        let found = events.list(&Default::default()).await.unwrap().items;
        found.iter().any(|event| event.reason.as_deref() == Some("ToolNotInjected")).then_some(())
    })
    .await;
    annotate(&deployments, "helper", None).await;
    operator.uses("configmaps delete").await;
    annotate(&deployments, "helper", Some("missing")).await;
    operator.uses("events.k8s.io/events patch").await;
    apply(admin, "LanguageTool", "memory", json!({"image": "memory:1", "deploymentMode": "sidecar"})).await;
    operator.uses("services delete").await;
    operator.uses("networking.k8s.io/networkpolicies delete").await;
    operator.uses("autoscaling/horizontalpodautoscalers delete").await;
    operator.uses("coordination.k8s.io/leases update").await;
    operator.uses("omnia.altairalabs.ai/toolregistries watch").await;
    eventually("the registry is stored", || async { try_apply(admin, &registry()).await.ok() }).await;
    operator.uses("omnia.altairalabs.ai/toolregistries/status patch").await;
    remove(admin, "LanguageTool", "memory").await;
    eventually("the tool is deleted", || async {
        let path = "/apis/langop.io/v1alpha1/namespaces/default/languagetools/memory";
        admin
            .request::<Value>(http::Request::get(path).body(Vec::new()).unwrap())
            .await
            .is_err()
            .then_some(())
    })
    .await;
    deployments.delete("helper", &DeleteParams::default()).await.unwrap();
}
