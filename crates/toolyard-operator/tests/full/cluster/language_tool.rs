//! LanguageTools at a real API server with its controller manager. The tests set the status of pods in the role of nodes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use toolyard_operator::controller::OperatorConfig;
use toolyard_operator::language_tool::{FINALIZER, LanguageTool, ToolPhase, definition};

use super::deployed;
use super::operator::{
    RunningOperator, ScriptedTools, create_namespace, input_schema, install, set_pods, until,
};
use super::server::Server;

const NAMESPACE: &str = "language-operator-myapp";
const NAME: &str = "mem0-memory";
const ENDPOINT: &str = "http://mem0-memory.language-operator-myapp.svc.cluster.local:8080";

/// The sample of the contract, unchanged.
const SAMPLE: &str = "\
apiVersion: langop.io/v1alpha1
kind: LanguageTool
metadata:
  name: mem0-memory
  namespace: language-operator-myapp
spec:
  image: myregistry/mem0-mcp:latest
  port: 8080
";

/// The complete sample of the contract, unchanged.
const REFERENCE: &str = "\
apiVersion: langop.io/v1alpha1
kind: LanguageTool
metadata:
  name: mem0-memory
  namespace: language-operator-myapp
spec:
  image: myregistry/mem0-mcp:latest

  # Protocol type — only \"mcp\" is currently supported (default)
  type: mcp

  # Deployment mode:
  # - \"service\": standalone Deployment+Service shared across agents (default)
  # - \"sidecar\": injected as a sidecar into each agent pod (dedicated, with workspace access)
  deploymentMode: service

  # Port the tool listens on (default: 8080)
  port: 8080
";

/// The clients of a test.
struct Cluster {
    admin: Client,
    tools: Api<LanguageTool>,
    deployments: Api<Deployment>,
    services: Api<Service>,
    policies: Api<NetworkPolicy>,
    pods: Api<Pod>,
}

impl Cluster {
    async fn new(server: &Server) -> Self {
        let admin = server.admin().await;
        create_namespace(&admin, NAMESPACE).await;
        Self {
            tools: Api::namespaced(admin.clone(), NAMESPACE),
            deployments: Api::namespaced(admin.clone(), NAMESPACE),
            services: Api::namespaced(admin.clone(), NAMESPACE),
            policies: Api::namespaced(admin.clone(), NAMESPACE),
            pods: Api::namespaced(admin.clone(), NAMESPACE),
            admin,
        }
    }

    /// Waits until a tool has this phase, and returns it.
    async fn wait_for_phase(&self, name: &str, phase: ToolPhase) -> LanguageTool {
        self.wait_for(name, &format!("{name} is {phase:?}"), |tool| {
            tool.status.as_ref().is_some_and(|status| status.phase == Some(phase))
        })
        .await
    }

    async fn wait_for(&self, name: &str, what: &str, is: impl Fn(&LanguageTool) -> bool) -> LanguageTool {
        until(what, async || self.tools.get_opt(name).await.ok()?.filter(&is)).await
    }

    /// Makes pods ready or not, until the tool has this phase.
    async fn play_node(&self, name: &str, is_ready: bool, phase: ToolPhase) -> LanguageTool {
        until(&format!("{name} is {phase:?}"), async || {
            set_pods(&self.pods, name, is_ready).await;
            let tool = self.tools.get_opt(name).await.ok()??;
            (tool.status.as_ref()?.phase == Some(phase)).then_some(tool)
        })
        .await
    }

