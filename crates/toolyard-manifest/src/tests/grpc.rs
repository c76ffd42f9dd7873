//! Handlers of the type `grpc`.

use insta::{assert_debug_snapshot, assert_snapshot};

use super::{problems, registry, valid};
use crate::{GrpcHandler, GrpcToolSettings, HandlerKind};

/// A registry with one handler of the type `grpc`, with a tool; `fields` are additional fields of the handler, from
/// line 9 on.
fn grpc(fields: &str) -> String {
    let fields = fields.replace('\n', "\n    ");
    registry(&format!(
        "  - name: users\n    type: grpc\n    \
         tool: {{name: get_user, description: Gets, inputSchema: {{type: object}}}}\n    {fields}\n"
    ))
}

/// Like [`grpc`], with an endpoint; `fields` are those of its `grpcConfig`, from line 11 on.
fn config(fields: &str) -> String {
    grpc(&format!("endpoint: {{url: 'a.example:50051'}}\ngrpcConfig:\n  {}", fields.replace('\n', "\n  ")))
}

#[track_caller]
fn read(text: &str) -> GrpcHandler {
    let HandlerKind::Grpc(grpc) = valid(text).handlers.remove(0).kind else { panic!("another type") };
    *grpc
}

#[test]
fn handler_with_every_field() {
    let fields = "tls: true
tlsCertPath: /tls/tls.crt
tlsKeyPath: /tls/tls.key
tlsCAPath: /tls/ca.crt
tlsInsecureSkipVerify: true
retryPolicy: {maxAttempts: 3, initialBackoff: 1s, backoffMultiplier: '1.5', maxBackoff: 1m, retryableStatusCodes: [ABORTED]}";
    let text = config(fields) + "    auth: {type: bearer, token: '${TOKEN}'}\n";
    assert_debug_snapshot!(read(&text), @r#"
    GrpcHandler {
        tools: Defined(
            ToolDefinition {
                name: "get_user",
                description: "Gets",
                input_schema: Object {
                    "type": String("object"),
                },
                output_schema: None,
            },
        ),
        endpoint: a.example:50051,
        tls: Some(
            GrpcTls {
                identity: Some(
                    (
                        "/tls/tls.crt",
                        "/tls/tls.key",
                    ),
                ),
                authority: Some(
                    "/tls/ca.crt",
                ),
                skips_verification: true,
            },
        ),
        auth: Some(
            RequestAuth {
                scheme: Bearer,
                credential: Value(
                    SecretString,
                ),
            },
        ),
        metadata: [],
        keep_alive: None,
        probe: None,
        retry: GrpcRetry {
            policy: RetryPolicy {
                max_attempts: 3,
                initial_backoff: 1s,
                backoff_multiplier: 1.5,
                max_backoff: 60s,
            },
            retryable_status_codes: [
                "ABORTED",
            ],
        },
    }
    "#);
}

#[test]
fn defaults_of_the_contract_apply() {
    let handler = read(
        &config("tls: false\ntlsInsecureSkipVerify: false")
            .replace("grpcConfig", "retries: 2\n    grpcConfig"),
    );
    assert_debug_snapshot!((handler.tls, handler.auth, handler.retry), @r#"
    (
        None,
        None,
        GrpcRetry {
            policy: RetryPolicy {
                max_attempts: 3,
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
    )
    "#);
}

#[test]
fn endpoint_is_read_from_several_fields() {
    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(read(text).endpoint.as_str(), expect);
    }
    check(&grpc("endpoint: {url: 'a.example:1'}"), "a.example:1");
    check(&grpc("grpcConfig: {endpoint: 'a.example:2'}"), "a.example:2");
    check(&config("endpoint: 'b.example:2'"), "a.example:50051");
    check(&grpc("endpoint: {serviceRef: {name: s, namespace: n, port: 3}}"), "s.n.svc.cluster.local:3");
}

#[test]
fn endpoints() {
    assert_snapshot!(problems(&grpc("")), @"
    tools.yaml:6:5: spec.handlers[0]: this handler has no endpoint
      expected `endpoint: {url: …}`
    ");
    assert_snapshot!(problems(&grpc("endpoint: {url: 'https://a.example:50051'}")), @"
    tools.yaml:9:21: spec.handlers[0].endpoint.url: this is not a host and a port
      expected a host and a port such as tools.example.com:50051
      hint: remove the scheme; `tls` enables encryption
    ");
    assert_snapshot!(problems(&grpc("endpoint: {url: a.example}\ngrpcConfig: {endpoint: a}")), @"
    tools.yaml:9:21: spec.handlers[0].endpoint.url: this is not a host and a port
      expected a host and a port such as tools.example.com:50051
    tools.yaml:10:28: spec.handlers[0].grpcConfig.endpoint: this is not a host and a port
      expected a host and a port such as tools.example.com:50051
    ");
    assert_snapshot!(problems(&grpc("grpcConfig: {endpoint: a}")), @"
    tools.yaml:9:28: spec.handlers[0].grpcConfig.endpoint: this is not a host and a port
      expected a host and a port such as tools.example.com:50051
    ");
    assert_snapshot!(problems(&grpc("endpoint: {selector: {matchLabels: {a: b}}}")), @"
    tools.yaml:9:15: spec.handlers[0].endpoint.url: this field is required
    tools.yaml:9:16: spec.handlers[0].endpoint.selector: `selector` is not yet supported
    ");
}

#[test]
fn mistakes_that_connections_would_show() {
    assert_snapshot!(problems(&grpc("endpoint: {url: 'a.example:0'}")), @"
    tools.yaml:9:21: spec.handlers[0].endpoint.url: this is not a host and a port
      expected a host and a port such as tools.example.com:50051
    ");
    assert_snapshot!(problems(&config("tlsInsecureSkipVerify: true\ntlsCAPath: ca.pem")), @"
    tools.yaml:11:7: spec.handlers[0].grpcConfig.tlsInsecureSkipVerify: `tlsInsecureSkipVerify` does not belong here
      hint: without `tls: true` nothing is encrypted
    tools.yaml:12:7: spec.handlers[0].grpcConfig.tlsCAPath: `tlsCAPath` does not belong here
      hint: without `tls: true` nothing is encrypted
    ");
    assert_snapshot!(problems(&config("metadata: {k-bin: '!!', l-bin: 'AQ', m-bin: 'AQ==', x: '!!'}")), @"
    tools.yaml:11:25: spec.handlers[0].grpcConfig.metadata.k-bin: this is not binary metadata
      expected base64, as the name ends with `-bin`
    ");
    let twice = config("metadata: {authorization: 'Bearer a'}") + "    auth: {type: bearer, token: b}\n";
    assert_snapshot!(problems(&twice), @"
    tools.yaml:12:5: spec.handlers[0].auth: `auth` does not belong here
      hint: `grpcConfig.metadata` already sets `authorization`
    ");
}

#[test]
fn configurations() {
    assert_snapshot!(problems(&config("tls: yes\ntlsCertpath: /a\ntlsKeyPath: /b")), @"
    tools.yaml:11:7: spec.handlers[0].grpcConfig: a certificate needs its key, and a key its certificate
      expected both `tlsCertPath` and `tlsKeyPath`, or neither
    tools.yaml:11:12: spec.handlers[0].grpcConfig.tls: found a string
      expected true or false
      hint: write true or false, without quotes
    tools.yaml:12:7: spec.handlers[0].grpcConfig.tlsCertpath: unknown field
      expected one of endpoint, tls, tlsCertPath, tlsKeyPath, tlsCAPath, tlsInsecureSkipVerify, metadata, keepAlive, probe, retryPolicy
      hint: did you mean `tlsCertPath`?
    ");
    assert_snapshot!(problems(&config("tls: true\ntlsCertPath: ''\ntlsKeyPath: /b")), @"
    tools.yaml:12:20: spec.handlers[0].grpcConfig.tlsCertPath: `` is not a file
      expected the path of a file
    ");
    assert_snapshot!(problems(&config("retryPolicy: {maxAttempts: 11, retryableStatusCodes: [unavailable, OK], retryOn: [503]}")), @"
    tools.yaml:11:34: spec.handlers[0].grpcConfig.retryPolicy.maxAttempts: this number is out of range
      expected a whole number from 1 to 10
    tools.yaml:11:61: spec.handlers[0].grpcConfig.retryPolicy.retryableStatusCodes[0]: `unavailable` is not a known status of gRPC
      expected one of CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED
      hint: did you mean `UNAVAILABLE`?
    tools.yaml:11:74: spec.handlers[0].grpcConfig.retryPolicy.retryableStatusCodes[1]: `OK` is not a known status of gRPC
      expected one of CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED
    tools.yaml:11:79: spec.handlers[0].grpcConfig.retryPolicy.retryOn: unknown field
      expected one of maxAttempts, initialBackoff, backoffMultiplier, maxBackoff, retryableStatusCodes
    ");
    assert_snapshot!(problems(&config("retryPolicy: {maxAttempts: 2}").replace("grpcConfig", "retries: 1\n    grpcConfig")), @"
    tools.yaml:10:5: spec.handlers[0].retries: `retries` does not belong here
      hint: `grpcConfig.retryPolicy` already sets the attempts
    ");
    assert_snapshot!(problems(&grpc("httpConfig: {}\nopenAPIConfig: {}\nmcpConfig: {}")), @"
    tools.yaml:6:5: spec.handlers[0]: this handler has no endpoint
      expected `endpoint: {url: …}`
    tools.yaml:9:5: spec.handlers[0].httpConfig: `httpConfig` does not belong here
      hint: it belongs to the type `http`
    tools.yaml:10:5: spec.handlers[0].openAPIConfig: `openAPIConfig` does not belong here
      hint: it belongs to the type `openapi`
    tools.yaml:11:5: spec.handlers[0].mcpConfig: `mcpConfig` does not belong here
      hint: it belongs to the type `mcp`
    ");
}

/// A registry with a handler whose tools are discovered; `fields` are those of its `grpcConfig`, from line 9 on.
fn discovered(fields: &str) -> String {
    let fields = fields.replace('\n', "\n      ");
    registry(&format!(
        "  - name: users\n    type: grpc\n    grpcConfig:\n      endpoint: a.example:50051\n      {fields}\n"
    ))
}

#[test]
fn handler_without_a_tool_discovers_the_tools_of_its_server() {
    let text = discovered(
        "metadata: {x-tenant: acme}
keepAlive: {interval: 10m}
probe: {service: shop.v1.Orders}
descriptorSet: shop.binpb
filter: {services: ['shop.**'], methods: ['Get*', 'shop.v1.Orders/List*']}
refresh: 0s
stream: {maxBytes: 64KiB}",
    );
    let handler = read(&text);
    let GrpcToolSettings::Discovered(discovery) = handler.tools else { panic!("a defined tool") };
    assert_debug_snapshot!((discovery, handler.metadata, handler.keep_alive, handler.probe), @r#"
    (
        GrpcDiscovery {
            descriptor_set: Some(
                "shop.binpb",
            ),
            filter: GrpcFilter {
                services: [
                    "shop.**",
                ],
                methods: [
                    "Get*",
                    "shop.v1.Orders/List*",
                ],
            },
            refresh: None,
            stream: GrpcStreamBounds {
                messages: 1000,
                bytes: 65536,
            },
        },
        [
            (
                "x-tenant",
                SecretString,
            ),
        ],
        Some(
            KeepAliveSettings {
                interval: 600s,
                timeout: 20s,
            },
        ),
        Some(
            GrpcProbeSettings {
                interval: 60s,
                timeout: 5s,
                service: "shop.v1.Orders",
            },
        ),
    )
    "#);
    let GrpcToolSettings::Discovered(default) = read(&discovered("")).tools else { panic!("a defined tool") };
    assert_debug_snapshot!(default, @"
    GrpcDiscovery {
        descriptor_set: None,
        filter: GrpcFilter {
            services: [],
            methods: [],
        },
        refresh: Some(
            300s,
        ),
        stream: GrpcStreamBounds {
            messages: 1000,
            bytes: 1048576,
        },
    }
    ");
}

#[test]
fn faults_of_discovery() {
    assert_snapshot!(problems(&discovered("filter: {services: [], methods: ['Get Order']}\nstream: {maxMessages: 0, maxBytes: 1}\nmetadata: {grpc-timeout: 1S}")), @"
    tools.yaml:10:26: spec.handlers[0].grpcConfig.filter.services: this list is empty
      expected at least one item
    tools.yaml:10:40: spec.handlers[0].grpcConfig.filter.methods[0]: `Get Order` is not a pattern for names
      expected a pattern such as shop.v1.Orders, shop.** or Get*
    tools.yaml:11:29: spec.handlers[0].grpcConfig.stream.maxMessages: this number is out of range
      expected a whole number from 1 to 1000000000
    tools.yaml:11:42: spec.handlers[0].grpcConfig.stream.maxBytes: this is too small
      expected a size of 1024 or more
    tools.yaml:12:18: spec.handlers[0].grpcConfig.metadata.grpc-timeout: `grpc-timeout` is not the name of metadata to set
      expected a name such as x-tenant
      hint: the gateway sets the metadata of gRPC itself
    ");
    assert_snapshot!(problems(&config("descriptorSet: a\nfilter: {}\nrefresh: 1m\nstream: {}")), @"
    tools.yaml:11:7: spec.handlers[0].grpcConfig.descriptorSet: `descriptorSet` does not belong here
      hint: `tool` defines the only tool of the handler
    tools.yaml:12:7: spec.handlers[0].grpcConfig.filter: `filter` does not belong here
      hint: `tool` defines the only tool of the handler
    tools.yaml:13:7: spec.handlers[0].grpcConfig.refresh: `refresh` does not belong here
      hint: `tool` defines the only tool of the handler
    tools.yaml:14:7: spec.handlers[0].grpcConfig.stream: `stream` does not belong here
      hint: `tool` defines the only tool of the handler
    ");
}
