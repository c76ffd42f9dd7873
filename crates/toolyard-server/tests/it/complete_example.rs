//! The complete example of the contract: what can be served is, and the rest says that it is not yet.

use toolyard_core::registry::Kind;
use toolyard_core::{Call, Code, Json, Outcome, Phase, ToolError};
use toolyard_manifest::Source;
use toolyard_server::{Options, Running};

use crate::upstream::{Era, Received, Reply, Server, Upstream};

/// As it is written, but for the addresses of its services. The MCP server speaks the newer one of the two transports
/// over HTTP: that is found.
const EXAMPLE: &str = include_str!("../../../toolyard-manifest/fixtures/complete-example.yaml");

/// What describes the service that describes itself. One of its operations is not wanted.
const PRODUCTS: &str = r#"{"openapi": "3.0.3", "paths": {
    "/products": {"get": {"operationId": "searchProducts", "responses": {}}, "post": {"operationId": "addProduct", "responses": {}}},
    "/products/{id}": {"get": {"operationId": "getProductDetails", "responses": {}}}
}}"#;

async fn gateway(api: &Upstream, server: &Upstream) -> Running {
    let text = EXAMPLE.replace("https://api.example.com", &format!("http://{}", api.address)).replace(
        "http://mcp-code.tools.svc.cluster.local:8080/sse",
        &format!("http://{}/mcp", server.address),
    );
    let process = "apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {listen: '127.0.0.1:0'}\n---\n";
    let source = Source { name: "complete.yaml".into(), text: process.to_owned() + &text };
    let manifest = toolyard_manifest::parse(&[source]).unwrap_or_else(|problems| panic!("{problems}"));
    let running = toolyard_server::start(&manifest, &Options::default()).await.unwrap();
    running.gateway().settled().await;
    running
}

async fn call(running: &Running, tool: &str, arguments: &str) -> Result<String, ToolError> {
    let call = Call::tool(tool, Json::parse(arguments.to_owned()).unwrap());
    match running.gateway().invoke(call).await? {
        Outcome::Done(output) => Ok(output.body.to_json().as_text().to_owned()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn it_serves_what_can_be_served() {
    let api = Upstream::start(|request: &Received| {
        let is_description = request.head.start.starts_with("GET /openapi.json ");
        Reply::json(if is_description { PRODUCTS } else { r#"{"value":3}"# })
    });
    let tool = r#"{"name":"read_file","inputSchema":{"type":"object"}}"#;
    let server = Upstream::start(Server::new(Era::Legacy, &[tool], |request: &Received| {
        Reply::result(request, r#"{"content":[{"type":"text","text":"read"}]}"#)
    }));
    let running = gateway(&api, &server).await;

    let registry = running.gateway().registry();
    let listed: Vec<_> = registry.entries(Kind::Tools).iter().map(|entry| &*entry.name).collect();
    assert_eq!(listed, ["calculate", "read_file", "searchProducts", "getProductDetails"]);
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
async fn it_says_what_is_not_served() {
    let silent = Upstream::start(|_: &Received| Reply::http(500, "", ""));
    let running = gateway(&silent, &silent).await;
    let registry = running.gateway().registry();
    let reason = |name: &str| match registry.phases().iter().find(|(handler, _)| **handler == *name) {
        Some((_, Phase::Unavailable { reason })) => reason.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason("user-service"), "handlers of the type `grpc` are not served yet");
    let unread =
        format!("the description cannot be read: http://{}/openapi.json: HTTP status 500", silent.address);
    assert!(reason("external-api").starts_with(&unread), "{}", reason("external-api"));

    // The tool that the manifest describes is known, the ones that only a server could list are not.
    let refused = call(&running, "get_user", r#"{"user_id":"1"}"#).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::Unavailable, &*reason("user-service")));
    let refused = call(&running, "searchProducts", "{}").await.unwrap_err();
    assert_eq!(refused.code(), Code::ToolNotFound);
}