    async fn change(&self, name: &str, patch: Value) {
        self.tools.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}

/// Returns type, status and reason of a condition.
fn condition(tool: &LanguageTool, kind: &str) -> String {
    let conditions = &tool.status.as_ref().unwrap().conditions;
    let condition = conditions.iter().find(|condition| condition.type_ == kind).unwrap();
    format!("{} {}", condition.status, condition.reason)
}

fn operator_config() -> OperatorConfig {
    OperatorConfig { operator_namespace: "default".to_owned(), ..OperatorConfig::default() }
}

#[tokio::test]
async fn tool_lives_as_its_resource_says() {
    let mut server = Server::start_with_controllers().await;
    let cluster = Cluster::new(&server).await;
    let tools = Arc::new(ScriptedTools::default());
    tools.set(ENDPOINT, &["remember", "recall"]);
    // The definition is installed later than the operator.
    let _operator = RunningOperator::start(server.master("operator").await, operator_config(), &tools);
    until("the operator waits for the definition", async || {
        let requests = server.requests_of("operator");
        requests.iter().any(|request| request.resource == "customresourcedefinitions").then_some(())
    })
    .await;
    install(&cluster.admin, &definition()).await;

    sample_is_deployed(&cluster).await;
    tools_are_discovered(&cluster).await;
    nothing_is_sent_without_a_change(&server, &cluster).await;
    edit_rolls_out_and_lists_again(&cluster, &tools).await;
    unavailable_pods_are_a_failure(&cluster).await;
    drift_is_corrected(&cluster).await;
    server.restart_api().await;
    cluster.change(NAME, json!({"spec": {"deployment": {"args": ["after-restart"]}}})).await;
    until("the change after the restart is applied", async || {
        let deployment = cluster.deployments.get(NAME).await.ok()?;
        let container = deployment.spec.template.spec?.containers.pop()?;
        (container.args? == ["after-restart"]).then_some(())
    })
    .await;
    autoscaler_comes_and_goes(&cluster).await;
    sidecar_has_no_objects(&cluster).await;
    foreign_deployment_is_not_taken_over(&cluster).await;
    deleted_tool_takes_its_objects_along(&cluster).await;
    invalid_resources_are_refused(&cluster).await;
}

async fn sample_is_deployed(cluster: &Cluster) {
    deployed::apply_document(&cluster.admin, SAMPLE).await.unwrap();
    let tool = cluster.wait_for_phase(NAME, ToolPhase::Pending).await;
    assert_eq!(tool.finalizers(), [FINALIZER]);
    let deployment = until("the Deployment", async || cluster.deployments.get_opt(NAME).await.unwrap()).await;
    let service = cluster.services.get(NAME).await.unwrap().spec.unwrap();
    assert_eq!(service.type_.as_deref(), Some("ClusterIP"));
    assert_eq!(service.ports.unwrap()[0].port, 8080);
    let container = deployment.spec.template.spec.as_ref().unwrap().containers[0].clone();
    assert_eq!(container.image.as_deref(), Some("myregistry/mem0-mcp:latest"));
    let policy = cluster.policies.get(NAME).await.unwrap().spec.unwrap();
    assert_eq!(policy.policy_types.unwrap(), ["Ingress", "Egress"]);
    assert_eq!(deployment.owner_references()[0].uid, tool.metadata.uid.unwrap());
    // The columns of `kubectl get`.
    let path = format!("/apis/langop.io/v1alpha1/namespaces/{NAMESPACE}/languagetools");
    let table = http::Request::get(path).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table: Value = cluster.admin.request(table.body(Vec::new()).unwrap()).await.unwrap();
    let names: Vec<_> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(json!(names), json!(["Name", "Type", "Image", "Phase", "Endpoint", "Age"]));
    assert_eq!(table["rows"][0]["cells"][1], "mcp");
}

async fn tools_are_discovered(cluster: &Cluster) {
    cluster.play_node(NAME, true, ToolPhase::Running).await;
    let tool = cluster
        .wait_for(NAME, "the tools are listed", |tool| !tool.status.as_ref().unwrap().tool_schemas.is_empty())
        .await;
    let status = tool.status.clone().unwrap();
    assert_eq!(status.endpoint.as_deref(), Some(ENDPOINT));
    assert_eq!((status.ready_replicas, status.available_replicas), (Some(1), Some(1)));
    let schemas = serde_json::to_value(&status.tool_schemas).unwrap();
    assert_eq!(schemas[0]["name"], "remember");
    assert_eq!(schemas[0]["inputSchema"], input_schema());
    assert_eq!(schemas[1]["description"], "Does recall.");
    for (kind, expected) in [
        ("Ready", "True ReconcileSuccess"),
        ("RegistryValidated", "True Validated"),
        ("NetworkPolicyReady", "True NetworkPolicyReady"),
        ("SchemasDiscovered", "True SchemasDiscovered"),
    ] {
        assert_eq!(condition(&tool, kind), expected);
    }
    let events = Api::<k8s_openapi::api::events::v1::Event>::namespaced(cluster.admin.clone(), NAMESPACE);
    until("the events", async || {
        let events = events.list(&ListParams::default()).await.unwrap();
        let of_tool = events.iter().filter(|event| {
            event.regarding.as_ref().and_then(|object| object.kind.as_deref()) == Some("LanguageTool")
        });
        let reasons: Vec<_> = of_tool.filter_map(|event| event.reason.clone()).collect();
        ["Pending", "Running", "SchemasDiscovered"]
            .iter()
            .all(|reason| reasons.iter().any(|is| is == reason))
            .then_some(())
    })
    .await;
}

/// Another tool passes the same queue later: once it is done, nothing is left to be sent for the first one.
async fn nothing_is_sent_without_a_change(server: &Server, cluster: &Cluster) {
    let requests = || -> Vec<_> {
        let requests = server.requests_of("operator").into_iter();
        let of_tool = requests.filter(|request| request.name == NAME && request.verb != "watch");
        of_tool.map(|request| format!("{} {}", request.verb, request.resource)).collect()
    };
    let another = async |name: &str| {
        let tool = SAMPLE.replace(NAME, name);
        deployed::apply_document(&cluster.admin, &tool).await.unwrap();
        cluster.wait_for_phase(name, ToolPhase::Pending).await;
    };
    another("first-witness").await;
    let before = requests();
    // The same specification, and metadata that is not the operator's.
    deployed::apply_document(&cluster.admin, REFERENCE).await.unwrap();
    cluster.change(NAME, json!({"metadata": {"labels": {"team": "platform"}}})).await;
    // Annotations of a Deployment would count as a new generation.
    let label = json!({"metadata": {"annotations": {"other": "manager"}}});
    cluster.services.patch(NAME, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    another("second-witness").await;
    assert_eq!(requests(), before);
    let all = server.requests_of("operator");
    let lists = |resource: &str| {
        all.iter().filter(|request| request.resource == resource && request.verb == "list").count()
    };
    // Everything is listed once and watched from then on. The injection into agents has watches of its own.
    for (resource, watches) in
        [("languagetools", 2), ("deployments", 2), ("services", 1), ("networkpolicies", 1)]
    {
        assert!(lists(resource) <= watches, "{resource} {}", lists(resource));
    }
    for name in ["first-witness", "second-witness"] {
        cluster.tools.delete(name, &DeleteParams::default()).await.unwrap();
    }
}

async fn edit_rolls_out_and_lists_again(cluster: &Cluster, tools: &ScriptedTools) {
    tools.set(ENDPOINT, &["remember", "recall", "forget"]);
    let before = tools.asked(ENDPOINT);
    cluster.change(NAME, json!({"spec": {"image": "myregistry/mem0-mcp:2"}})).await;
    cluster.wait_for_phase(NAME, ToolPhase::Updating).await;
    let is_listed = |tool: &LanguageTool| {
        let status = tool.status.as_ref().unwrap();
        status.phase == Some(ToolPhase::Running) && status.tool_schemas.len() == 3
    };
    until("the new tools are listed", async || {
        set_pods(&cluster.pods, NAME, true).await;
        cluster.tools.get(NAME).await.ok().filter(is_listed)
    })
    .await;
    assert_eq!(tools.asked(ENDPOINT), before + 1);
}

async fn unavailable_pods_are_a_failure(cluster: &Cluster) {
    let tool = cluster.play_node(NAME, false, ToolPhase::Failed).await;
    assert_eq!(condition(&tool, "Ready"), "False PodsNotReady");
    assert_eq!(tool.status.unwrap().tool_schemas.len(), 3);
    cluster.play_node(NAME, true, ToolPhase::Running).await;
}

async fn drift_is_corrected(cluster: &Cluster) {
    let uid = cluster.services.get(NAME).await.unwrap().metadata.uid;
    cluster.services.delete(NAME, &DeleteParams::default()).await.unwrap();
    until("the Service is created again", async || {
        let service = cluster.services.get_opt(NAME).await.unwrap()?;
        (service.metadata.uid != uid).then_some(())
    })
    .await;
    let open = json!({"spec": {"ingress": [{}]}});
    cluster.policies.patch(NAME, &PatchParams::default(), &Patch::Merge(open)).await.unwrap();
    // The number of pods is the user's own, unless the resource has one.
    let scale = async |replicas: i32| {
        let scaled = json!({"spec": {"replicas": replicas}});
        cluster.deployments.patch(NAME, &PatchParams::default(), &Patch::Merge(scaled)).await.unwrap();
    };
    scale(4).await;
    until("the policy is as before", async || {
        let ingress = cluster.policies.get(NAME).await.unwrap().spec?.ingress?;
        ingress[0].ports.is_some().then_some(())
    })
    .await;
    assert_eq!(cluster.deployments.get(NAME).await.unwrap().spec.replicas, Some(4));
    cluster.change(NAME, json!({"spec": {"deployment": {"replicas": 2}}})).await;
    let has_two =
        async || (cluster.deployments.get(NAME).await.unwrap().spec.replicas == Some(2)).then_some(());
    until("the number of pods is that of the resource", has_two).await;
    scale(4).await;
    until("the number of pods is that of the resource again", has_two).await;
    cluster.change(NAME, json!({"spec": {"deployment": {"replicas": 1}}})).await;
}

async fn autoscaler_comes_and_goes(cluster: &Cluster) {
    let path = format!("/apis/autoscaling/v1/namespaces/{NAMESPACE}/horizontalpodautoscalers/{NAME}");
    let autoscaler = async || {
        let request = http::Request::get(&path).body(Vec::new()).unwrap();
        cluster.admin.request::<Value>(request).await.ok()
    };
    cluster.change(NAME, json!({"spec": {"deployment": {"replicas": 4}}})).await;
    let replicas = async || cluster.deployments.get(NAME).await.unwrap().spec.replicas;
    until("the number of pods", async || (replicas().await == Some(4)).then_some(())).await;
    let scaling = json!({"minReplicas": 2, "maxReplicas": 3});
    let scaled = json!({"spec": {"deployment": {"replicas": null, "autoscaling": scaling}}});
    cluster.change(NAME, scaled).await;
    let created = until("the autoscaler", autoscaler).await;
    assert_eq!(created["spec"]["maxReplicas"], 3);
    // The autoscaler finds the number that was there: the controller of autoscalers has no metrics here.
    let handed_over = cluster.deployments.get(NAME).await.unwrap();
    let managers = handed_over.metadata.managed_fields.iter().flatten();
    let owners = managers.filter(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0["f:spec"]["f:replicas"]);
        fields.is_some_and(|replicas| !replicas.is_null())
    });
    let owners: Vec<_> = owners.filter_map(|entry| entry.manager.as_deref()).collect();
    assert!(!owners.contains(&"toolyard-operator"), "{owners:?}");
    let kept = handed_over.spec.replicas.unwrap();
    assert!((3..=4).contains(&kept), "{kept}");
    cluster.change(NAME, json!({"spec": {"deployment": {"autoscaling": null}}})).await;
    until("the autoscaler is deleted", async || autoscaler().await.is_none().then_some(())).await;
}

