//! Handlers of the type `openapi`.

use insta::{assert_debug_snapshot, assert_snapshot};

use super::{SECRET_VALUE, environment, problems, registry, source, toolyard, valid};
use crate::{HandlerKind, OpenApiHandler, OpenApiSpec, parse_with};

/// A registry with one handler of the type `openapi`; `fields` are those of its `openAPIConfig`, from line 9 on.
fn openapi(fields: &str) -> String {
    let fields = fields.replace('\n', "\n      ");
    registry(&format!("  - name: pets\n    type: openapi\n    openAPIConfig:\n      {fields}\n"))
}

#[track_caller]
fn of(text: &str) -> OpenApiHandler {
    let manifest = valid(&format!("{text}---\n{}", toolyard("secretsDir: /run/secrets")));
    assert!(!format!("{manifest:?}").contains(SECRET_VALUE), "{manifest:?}");
    let HandlerKind::OpenApi(openapi) = &manifest.handlers[0].kind else { panic!("another type") };
    (**openapi).clone()
}

#[test]
fn handler_with_every_field() {
    let fields = "specURL: https://a.example/v2/swagger.json
baseURL: https://a.example/v2
operationFilter: [getPetById, findPetsByStatus]
filter: {tags: [pets, toys], methods: [GET, TRACE], paths: [/pets/**]}
serverVariables: {tenant: '${TOKEN}', port: '8443'}
headers: {X-Key: '${TOKEN}'}
authType: basic
authToken: user:${TOKEN}
refresh: 1h30m
credentials:
  key: {value: '${TOKEN}'}
  mounted: {secretRef: {name: api, key: token}}
  from_file: {value: file:fixtures/secrets/token}
  clients:
    clientId: yard
    clientSecret: ${TOKEN}
    tokenURL: https://a.example/token?k=${TOKEN}
    scopes: [read:pets, write:pets]
  others: {clientId: yard, clientSecretRef: {name: api, key: other}}";
    assert_debug_snapshot!(of(&(openapi(fields) + "    retries: 1\n")), @r#"
    OpenApiHandler {
        spec: Url(
            EndpointUrl(https://a.example/…),
        ),
        base_url: Some(
            EndpointUrl(https://a.example/…),
        ),
        filter: OperationFilter {
            operations: [
                "getPetById",
                "findPetsByStatus",
            ],
            tags: [
                "pets",
                "toys",
            ],
            methods: [
                GET,
                TRACE,
            ],
            paths: [
                "/pets/**",
            ],
        },
        headers: [
            (
                "x-key",
                SecretString,
            ),
        ],
        auth: Some(
            RequestAuth {
                scheme: Basic,
                credential: Value(
                    SecretString,
                ),
            },
        ),
        credentials: [
            (
                "key",
                Secret(
                    Value(
                        SecretString,
                    ),
                ),
            ),
            (
                "mounted",
                Secret(
                    Key {
                        name: "api",
                        key: "token",
                    },
                ),
            ),
            (
                "from_file",
                Secret(
                    File(
                        "fixtures/secrets/token",
                    ),
                ),
            ),
            (
                "clients",
                OAuth(
                    OAuthClient {
                        id: "yard",
                        secret: Value(
                            SecretString,
                        ),
                        token_url: Some(
                            EndpointUrl(https://a.example/…),
                        ),
                        scopes: [
                            "read:pets",
                            "write:pets",
                        ],
                    },
                ),
            ),
            (
                "others",
                OAuth(
                    OAuthClient {
                        id: "yard",
                        secret: Key {
                            name: "api",
                            key: "other",
                        },
                        token_url: None,
                        scopes: [],
                    },
                ),
            ),
        ],
        server_variables: [
            (
                "tenant",
                SecretString,
            ),
            (
                "port",
                SecretString,
            ),
        ],
        refresh: Some(
            5400s,
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
        probe: None,
        outbound: OutboundSettings {
            proxy: None,
            authority: None,
            skips_verification: false,
        },
    }
    "#);
}

#[test]
fn location_of_the_description() {
    assert_debug_snapshot!(of(&openapi("specURL: file:fixtures/every-field.yaml\nrefresh: 0s")), @r#"
    OpenApiHandler {
        spec: File(
            "fixtures/every-field.yaml",
        ),
        base_url: None,
        filter: OperationFilter {
            operations: [],
            tags: [],
            methods: [],
            paths: [],
        },
        headers: [],
        auth: None,
        credentials: [],
        server_variables: [],
        refresh: None,
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
    }
    "#);
    #[track_caller]
    fn check(spec: &str, expect: &str) {
        let OpenApiSpec::Inline(value) = of(&openapi(spec)).spec else { panic!("{spec}") };
        assert_eq!(value.to_string(), expect, "{spec}");
    }
    check(
        "spec: {openapi: 3.1.0, paths: {/a: {get: {x: '${b}', y: [1.5, null]}}}}",
        r#"{"openapi":"3.1.0","paths":{"/a":{"get":{"x":"${b}","y":[1.5,null]}}}}"#,
    );
    check("spec: |\n  openapi: 3.1.0\n  paths: {}", r#""openapi: 3.1.0\npaths: {}\n""#);
    // The maximum depth of documents.
    let deep = format!("spec: {{a: {}{}}}", "[".repeat(50), "]".repeat(50));
    assert!(matches!(of(&openapi(&deep)).spec, OpenApiSpec::Inline(_)));
}

#[test]
fn relative_path_starts_at_the_folder_of_the_manifest() {
    let sources = [source("fixtures/tools.yaml", &openapi("specURL: file:every-field.yaml"))];
    let manifest = parse_with(&sources, &environment).unwrap();
    let HandlerKind::OpenApi(openapi) = &manifest.handlers[0].kind else { panic!() };
    assert_eq!(openapi.spec, OpenApiSpec::File("fixtures/every-field.yaml".into()));
}

#[test]
fn display_location_of_calls() {
    #[track_caller]
    fn check(fields: &str, expect: &str) {
        assert_eq!(valid(&openapi(fields)).handlers[0].endpoint(), expect, "{fields}");
    }
    check("specURL: https://a.example/api.json?k=v", "https://a.example/api.json");
    check("specURL: https://a.example/${TOKEN}", "https://a.example/[REDACTED]");
    check("specURL: file:fixtures/every-field.yaml", "file:fixtures/every-field.yaml");
    check("spec: {}", "inline");
    check("spec: {}\nbaseURL: https://b.example/v2", "https://b.example/v2");
}

#[test]
fn mistakes_in_the_description() {
    assert_snapshot!(problems(&openapi("specURL: https://a.example\nspec: {}")), @"
    tools.yaml:9:7: spec.handlers[0].openAPIConfig.specURL: `specURL` does not belong here
      hint: `spec` already contains the description
    ");
    assert_snapshot!(problems(&openapi("specURL: file:absent.yaml\nspec:")), @"
    tools.yaml:9:16: spec.handlers[0].openAPIConfig.specURL: this file cannot be read: No such file or directory (os error 2)
      expected `file:` and the path of a file, from the folder of the manifest
    ");
    assert_snapshot!(problems(&openapi("spec: []\nrefresh: 5")), @"
    tools.yaml:9:13: spec.handlers[0].openAPIConfig.spec: found a list
      expected a description as an object, or its text
    tools.yaml:10:16: spec.handlers[0].openAPIConfig.refresh: found a number
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: add a unit, as in `30s`
    ");
    assert_snapshot!(problems(&openapi("spec: ' '\nrefresh: soon")), @"
    tools.yaml:9:13: spec.handlers[0].openAPIConfig.spec: this is empty
      expected a description, OpenAPI 2 or 3
    tools.yaml:10:16: spec.handlers[0].openAPIConfig.refresh: `soon` is not a duration
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: the units are h, m, s, ms, us and ns, without spaces
    ");
}

#[test]
fn mistakes_in_operation_filters() {
    assert_snapshot!(problems(&openapi("specURL: https://a.example\nfilter: {tags: [], methods: [get, QUERY, PUT], paths: [pets], operations: [a]}\nserverVariables: {port: 8443}")), @"
    tools.yaml:10:22: spec.handlers[0].openAPIConfig.filter.tags: this list is empty
      expected at least one item
    tools.yaml:10:36: spec.handlers[0].openAPIConfig.filter.methods[0]: `get` is not a known method of OpenAPI
      expected one of GET, PUT, POST, DELETE, OPTIONS, HEAD, PATCH, TRACE
      hint: did you mean `GET`?
    tools.yaml:10:41: spec.handlers[0].openAPIConfig.filter.methods[1]: `QUERY` is not a known method of OpenAPI
      expected one of GET, PUT, POST, DELETE, OPTIONS, HEAD, PATCH, TRACE
    tools.yaml:10:62: spec.handlers[0].openAPIConfig.filter.paths[0]: `pets` is not a pattern for paths
      expected a pattern such as /pets/* or /pets/**
      hint: a path begins with `/`
    tools.yaml:10:69: spec.handlers[0].openAPIConfig.filter.operations: unknown field
      expected one of tags, methods, paths
    tools.yaml:11:31: spec.handlers[0].openAPIConfig.serverVariables.port: found a number
      expected a string
      hint: put it in quotes
    ");
}

#[test]
fn mistakes_in_credentials() {
    assert_snapshot!(problems(&openapi("specURL: https://a.example
credentials:
  nothing: {}
  twice: {value: a, secretRef: {name: api, key: token}}
  both: {clientId: a, clientSecret: b, value: c}
  without_client: {clientSecret: b, scopes: [a]}
  client: {clientId: '', tokenURL: /token, scopes: ['a b']}
  absent: {value: file:absent}
  empty: {value: '', tokenUrl: https://a.example}
  text: ${TOKEN}")), @"
    tools.yaml:11:18: spec.handlers[0].openAPIConfig.credentials.nothing.value: this field is required
    tools.yaml:12:17: spec.handlers[0].openAPIConfig.credentials.twice.value: `value` does not belong here
      hint: `secretRef` already refers to the secret
    tools.yaml:12:38: spec.handlers[0].openAPIConfig.credentials.twice.secretRef: `secretsDir` is not set
      hint: set `secretsDir` in the Toolyard document: the key `token` of the secret `api` is the file `api/token` in it
    tools.yaml:13:46: spec.handlers[0].openAPIConfig.credentials.both.value: `value` does not belong here
      hint: with `clientId` (OAuth 2), the secret is `clientSecret`
    tools.yaml:14:25: spec.handlers[0].openAPIConfig.credentials.without_client.value: this field is required
    tools.yaml:14:26: spec.handlers[0].openAPIConfig.credentials.without_client.clientSecret: `clientSecret` does not belong here
      hint: it belongs to OAuth 2 and requires `clientId`
    tools.yaml:14:43: spec.handlers[0].openAPIConfig.credentials.without_client.scopes: `scopes` does not belong here
      hint: it belongs to OAuth 2 and requires `clientId`
    tools.yaml:15:17: spec.handlers[0].openAPIConfig.credentials.client.clientSecret: this field is required
    tools.yaml:15:28: spec.handlers[0].openAPIConfig.credentials.client.clientId: this is not the name of a client
      expected one line of visible ASCII characters
      hint: is the variable empty?
    tools.yaml:15:42: spec.handlers[0].openAPIConfig.credentials.client.tokenURL: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: the scheme is missing: put `http://` or `https://` in front
    tools.yaml:15:59: spec.handlers[0].openAPIConfig.credentials.client.scopes[0]: `a b` is not a scope
      expected visible ASCII characters without blanks, such as read:pets
      hint: each scope is an item of the list
    tools.yaml:16:25: spec.handlers[0].openAPIConfig.credentials.absent.value: this file cannot be read: No such file or directory (os error 2)
      expected `file:` and the path of a file, from the folder of the manifest
    tools.yaml:17:24: spec.handlers[0].openAPIConfig.credentials.empty.value: this is not a credential
      expected one line with at least one character
      hint: is the variable empty?
    tools.yaml:17:28: spec.handlers[0].openAPIConfig.credentials.empty.tokenUrl: unknown field
      expected one of clientId, secretRef, value
    tools.yaml:18:15: spec.handlers[0].openAPIConfig.credentials.text: found a string
      expected an object
    ");
}

#[test]
fn mistakes() {
    assert_snapshot!(problems(&openapi("{}")), @"tools.yaml:9:7: spec.handlers[0].openAPIConfig.specURL: this field is required");
    assert_snapshot!(problems(&openapi("specURL: swagger.json\nbaseURL: ftp://a.example\noperationFilter: getPetById")), @"
    tools.yaml:9:16: spec.handlers[0].openAPIConfig.specURL: this is not the URL of a description
      expected a URL such as https://api.example.com/openapi.json, or `file:` and a path
      hint: the scheme is missing: put `http://` or `https://` in front
    tools.yaml:10:16: spec.handlers[0].openAPIConfig.baseURL: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: it begins with http:// or https://
    tools.yaml:11:24: spec.handlers[0].openAPIConfig.operationFilter: found a string
      expected a list
      hint: write a list of one item as `[item]`
    ");
    assert_snapshot!(problems(&openapi("specUrl: https://a.example\noperationFilter: []\nheaders: {Host: a}\nauthType: digest\nauthToken: x")), @"
    tools.yaml:9:7: spec.handlers[0].openAPIConfig.specUrl: unknown field
      expected one of spec, specURL, baseURL, operationFilter, filter, headers, authType, authToken, authSecretRef, credentials, serverVariables, refresh, probe, proxy, tlsCAPath, tlsInsecureSkipVerify
      hint: did you mean `specURL`?
    tools.yaml:10:24: spec.handlers[0].openAPIConfig.operationFilter: this list is empty
      expected at least one item
    tools.yaml:11:17: spec.handlers[0].openAPIConfig.headers.Host: `Host` is not the name of a header to set
      expected a name such as X-Api-Key
      hint: the gateway sets the headers of message framing and routing itself
    tools.yaml:12:17: spec.handlers[0].openAPIConfig.authType: `digest` is not a known kind of authentication
      expected one of none, bearer, basic
    ");
    assert_snapshot!(problems(&(openapi("specURL: https://a.example") + "    tool: {}\n    endpoint: {}\n")), @"
    tools.yaml:10:5: spec.handlers[0].tool: `tool` does not belong here
      hint: it belongs to the types `http`, `grpc`, `function` and `cortexone`
    tools.yaml:11:5: spec.handlers[0].endpoint: `endpoint` does not belong here
      hint: it belongs to the types `http` and `grpc`
    ");
    let twice =
        openapi("specURL: https://a.example\nauthType: bearer\nauthToken: a") + "    auth: {type: none}\n";
    assert_snapshot!(problems(&twice), @"
    tools.yaml:12:5: spec.handlers[0].auth: `auth` does not belong here
      hint: `openAPIConfig.authType` already sets the authentication
    ");
}
