//! A cluster with scripted responses, which records its requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolyard_operator::{PodOptions, PodRunner};
use tower_test::mock::{self, Handle};

type Mock = Handle<Request<Body>, Response<Body>>;

/// Status and body of a response; `None` if it never arrives.
pub(crate) type Answer = Option<(u16, Vec<u8>)>;

pub(crate) struct MockCluster {
    requests: Arc<Mutex<Vec<String>>>,
    client: Client,
    task: JoinHandle<()>,
}

impl Drop for MockCluster {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl MockCluster {
    /// `answer` gets the method and the path below the collection of pods, and the number of previous equal requests.
    pub(crate) fn new(answer: impl Fn(&str, usize) -> Answer + Send + 'static) -> Self {
        let (service, handle) = mock::pair::<Request<Body>, Response<Body>>();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(serve(handle, requests.clone(), answer));
        Self { requests, client: Client::new(service, "default"), task }
    }

    pub(crate) fn runner(&self, options: PodOptions) -> PodRunner {
        PodRunner::new(self.client.clone(), options).unwrap()
    }

    /// Returns the requests, except for the sweep for orphans at the start.
    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap().clone();
        requests.into_iter().filter(|requests| !requests.starts_with("GET ?&labelSelector")).collect()
    }

    /// Waits for `count` requests with a prefix. The clock of the tests is paused while tasks are busy.
    pub(crate) async fn wait_for_requests(&self, what: &str, count: usize) {
        let requests = async {
            while self.requests().iter().filter(|requests| requests.starts_with(what)).count() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let requests = tokio::time::timeout(Duration::from_secs(600), requests).await;
        assert!(requests.is_ok(), "it was not asked {what}, but {:?}", self.requests());
    }
}

async fn serve(mut handle: Mock, requests: Arc<Mutex<Vec<String>>>, answer: impl Fn(&str, usize) -> Answer) {
    let mut unanswered = Vec::new();
    while let Some((request, send)) = handle.next_request().await {
        let line = line(&request);
        let before = {
            let mut requests = requests.lock().unwrap();
            requests.push(line.clone());
            requests.iter().filter(|requests| **requests == line).count() - 1
        };
        if line.starts_with("GET ?&labelSelector") {
            send.send_response(response(200, pods(&[]).into()));
            continue;
        }
        match answer(&line, before) {
            Some((status, body)) => send.send_response(response(status, body)),
            None => unanswered.push(send),
        }
    }
}

fn response(status: u16, body: Vec<u8>) -> Response<Body> {
    Response::builder().status(status).body(Body::from(body)).unwrap()
}

/// Formats a request: `POST ?`, `GET /NAME/log?&container=script`. The name of the pod is replaced.
fn line(request: &Request<Body>) -> String {
    let path = request.uri().path_and_query().unwrap().as_str();
    let path = path.strip_prefix("/api/v1/namespaces/rockbot-scripts/pods").unwrap();
    let name = path.trim_start_matches('/').split(['/', '?', '&']).next().unwrap();
    let path = if name.is_empty() { path.to_owned() } else { path.replace(name, "NAME") };
    let path = match path.split_once("metadata.name%3D") {
        Some((before, rest)) => {
            let end = rest.find('&').unwrap_or(rest.len());
            format!("{before}metadata.name%3DNAME{}", &rest[end..])
        }
        None => path,
    };
    format!("{} {path}", request.method())
}

pub(crate) fn pods(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}).to_string()
}

pub(crate) fn pod(status: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "resourceVersion": "7"}, "status": status})
}

/// Returns a status with this state of the container `script`.
pub(crate) fn status(phase: &str, state: &Value) -> Value {
    let container = json!({
        "name": "script", "state": state, "ready": false, "restartCount": 0, "image": "", "imageID": "",
    });
    json!({"phase": phase, "containerStatuses": [container]})
}

pub(crate) fn running() -> Value {
    status("Running", &json!({"running": {"startedAt": "2026-11-01T00:00:00Z"}}))
}

pub(crate) fn ended(exit_code: i32) -> Value {
    let terminated = json!({"exitCode": exit_code, "startedAt": "2026-11-01T00:00:00Z"});
    status("Succeeded", &json!({"terminated": terminated}))
}

/// Returns the events of a watch, one for each status.
pub(crate) fn watch_events(statuses: &[Value]) -> Answer {
    let event = |status| format!("{}\n", json!({"type": "MODIFIED", "object": pod(status)}));
    Some((200, statuses.iter().map(event).collect::<String>().into()))
}

pub(crate) fn pod_response(status: &Value) -> Answer {
    Some((200, pod(status).to_string().into()))
}

pub(crate) fn refused(code: u16, message: &str) -> Answer {
    let body = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": code, "message": message,
        "reason": "Because",
    });
    Some((code, body.to_string().into()))
}