async fn sidecar_has_no_objects(cluster: &Cluster) {
    cluster.change(NAME, json!({"spec": {"deploymentMode": "sidecar"}})).await;
    let tool = cluster
        .wait_for(NAME, "the endpoint is local", |tool| {
            tool.status.as_ref().unwrap().endpoint.as_deref() == Some("http://localhost:8080")
        })
        .await;
    assert_eq!(condition(&tool, "NetworkPolicyReady"), "False Disabled");
    until("the objects are deleted", async || {
        let deployment = cluster.deployments.get_opt(NAME).await.unwrap();
        let service = cluster.services.get_opt(NAME).await.unwrap();
        let policy = cluster.policies.get_opt(NAME).await.unwrap();
        (deployment.is_none() && service.is_none() && policy.is_none()).then_some(())
    })
    .await;
    cluster.change(NAME, json!({"spec": {"deploymentMode": "service"}})).await;
    until("the Deployment is created again", async || cluster.deployments.get_opt(NAME).await.unwrap()).await;
    cluster.play_node(NAME, true, ToolPhase::Running).await;
}

async fn foreign_deployment_is_not_taken_over(cluster: &Cluster) {
    let foreign = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "taken"},
        "spec": {"ports": [{"port": 1}], "selector": {"mine": "yes"}},
    });
    let foreign: Service = serde_json::from_value(foreign).unwrap();
    cluster.services.create(&PostParams::default(), &foreign).await.unwrap();
    deployed::apply_document(&cluster.admin, &SAMPLE.replace(NAME, "taken")).await.unwrap();
    let tool = cluster.wait_for_phase("taken", ToolPhase::Failed).await;
    assert_eq!(condition(&tool, "Ready"), "False ServiceError");
    let message = &tool.status.as_ref().unwrap().conditions[0].message;
    assert_eq!(
        message,
        "Service `taken` exists already and does not belong to this resource: delete it, or rename the resource"
    );
    assert_eq!(cluster.services.get("taken").await.unwrap().spec.unwrap().ports.unwrap()[0].port, 1);
    // It goes on without the obstacle.
    cluster.services.delete("taken", &DeleteParams::default()).await.unwrap();
    cluster.wait_for_phase("taken", ToolPhase::Pending).await;
}

