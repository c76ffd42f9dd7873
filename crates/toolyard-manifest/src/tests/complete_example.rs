//! The examples of the contract: what this release serves of them, and how it answers the rest.

use insta::assert_snapshot;

use super::{problems, registry, valid};
use crate::HandlerKind;

/// One day it will be valid.
const COMPLETE_EXAMPLE: &str = "
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata:
  name: agent-tools
  namespace: agents
spec:
  handlers:
    # Explicit HTTP tool with schema
    - name: calculator
      type: http
      endpoint:
        url: https://api.example.com/calculate
      tool:
        name: calculate
        description: \"Perform mathematical calculations\"
        inputSchema:
          type: object
          properties:
            expression:
              type: string
              description: \"Mathematical expression to evaluate\"
          required: [expression]
      httpConfig:
        method: POST
      timeout: \"10s\"

    # gRPC tool service
    - name: user-service
      type: grpc
      endpoint:
        serviceRef:
          name: user-grpc
          namespace: internal
          port: 50051
      tool:
        name: get_user
        description: \"Retrieve user information\"
        inputSchema:
          type: object
          properties:
            user_id:
              type: string
          required: [user_id]

    # Self-describing MCP server
    - name: code-tools
      type: mcp
      mcpConfig:
        transport: sse
        endpoint: http://mcp-code.tools.svc.cluster.local:8080/sse

    # Self-describing OpenAPI service
    - name: external-api
      type: openapi
      openAPIConfig:
        specURL: https://api.example.com/openapi.json
        operationFilter:
          - searchProducts
          - getProductDetails
";

#[test]
fn the_complete_example_is_answered_at_once() {
    assert_snapshot!(problems(COMPLETE_EXAMPLE), @"
    tools.yaml:30:13: spec.handlers[1].type: handler type `grpc` is not yet supported
      expected one of mcp, http
    tools.yaml:50:20: spec.handlers[2].mcpConfig.transport: transport `sse` is not yet supported
      expected one of stdio, streamable-http
    tools.yaml:55:13: spec.handlers[3].type: handler type `openapi` is not yet supported
      expected one of mcp, http
    tools.yaml:56:7: spec.handlers[3].openAPIConfig: `openAPIConfig` is not yet supported
    ");
}

/// Every HTTP handler of the contract, as it is written there.
const HTTP_HANDLERS: &str = "
    - name: calculator
      type: http
      endpoint:
        url: https://api.example.com/calculate
      tool:
        name: calculate
        description: \"Perform mathematical calculations\"
        inputSchema:
          type: object
          properties:
            expression:
              type: string
          required: [expression]
    - name: search-api
      type: http
      endpoint:
        url: https://api.example.com/search
      tool:
        name: search
        description: \"Search the knowledge base\"
        inputSchema:
          type: object
          properties:
            query:
              type: string
              description: \"Search query\"
            limit:
              type: integer
              default: 10
          required: [query]
      httpConfig:
        method: POST
        headers:
          Content-Type: application/json
        contentType: application/json
      timeout: \"30s\"
      retries: 3
    - name: internal-tool
      type: http
      endpoint:
        serviceRef:
          name: tool-service
          namespace: tools  # Optional, defaults to ToolRegistry namespace
          port: 8080
      tool:
        name: internal_action
        description: \"Perform internal action\"
        inputSchema:
          type: object
";

#[test]
fn its_http_handlers_are_read() {
    let manifest = valid(&registry(HTTP_HANDLERS));
    let shown = manifest.handlers.iter().map(|handler| {
        let HandlerKind::Http(http) = &handler.kind else { panic!() };
        let (tool, attempts) = (&http.tool, http.retry.max_attempts);
        format!("{}: {} {:?} {:?} x{attempts}", tool.name, http.method, http.url, handler.timeout)
    });
    assert_snapshot!(shown.collect::<Vec<_>>().join("\n"), @"
    calculate: POST Fixed(Endpoint(https://api.example.com/…)) 30s x1
    search: POST Fixed(Endpoint(https://api.example.com/…)) 30s x4
    internal_action: POST Fixed(Endpoint(http://tool-service.tools.svc.cluster.local:8080/…)) 30s x1
    ");
}
