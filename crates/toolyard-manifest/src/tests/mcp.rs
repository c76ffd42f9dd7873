//! Mistakes in `mcpConfig`, and references to the environment.

use insta::{assert_debug_snapshot, assert_snapshot};

use std::time::Duration;

use super::{SECRET_VALUE, handler, mcp, problems, registry, valid};
use crate::{
    AuthScheme, ConnectionSharing, CredentialSource, HandlerKind, McpEra, McpHandler, McpHttpStyle,
    McpToolFilter, McpTransport, ProbeSettings, RetryPolicy, SecretString,
};

#[test]
fn transports() {
    assert_snapshot!(problems(&mcp("command: x")), @"tools.yaml:9:7: spec.handlers[0].mcpConfig.transport: this field is required");
    assert_snapshot!(problems(&mcp("transport: streamablehttp\nendpiont: http://localhost/mcp")), @"
    tools.yaml:9:18: spec.handlers[0].mcpConfig.transport: `streamablehttp` is not a known transport
      expected one of stdio, sse, streamable-http
      hint: did you mean `streamable-http`?
    tools.yaml:10:7: spec.handlers[0].mcpConfig.endpiont: unknown field
      expected one of transport, endpoint, headers, authType, authToken, authSecretRef, command, args, workDir, env, firstStart, proxy, tlsCAPath, tlsInsecureSkipVerify, lane, era, toolFilter, retryPolicy
      hint: did you mean `endpoint`?
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\nendpoint: http://localhost/mcp")), @"
    tools.yaml:9:7: spec.handlers[0].mcpConfig.command: this field is required
    tools.yaml:10:7: spec.handlers[0].mcpConfig.endpoint: `endpoint` does not belong here
      hint: it belongs to the transports `streamable-http` and `sse`
    ");
    assert_snapshot!(problems(&mcp("transport: streamable-http\ncommand: x\nenv: {A: b}")), @"
    tools.yaml:9:7: spec.handlers[0].mcpConfig.endpoint: this field is required
    tools.yaml:10:7: spec.handlers[0].mcpConfig.command: `command` does not belong here
      hint: it belongs to the transport `stdio`
    tools.yaml:11:7: spec.handlers[0].mcpConfig.env: `env` does not belong here
      hint: it belongs to the transport `stdio`
    ");
}

/// The handler of a valid text.
fn read(text: &str) -> McpHandler {
    let HandlerKind::Mcp(handler) = valid(text).handlers.remove(0).kind else { panic!("another type") };
    *handler
}

/// A server over HTTP; `rest` are additional fields of `mcpConfig`, from line 11 on.
fn over_http(rest: &str) -> String {
    mcp(&format!("transport: streamable-http\nendpoint: https://a.example/mcp\n{rest}"))
}

/// Adds fields to the handler, in line 9.
fn with(fields: &str, text: &str) -> String {
    text.replacen("    mcpConfig:", &format!("    {fields}\n    mcpConfig:"), 1)
}

#[test]
fn http_server_with_every_field() {
    let config = "\
transport: sse
endpoint: https://a.example/sse?key=${TOKEN}
headers: {X-Key: '${TOKEN}', X-Client: toolyard}
authType: basic
authToken: me:${TOKEN}
toolFilter: {allowlist: [a, B], blocklist: [c]}
retryPolicy: {maxAttempts: 3, initialBackoff: 1s, backoffMultiplier: '1.5', maxBackoff: 1m}";
    assert_debug_snapshot!(read(&mcp(config)), @r#"
    McpHandler {
        transport: Http(
            McpHttp {
                style: Sse,
                endpoint: EndpointUrl(https://a.example/…),
                headers: [
                    (
                        "x-key",
                        SecretString,
                    ),
                    (
                        "x-client",
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
                outbound: OutboundSettings {
                    proxy: None,
                    authority: None,
                    skips_verification: false,
                },
            },
        ),
        lane: None,
        era: None,
        filter: McpToolFilter {
            allow: [
                "a",
                "B",
            ],
            block: [
                "c",
            ],
        },
        retry: RetryPolicy {
            max_attempts: 3,
            initial_backoff: 1s,
            backoff_multiplier: 1.5,
            max_backoff: 60s,
        },
    }
    "#);
}

#[test]
fn defaults_of_a_server() {
    let handler = read(&over_http(""));
    assert_eq!(handler.filter, McpToolFilter::default());
    assert_eq!(handler.retry, RetryPolicy::attempts(1));
    let McpTransport::Http(http) = handler.transport else { panic!() };
    assert_eq!((http.style, http.headers.len(), http.auth), (McpHttpStyle::Streamable, 0, None));
}

#[test]
fn authentication_of_a_server() {
    let auth = |text: &str| match read(text).transport {
        McpTransport::Http(http) => http.auth.map(|auth| (auth.scheme, auth.credential)),
        McpTransport::Stdio { .. } => None,
    };
    let token = Some((AuthScheme::Bearer, CredentialSource::Value(SecretString::new(SECRET_VALUE))));
    assert_eq!(auth(&with("auth: {type: bearer, token: '${TOKEN}'}", &over_http(""))), token);
    assert_eq!(auth(&over_http("authType: bearer\nauthToken: ${TOKEN}")), token);
    assert_eq!(auth(&with("auth: {type: none}", &over_http(""))), None);
    let file = Some((AuthScheme::Basic, CredentialSource::File("fixtures/secrets/token".into())));
    assert_eq!(
        auth(&with("auth: {type: basic, token: 'file:fixtures/secrets/token'}", &over_http(""))),
        file
    );
    let both = with("auth: {type: basic, token: 'a:b'}", &over_http("authType: bearer\nauthToken: t"));
    assert_snapshot!(problems(&both), @"
    tools.yaml:8:5: spec.handlers[0].auth: `auth` does not belong here
      hint: `mcpConfig.authType` already sets the authentication
    ");
    assert_snapshot!(problems(&over_http("authType: bearer\nauthSecretRef: {name: api, key: token}")), @"
    tools.yaml:12:22: spec.handlers[0].mcpConfig.authSecretRef: `secretsDir` is not set
      hint: set `secretsDir` in the Toolyard document: the key `token` of the secret `api` is the file `api/token` in it
    ");
}

#[test]
fn credentials_of_a_program_are_refused() {
    let fields = "transport: stdio\ncommand: x\nheaders: {A: b}\nauthType: bearer\nauthToken: t";
    assert_snapshot!(problems(&with("auth: {type: bearer, token: t}", &mcp(fields))), @"
    tools.yaml:8:5: spec.handlers[0].auth: `auth` does not belong here
      hint: a program takes no headers: pass secrets in `env`
    tools.yaml:12:7: spec.handlers[0].mcpConfig.headers: `headers` does not belong here
      hint: a program takes no headers: pass secrets in `env`
    tools.yaml:13:7: spec.handlers[0].mcpConfig.authType: `authType` does not belong here
      hint: a program takes no headers: pass secrets in `env`
    tools.yaml:14:7: spec.handlers[0].mcpConfig.authToken: `authToken` does not belong here
      hint: a program takes no headers: pass secrets in `env`
    ");
}

#[test]
fn protocol_headers_are_refused() {
    let headers =
        "headers: {Accept: a/b, Mcp-Session-Id: s, Host: h, Authorization: Bearer t, X-Key: \"a\\nb\"}";
    assert_snapshot!(problems(&over_http(headers)), @"
    tools.yaml:11:17: spec.handlers[0].mcpConfig.headers.Accept: `Accept` is not the name of a header to set
      expected a name such as X-Api-Key
      hint: the gateway sets the headers of MCP itself
    tools.yaml:11:30: spec.handlers[0].mcpConfig.headers.Mcp-Session-Id: `Mcp-Session-Id` is not the name of a header to set
      expected a name such as X-Api-Key
      hint: the gateway sets the headers of MCP itself
    tools.yaml:11:49: spec.handlers[0].mcpConfig.headers.Host: `Host` is not the name of a header to set
      expected a name such as X-Api-Key
      hint: the gateway sets the headers of message framing and routing itself
    tools.yaml:11:90: spec.handlers[0].mcpConfig.headers.X-Key: this is not the value of a header
      expected one line of visible ASCII characters
    ");
}

#[test]
fn filters() {
    let filter = |text: &str| read(&over_http(text)).filter;
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let expect = McpToolFilter { allow: names(&["a", "A"]), block: names(&["a", "b c"]) };
    assert_eq!(filter("toolFilter: {allowlist: [a, A], blocklist: [a, 'b c']}"), expect);
    assert_eq!(filter("toolFilter: {allowlist: null}"), McpToolFilter::default());
    assert_snapshot!(problems(&over_http("toolFilter: {allowList: [a], blocklist: b}")), @"
    tools.yaml:11:20: spec.handlers[0].mcpConfig.toolFilter.allowList: unknown field
      expected one of allowlist, blocklist
      hint: did you mean `allowlist`?
    tools.yaml:11:47: spec.handlers[0].mcpConfig.toolFilter.blocklist: found a string
      expected a list
      hint: write a list of one item as `[item]`
    ");
    assert_snapshot!(problems(&with("toolFilter: {allowlist: [a]}", &over_http(""))), @"
    tools.yaml:8:5: spec.handlers[0].toolFilter: `toolFilter` does not belong here
      hint: it belongs in `mcpConfig`
    ");
}

#[test]
fn retries_are_configurable() {
    let attempts = |text: &str| read(text).retry.max_attempts;
    assert_eq!(attempts(&with("retries: 3", &over_http(""))), 4);
    assert_eq!(attempts(&handler("retries: 2")), 3);
    assert_eq!(attempts(&with("retryPolicy: {maxAttempts: 2}", &over_http(""))), 2);
    assert_eq!(attempts(&over_http("retryPolicy: {maxAttempts: 5}")), 5);
    let of_http = "retryPolicy: {maxAttempts: 2, retryOn: [503], respectRetryAfter: true}";
    assert_snapshot!(problems(&over_http(of_http)), @"
    tools.yaml:11:37: spec.handlers[0].mcpConfig.retryPolicy.retryOn: `retryOn` does not belong here
      hint: such calls are tried again where the server cannot be reached or the connection breaks, and nowhere else
    tools.yaml:11:53: spec.handlers[0].mcpConfig.retryPolicy.respectRetryAfter: `respectRetryAfter` does not belong here
      hint: such calls are tried again where the server cannot be reached or the connection breaks, and nowhere else
    ");
    assert_snapshot!(problems(&with("retries: 1", &over_http("retryPolicy: {maxAttempts: 1}"))), @"
    tools.yaml:8:5: spec.handlers[0].retries: `retries` does not belong here
      hint: `mcpConfig.retryPolicy` already sets the attempts
    ");
}

#[test]
fn problems_do_not_quote_endpoints() {
    let http = |endpoint| problems(&mcp(&format!("transport: streamable-http\nendpoint: {endpoint}")));
    assert_snapshot!(http("mcp.example.com"), @"
    tools.yaml:10:17: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: the scheme is missing: put `http://` or `https://` in front
    ");
    assert_snapshot!(http("ftp://mcp.example.com/"), @"
    tools.yaml:10:17: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: it begins with http:// or https://
    ");
    assert_snapshot!(http("https://user:password@mcp.example.com/mcp"), @"
    tools.yaml:10:17: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: remove the user name and password: URLs appear in logs
    ");
    assert_snapshot!(http("https://mcp.example.com:99999/mcp"), @"
    tools.yaml:10:17: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
    ");
}

#[test]
fn stdio_fields() {
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: ''\nworkDir: ''")), @"
    tools.yaml:10:16: spec.handlers[0].mcpConfig.command: `` is not a command
      expected the name or the path of a program
    tools.yaml:11:16: spec.handlers[0].mcpConfig.workDir: `` is not a folder
      expected the path of a folder
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nargs: --root=/data")), @"
    tools.yaml:11:13: spec.handlers[0].mcpConfig.args: found a string
      expected a list
      hint: write a list of one item as `[item]`
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nargs: [--port, 8080, true, ~, {}]")), @"
    tools.yaml:11:22: spec.handlers[0].mcpConfig.args[1]: found a number
      expected a string
      hint: put it in quotes
    tools.yaml:11:28: spec.handlers[0].mcpConfig.args[2]: found a boolean
      expected a string
      hint: put it in quotes
    tools.yaml:11:34: spec.handlers[0].mcpConfig.args[3]: found nothing (null)
      expected a string
    tools.yaml:11:37: spec.handlers[0].mcpConfig.args[4]: found an object
      expected a string
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nenv: [A=b]")), @"
    tools.yaml:11:12: spec.handlers[0].mcpConfig.env: found a list
      expected an object
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nenv: {PORT: 8080, A=B: c}")), @r#"
    tools.yaml:11:19: spec.handlers[0].mcpConfig.env.PORT: found a number
      expected a string
      hint: put it in quotes
    tools.yaml:11:25: spec.handlers[0].mcpConfig.env["A=B"]: `A=B` is not the name of an environment variable
      expected at least one character, and no `=` or NUL
    "#);
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: \"a\\0b\"")), @"
    tools.yaml:10:16: spec.handlers[0].mcpConfig.command: found a string
      expected a string without a NUL character
    ");
}

#[test]
fn the_environment() {
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nargs: ['${MISSING} ${ALSO}']")), @"
    tools.yaml:11:14: spec.handlers[0].mcpConfig.args[0]: the environment variable `MISSING` is not set
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    tools.yaml:11:14: spec.handlers[0].mcpConfig.args[0]: the environment variable `ALSO` is not set
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nenv: {A: '${TOKEN:x}', B: '${TOKEN'}")), @"
    tools.yaml:11:16: spec.handlers[0].mcpConfig.env.A: `TOKEN:x` is not the name of an environment variable
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    tools.yaml:11:33: spec.handlers[0].mcpConfig.env.B: a `${` has no `}`
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    ");
}

#[test]
fn problems_do_not_quote_environment_values() {
    assert_snapshot!(problems(&handler("timeout: ${TOKEN}")), @"
    tools.yaml:9:14: spec.handlers[0].timeout: `${TOKEN}` is not a duration
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: the units are h, m, s, ms, us and ns, without spaces
    ");
    assert_snapshot!(problems(&handler("").replace("files", "${TOKEN}_")), @"
    tools.yaml:6:11: spec.handlers[0].name: `${TOKEN}_` is not a handler name
      expected at most 63 lower-case letters, digits and `-`, such as code-tools
    ");
    assert_snapshot!(problems(&handler("").replace("mcp\n", "${TOKEN}\n")), @"
    tools.yaml:7:11: spec.handlers[0].type: `${TOKEN}` is not a known handler type
      expected one of mcp, http, grpc, openapi, function, cortexone, bus
    ");
    assert_snapshot!(problems(&mcp("transport: streamable-http\nendpoint: '${TOKEN}'")), @"
    tools.yaml:10:17: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: the scheme is missing: put `http://` or `https://` in front
    ");
    let twice = "  - {name: '${TOKEN}', type: client}\n  - {name: '${TOKEN}', type: client}\n";
    assert_snapshot!(problems(&registry(twice)), @"
    tools.yaml:6:30: spec.handlers[0].type: handler type `client` is not yet supported
      expected one of mcp, http, grpc, openapi, function, cortexone, bus
    tools.yaml:7:12: spec.handlers[1].name: duplicate handler name
      hint: first defined at tools.yaml:6:12: spec.handlers[0].name
    tools.yaml:7:30: spec.handlers[1].type: handler type `client` is not yet supported
      expected one of mcp, http, grpc, openapi, function, cortexone, bus
    ");
}

#[test]
fn lanes() {
    let lane = |lane: &str| mcp(&format!("transport: stdio\ncommand: x\n{lane}"));
    let of = |text: &str| {
        let HandlerKind::Mcp(mcp) = &valid(text).handlers[0].kind else { panic!() };
        mcp.lane
    };
    assert_eq!(of(&lane("")), None);
    assert_eq!(of(&lane("lane: shared")), Some(ConnectionSharing::Shared));
    assert_eq!(of(&lane("lane: client")), Some(ConnectionSharing::Client));
    assert_snapshot!(problems(&lane("lane: clients")), @"
    tools.yaml:11:13: spec.handlers[0].mcpConfig.lane: `clients` is not a known lane
      expected one of shared, client
      hint: did you mean `client`?
    ");
    assert_snapshot!(problems(&handler("lane: client")), @"
    tools.yaml:9:5: spec.handlers[0].lane: unknown field
      expected one of name, selector, type, mcpConfig, retryPolicy, retries, timeout, prefix, overrides, pin, price, displayName, description, chunk, chunkThreshold, renameArguments
    ");
}

#[test]
fn eras() {
    let era = |era: &str| mcp(&format!("transport: stdio\ncommand: x\n{era}"));
    let of = |text: &str| {
        let HandlerKind::Mcp(mcp) = &valid(text).handlers[0].kind else { panic!() };
        mcp.era
    };
    let cases = [
        ("", None),
        ("era: auto", None),
        ("era: legacy", Some(McpEra::Legacy)),
        ("era: modern", Some(McpEra::Modern)),
    ];
    for (text, expected) in cases {
        assert_eq!(of(&era(text)), expected, "{text}");
    }
    assert_snapshot!(problems(&era("era: modren")), @"
    tools.yaml:11:12: spec.handlers[0].mcpConfig.era: `modren` is not a known era
      expected one of auto, legacy, modern
      hint: did you mean `modern`?
    ");
    assert_snapshot!(problems(&handler("era: legacy")), @"
    tools.yaml:9:5: spec.handlers[0].era: `era` does not belong here
      hint: it belongs in `mcpConfig`
    ");
    let sse = |era: &str| mcp(&format!("transport: sse\nendpoint: http://a/sse\nera: {era}"));
    assert_eq!(of(&sse("legacy")), Some(McpEra::Legacy));
    assert_snapshot!(problems(&sse("modern")), @"
    tools.yaml:11:12: spec.handlers[0].mcpConfig.era: the transport `sse` has no modern era
      hint: use the transport `streamable-http`, or remove `era`
    ");
}

#[test]
fn probes() {
    let with = |probe: &str| format!("{}  probe: {probe}\n", handler(""));
    let of = |text: &str| valid(text).handlers[0].probe;
    let probe = |interval, timeout| {
        let [interval, timeout] = [interval, timeout].map(Duration::from_secs);
        Some(ProbeSettings { interval, timeout })
    };
    assert_eq!(of(&handler("")), probe(60, 5));
    assert_eq!(of(&with("{}")), probe(60, 5));
    assert_eq!(of(&with("{enabled: false, interval: 1s}")), None);
    assert_eq!(of(&with("{enabled: true, interval: 10s, timeout: 2s}")), probe(10, 2));
    assert_snapshot!(problems(&with("{enable: true, interval: 0s, timeout: 5}")), @"
    tools.yaml:10:11: spec.probe.enable: unknown field
      expected one of enabled, interval, timeout
      hint: did you mean `enabled`?
    tools.yaml:10:35: spec.probe.interval: this is zero
      expected a duration above zero
    tools.yaml:10:48: spec.probe.timeout: found a number
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: add a unit, as in `30s`
    ");
    assert_snapshot!(problems(&handler("probe: {}")), @"
    tools.yaml:9:5: spec.handlers[0].probe: `probe` does not belong here
      hint: it belongs to `spec` and applies to all MCP servers; services have one in `httpConfig` and `openAPIConfig`
    ");
}
