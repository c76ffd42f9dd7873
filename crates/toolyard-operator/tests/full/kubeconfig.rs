//! Accepted and refused kubeconfig files.

use std::path::Path;

use serde_json::{Value, json};
use toolyard_operator::ClusterConfig;

async fn refusal(user: &Value, context: Option<&str>) -> Option<String> {
    refusal_at(&json!({"server": "http://127.0.0.1:1"}), user, context).await
}

async fn refusal_at(cluster: &Value, user: &Value, context: Option<&str>) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": cluster}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "users": [{"name": "a", "user": user}],
    });
    std::fs::write(&path, config.to_string()).unwrap();
    let cluster = ClusterConfig::Kubeconfig { path, context: context.map(str::to_owned) };
    cluster.client().await.err().map(|error| error.to_string())
}

#[tokio::test]
async fn user_with_token_is_accepted() {
    assert_eq!(refusal(&json!({"token": "hunter2"}), None).await, None);
    assert_eq!(refusal(&json!({}), Some("a")).await, None);
}

#[tokio::test]
async fn user_with_exec_plugin_is_refused_before_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let witness = folder.path().join("ran");
    let exec = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [witness],
        "interactiveMode": "Never",
    }});
    let expected = "The kubeconfig obtains credentials from a program, which is not supported: use a token or a certificate";
    assert_eq!(refusal(&exec, None).await.as_deref(), Some(expected));
    assert!(!Path::new(&witness).exists());
}

#[tokio::test]
async fn missing_kubeconfig_is_refused() {
    let expected = Some("Invalid cluster configuration");
    assert_eq!(refusal(&json!({}), Some("b")).await.as_deref(), expected);
    let proxied = json!({"server": "http://127.0.0.1:1", "proxy-url": "http://127.0.0.1:2"});
    assert_eq!(refusal_at(&proxied, &json!({}), None).await.as_deref(), expected);
    let cluster = ClusterConfig::Kubeconfig { path: "/nowhere".into(), context: None };
    assert_eq!(cluster.client().await.err().map(|error| error.to_string()).as_deref(), expected);
    // The test does not run in a pod.
    assert_eq!(
        ClusterConfig::InCluster.client().await.err().map(|error| error.to_string()).as_deref(),
        expected
    );
}
