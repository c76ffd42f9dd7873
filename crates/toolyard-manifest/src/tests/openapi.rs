//! Handlers of the type `openapi`.

use insta::{assert_debug_snapshot, assert_snapshot};

use super::{problems, registry, valid};

/// A registry with one handler of the type `openapi`; `fields` are those of its `openAPIConfig`, from line 9 on.
fn openapi(fields: &str) -> String {
    let fields = fields.replace('\n', "\n      ");
    registry(&format!("  - name: pets\n    type: openapi\n    openAPIConfig:\n      {fields}\n"))
}

#[test]
fn a_handler_with_everything_set() {
    let fields = "specURL: https://a.example/v2/swagger.json
baseURL: https://a.example/v2
operationFilter: [getPetById, findPetsByStatus]
headers: {X-Key: '${TOKEN}'}
authType: basic
authToken: user:${TOKEN}";
    assert_debug_snapshot!(valid(&(openapi(fields) + "    retries: 1\n")).handlers[0].kind, @r#"
    OpenApi(
        OpenApiHandler {
            spec_url: Endpoint(https://a.example/…),
            base_url: Some(
                Endpoint(https://a.example/…),
            ),
            operation_filter: Some(
                [
                    "getPetById",
                    "findPetsByStatus",
                ],
            ),
            headers: [
                (
                    "x-key",
                    Secret,
                ),
            ],
            auth: Some(
                Auth {
                    scheme: Basic,
                    credential: Value(
                        Secret,
                    ),
                },
            ),
            retry: HttpRetry {
                policy: RetryPolicy {
                    max_attempts: 2,
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
        },
    )
    "#);
}

#[test]
fn mistakes() {
    assert_snapshot!(problems(&openapi("{}")), @"tools.yaml:9:7: spec.handlers[0].openAPIConfig.specURL: this field is required");
    assert_snapshot!(problems(&openapi("specURL: swagger.json\nbaseURL: ftp://a.example\noperationFilter: getPetById")), @"
    tools.yaml:9:16: spec.handlers[0].openAPIConfig.specURL: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: it begins with http:// or https://
    tools.yaml:10:16: spec.handlers[0].openAPIConfig.baseURL: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: it begins with http:// or https://
    tools.yaml:11:24: spec.handlers[0].openAPIConfig.operationFilter: found a string
      expected a list
      hint: a list of one item is written `[item]`
    ");
    assert_snapshot!(problems(&openapi("specUrl: https://a.example\noperationFilter: []\nheaders: {Host: a}\nauthType: digest\nauthToken: x")), @"
    tools.yaml:9:7: spec.handlers[0].openAPIConfig.specUrl: unknown field
      expected one of specURL, baseURL, operationFilter, headers, authType, authToken, authSecretRef
      hint: did you mean `specURL`?
    tools.yaml:10:24: spec.handlers[0].openAPIConfig.operationFilter: this list is empty
      expected at least one item
    tools.yaml:11:17: spec.handlers[0].openAPIConfig.headers.Host: `Host` is not the name of a header to set
      expected a name such as X-Api-Key
      hint: how a request is framed, and for which host, is not for a manifest to say
    tools.yaml:12:17: spec.handlers[0].openAPIConfig.authType: `digest` is not a known kind of authentication
      expected one of none, bearer, basic
    ");
    assert_snapshot!(problems(&(openapi("specURL: https://a.example") + "    tool: {}\n    endpoint: {}\n")), @"
    tools.yaml:10:5: spec.handlers[0].tool: `tool` does not belong here
      hint: it belongs to the types `http` and `grpc`
    tools.yaml:11:5: spec.handlers[0].endpoint: `endpoint` does not belong here
      hint: it belongs to the types `http` and `grpc`
    ");
    let twice =
        openapi("specURL: https://a.example\nauthType: bearer\nauthToken: a") + "    auth: {type: none}\n";
    assert_snapshot!(problems(&twice), @"
    tools.yaml:12:5: spec.handlers[0].auth: `auth` does not belong here
      hint: `openAPIConfig.authType` says who is calling
    ");
}
