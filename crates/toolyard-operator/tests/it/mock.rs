//! A cluster that answers what a test says, and remembers what it was asked.

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

/// An answer: its status and its body. None never comes.
pub(crate) type Answer = Option<(u16, Vec<u8>)>;

pub(crate) struct Cluster {
    asked: Arc<Mutex<Vec<String>>>,
    client: Client,
    task: JoinHandle<()>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cluster {
    /// `answer` is given method, what follows the collection of pods, and how often the same was asked before.
    pub(crate) fn new(answer: impl Fn(&str, usize) -> Answer + Send + 'static) -> Self {
        let (service, handle) = mock::pair::<Request<Body>, Response<Body>>();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(serve(handle, asked.clone(), answer));
        Self { asked, client: Client::new(service, "default"), task }
    }

    pub(crate) fn runner(&self, options: PodOptions) -> PodRunner {
        PodRunner::new(self.client.clone(), options).unwrap()
    }

    /// What it was asked, without the look for orphans at the start.
    pub(crate) fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap().clone();
        asked.into_iter().filter(|asked| !asked.starts_with("GET ?&labelSelector")).collect()
    }

    /// Waits until it was asked something `count` times. The clock of the tests stands still while anybody works.
    pub(crate) async fn was_asked(&self, what: &str, count: usize) {
        let asked = async {
            while self.asked().iter().filter(|asked| asked.starts_with(what)).count() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let asked = tokio::time::timeout(Duration::from_secs(600), asked).await;
        assert!(asked.is_ok(), "it was not asked {what}, but {:?}", self.asked());
    }
}

async fn serve(mut handle: Mock, asked: Arc<Mutex<Vec<String>>>, answer: impl Fn(&str, usize) -> Answer) {
    let mut unanswered = Vec::new();
    while let Some((request, send)) = handle.next_request().await {
        let line = line(&request);
        let before = {
            let mut asked = asked.lock().unwrap();
            asked.push(line.clone());
            asked.iter().filter(|asked| **asked == line).count() - 1
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

/// `POST ?`, `GET /NAME/log?&container=script`: the pod's own name is different each time.
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

/// A status of which the container `script` has this state.
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

/// The events of a watch, one for each status.
pub(crate) fn watched(statuses: &[Value]) -> Answer {
    let event = |status| format!("{}\n", json!({"type": "MODIFIED", "object": pod(status)}));
    Some((200, statuses.iter().map(event).collect::<String>().into()))
}

pub(crate) fn found(status: &Value) -> Answer {
    Some((200, pod(status).to_string().into()))
}

pub(crate) fn refused(code: u16, message: &str) -> Answer {
    let body = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": code, "message": message,
        "reason": "Because",
    });
    Some((code, body.to_string().into()))
}
