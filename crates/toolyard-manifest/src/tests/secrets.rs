//! What of a handler nobody is to see.

use toolyard_core::Secrets;

use super::{mcp, registry, valid};

#[track_caller]
fn hides(text: &str, said: &str, expect: &str) {
    let secrets = Secrets::new(valid(text).handlers[0].secrets());
    assert_eq!(secrets.hide(said), expect, "{text}");
}

#[track_caller]
fn shows(endpoint: &str, expect: &str) {
    let manifest = valid(&mcp(&format!("transport: sse\nendpoint: {endpoint}")));
    assert_eq!(manifest.handlers[0].endpoint(), expect, "{endpoint}");
}

#[test]
fn of_arguments_what_an_option_has_or_a_reference_stands_for() {
    hides(
        &mcp(
            "transport: stdio\ncommand: x\nargs: [-y, a-package, --token, option, --key=a-value, 'db://me:a-password@h', 'a${TOKEN}']",
        ),
        "a-package: option, a-value, me:a-password, hunter2",
        "a-package: [REDACTED], [REDACTED], me:[REDACTED], [REDACTED]",
    );
}

#[test]
fn what_stands_where_secrets_do() {
    hides(
        &mcp("transport: stdio\ncommand: x\nenv: {A: written-out, B: short}"),
        "written-out short",
        "[REDACTED] short",
    );
    hides(
        &mcp(
            "transport: sse\nendpoint: http://a/some-path?key=in-query\nheaders: {X-Key: Token behind-scheme}",
        ),
        "http://a/some-path?key=in-query behind-scheme Token",
        "http://a/some-path?key=[REDACTED] [REDACTED] Token",
    );
    hides(
        &registry(
            "  - name: a\n    type: http\n    endpoint: {url: 'http://a/'}\n    auth: {type: basic, token: 'me:a-password'}\n    \
             tool: {name: t, description: d, inputSchema: {type: object}}\n    \
             httpConfig: {staticQuery: {k: in-query}, staticBody: {k: [{k: in-body}]}}\n    \
             overrides: {t: {arguments: {k: {pin: [pinned]}}}}\n",
        ),
        "a-password Basic bWU6YS1wYXNzd29yZA== in-query in-body pinned",
        "[REDACTED] Basic [REDACTED]== [REDACTED] [REDACTED] [REDACTED]",
    );
    hides(
        &registry(
            "  - {name: a, type: cortexone, cortexoneConfig: {id: some-id, version: latest, apiKey: written-out}}\n",
        ),
        "some-id written-out",
        "some-id [REDACTED]",
    );
    hides(
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
fn an_endpoint_is_shown_without_what_references_stand_for_in_its_path() {
    shows("http://a/mcp/path", "http://a/mcp/path");
    shows("http://a/x-${TOKEN}/mcp?k=v", "http://a/x-[REDACTED]/mcp");
    shows("http://${TOKEN}.example/mcp", "http://hunter2.example/mcp");
    shows("${URL}", "http://a/mcp/[REDACTED]");
    shows("http://a/${MISSING:-written-out}", "http://a/written-out");
}
