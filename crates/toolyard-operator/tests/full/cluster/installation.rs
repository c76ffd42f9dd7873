//! Installation of the chart by Helm, and of the plain manifests.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::server::Server;
use crate::chart::{NAME, documents, helm, value};

fn values(replicas: u32) -> Value {
    json!({
        "operator": {"replicas": replicas},
        "gateway": {
            "enabled": true,
            "replicas": 2,
            "manifests": {"tools.yaml": "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\n"},
            "settings": {"store": {"url": "postgres://toolyard@db/toolyard"}},
            "clusterKeySecret": "toolyard-cluster",
            "autoscaling": {"enabled": true, "cpu": 70},
        },
    })
}

/// Sends a document as `kubectl apply --server-side --dry-run=server` does, and returns the refusal.
async fn refusal(admin: &Client, document: &str) -> Option<String> {
    let path = super::deployed::path(document);
    let uri = format!("{path}?fieldManager=test&force=true&dryRun=All&fieldValidation=Strict");
    let request = http::Request::patch(uri).header("content-type", "application/apply-patch+yaml");
    let request = request.body(document.as_bytes().to_vec()).unwrap();
    admin.request::<Value>(request).await.err().map(|error| format!("{path}: {error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_installs_upgrades_and_removes_the_chart() {
    let server = Server::start().await;
    let admin = server.admin().await;
    let mut names = ["kubeconfig", "admin.kubeconfig"].iter().map(|name| server.folder().join(name));
    let kubeconfig = names.find(|path| path.exists()).unwrap();
    let run = async |action: &'static str, values: Value| {
        let kubeconfig = kubeconfig.clone();
        let run = tokio::task::spawn_blocking(move || helm(action, &values, Some(&kubeconfig)));
        run.await.unwrap().map(|result| result["manifest"].as_str().unwrap().to_owned()).unwrap()
    };
    let installed = run("install", values(2)).await;
    let kinds: Vec<_> = documents(&installed)
        .map(|text| format!("{} {}", value(text, "apiVersion:"), value(text, "kind:")))
        .filter(|kind| kind.contains("beta"))
        .collect();
    // What this server does not serve in a stable version.
    assert_eq!(kinds, ["policy/v1beta1 PodDisruptionBudget", "autoscaling/v2beta2 HorizontalPodAutoscaler"]);

    let deployments = Api::<Deployment>::namespaced(admin.clone(), NAME);
    let names = async || {
        let found = deployments.list(&Default::default()).await.unwrap();
        found.items.into_iter().map(|item| item.metadata.name.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["toolyard-gateway", "toolyard-operator"]);
    let secrets = Api::<Secret>::namespaced(admin.clone(), NAME);
    let authority = async || {
        let secret = secrets.get("toolyard-operator-webhook").await.unwrap();
        secret.data.unwrap().remove("ca.crt").unwrap()
    };
    let first = authority().await;
    let webhooks = Api::<ValidatingWebhookConfiguration>::all(admin.clone());
    let webhook = webhooks.get("toolyard-operator-webhook").await.unwrap();
    assert_eq!(webhook.webhooks.unwrap()[0].client_config.ca_bundle, Some(first.clone()));

    run("upgrade", values(1)).await;
    assert_eq!(authority().await, first);
    let operator = deployments.get("toolyard-operator").await.unwrap();
    assert_eq!(operator.spec.replicas, Some(1));

    const MANIFEST: &str = include_str!("../../../../../deploy/kubernetes/operator.yaml");
    for document in documents(MANIFEST) {
        assert_eq!(refusal(&admin, document).await, None);
    }
    run("uninstall", json!({})).await;
    assert_eq!(names().await, Vec::<String>::new());
}
