//! The exact requests of one reconciliation of a LanguageTool, at a scripted cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::core::DeserializeGuard;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use toolyard_operator::controller::{ClusterFacts, Context, OperatorConfig, OperatorMetrics};
use toolyard_operator::language_tool::{
    FINALIZER, LanguageTool, ObservedTool, SystemResolver, ToolReconciler,
};
use tower_test::mock;

use crate::cluster::operator::ScriptedTools;

/// Objects by path. A request changes them as a server would, as far as the operator can tell.
type Objects = Arc<Mutex<BTreeMap<String, Value>>>;

/// A cluster with these objects, which records its requests. `refuse` returns a status for a request, such as 409.
struct ScriptedCluster {
    objects: Objects,
    requests: Arc<Mutex<Vec<String>>>,
    reconciler: ToolReconciler,
}

const TOOL: &str = "/apis/langop.io/v1alpha1/namespaces/a/languagetools/memory";

impl ScriptedCluster {
    fn new(refuse: impl Fn(&str) -> Option<u16> + Send + 'static) -> Self {
        let (service, mut handle) = mock::pair::<Request<Body>, Response<Body>>();
        let (objects, requests) = (Objects::default(), Arc::new(Mutex::new(Vec::new())));
        let (stored, seen) = (objects.clone(), requests.clone());
        tokio::spawn(async move {
            while let Some((request, send)) = handle.next_request().await {
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let path = head.uri.path().to_owned();
                let line = format!("{} {}", head.method, shortened(&path));
                let is_event = path.contains("/events");
                if !is_event {
                    seen.lock().unwrap().push(line.clone());
                }
                let (code, answer) = match refuse(&line) {
                    Some(code) => (code, failure(code)),
                    None => answer(&mut stored.lock().unwrap(), &head.method, &path, &body),
                };
                let response = Response::builder().status(code).header("content-type", "application/json");
                send.send_response(response.body(Body::from(answer.to_string().into_bytes())).unwrap());
            }
        });
        let client = Client::new(service, "a");
        let facts = ClusterFacts { minor: 33 };
        let (tools, metrics) = (Arc::new(ScriptedTools::default()), Arc::new(OperatorMetrics::default()));
        tools.set("http://memory.a.svc.cluster.local:8080", &["recall"]);
        let context = Context::new(client, OperatorConfig::default(), facts, tools, metrics);
        let reconciler = ToolReconciler::new(Arc::new(context), Arc::new(SystemResolver));
        Self { objects, requests, reconciler }
    }

    fn put(&self, tool: Value) {
        self.objects.lock().unwrap().insert(TOOL.to_owned(), tool);
    }

    fn tool(&self) -> LanguageTool {
        serde_json::from_value(self.objects.lock().unwrap()[TOOL].clone()).unwrap()
    }

    /// Returns reason and message of a condition.
    fn condition(&self, kind: &str) -> (String, String) {
        let conditions = self.tool().status.unwrap().conditions;
        let found = conditions.into_iter().find(|condition| condition.type_ == kind).unwrap();
        (found.reason, found.message)
    }

    /// Returns the observed objects: those of the store, as a watch would report them.
    fn observed(&self) -> ObservedTool {
        let objects = self.objects.lock().unwrap();
        let find = |path: &str| objects.get(path).cloned();
        fn read<K: serde::de::DeserializeOwned>(value: Option<Value>) -> Option<Arc<K>> {
            value.map(|value| Arc::new(serde_json::from_value(value).unwrap()))
        }
        ObservedTool {
            deployment: read(find("/apis/apps/v1/namespaces/a/deployments/memory")),
            service: read(find("/api/v1/namespaces/a/services/memory")),
            network_policy: read(find("/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/memory")),
        }
    }

    /// Reconciles the stored tool, and returns the requests and the error.
    async fn reconcile(&self) -> (Vec<String>, Option<String>) {
        let result = self.reconciler.reconcile(Arc::new(self.tool()), self.observed()).await;
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        (requests, result.err().map(|error| error.to_string()))
    }

