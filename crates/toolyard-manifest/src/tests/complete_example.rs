//! The complete example of the contract, which this release answers with what it does not serve yet.

use insta::assert_snapshot;

use super::problems;

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
    tools.yaml:11:13: spec.handlers[0].type: handler type `http` is not yet supported
      expected mcp
    tools.yaml:12:7: spec.handlers[0].endpoint: `endpoint` is not yet supported
    tools.yaml:14:7: spec.handlers[0].tool: `tool` is not yet supported
    tools.yaml:24:7: spec.handlers[0].httpConfig: `httpConfig` is not yet supported
    tools.yaml:30:13: spec.handlers[1].type: handler type `grpc` is not yet supported
      expected mcp
    tools.yaml:31:7: spec.handlers[1].endpoint: `endpoint` is not yet supported
    tools.yaml:36:7: spec.handlers[1].tool: `tool` is not yet supported
    tools.yaml:50:20: spec.handlers[2].mcpConfig.transport: transport `sse` is not yet supported
      expected one of stdio, streamable-http
    tools.yaml:55:13: spec.handlers[3].type: handler type `openapi` is not yet supported
      expected mcp
    tools.yaml:56:7: spec.handlers[3].openAPIConfig: `openAPIConfig` is not yet supported
    ");
}
