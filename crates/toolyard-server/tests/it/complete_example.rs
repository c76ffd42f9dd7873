//! The complete example of the specification, with servers at other addresses: the gateway serves every handler and names
//! the unreachable ones. The tests of the binary serve it with its own addresses.

use toolyard_core::registry::EntryKind;
use toolyard_core::{BackendPhase, ErrorCode};
use toolyard_manifest::ManifestSource;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TestUpstream, UpstreamEra,
};

use crate::gateway::{call, started};

/// The example as in the specification, except for the addresses of its services. The MCP server uses the newer one of
/// the two transports over HTTP, which the gateway detects.
const EXAMPLE: &str = include_str!("../../../toolyard-manifest/fixtures/complete-example.yaml");

/// The OpenAPI description of the service that describes itself. The manifest excludes one of its operations.
const PRODUCTS: &str = r#"{"openapi": "3.0.3", "paths": {
    "/products": {"get": {"operationId": "searchProducts", "responses": {}}, "post": {"operationId": "addProduct", "responses": {}}},
    "/products/{id}": {"get": {"operationId": "getProductDetails", "responses": {}}}
}}"#;

async fn gateway(api: &TestUpstream, server: &TestUpstream) -> RunningGateway {
    let text = EXAMPLE.replace("https://api.example.com", &format!("http://{}", api.address)).replace(
        "http://mcp-code.tools.svc.cluster.local:8080/sse",
        &format!("http://{}/mcp", server.address),
    );
    let process = "apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {listen: '127.0.0.1:0'}\n---\n";
    let source = ManifestSource { name: "complete.yaml".into(), text: process.to_owned() + &text };
    let manifest = toolyard_manifest::parse(&[source]).unwrap_or_else(|problems| panic!("{problems}"));
    started(&manifest).await
}

#[tokio::test]
async fn supported_handlers_are_served() {
    let api = TestUpstream::start(|request: &ReceivedRequest| {
        let is_description = request.head.start.starts_with("GET /openapi.json ");
        ScriptedReply::json(if is_description { PRODUCTS } else { r#"{"value":3}"# })
    });
    let tool = r#"{"name":"read_file","inputSchema":{"type":"object"}}"#;
    let server = TestUpstream::start(ScriptedUpstream::new(
        UpstreamEra::Legacy,
        &[tool],
        |request: &ReceivedRequest| {
            ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"read"}]}"#)
        },
    ));
    let running = gateway(&api, &server).await;

    let registry = running.gateway().registry();
    let tools: Vec<_> = registry.entries(EntryKind::Tools).iter().map(|entry| &*entry.name).collect();
    assert_eq!(tools, ["calculate", "get_user", "read_file", "searchProducts", "getProductDetails"]);
    let value = call(&running, "calculate", r#"{"expression":"1+2"}"#).await.unwrap();
    assert_eq!(
        value,
        r#"{"content":[{"type":"text","text":"{\"value\":3}"}],"structuredContent":{"value":3}}"#
    );
    let read = call(&running, "read_file", "{}").await.unwrap();
    assert_eq!(read, r#"{"content":[{"type":"text","text":"read"}]}"#);
    let product = call(&running, "getProductDetails", r#"{"id":"a/b"}"#).await.unwrap();
    assert_eq!(product, value);
}

#[tokio::test]
async fn unreachable_handlers_are_reported() {
    let silent = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::http(500, "", ""));
    let running = gateway(&silent, &silent).await;
    let registry = running.gateway().registry();
    let reason = |name: &str| match registry.phases().iter().find(|(handler, _)| **handler == *name) {
        Some((_, BackendPhase::Unavailable { reason })) => reason.to_string(),
        other => panic!("{other:?}"),
    };
    let unread =
        format!("the description cannot be read: http://{}/openapi.json: HTTP status 500", silent.address);
    assert!(reason("external-api").starts_with(&unread), "{}", reason("external-api"));

    // The gateway knows the tool that the manifest describes, but not the tools that only a server could list.
    let refused = call(&running, "get_user", r#"{"user_id":"1"}"#).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable);
    assert_eq!(refused.message(), "The tool's server cannot be reached");
    let refused = call(&running, "searchProducts", "{}").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ToolNotFound);
}
