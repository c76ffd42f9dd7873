//! Handlers of the type `http`.

use std::time::Duration;

use insta::{assert_debug_snapshot, assert_snapshot};

use super::{SECRET_VALUE, problems, registry, toolyard, valid};
use crate::{AuthScheme, CredentialSource, HandlerKind, HttpHandler, HttpUrl};

/// A registry with one handler of the type `http`, with an endpoint and a tool; `fields` are additional fields of the
/// handler, from line 10 on.
fn http(fields: &str) -> String {
    let fields = fields.replace('\n', "\n    ");
    registry(&format!(
        "  - name: calculator\n    type: http\n    endpoint: {{url: 'https://a.example/b'}}\n    \
         tool: {{name: add, description: Adds, inputSchema: {{type: object}}}}\n    {fields}\n"
    ))
}

/// Like [`http`]; `fields` are those of its `httpConfig`, from line 11 on.
pub(super) fn config(fields: &str) -> String {
    http(&format!("httpConfig:\n  {}", fields.replace('\n', "\n  ")))
}

#[track_caller]
fn read(text: &str) -> HttpHandler {
    let manifest = valid(text);
    assert!(!format!("{manifest:?}").contains(SECRET_VALUE), "{manifest:?}");
    let HandlerKind::Http(http) = &manifest.handlers[0].kind else { panic!("another type") };
    (**http).clone()
}

pub(super) const ALL_FIELDS: &str = "method: PUT
headers: {X-Key: 'k ${TOKEN}'}
contentType: application/vnd.api+json
authType: bearer
authToken: ${TOKEN}
queryParams: [page]
headerParams: {tenant: X-Tenant}
staticQuery: {key: '${TOKEN}'}
staticBody: {source: '${TOKEN}', depth: 1.5, tags: [a, null, true, {b: 2}]}
bodyMapping: '{data: @}'
responseMapping: items[].name
redact: [password]
urlTemplate: https://a.example/users/{id}
retryPolicy: {maxAttempts: 3, initialBackoff: 1s, backoffMultiplier: '1.5', maxBackoff: 1m, retryOn: [], retryOnNetworkError: false, respectRetryAfter: false}";

