//! The secrets of a handler.

use toolyard_core::SecretRedactor;

use super::{mcp, registry, valid};

#[track_caller]
fn assert_hidden(text: &str, message: &str, expect: &str) {
    let secrets = SecretRedactor::new(valid(text).handlers[0].secrets());
    assert_eq!(secrets.hide(message), expect, "{text}");
}

#[track_caller]
fn assert_endpoint(endpoint: &str, expect: &str) {
    let manifest = valid(&mcp(&format!("transport: sse\nendpoint: {endpoint}")));
    assert_eq!(manifest.handlers[0].endpoint(), expect, "{endpoint}");
}

#[test]
fn option_values_and_references_in_arguments_are_secret() {
    assert_hidden(
        &mcp(
            "transport: stdio\ncommand: x\nargs: [-y, a-package, --token, option, --key=a-value, 'db://me:a-password@h', 'a${TOKEN}']",
        ),
        "a-package: option, a-value, me:a-password, hunter2",
        "a-package: [REDACTED], [REDACTED], me:[REDACTED], [REDACTED]",
    );
}

#[test]
fn values_of_secret_fields_are_secret() {
    assert_hidden(
        &mcp("transport: stdio\ncommand: x\nenv: {A: written-out, B: short}"),
        "written-out short",
        "[REDACTED] short",
    );
    assert_hidden(
        &mcp(
            "transport: sse\nendpoint: http://a/some-path?key=in-query\nheaders: {X-Key: Token behind-scheme}",
        ),
        "http://a/some-path?key=in-query behind-scheme Token",
        "http://a/some-path?key=[REDACTED] [REDACTED] Token",
    );
    assert_hidden(
        &registry(
            "  - name: a\n    type: http\n    endpoint: {url: 'http://a/'}\n    auth: {type: basic, token: 'me:a-password'}\n    \
             tool: {name: t, description: d, inputSchema: {type: object}}\n    \
             httpConfig: {staticQuery: {k: in-query}, staticBody: {k: [{k: in-body}]}}\n    \
             overrides: {t: {arguments: {k: {pin: [pinned]}}}}\n",
        ),
        "a-password Basic bWU6YS1wYXNzd29yZA== in-query in-body pinned",
        "[REDACTED] Basic [REDACTED]== [REDACTED] [REDACTED] [REDACTED]",
    );
    assert_hidden(
        &registry(
            "  - {name: a, type: cortexone, cortexoneConfig: {id: some-id, version: latest, apiKey: written-out}}\n",
        ),
        "some-id written-out",
        "some-id [REDACTED]",
    );
    assert_hidden(
        &registry(
            "  - name: a\n    type: openapi\n    openAPIConfig:\n      specURL: http://a/api.json?k=in-query\n      \
             serverVariables: {region: eu-west, key: '${TOKEN}'}\n      \
             credentials: {a: {value: 'me:a-password'}, b: {clientId: some-client, clientSecret: of-the-client, \
             tokenURL: 'http://a/token?k=of-the-tokens'}}\n",
        ),
        "in-query a-password of-the-client of-the-tokens hunter2; some-client eu-west",
        "[REDACTED] [REDACTED] [REDACTED] [REDACTED] [REDACTED]; some-client eu-west",
    );
}

#[test]
fn reference_values_in_an_endpoint_path_are_hidden() {
    assert_endpoint("http://a/mcp/path", "http://a/mcp/path");
    assert_endpoint("http://a/x-${TOKEN}/mcp?k=v", "http://a/x-[REDACTED]/mcp");
    assert_endpoint("http://${TOKEN}.example/mcp", "http://hunter2.example/mcp");
    assert_endpoint("${URL}", "http://a/mcp/[REDACTED]");
    assert_endpoint("http://a/${MISSING:-written-out}", "http://a/written-out");
}
