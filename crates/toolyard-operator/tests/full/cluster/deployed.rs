//! Application of `deploy/kubernetes/scripts.yaml`, as `kubectl apply` does.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

pub(crate) const MANIFEST: &str = include_str!("../../../../../deploy/kubernetes/scripts.yaml");

/// Applies all documents and returns the responses of the server.
pub(crate) async fn apply(admin: &Client) -> Vec<Value> {
    let mut applied = Vec::new();
    for document in MANIFEST.split("\n---\n") {
        applied.push(apply_document(admin, document).await.unwrap());
    }
    applied
}

/// Applies a document in YAML and returns the response of the server.
pub(crate) async fn apply_document(admin: &Client, document: &str) -> Result<Value, kube::Error> {
    let path = format!("{}?fieldManager=test&fieldValidation=Strict", path(document));
    let request = http::Request::patch(path).header("content-type", "application/apply-patch+yaml");
    admin.request(request.body(document.as_bytes().to_vec()).unwrap()).await
}

pub(crate) fn path(document: &str) -> String {
    let value = |key: &str| document.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let (kind, name) = (value("kind:").unwrap(), value("  name:").unwrap());
    let version = match value("apiVersion:").unwrap() {
        "v1" => "/api/v1".to_owned(),
        group => format!("/apis/{group}"),
    };
    let plural = match kind {
        "NetworkPolicy" => "networkpolicies".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    let namespace = value("  namespace:").map(|namespace| format!("/namespaces/{namespace}"));
    format!("{version}{}/{plural}/{name}", namespace.unwrap_or_default())
}

/// Returns a token of a service account, as mounted in pods.
pub(crate) async fn token(admin: &Client, namespace: &str, account: &str) -> String {
    let accounts = Api::<ServiceAccount>::namespaced(admin.clone(), namespace);
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {}, "spec": {"audiences": []},
    });
    let answer: TokenRequest =
        accounts.create_subresource("token", account, &PostParams::default(), &request).await.unwrap();
    answer.status.unwrap().token.unwrap()
}

/// Sets the status of a pod in the role of its node.
pub(crate) async fn set(pods: &Api<Pod>, name: &str, status: &Value) {
    let patch = Patch::Merge(json!({ "status": status }));
    pods.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}
