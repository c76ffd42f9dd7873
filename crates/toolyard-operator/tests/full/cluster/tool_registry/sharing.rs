//! Registries that share a gateway.

use super::*;

#[tokio::test]
async fn gateways_follow_a_change_of_sharing() {
    let cluster = RegistryCluster::new().await;
    let sse = |name: &str| json!([{"name": name, "type": "mcp", "mcpConfig": {"transport": "sse", "endpoint": "http://a/sse"}}]);
    for name in ["one", "two"] {
        cluster.apply(name, &http_registry(name, &sse(name))).await.unwrap();
    }
    let all = async || {
        let selector = "app.kubernetes.io/component=gateway,app.kubernetes.io/managed-by=toolyard-operator";
        let params = ListParams::default().labels(selector);
        let (client, mut found) = (&cluster.admin, Vec::new());
        let names = |names: Vec<String>, kind: &str| {
            names.into_iter().map(|name| format!("{kind} {name}")).collect::<Vec<_>>()
        };
        found.extend(names(listed::<ConfigMap>(client, &params).await, "ConfigMap"));
        found.extend(names(listed::<Deployment>(client, &params).await, "Deployment"));
        found.extend(names(listed::<NetworkPolicy>(client, &params).await, "NetworkPolicy"));
        found.extend(names(listed::<Service>(client, &params).await, "Service"));
        found.join("\n")
    };
    let of_gateways = |names: &[&str]| {
        let of_kind =
            |kind: &str| names.iter().map(|name| format!("{kind} {name}")).collect::<Vec<_>>().join("\n");
        ["ConfigMap", "Deployment", "NetworkPolicy", "Service"].map(of_kind).join("\n")
    };
    for (shared_gateway, names) in [
        (false, &["one-gateway", "two-gateway"][..]),
        (true, &["toolyard-shared-gateway"]),
        (false, &["one-gateway", "two-gateway"]),
    ] {
        let controller =
            RunningController::start(&cluster.admin, OperatorConfig { shared_gateway, ..config() });
        controller.report(&[("one", "get", "Ready"), ("two", "put", "Ready")]);
        let deployments = Api::<Deployment>::namespaced(cluster.admin.clone(), NAMESPACE);
        for name in names {
            until(name, async || deployments.get_opt(name).await.unwrap()).await;
            cluster.start_pod(name).await;
        }
        let expected = of_gateways(names);
        until(&expected, async || (all().await == expected).then_some(())).await;
    }
}

/// The names of the objects of a kind.
async fn listed<K>(client: &Client, params: &ListParams) -> Vec<String>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
{
    let found = Api::<K>::namespaced(client.clone(), NAMESPACE).list(params).await.unwrap();
    found.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test]
async fn registries_of_a_namespace_share_a_gateway() {
    let cluster = RegistryCluster::new().await;
    let controller =
        RunningController::start(&cluster.admin, OperatorConfig { shared_gateway: true, ..config() });
    let sse = |name: &str| json!([{"name": name, "type": "mcp", "mcpConfig": {"transport": "sse", "endpoint": "http://a/sse"}}]);
    cluster.apply("one", &http_registry("one", &sse("a"))).await.unwrap();
    cluster.wait_for_phase("one", "Pending").await;
    cluster.apply("two", &http_registry("two", &sse("b"))).await.unwrap();
    cluster.wait_for_phase("two", "Pending").await;
    cluster.apply("three", &http_registry("three", &sse("a"))).await.unwrap();
    cluster.wait_for_phase("three", "Failed").await;
    controller.report(&[("a", "get", "Ready"), ("b", "put", "Unavailable")]);
    cluster.start_pod("toolyard-shared-gateway").await;
    cluster.wait_for_phase("one", "Ready").await;
    cluster.wait_for_phase("two", "Failed").await;
    // The name becomes free.
    cluster.registries.delete("one", &DeleteParams::default()).await.unwrap();
    cluster.wait_for_phase("three", "Ready").await;
    let manifests = cluster.manifests("toolyard-shared-gateway").await;
    assert!(
        !manifests.contains("name: one")
            && manifests.contains("name: two")
            && manifests.contains("name: three"),
        "{manifests}"
    );
}