    async fn requests(&self) -> Vec<String> {
        let (requests, error) = self.reconcile().await;
        assert_eq!(error, None);
        requests
    }
}

/// Leaves the namespace and the API out of a path.
fn shortened(path: &str) -> String {
    path.split("/namespaces/a/").nth(1).unwrap_or(path).to_owned()
}

fn failure(code: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": code,
        "message": format!("refused with {code}"), "reason": if code == 404 { "NotFound" } else { "Because" },
    })
}

fn answer(objects: &mut BTreeMap<String, Value>, method: &Method, path: &str, body: &[u8]) -> (u16, Value) {
    let sent: Value = serde_json::from_slice(body).unwrap_or_default();
    let (path, is_status) = match path.strip_suffix("/status") {
        Some(path) => (path, true),
        None => (path, false),
    };
    match *method {
        Method::POST => (201, sent),
        Method::PATCH if sent.is_array() => {
            let tool = objects.get_mut(path).unwrap();
            for operation in sent.as_array().unwrap() {
                match operation["op"].as_str().unwrap() {
                    "add" => tool["metadata"]["finalizers"] = json!([FINALIZER]),
                    "remove" => tool["metadata"]["finalizers"] = json!([]),
                    _ => {}
                }
            }
            (200, tool.clone())
        }
        Method::PATCH if is_status => {
            let object = objects.get_mut(path).unwrap();
            object["status"] = sent["status"].clone();
            object["metadata"]["resourceVersion"] = "2".into();
            (200, object.clone())
        }
        Method::PATCH => {
            let mut sent = sent;
            sent["metadata"]["uid"] = format!("uid-of-{path}").into();
            sent["metadata"]["generation"] = 1.into();
            objects.insert(path.to_owned(), sent.clone());
            (200, sent)
        }
        Method::DELETE => objects.remove(path).map_or((404, failure(404)), |object| (200, object)),
        _ => objects.get(path).cloned().map_or((404, failure(404)), |object| (200, object)),
    }
}

fn tool(change: &Value) -> Value {
    let mut tool = json!({
        "apiVersion": "langop.io/v1alpha1", "kind": "LanguageTool",
        "metadata": {"name": "memory", "namespace": "a", "uid": "tool-uid", "generation": 1, "resourceVersion": "1"},
        "spec": {"image": "memory:1"},
    });
    for (name, value) in change.as_object().unwrap() {
        tool["metadata"][name] = value.clone();
    }
    tool
}

const NOTHING: [&str; 0] = [];

#[tokio::test]
async fn new_tool_gets_finalizer_objects_and_status() {
    let cluster = ScriptedCluster::new(|_| None);
    cluster.put(tool(&json!({})));
    assert_eq!(cluster.requests().await, ["PATCH languagetools/memory"]);
    let expected = [
        "GET networkpolicies/memory",
        "PATCH networkpolicies/memory",
        "GET services/memory",
        "PATCH services/memory",
        "GET deployments/memory",
        "PATCH deployments/memory",
        "PATCH languagetools/memory/status",
    ];
    assert_eq!(cluster.requests().await, expected);
    // The Deployment is known from now on, which changes nothing.
    assert_eq!(cluster.requests().await, NOTHING);
}

/// Returns a cluster whose tool is deployed.
async fn deployed(refuse: impl Fn(&str) -> Option<u16> + Send + 'static) -> ScriptedCluster {
    let cluster = ScriptedCluster::new(refuse);
    cluster.put(tool(&json!({"finalizers": [FINALIZER]})));
    cluster.reconcile().await;
    cluster.reconcile().await;
    assert_eq!(cluster.requests().await, NOTHING);
    cluster
}