async fn deleted_tool_takes_its_objects_along(cluster: &Cluster) {
    cluster.tools.delete(NAME, &DeleteParams::default()).await.unwrap();
    until("everything is gone", async || {
        set_pods(&cluster.pods, NAME, true).await;
        let tool = cluster.tools.get_opt(NAME).await.unwrap();
        let deployment = cluster.deployments.get_opt(NAME).await.unwrap();
        let service = cluster.services.get_opt(NAME).await.unwrap();
        let policy = cluster.policies.get_opt(NAME).await.unwrap();
        (tool.is_none() && deployment.is_none() && service.is_none() && policy.is_none()).then_some(())
    })
    .await;
}

async fn invalid_resources_are_refused(cluster: &Cluster) {
    let check = async |name: &str, spec: Value, expected: &str| {
        let object = json!({
            "apiVersion": "langop.io/v1alpha1", "kind": "LanguageTool",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
        });
        let path = format!("/apis/langop.io/v1alpha1/namespaces/{NAMESPACE}/languagetools");
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        let error = cluster.admin.request::<Value>(request).await.unwrap_err();
        let kube::Error::Api(status) = error else { panic!("{error}") };
        assert_eq!(status.code, 422, "{spec}");
        assert!(status.message.contains(expected), "{spec}: {}", status.message);
    };
    check("a", json!({}), "spec.image: Required value").await;
    check("a", json!({"image": ""}), "spec.image").await;
    check("a", json!({"image": "a", "type": "openapi"}), "spec.type: Unsupported value").await;
    check("a", json!({"image": "a", "deploymentMode": "job"}), "spec.deploymentMode: Unsupported value")
        .await;
    check("a", json!({"image": "a", "port": 0}), "spec.port").await;
    check("a", json!({"image": "a", "port": 65536}), "spec.port").await;
    check("a", json!({"image": "a", "port": "8080"}), "spec.port: Invalid value").await;
    check("a", json!({"image": "a", "deployment": {"replicas": -1}}), "spec.deployment.replicas").await;
    check(
        "a",
        json!({"image": "a", "deployment": {"serviceType": "External"}}),
        "spec.deployment.serviceType",
    )
    .await;
    let rule = json!({"egress": [{"ports": [{"port": 1, "protocol": "ICMP"}]}]});
    check("a", json!({"image": "a", "networkPolicies": rule}), "protocol: Unsupported value").await;
    check("1a", json!({"image": "a"}), "metadata.name").await;
    check("a.b", json!({"image": "a"}), "metadata.name").await;
}

