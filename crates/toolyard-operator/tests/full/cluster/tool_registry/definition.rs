//! The definition of registries: columns, and fields that the API server refuses.

use super::*;

#[tokio::test]
async fn definition_is_structural_and_refuses_invalid_fields() {
    let cluster = RegistryCluster::new().await;
    let definition = cluster.definition_is_established().await;
    let conditions = definition.status.unwrap().conditions.unwrap();
    let conditions: Vec<_> =
        conditions.iter().map(|condition| format!("{}={}", condition.type_, condition.status)).collect();
    assert_eq!(conditions, ["NamesAccepted=True", "Established=True"]);
    let applied = cluster.apply("agent-tools", COMPLETE_EXAMPLE).await.unwrap();
    assert_eq!(applied["spec"]["handlers"][0]["tool"]["inputSchema"]["required"], json!(["expression"]));
    // Nothing is added to the resource or removed from it.
    let documents = toolyard_manifest::to_yaml(&json!({"handlers": applied["spec"]["handlers"]}));
    assert_snapshot!(documents);
    columns_are_shown(&cluster).await;
    invalid_fields_are_refused(&cluster, &applied["spec"]["handlers"]).await;
}

/// The table that `kubectl get toolregistries` prints.
async fn columns_are_shown(cluster: &RegistryCluster) {
    let path = format!("/apis/omnia.altairalabs.ai/v1alpha1/namespaces/{NAMESPACE}/toolregistries");
    let request = http::Request::get(path).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table: Value = cluster.admin.request(request.body(Vec::new()).unwrap()).await.unwrap();
    let names: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Name", "Tools", "Available", "Phase", "Age"]);
    assert_eq!(table["rows"][0]["cells"][0], "agent-tools");
    let short: Value = cluster
        .admin
        .request(http::Request::get("/apis/omnia.altairalabs.ai/v1alpha1").body(Vec::new()).unwrap())
        .await
        .unwrap();
    assert_eq!(short["resources"][0]["shortNames"], json!(["tr"]));
}

