//! The examples of the contract.

use insta::{assert_debug_snapshot, assert_snapshot};

use super::{registry, valid};
use crate::{HandlerKind, Manifest};

fn complete_example() -> Manifest {
    valid(include_str!("../../fixtures/complete-example.yaml"))
}

#[test]
#[expect(clippy::too_many_lines, reason = "the snapshot has a line for each field")]
fn complete_example_is_valid() {
    let handlers = complete_example().handlers;
    let summary = handlers.iter().map(|handler| format!("{}: {}", handler.name, handler.kind.name()));
    assert_snapshot!(summary.collect::<Vec<_>>().join("\n"), @"
    calculator: http
    user-service: grpc
    code-tools: mcp
    external-api: openapi
    ");
    assert_debug_snapshot!((&handlers[1].kind, &handlers[3].kind), @r#"
    (
        Grpc(
            GrpcHandler {
                tools: Defined(
                    ToolDefinition {
                        name: "get_user",
                        description: "Retrieve user information",
                        input_schema: Object {
                            "type": String("object"),
                            "properties": Object {
                                "user_id": Object {
                                    "type": String("string"),
                                },
                            },
                            "required": Array [
                                String("user_id"),
                            ],
                        },
                        output_schema: None,
                    },
                ),
                endpoint: user-grpc.internal.svc.cluster.local:50051,
                tls: None,
                auth: None,
                metadata: [],
                keep_alive: None,
                probe: None,
                retry: GrpcRetry {
                    policy: RetryPolicy {
                        max_attempts: 1,
                        initial_backoff: 100ms,
                        backoff_multiplier: 2.0,
                        max_backoff: 30s,
                    },
                    retryable_status_codes: [
                        "UNAVAILABLE",
                        "DEADLINE_EXCEEDED",
                        "RESOURCE_EXHAUSTED",
                    ],
                },
            },
        ),
        OpenApi(
            OpenApiHandler {
                spec: Url(
                    EndpointUrl(https://api.example.com/…),
                ),
                base_url: None,
                filter: OperationFilter {
                    operations: [
                        "searchProducts",
                        "getProductDetails",
                    ],
                    tags: [],
                    methods: [],
                    paths: [],
                },
                headers: [],
                auth: None,
                credentials: [],
                server_variables: [],
                refresh: Some(
                    300s,
                ),
                retry: HttpRetry {
                    policy: RetryPolicy {
                        max_attempts: 1,
                        initial_backoff: 100ms,
                        backoff_multiplier: 2.0,
                        max_backoff: 30s,
                    },
                    retry_on: [
                        408,
                        429,
                        500,
                        502,
                        503,
                        504,
                    ],
                    retry_on_network_error: true,
                    respect_retry_after: true,
                },
                probe: None,
                outbound: OutboundSettings {
                    proxy: None,
                    authority: None,
                    skips_verification: false,
                },
            },
        ),
    )
    "#);
}

/// All HTTP handlers of the contract, verbatim.
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
fn http_handlers_of_the_contract_are_valid() {
    let manifest = valid(&registry(HTTP_HANDLERS));
    let summary = manifest.handlers.iter().map(|handler| {
        let HandlerKind::Http(http) = &handler.kind else { panic!() };
        let (tool, attempts) = (&http.tool, http.retry.policy.max_attempts);
        format!("{}: {} {:?} {:?} x{attempts}", tool.name, http.method, http.url, handler.timeout)
    });
    assert_snapshot!(summary.collect::<Vec<_>>().join("\n"), @"
    calculate: POST Fixed(EndpointUrl(https://api.example.com/…)) 30s x1
    search: POST Fixed(EndpointUrl(https://api.example.com/…)) 30s x4
    internal_action: POST Fixed(EndpointUrl(http://tool-service.tools.svc.cluster.local:8080/…)) 30s x1
    ");
}