#[tokio::test]
async fn ready_pod_is_asked_once() {
    let cluster = deployed(|_| None).await;
    cluster.objects.lock().unwrap().get_mut("/apis/apps/v1/namespaces/a/deployments/memory").unwrap()["status"] = json!({
        "observedGeneration": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1,
    });
    assert_eq!(cluster.requests().await, ["PATCH languagetools/memory/status"]);
    assert_eq!(cluster.requests().await, NOTHING);
    let status = cluster.tool().status.unwrap();
    assert_eq!(status.tool_schemas[0].name, "recall");
}

#[tokio::test]
async fn status_is_not_written_again_while_the_watch_is_late() {
    let cluster = deployed(|_| None).await;
    let old = cluster.tool();
    let mut edited = serde_json::to_value(&old).unwrap();
    edited["spec"]["image"] = "memory:2".into();
    edited["metadata"]["generation"] = 2.into();
    edited["metadata"]["resourceVersion"] = "7".into();
    cluster.put(edited.clone());
    let expected = ["PATCH deployments/memory", "PATCH languagetools/memory/status"];
    assert_eq!(cluster.requests().await, expected);
    // The watch reports the resource as it was before its status was written.
    cluster.put(edited);
    assert_eq!(cluster.requests().await, NOTHING);
}

#[tokio::test]
async fn only_what_differs_is_sent() {
    let check = async |path: &str, change: fn(&mut Value), expected: &[&str]| {
        let cluster = deployed(|_| None).await;
        change(cluster.objects.lock().unwrap().get_mut(path).unwrap());
        assert_eq!(cluster.requests().await, expected, "{path}");
        assert_eq!(cluster.requests().await, NOTHING, "{path}");
    };
    check(TOOL, |tool| tool["spec"]["image"] = "memory:2".into(), &["PATCH deployments/memory"]).await;
    let both = ["PATCH networkpolicies/memory", "PATCH services/memory", "PATCH deployments/memory"];
    check(TOOL, |tool| tool["spec"]["port"] = 9000.into(), &both).await;
    let service = "/api/v1/namespaces/a/services/memory";
    check(service, |service| service["spec"]["selector"] = json!({}), &["PATCH services/memory"]).await;
    // Defaults of the server and fields of others.
    check(service, |service| service["spec"]["clusterIP"] = "10.0.0.9".into(), &[]).await;
    let policy = "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/memory";
    check(policy, |policy| policy["spec"]["ingress"] = json!([{}]), &["PATCH networkpolicies/memory"]).await;
}

#[tokio::test]
async fn conflict_is_an_error_that_is_repeated() {
    let cluster = ScriptedCluster::new(|line| (line == "PATCH deployments/memory").then_some(409));
    cluster.put(tool(&json!({"finalizers": [FINALIZER]})));
    let (requests, error) = cluster.reconcile().await;
    assert_eq!(requests.last().unwrap(), "PATCH languagetools/memory/status");
    assert!(error.unwrap().contains("refused with 409"));
    let status = cluster.tool().status.unwrap();
    assert_eq!(
        (status.conditions[0].reason.as_str(), status.conditions[0].message.as_str()),
        ("DeploymentError", "refused with 409")
    );
    // The repetition sends what is missing, and not the same status again.
    let (requests, _) = cluster.reconcile().await;
    assert_eq!(requests, ["GET deployments/memory", "PATCH deployments/memory"]);
}

#[tokio::test]
async fn pods_are_not_created_without_their_policy() {
    let cluster = ScriptedCluster::new(|line| (line == "PATCH networkpolicies/memory").then_some(403));
    cluster.put(tool(&json!({"finalizers": [FINALIZER]})));
    let (requests, error) = cluster.reconcile().await;
    assert!(!requests.contains(&"PATCH deployments/memory".to_owned()), "{requests:?}");
    assert!(error.unwrap().contains("refused with 403"));
    assert_eq!(cluster.condition("Ready"), ("NetworkPolicyError".to_owned(), "refused with 403".to_owned()));
    assert_eq!(cluster.condition("NetworkPolicyReady"), ("Error".to_owned(), "refused with 403".to_owned()));
}