/// Number of tools of the test of scale.
const MANY: usize = 500;

#[tokio::test]
async fn requests_for_many_tools_are_bounded() {
    let server = Server::start().await;
    let cluster = Cluster::new(&server).await;
    install(&cluster.admin, &definition()).await;
    let tools = Arc::new(ScriptedTools::default());
    let client = server.master("operator").await;
    let started = Instant::now();
    let _operator = RunningOperator::start(client, operator_config(), &tools);
    for number in 0..MANY {
        let object = json!({
            "apiVersion": "langop.io/v1alpha1", "kind": "LanguageTool",
            "metadata": {"name": format!("tool-{number}")}, "spec": {"image": "a"},
        });
        let tool = serde_json::from_value(object).unwrap();
        cluster.tools.create(&PostParams::default(), &tool).await.unwrap();
    }
    let created = started.elapsed();
    let is_done = |tool: &LanguageTool| tool.status.as_ref().is_some_and(|status| status.phase.is_some());
    loop {
        let all = cluster.tools.list(&ListParams::default()).await.unwrap();
        if all.items.len() == MANY && all.iter().all(is_done) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let requests = server.requests_of("operator");
    let of_tool = |number: usize| {
        let name = format!("tool-{number}");
        requests.iter().filter(|request| request.name == name).count()
    };
    // The finalizer, the status, and a look and a write for each of three objects. A cache that is late adds looks.
    let writes = requests.iter().filter(|request| request.verb == "patch").count();
    let most = (0..MANY).map(of_tool).max().unwrap();
    println!(
        "{MANY} tools: created in {:.1} s, reconciled after {:.1} s; {} requests, {writes} of them writes, at most {most} for a tool",
        created.as_secs_f32(),
        started.elapsed().as_secs_f32(),
        requests.len(),
    );
    let writes_of = |number: usize| {
        let name = format!("tool-{number}");
        requests.iter().filter(|request| request.name == name && request.verb == "patch").count()
    };
    // Finalizer, three objects, status.
    for number in 0..MANY {
        assert_eq!(writes_of(number), 5, "tool-{number}");
    }
    assert!(most <= 14, "{most}");
}
