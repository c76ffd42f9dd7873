//! Handlers of the types `function` and `cortexone`.

use insta::{assert_debug_snapshot, assert_snapshot};

use super::{SECRET_VALUE, problems, registry, toolyard, valid};
use crate::{CortexOneHandler, FunctionHandler, HandlerConfig, HandlerKind};

const TOOL: &str = "    tool: {name: greet, description: Greets, inputSchema: {type: object}}\n";

/// A registry with one handler of the type `function`; `config` is on line 8.
fn function(config: &str) -> String {
    registry(&format!("  - name: echo\n    type: function\n    functionConfig: {config}\n"))
}

/// A registry with one handler of the type `cortexone`; `config` is on line 8.
fn cortexone(config: &str) -> String {
    registry(&format!("  - name: echo\n    type: cortexone\n    cortexoneConfig: {config}\n"))
}

#[track_caller]
fn handler(text: &str) -> HandlerConfig {
    let manifest = valid(&format!("{text}---\n{}", toolyard("secretsDir: /run/secrets")));
    assert!(!format!("{manifest:?}").contains(SECRET_VALUE), "{manifest:?}");
    manifest.handlers[0].clone()
}

#[track_caller]
fn hosted(text: &str) -> FunctionHandler {
    let HandlerKind::Function(function) = handler(text).kind else { panic!("another type") };
    *function
}

#[track_caller]
fn on_platform(text: &str) -> CortexOneHandler {
    let HandlerKind::CortexOne(function) = handler(text).kind else { panic!("another type") };
    *function
}