#[test]
#[expect(clippy::too_many_lines, reason = "the snapshot has a line for each field")]
fn handler_with_every_field() {
    assert_debug_snapshot!(read(&config(ALL_FIELDS)), @r#"
    HttpHandler {
        tool: ToolDefinition {
            name: "add",
            description: "Adds",
            input_schema: Object {
                "type": String("object"),
            },
            output_schema: None,
        },
        url: Template(
            UrlTemplate(EndpointUrl(https://a.example/…)),
        ),
        method: PUT,
        headers: [
            (
                "x-key",
                SecretString,
            ),
        ],
        content_type: "application/vnd.api+json",
        auth: Some(
            RequestAuth {
                scheme: Bearer,
                credential: Value(
                    SecretString,
                ),
            },
        ),
        query_params: Some(
            [
                "page",
            ],
        ),
        header_params: [
            (
                "tenant",
                "x-tenant",
            ),
        ],
        static_query: [
            (
                "key",
                SecretString,
            ),
        ],
        static_body: Some(
            StaticBody[
                "source",
                "depth",
                "tags",
            ],
        ),
        body_mapping: Some(
            JmesPathExpression({data: @}),
        ),
        response_mapping: Some(
            JmesPathExpression(items[].name),
        ),
        redact: [
            "password",
        ],
        retry: HttpRetry {
            policy: RetryPolicy {
                max_attempts: 3,
                initial_backoff: 1s,
                backoff_multiplier: 1.5,
                max_backoff: 60s,
            },
            retry_on: [],
            retry_on_network_error: false,
            respect_retry_after: false,
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
fn schemas_are_literal() {
    let text = http("").replace(
        "{type: object}",
        "{type: object, properties: {a: {type: number, maximum: 1e3, multipleOf: .5, pattern: '^${TOKEN}'}}}, outputSchema: {type: object}",
    );
    let tool = read(&text).tool;
    assert_snapshot!(tool.input_schema, @r#"{"type":"object","properties":{"a":{"type":"number","maximum":1000.0,"multipleOf":0.5,"pattern":"^${TOKEN}"}}}"#);
    assert_eq!(tool.output_schema.unwrap(), serde_json::json!({ "type": "object" }));
}

#[test]
fn endpoint_is_read_from_several_fields() {
    #[track_caller]
    fn check(text: &str, expect: &str) {
        let url = match read(text).url {
            HttpUrl::Fixed(endpoint) => endpoint.uri().to_string(),
            HttpUrl::Template(template) => template.as_str().to_owned(),
        };
        assert_eq!(url, expect);
    }
    const HERE: &str = "endpoint: {url: 'https://a.example/b'}";
    check(&config("endpoint: https://c.example/"), "https://a.example/b");
    check(&config("endpoint: https://c.example/").replace(HERE, ""), "https://c.example/");
    check(&config("urlTemplate: '/users/{id}'"), "https://a.example/b/users/{id}");
    check(&config("urlTemplate: 'http://{id}/'").replace(HERE, ""), "http://{id}/");
    let service = "endpoint: {serviceRef: {name: s, port: 80}}";
    check(&http("").replace(HERE, service), "http://s.default.svc.cluster.local:80/");
    let agents = http("").replace(HERE, service).replace("agent-tools", "a, namespace: agents");
    check(&agents, "http://s.agents.svc.cluster.local:80/");
}

#[test]
fn endpoint_is_required() {
    let without = |text: &str| text.replace("endpoint: {url: 'https://a.example/b'}", "");
    assert_snapshot!(problems(&without(&http(""))), @"
    tools.yaml:6:5: spec.handlers[0]: this handler has no endpoint
      expected `endpoint: {url: …}`
    ");
    assert_snapshot!(problems(&http("").replace("https://a.example/b", "a.example")), @"
    tools.yaml:8:21: spec.handlers[0].endpoint.url: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: the scheme is missing: put `http://` or `https://` in front
    ");
    assert_snapshot!(problems(&http("").replace("url: 'https://a.example/b'", "serviceRef: {name: S, port: 0}, url: x")), @"
    tools.yaml:8:35: spec.handlers[0].endpoint.serviceRef.name: `S` is not the name of a service
      expected at most 63 lower-case letters, digits and `-`, such as code-tools
    tools.yaml:8:44: spec.handlers[0].endpoint.serviceRef.port: this number is out of range
      expected a whole number from 1 to 65535
    tools.yaml:8:48: spec.handlers[0].endpoint.url: `url` does not belong here
      hint: `serviceRef` already sets the endpoint
    ");
    assert_snapshot!(problems(&config("urlTemplate: 'https://a/{b'")), @"
    tools.yaml:11:20: spec.handlers[0].httpConfig.urlTemplate: this is not a URL template
      expected a URL such as https://api.example.com/users/{id}
      hint: put the name of an argument in braces: `{id}`
    ");
    assert_snapshot!(problems(&config("urlTemplate: /{c}").replace("/b'", "/b?d'")), @"
    tools.yaml:11:20: spec.handlers[0].httpConfig.urlTemplate: the endpoint has a query, so that a template cannot extend it
      expected a template with the whole URL, or the query in `staticQuery`
    ");
    assert_snapshot!(problems(&config("urlTemplate: 'https://{a}.example/'\nauthType: bearer\nauthToken: ${TOKEN}")), @"
    tools.yaml:11:20: spec.handlers[0].httpConfig.urlTemplate: arguments must not select the host that gets the credentials
      expected a host that is written out, or no authentication
    ");
}

#[test]
fn tools() {
    let tool = "{name: add, description: Adds, inputSchema: {type: object}}";
    assert_snapshot!(problems(&http("").replace(tool, "{name: Add-It, inputSchema: {properties: {}}}")), @"
    tools.yaml:9:11: spec.handlers[0].tool.description: this field is required
    tools.yaml:9:18: spec.handlers[0].tool.name: `Add-It` is not the name of a tool
      expected at most 64 lower-case letters, digits and `_`, with a letter first, such as get_user
    tools.yaml:9:39: spec.handlers[0].tool.inputSchema: this is not the schema of an object
      expected `type: object` in it
      hint: a tool's arguments are an object, with a property for each of them
    ");
    assert_snapshot!(problems(&http("").replace("{type: object}", "{type: object, maximum: .inf}")), @"
    tools.yaml:9:79: spec.handlers[0].tool.inputSchema.maximum: JSON has no such number
      expected a finite decimal number
    ");
    assert_snapshot!(problems(&http("").replace(&format!("tool: {tool}"), "")), @"tools.yaml:6:5: spec.handlers[0].tool: this field is required");
}

#[test]
fn configurations() {
    assert_snapshot!(problems(&config("method: post\nheaders: {Host: a, 'X Y': b, X-Z: \"a\\nb\"}\ncontentType: \"\\n\"")), @r#"
    tools.yaml:11:15: spec.handlers[0].httpConfig.method: `post` is not a known method
      expected one of GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS
      hint: did you mean `POST`?
    tools.yaml:12:17: spec.handlers[0].httpConfig.headers.Host: `Host` is not the name of a header to set
      expected a name such as X-Api-Key
      hint: the gateway sets the headers of message framing and routing itself
    tools.yaml:12:26: spec.handlers[0].httpConfig.headers["X Y"]: `X Y` is not the name of a header to set
      expected a name such as X-Api-Key
    tools.yaml:12:41: spec.handlers[0].httpConfig.headers.X-Z: this is not the value of a header
      expected one line of visible ASCII characters
    tools.yaml:13:20: spec.handlers[0].httpConfig.contentType: `\n` is not the value of a header
      expected one line of visible ASCII characters
    "#);
    assert_snapshot!(problems(&config("method: GET\nstaticBody: {}\nbodyMapping: '@'")), @"
    tools.yaml:12:7: spec.handlers[0].httpConfig.staticBody: `staticBody` does not belong here
      hint: only POST, PUT and PATCH have a body
    tools.yaml:13:7: spec.handlers[0].httpConfig.bodyMapping: `bodyMapping` does not belong here
      hint: only POST, PUT and PATCH have a body
    ");
    assert_snapshot!(problems(&config("responseMapping: 'items[].'\nbodyMapping: nope(@) | [")), @"
    tools.yaml:11:24: spec.handlers[0].httpConfig.responseMapping: this is not JMESPath: Parse error: Expected identifier, '*', '{', '[', '&', or '[?' -- found Eof
      expected an expression such as `items[].name`
      hint: the error is at character 9 of the expression
    tools.yaml:12:20: spec.handlers[0].httpConfig.bodyMapping: this is not JMESPath: Parse error: Unexpected nud token -- found Eof
      expected an expression such as `items[].name`
      hint: the error is at character 12 of the expression
    ");
    assert_snapshot!(problems(&http("mcpConfig: {}\nserviceRef: {}\ngrpcConfig: {}")), @"
    tools.yaml:10:5: spec.handlers[0].mcpConfig: `mcpConfig` does not belong here
      hint: it belongs to the type `mcp`
    tools.yaml:11:5: spec.handlers[0].serviceRef: `serviceRef` is not yet supported
    tools.yaml:12:5: spec.handlers[0].grpcConfig: `grpcConfig` does not belong here
      hint: it belongs to the type `grpc`
    ");
}

/// The parser and the interpreter of expressions are recursive, and so is the destructor of their syntax trees.
#[test]
fn longest_expressions_do_not_overflow_the_stack() {
    let nested = [("(", ")"), ("[", "]"), ("{a:", "}"), ("a(", ")"), ("&", ""), ("!", ""), ("[?", "]")];
    let nested = nested.map(|(open, close)| open.repeat(200) + "@" + &close.repeat(200));
    let links = ["a.", "@[0]|", "@||", "@&&", "@|", "@<", "@==", "a[*].", "a.*."];
    let chained = links.map(|link| {
        let operators = link.bytes().filter(|byte| !b"@a0]".contains(byte)).count();
        link.repeat(200 / operators) + "a"
    });
    for expression in nested.into_iter().chain(chained) {
        let read = super::read(&config(&format!("responseMapping: '{expression}'")));
        if let Ok(manifest) = read {
            let HandlerKind::Http(http) = &manifest.handlers[0].kind else { panic!("another type") };
            let mapping = http.response_mapping.as_ref().unwrap();
            let _result = mapping.expression().search(1);
        }
    }
    assert_snapshot!(problems(&config(&format!("responseMapping: '{}'", "a.".repeat(201)))), @"
    tools.yaml:11:24: spec.handlers[0].httpConfig.responseMapping: this expression is too long
      expected JMESPath with at most 200 operators and brackets
    ");
}

#[test]
fn retries() {
    let attempts = |text: &str| read(&http(text)).retry.policy.max_attempts;
    assert_eq!([attempts(""), attempts("retries: 0"), attempts("retries: 3")], [1, 1, 4]);
    assert_eq!(attempts("retryPolicy: {maxAttempts: 2}"), 2);
    let policy = read(&config("retryPolicy: {maxAttempts: 2, retryOn: null}")).retry;
    assert_eq!(policy.retry_on, [408, 429, 500, 502, 503, 504]);
    assert_eq!(policy.policy.initial_backoff, Duration::from_millis(100));
    assert_snapshot!(problems(&http("retries: 11\nretryPolicy: {maxAttempts: 0, backoffMultiplier: '0.5', retryOn: [42]}")), @"
    tools.yaml:10:14: spec.handlers[0].retries: this number is out of range
      expected a whole number from 0 to 10
    tools.yaml:11:32: spec.handlers[0].retryPolicy.maxAttempts: this number is out of range
      expected a whole number from 1 to 10
    tools.yaml:11:54: spec.handlers[0].retryPolicy.backoffMultiplier: `0.5` is not a multiplier
      expected a number of 1 or more in quotes, such as '2.0'
    tools.yaml:11:71: spec.handlers[0].retryPolicy.retryOn[0]: this number is out of range
      expected a whole number from 100 to 599
    ");
    assert_snapshot!(problems(&http("retries: 1\nretryPolicy: {maxAttempts: 1}")), @"
    tools.yaml:10:5: spec.handlers[0].retries: `retries` does not belong here
      hint: `retryPolicy` already sets the attempts
    ");
}

#[test]
fn credentials() {
    #[track_caller]
    fn check(text: &str, expect: Option<(AuthScheme, CredentialSource)>) {
        let auth = read(text).auth.map(|auth| (auth.scheme, auth.credential));
        assert_eq!(auth, expect, "{text}");
    }
    let value = |text: &str| CredentialSource::Value(crate::SecretString::new(text));
    check(&http("auth: {type: none}"), None);
    check(&http("auth: {type: bearer, token: '${TOKEN}'}"), Some((AuthScheme::Bearer, value(SECRET_VALUE))));
    check(&http("auth: {type: basic, token: 'me:${TOKEN}'}"), Some((AuthScheme::Basic, value("me:hunter2"))));
    let file = CredentialSource::File("fixtures/secrets/token".into());
    check(
        &config("authType: bearer\nauthToken: file:fixtures/secrets/token"),
        Some((AuthScheme::Bearer, file)),
    );
    let key = CredentialSource::Key { name: "api".into(), key: "token".into() };
    let mounted = toolyard("secretsDir: /run/secrets");
    for text in [
        http("auth: {type: bearer, secretRef: {name: api, key: token}}"),
        config("authType: bearer\nauthSecretRef: {name: api, key: token}"),
    ] {
        // The order of the documents does not matter.
        check(&format!("{mounted}---\n{text}"), Some((AuthScheme::Bearer, key.clone())));
        check(&format!("{text}---\n{mounted}"), Some((AuthScheme::Bearer, key.clone())));
    }
}

#[test]
fn wrong_credentials() {
    assert_snapshot!(problems(&http("auth: {type: bearer, secretRef: {name: ../api, key: token}}")), @"
    tools.yaml:10:37: spec.handlers[0].auth.secretRef: `secretsDir` is not set
      hint: set `secretsDir` in the Toolyard document: the key `token` of the secret `api` is the file `api/token` in it
    tools.yaml:10:44: spec.handlers[0].auth.secretRef.name: `../api` is not the name of a secret or of a key in it
      expected letters, digits, `-`, `_` and `.`
    ");
    assert_snapshot!(problems(&http("auth: {type: bearer, token: '${TOKEN} '}")), @"
    tools.yaml:10:33: spec.handlers[0].auth.token: this is not a token
      expected visible ASCII characters without blanks
      hint: is the variable empty?
    ");
    assert_snapshot!(problems(&http("auth: {type: basic, token: '${TOKEN}'}")), @"
    tools.yaml:10:32: spec.handlers[0].auth.token: this is not a name and a password
      expected `user:password`
    ");
    assert_snapshot!(problems(&http("auth: {type: workloadIdentity, token: a}")), @"
    tools.yaml:10:18: spec.handlers[0].auth.type: kind of authentication `workloadIdentity` is not yet supported
      expected one of none, bearer, basic
    ");
    assert_snapshot!(problems(&config("authToken: a").replace("    httpConfig", "    auth: {type: basic}\n    httpConfig")), @"
    tools.yaml:10:11: spec.handlers[0].auth.token: this field is required
    tools.yaml:12:7: spec.handlers[0].httpConfig.authToken: `authToken` does not belong here
      hint: it belongs to the types `bearer` and `basic`
    ");
}