#[tokio::test]
async fn refused_change_of_the_policy_leaves_the_pods() {
    let is_refused = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let refuses = is_refused.clone();
    let cluster = deployed(move |line| {
        let is_policy = line == "PATCH networkpolicies/memory";
        (is_policy && refuses.load(std::sync::atomic::Ordering::Relaxed)).then_some(403)
    })
    .await;
    is_refused.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut changed = serde_json::to_value(cluster.tool()).unwrap();
    changed["spec"]["port"] = 9000.into();
    cluster.put(changed);
    let (requests, error) = cluster.reconcile().await;
    assert!(requests.contains(&"PATCH deployments/memory".to_owned()), "{requests:?}");
    assert!(error.unwrap().contains("refused with 403"));
    assert_eq!(cluster.condition("NetworkPolicyReady"), ("Error".to_owned(), "refused with 403".to_owned()));
}

#[tokio::test]
async fn policy_with_another_peer_is_restored() {
    let cluster = deployed(|_| None).await;
    let path = "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/memory";
    let widen = |edit: fn(&mut Value)| {
        edit(&mut cluster.objects.lock().unwrap().get_mut(path).unwrap()["spec"]["ingress"][0]);
    };
    widen(|rule| rule["from"][0]["namespaceSelector"] = json!({}));
    assert_eq!(cluster.requests().await, ["PATCH networkpolicies/memory"]);
    assert_eq!(cluster.requests().await, NOTHING);
    widen(|rule| rule["ports"].as_array_mut().unwrap().push(json!({"port": 22, "protocol": "TCP"})));
    assert_eq!(cluster.requests().await, ["PATCH networkpolicies/memory"]);
}

#[tokio::test]
async fn resource_that_cannot_be_read_is_reported_and_freed() {
    let cluster = ScriptedCluster::new(|_| None);
    let mut unreadable = tool(&json!({"finalizers": [FINALIZER], "uid": "1"}));
    unreadable["spec"]["deployment"] = json!({"livenessProbe": {"httpGet": {"port": 99_999_999_999_u64}}});
    let read = |value: &Value| {
        let guard: DeserializeGuard<LanguageTool> = serde_json::from_value(value.clone()).unwrap();
        guard.0.unwrap_err()
    };
    cluster.put(unreadable.clone());
    cluster.reconciler.reconcile_invalid(&read(&unreadable), cluster.observed()).await.unwrap();
    let requests = std::mem::take(&mut *cluster.requests.lock().unwrap());
    assert_eq!(requests, ["PATCH languagetools/memory/status"]);
    let status = cluster.objects.lock().unwrap()[TOOL]["status"].clone();
    assert_eq!(
        (&status["phase"], &status["conditions"][0]["reason"]),
        (&json!("Failed"), &json!("InvalidSpec"))
    );
    let message = status["conditions"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("the specification cannot be read: "), "{message}");

    unreadable["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    cluster.put(unreadable.clone());
    cluster.reconciler.reconcile_invalid(&read(&unreadable), cluster.observed()).await.unwrap();
    assert_eq!(std::mem::take(&mut *cluster.requests.lock().unwrap()), ["PATCH languagetools/memory"]);
}

#[tokio::test]
async fn foreign_object_is_left_alone() {
    let cluster = ScriptedCluster::new(|_| None);
    cluster.put(tool(&json!({"finalizers": [FINALIZER]})));
    let foreign =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "memory", "namespace": "a"}});
    cluster.objects.lock().unwrap().insert("/api/v1/namespaces/a/services/memory".to_owned(), foreign);
    let (requests, error) = cluster.reconcile().await;
    assert!(!requests.contains(&"PATCH services/memory".to_owned()), "{requests:?}");
    assert!(error.unwrap().contains("exists already and does not belong to this resource"));
}