/// A JSON pointer into the handlers of the complete example, a value, and the verdicts of the definition (`schema`) or, if
/// that cannot say it, of the webhook's validation (`webhook`).
const INVALID_FIELDS: &[(&str, &str, &str)] = &[
    ("/0/name", "\"Calculator\"", "schema"),
    ("/0/name", "7", "schema"),
    ("/0/name", "\"user-service\"", "schema"),
    ("/0/type", "\"smtp\"", "schema"),
    ("/0/type", "null", "schema"),
    ("/0/timeout", "\"10 seconds\"", "schema"),
    ("/0/timeout", "10", "schema"),
    ("/0/timeout", "\"0s\"", "webhook"),
    ("/0/retries", "11", "schema"),
    ("/0/retries", "-1", "schema"),
    ("/0/retries", "\"3\"", "schema"),
    ("/0/timeuot", "\"1s\"", "webhook"),
    ("/0/endpoint", "{}", "schema"),
    ("/0/endpoint", "{\"url\": \"http://a\", \"serviceRef\": {\"name\": \"a\", \"port\": 1}}", "schema"),
    ("/0/endpoint/url", "\"ftp://a\"", "webhook"),
    ("/0/endpoint/url", "1", "schema"),
    ("/1/endpoint/serviceRef/name", "\"User_Grpc\"", "schema"),
    ("/1/endpoint/serviceRef/namespace", "\"Internal\"", "schema"),
    ("/1/endpoint/serviceRef/port", "0", "schema"),
    ("/1/endpoint/serviceRef/port", "65536", "schema"),
    ("/1/endpoint/serviceRef/port", "\"http\"", "schema"),
    ("/0/tool/name", "\"Calculate!\"", "schema"),
    ("/0/tool/description", "true", "schema"),
    ("/0/tool/inputSchema", "[]", "schema"),
    ("/0/tool/inputSchema", "{\"type\": \"string\"}", "schema"),
    ("/0/tool/outputSchema", "\"object\"", "schema"),
    (
        "/2/tool",
        "{\"name\": \"a\", \"description\": \"b\", \"inputSchema\": {\"type\": \"object\"}}",
        "schema",
    ),
    ("/0/httpConfig/method", "\"FETCH\"", "schema"),
    ("/0/httpConfig/headers", "{\"a\": 1}", "schema"),
    ("/0/httpConfig/headers", "{\"a b\": \"c\"}", "webhook"),
    ("/0/httpConfig/contentType", "1", "schema"),
    ("/0/grpcConfig", "{}", "schema"),
    ("/1/grpcConfig", "{\"tls\": \"yes\"}", "schema"),
    ("/1/grpcConfig", "{\"tls\": true, \"tlsCertPath\": \"/a\"}", "schema"),
    ("/1/grpcConfig", "{\"tls\": false, \"tlsCAPath\": \"/a\"}", "schema"),
    ("/1/grpcConfig", "{\"tlsInsecureSkipVerify\": 1}", "schema"),
    ("/2/mcpConfig/transport", "\"websocket\"", "schema"),
    ("/2/mcpConfig/endpoint", "\"mcp-code\"", "schema"),
    ("/2/mcpConfig", "{\"transport\": \"sse\"}", "schema"),
    ("/2/mcpConfig", "{\"transport\": \"stdio\"}", "schema"),
    ("/2/mcpConfig", "{\"transport\": \"stdio\", \"command\": \"a\", \"args\": \"b\"}", "schema"),
    ("/2/mcpConfig", "{\"transport\": \"stdio\", \"command\": \"a\", \"endpoint\": \"http://a\"}", "schema"),
    ("/2/mcpConfig", "{\"transport\": \"stdio\", \"command\": \"a\", \"env\": {\"A\": 1}}", "schema"),
    ("/2/mcpConfig", "{\"transport\": \"stdio\", \"command\": \"a\", \"workDir\": 1}", "schema"),
    ("/3/openAPIConfig", "{}", "schema"),
    ("/3/openAPIConfig/specURL", "\"openapi.json\"", "schema"),
    ("/3/openAPIConfig/baseURL", "\"api\"", "schema"),
    ("/3/openAPIConfig/operationFilter", "\"getPetById\"", "schema"),
    ("/3/openAPIConfig/headers", "[]", "schema"),
    ("/3/openAPIConfig/authType", "\"digest\"", "schema"),
    ("/3/openAPIConfig/authType", "\"bearer\"", "schema"),
    ("/3/selector", "{\"matchLabels\": {\"a\": \"b\"}}", "schema"),
    ("/4", "{\"name\": \"a\", \"selector\": {}}", "schema"),
    ("/4", "{\"name\": \"a\", \"selector\": {\"matchLabels\": {}}}", "schema"),
    ("/4", "{\"name\": \"a\", \"selector\": {\"matchLabels\": {\"a\": true}}}", "schema"),
    ("/4", "{\"name\": \"a\"}", "schema"),
];

async fn invalid_fields_are_refused(cluster: &RegistryCluster, handlers: &Value) {
    let mut wrong = Vec::new();
    for (pointer, value, expected) in INVALID_FIELDS {
        let mut edited = handlers.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let value: Value = serde_json::from_str(value).unwrap();
        match edited.pointer_mut(parent).unwrap() {
            Value::Array(items) => items.push(value),
            parent => parent[name] = value,
        }
        let document = http_registry("edited", &edited);
        let refusal = cluster.apply("edited", &document).await.err();
        let found = problems(&serde_json::from_str(&document).unwrap());
        let actual = match refusal {
            Some(message) if message.contains("spec.handlers") => "schema",
            Some(_) => "schema without a field",
            None if found.is_empty() => "accepted",
            None => "webhook",
        };
        if actual != *expected || found.is_empty() {
            wrong.push(format!(
                "{pointer} {}: {actual}, {} problems",
                edited.pointer(pointer).unwrap_or(&Value::Null),
                found.len()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