#[test]
fn function_is_published_or_in_a_folder() {
    assert_debug_snapshot!(hosted(&function("{id: echo-tool}")), @r#"
    FunctionHandler {
        source: Published {
            id: "echo-tool",
            version: "latest",
        },
        tool: None,
        retry: RetryPolicy {
            max_attempts: 1,
            initial_backoff: 100ms,
            backoff_multiplier: 2.0,
            max_backoff: 30s,
        },
    }
    "#);
    let folder = hosted(&(function("{path: functions/echo}") + TOOL + "    retries: 2\n"));
    assert_debug_snapshot!((&folder.source, folder.retry.max_attempts, &folder.tool.unwrap().name), @r#"
    (
        Folder(
            "functions/echo",
        ),
        3,
        "greet",
    )
    "#);
}

#[test]
fn function_of_the_platform() {
    let function = on_platform(&cortexone("{id: echo, version: v1.2.0, apiKey: '${TOKEN}'}"));
    assert_debug_snapshot!(function, @r#"
    CortexOneHandler {
        id: "echo",
        version: "v1.2.0",
        base_url: EndpointUrl(https://cortexconnect.rival.io/…),
        api_key: Value(
            SecretString,
        ),
        tool: None,
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
    }
    "#);
    for config in [
        "{id: echo, version: latest, baseURL: 'http://a:1/b/', apiKey: 'file:fixtures/secrets/token'}",
        "{id: echo, version: latest, baseURL: 'http://a:1/b', apiKeySecretRef: {name: api, key: token}}",
    ] {
        let function = on_platform(&(cortexone(config) + TOOL));
        assert_eq!(function.url(), "http://a:1/b/api/v1/functions/echo/latest");
        assert!(function.tool.is_some());
    }
}

#[test]
fn display_locations_of_functions() {
    let endpoint = |text: &str| valid(text).handlers[0].endpoint();
    assert_eq!(endpoint(&function("{id: echo, version: '1.2'}")), "function://echo/1.2");
    assert_eq!(endpoint(&function("{path: functions/echo}")), "file:functions/echo");
    let config = "{id: '${TOKEN}', version: draft, apiKey: a}";
    assert_eq!(
        endpoint(&cortexone(config)),
        "https://cortexconnect.rival.io/api/v1/functions/[REDACTED]/draft"
    );
}

#[test]
fn mistakes() {
    assert_snapshot!(problems(&function("{}")), @"tools.yaml:8:21: spec.handlers[0].functionConfig.id: this field is required");
    assert_snapshot!(problems(&function("{id: a/b, version: 1.2}")), @"
    tools.yaml:8:26: spec.handlers[0].functionConfig.id: `a/b` is not the id of a function
      expected at most 128 letters, digits, `-`, `_` and `.`, with a letter or a digit first
    tools.yaml:8:40: spec.handlers[0].functionConfig.version: found a number
      expected a string
      hint: put it in quotes
    ");
    assert_snapshot!(problems(&function("{path: '', id: a, version: newest}")), @"
    tools.yaml:8:28: spec.handlers[0].functionConfig.path: `` is not a folder
      expected the path of a folder
    tools.yaml:8:32: spec.handlers[0].functionConfig.id: `id` does not belong here
      hint: `path` already selects the code
    tools.yaml:8:39: spec.handlers[0].functionConfig.version: `version` does not belong here
      hint: `path` already selects the code
    ");
    assert_snapshot!(problems(&(function("{id: a, verison: '1'}") + "    tool: {}\n    auth: {type: none}\n    endpoint: {}\n    cortexoneConfig: {}\n")), @"
    tools.yaml:8:29: spec.handlers[0].functionConfig.verison: unknown field
      expected one of path, id, version
      hint: did you mean `version`?
    tools.yaml:9:11: spec.handlers[0].tool.name: this field is required
    tools.yaml:9:11: spec.handlers[0].tool.description: this field is required
    tools.yaml:9:11: spec.handlers[0].tool.inputSchema: this field is required
    tools.yaml:10:5: spec.handlers[0].auth: `auth` does not belong here
      hint: hosted functions need no authentication
    tools.yaml:11:5: spec.handlers[0].endpoint: `endpoint` does not belong here
      hint: it belongs to the types `http` and `grpc`
    tools.yaml:12:5: spec.handlers[0].cortexoneConfig: `cortexoneConfig` does not belong here
      hint: it belongs to the type `cortexone`
    ");
    assert_snapshot!(problems(&(function("{id: a}") + "    retryPolicy: {maxAttempts: 2, retryOn: [500]}\n")), @"
    tools.yaml:9:35: spec.handlers[0].retryPolicy.retryOn: `retryOn` does not belong here
      hint: such calls are tried again where the server cannot be reached or the connection breaks, and nowhere else
    ");
    assert_snapshot!(problems(&registry("  - {name: a, type: function}\n  - {name: b, type: cortexone}\n")), @"
    tools.yaml:6:5: spec.handlers[0].functionConfig: this field is required
    tools.yaml:7:5: spec.handlers[1].cortexoneConfig: this field is required
    ");
    assert_snapshot!(problems(&cortexone("{}")), @"
    tools.yaml:8:22: spec.handlers[0].cortexoneConfig.id: this field is required
    tools.yaml:8:22: spec.handlers[0].cortexoneConfig.version: this field is required
    tools.yaml:8:22: spec.handlers[0].cortexoneConfig.apiKey: this field is required
    ");
    assert_snapshot!(problems(&cortexone("{id: a, version: newest, baseURL: 'https://a?b=${TOKEN}', apiKey: 'Bearer a'}")), @"
    tools.yaml:8:39: spec.handlers[0].cortexoneConfig.version: `newest` is not a version of a function
      expected a version such as 1.2.0, v1.2.0 or 1.2, `latest` or `draft`
    tools.yaml:8:56: spec.handlers[0].cortexoneConfig.baseURL: this is not the URL of a platform
      expected a URL such as https://cortexconnect.rival.io
      hint: remove the query
    tools.yaml:8:88: spec.handlers[0].cortexoneConfig.apiKey: this is not a token
      expected visible ASCII characters without blanks
      hint: is the variable empty?
    ");
    assert_snapshot!(problems(&(cortexone("{id: a, version: '1', apiKey: a, apiKeySecretRef: {name: a, key: b}}") + "    auth: {type: none}\n")), @"
    tools.yaml:8:44: spec.handlers[0].cortexoneConfig.apiKey: `apiKey` does not belong here
      hint: `apiKeySecretRef` already refers to the secret
    tools.yaml:8:72: spec.handlers[0].cortexoneConfig.apiKeySecretRef: `secretsDir` is not set
      hint: set `secretsDir` in the Toolyard document: the key `token` of the secret `api` is the file `api/token` in it
    tools.yaml:9:5: spec.handlers[0].auth: `auth` does not belong here
      hint: `cortexoneConfig.apiKey` already authenticates calls
    ");
}
