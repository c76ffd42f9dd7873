//! Which descriptions of clusters can be used.

use std::path::Path;

use serde_json::{Value, json};
use toolyard_operator::Cluster;

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
    let cluster = Cluster::Kubeconfig { path, context: context.map(str::to_owned) };
    cluster.client().await.err().map(|error| error.to_string())
}

#[tokio::test]
async fn a_user_with_a_token_can_be_used() {
    assert_eq!(refusal(&json!({"token": "hunter2"}), None).await, None);
    assert_eq!(refusal(&json!({}), Some("a")).await, None);
}

#[tokio::test]
async fn a_user_whom_a_program_names_is_refused_before_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let witness = folder.path().join("ran");
    let exec = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [witness],
        "interactiveMode": "Never",
    }});
    let expected = "The user of this kubeconfig is named by a program, which is not started: use a token or a certificate";
    assert_eq!(refusal(&exec, None).await.as_deref(), Some(expected));
    assert!(!Path::new(&witness).exists());
}

#[tokio::test]
async fn what_is_not_there_cannot_be_used() {
    let expected = Some("The description of the cluster cannot be used");
    assert_eq!(refusal(&json!({}), Some("b")).await.as_deref(), expected);
    let proxied = json!({"server": "http://127.0.0.1:1", "proxy-url": "http://127.0.0.1:2"});
    assert_eq!(refusal_at(&proxied, &json!({}), None).await.as_deref(), expected);
    let cluster = Cluster::Kubeconfig { path: "/nowhere".into(), context: None };
    assert_eq!(cluster.client().await.err().map(|error| error.to_string()).as_deref(), expected);
    // This test does not run in a pod.
    assert_eq!(Cluster::Own.client().await.err().map(|error| error.to_string()).as_deref(), expected);
}