#[tokio::test]
async fn invalid_specification_is_not_deployed() {
    let cluster = ScriptedCluster::new(|_| None);
    let mut invalid = tool(&json!({"finalizers": [FINALIZER]}));
    invalid["spec"]["networkPolicies"] = json!({"egress": [{"to": {"cidr": "10.0.0.0"}}]});
    cluster.put(invalid);
    assert_eq!(cluster.requests().await, ["PATCH languagetools/memory/status"]);
    assert_eq!(cluster.requests().await, NOTHING);
    let ready = cluster.tool().status.unwrap().conditions.remove(0);
    assert_eq!(ready.reason, "InvalidSpec");
    assert!(
        ready.message.starts_with("spec.networkPolicies.egress[0].to.cidr: `10.0.0.0`"),
        "{}",
        ready.message
    );
}

#[tokio::test]
async fn deleted_tool_loses_its_finalizer_only() {
    let cluster = deployed(|_| None).await;
    let mut deleted = serde_json::to_value(cluster.tool()).unwrap();
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    cluster.put(deleted);
    assert_eq!(cluster.requests().await, ["PATCH languagetools/memory"]);
    assert!(cluster.tool().finalizers().is_empty());
    // The cluster deletes the objects, since the tool owns them.
    let owned = cluster.observed().deployment.unwrap();
    assert_eq!(owned.owner_references()[0].uid, "tool-uid");
    assert_eq!(cluster.requests().await, NOTHING);
}

#[tokio::test]
async fn sidecar_deletes_the_objects_of_a_service() {
    let cluster = deployed(|_| None).await;
    let mut sidecar = serde_json::to_value(cluster.tool()).unwrap();
    sidecar["spec"]["deploymentMode"] = "sidecar".into();
    cluster.put(sidecar);
    let expected = [
        "DELETE networkpolicies/memory",
        "DELETE services/memory",
        "DELETE deployments/memory",
        "GET pods",
        "GET pods",
        "PATCH languagetools/memory/status",
    ];
    // The scripted cluster has no list of pods.
    let (requests, error) = cluster.reconcile().await;
    assert_eq!(requests, &expected[..4]);
    assert!(error.is_some());
}

/// Another manager changes the Service back as often as it is restored.
#[tokio::test(start_paused = true)]
async fn object_that_another_manager_changes_back_is_restored_less_and_less_often() {
    let cluster = deployed(|_| None).await;
    let service = "/api/v1/namespaces/a/services/memory";
    let undo = || cluster.objects.lock().unwrap().get_mut(service).unwrap()["spec"]["selector"] = json!({});
    for _ in 0..3 {
        undo();
        assert_eq!(cluster.requests().await, ["PATCH services/memory"]);
    }
    undo();
    let (requests, error) = cluster.reconcile().await;
    assert_eq!(requests, ["GET services/memory", "PATCH languagetools/memory/status"]);
    let message = "another field manager undoes the changes of Service `memory`, which are repeated after growing delays";
    assert!(error.as_ref().unwrap().starts_with(message), "{error:?}");
    let (reason, text) = cluster.condition("Ready");
    assert_eq!((&*reason, Some(text)), ("ServiceError", error));
    // The status says so once, and the attempt follows after its delay.
    assert_eq!(cluster.reconcile().await.0, ["GET services/memory"]);
    tokio::time::advance(std::time::Duration::from_millis(500)).await;
    assert_eq!(cluster.requests().await, ["PATCH services/memory", "PATCH languagetools/memory/status"]);
    // The watch may be late: what is as desired is no contention.
    let stale = cluster.observed();
    undo();
    let observed = ObservedTool { service: cluster.observed().service, ..stale };
    cluster.objects.lock().unwrap().get_mut(service).unwrap()["spec"]["selector"] =
        json!({"app.kubernetes.io/name": "memory", "langop.io/kind": "LanguageTool"});
    cluster.reconciler.reconcile(Arc::new(cluster.tool()), observed).await.unwrap();
    assert_eq!(std::mem::take(&mut *cluster.requests.lock().unwrap()), ["GET services/memory"]);
}
