//! The requests of the controller of registries, at a mocked cluster.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use insta::assert_snapshot;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolyard_operator::controller::{
    ClusterFacts, Context, DiscoveryError, ListedTool, OperatorConfig, OperatorMetrics, ToolDiscovery,
};
use toolyard_operator::tool_registry::report::{GatewayReader, GatewayReport};
use toolyard_operator::tool_registry::{self, DEFINITION};
use tower_test::mock;

struct NoTools;

impl ToolDiscovery for NoTools {
    fn tools<'a>(&'a self, _endpoint: &'a str) -> BoxFuture<'a, Result<Vec<ListedTool>, DiscoveryError>> {
        ready(Ok(Vec::new())).boxed()
    }
}

impl GatewayReader for NoTools {
    fn read<'a>(&'a self, _authority: &'a str) -> BoxFuture<'a, Result<GatewayReport, String>> {
        ready(Err("connection refused".to_owned())).boxed()
    }
}

/// A cluster with one registry and its definition.
struct MockedCluster {
    /// Requests but lists and watches, and the status codes of their responses.
    requests: Arc<Mutex<Vec<String>>>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for MockedCluster {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl MockedCluster {
    /// Starts the controller. `objects` are what a collection has, by its name; `refusal` is a request that is refused once,
    /// and the status code.
    fn start(
        objects: impl Fn(&str) -> Vec<Value> + Send + 'static,
        refusal: Option<(&'static str, u16)>,
    ) -> Self {
        let (service, mut handle) = mock::pair::<Request<Body>, Response<Body>>();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = requests.clone();
        let mut refusal = refusal;
        let server = tokio::spawn(async move {
            let mut watches = Vec::new();
            while let Some((request, send)) = handle.next_request().await {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let query = request.uri().query().unwrap_or_default().to_owned();
                let collection = path.rsplit('/').next().unwrap_or_default().to_owned();
                if query.contains("watch=true") {
                    watches.push(send);
                    continue;
                }
                if method == Method::GET && objects_of(&path).is_some() {
                    send.send_response(response(200, &list(objects(&collection))));
                    continue;
                }
                let line = format!("{method} {path}");
                let refused = refusal.take_if(|(start, _)| line.starts_with(*start)).map(|(_, code)| code);
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
                let (code, answer) = match (&method, refused) {
                    (_, Some(code)) => (code, status(code)),
                    (&Method::GET, _) => (404, status(404)),
                    _ => (200, stored(sent)),
                };
                recorded.lock().unwrap().push(format!("{line} {code}"));
                send.send_response(response(code, &answer));
            }
        });
        let metrics = Arc::new(OperatorMetrics::default());
        let client = Client::new(service, "default");
        let context = Context::new(
            client,
            OperatorConfig::default(),
            ClusterFacts { minor: 29 },
            Arc::new(NoTools),
            metrics,
        );
        let controller = tokio::spawn(tool_registry::controller_with(Arc::new(context), Arc::new(NoTools)));
        Self { requests, tasks: [server, controller] }
    }

    /// Waits for a request, then for more that might follow, and returns all of them.
    async fn requests_until(&self, last: &str) -> String {
        let has_come = async {
            while !self.requests.lock().unwrap().iter().any(|request| request.starts_with(last)) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let come = tokio::time::timeout(Duration::from_secs(60), has_come).await;
        assert!(come.is_ok(), "no `{last}` in {:#?}", self.requests.lock().unwrap());
        // The clock is paused: this hour passes as soon as nothing is left to do.
        tokio::time::sleep(Duration::from_secs(3600)).await;
        self.requests.lock().unwrap().join("\n")
    }
}

/// The name of a collection, if a path is one.
fn objects_of(path: &str) -> Option<&str> {
    let last = path.rsplit('/').next()?;
    let collections = [
        "configmaps",
        "customresourcedefinitions",
        "deployments",
        "networkpolicies",
        "services",
        "toolregistries",
    ];
    collections.contains(&last).then_some(last)
}

fn response(code: u16, body: &Value) -> Response<Body> {
    Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap()
}

fn list(items: Vec<Value>) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

fn status(code: u16) -> Value {
    let reason = if code == 404 { "NotFound" } else { "Because" };
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": code, "message": "no",
        "reason": reason,
    })
}

/// An object as a server returns it.
fn stored(mut object: Value) -> Value {
    object["metadata"]["uid"] = json!("4-5-6");
    object["metadata"]["resourceVersion"] = json!("2");
    object
}

fn definition() -> Value {
    let mut definition = tool_registry::definition();
    definition["status"] = json!({"conditions": [
        {"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"},
    ]});
    assert_eq!(definition["metadata"]["name"], DEFINITION);
    definition
}

fn registry(handlers: &Value) -> Value {
    json!({
        "apiVersion": "omnia.altairalabs.ai/v1alpha1", "kind": "ToolRegistry",
        "metadata": {"name": "a", "namespace": "agents", "uid": "1-2-3", "generation": 1, "resourceVersion": "1"},
        "spec": {"handlers": handlers},
    })
}

fn sse() -> Value {
    json!([{"name": "a", "type": "mcp", "mcpConfig": {"transport": "sse", "endpoint": "http://a/sse"}}])
}

/// Collections with a definition and this registry only.
fn only(registry: Value) -> impl Fn(&str) -> Vec<Value> + Send + 'static {
    move |collection| match collection {
        "customresourcedefinitions" => vec![definition()],
        "toolregistries" => vec![registry.clone()],
        _ => Vec::new(),
    }
}

const STATUS: &str = "PATCH /apis/omnia.altairalabs.ai/v1alpha1/namespaces/agents/toolregistries/a/status";

#[tokio::test(start_paused = true)]
async fn new_registry_needs_two_requests_an_object() {
    let cluster = MockedCluster::start(only(registry(&sse())), None);
    assert_snapshot!(cluster.requests_until(STATUS).await, @"
    GET /api/v1/namespaces/agents/configmaps/a-gateway 404
    PATCH /api/v1/namespaces/agents/configmaps/a-gateway 200
    GET /apis/networking.k8s.io/v1/namespaces/agents/networkpolicies/a-gateway 404
    PATCH /apis/networking.k8s.io/v1/namespaces/agents/networkpolicies/a-gateway 200
    GET /api/v1/namespaces/agents/services/a-gateway 404
    PATCH /api/v1/namespaces/agents/services/a-gateway 200
    GET /apis/apps/v1/namespaces/agents/deployments/a-gateway 404
    PATCH /apis/apps/v1/namespaces/agents/deployments/a-gateway 200
    PATCH /apis/omnia.altairalabs.ai/v1alpha1/namespaces/agents/toolregistries/a/status 200
    POST /apis/events.k8s.io/v1/namespaces/agents/events 200
    ");
}

#[tokio::test(start_paused = true)]
async fn invalid_registry_gets_a_status_only() {
    let cluster = MockedCluster::start(only(registry(&json!([{"name": "a"}]))), None);
    assert_snapshot!(cluster.requests_until(STATUS).await, @"
    PATCH /apis/omnia.altairalabs.ai/v1alpha1/namespaces/agents/toolregistries/a/status 200
    POST /apis/events.k8s.io/v1/namespaces/agents/events 200
    ");
}

#[tokio::test(start_paused = true)]
async fn refused_request_is_repeated() {
    let deployment = "PATCH /apis/apps/v1/namespaces/agents/deployments/a-gateway";
    for code in [409, 500] {
        let cluster = MockedCluster::start(only(registry(&sse())), Some((deployment, code)));
        let requests = cluster.requests_until(STATUS).await;
        let of_deployment: Vec<_> = requests.lines().filter(|line| line.starts_with(deployment)).collect();
        assert_eq!(of_deployment, [format!("{deployment} {code}"), format!("{deployment} 200")]);
    }
}

/// A status says why there is no gateway, and the request is repeated less and less often.
#[tokio::test(start_paused = true)]
async fn foreign_object_is_not_taken_over() {
    let foreign = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a-gateway", "namespace": "agents", "uid": "7-8-9"},
    });
    let objects = only(registry(&sse()));
    let cluster = MockedCluster::start(
        move |collection| {
            if collection == "configmaps" { vec![foreign.clone()] } else { objects(collection) }
        },
        None,
    );
    let requests = cluster.requests_until(STATUS).await;
    let others: Vec<_> =
        requests.lines().filter(|line| !line.starts_with(STATUS) && !line.contains("/events")).collect();
    assert_eq!(others, Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn registry_that_is_being_deleted_is_left_alone() {
    let mut deleted = registry(&sse());
    deleted["metadata"]["deletionTimestamp"] = json!("2026-11-24T00:00:00Z");
    let cluster = MockedCluster::start(only(deleted), None);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(*cluster.requests.lock().unwrap(), Vec::<String>::new());
}
