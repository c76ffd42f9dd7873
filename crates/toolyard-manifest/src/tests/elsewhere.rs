//! Documents for a gateway elsewhere.

use insta::assert_snapshot;

use super::{handler, registry, source, toolyard};
use crate::{Manifest, ManifestProblems, parse_elsewhere};

fn read(text: &str) -> Result<Manifest, ManifestProblems> {
    let secrets = source("toolyard.yaml", &toolyard("secretsDir: /run/secrets"));
    parse_elsewhere(&[source("tools.yaml", text), secrets])
}

#[test]
fn files_are_refused_and_not_read() {
    let text = registry(
        "  - name: a\n    type: mcp\n    mcpConfig: {transport: sse, endpoint: 'http://${file:/etc/hostname}/'}\n  \
         - name: b\n    type: openapi\n    openAPIConfig: {specURL: 'http://b/'}\n    auth: {type: bearer, token: \
         'file:/etc/hostname'}\n  guides: [{name: a, summary: b, file: /etc/hostname}]\n",
    );
    assert_snapshot!(read(&text).unwrap_err(), @"
    tools.yaml:8:43: spec.handlers[0].mcpConfig.endpoint: the file `/etc/hostname` does not exist where the gateway runs
      hint: write the content into the document, or refer to a secret, by `secretRef` or an environment variable
    tools.yaml:12:33: spec.handlers[1].auth.token: this file does not exist where the gateway runs
      hint: write the content into the document, or refer to a secret, by `secretRef` or an environment variable
    tools.yaml:13:40: spec.guides[0].file: this file does not exist where the gateway runs
      hint: write the guide into `text`
    ");
}

#[test]
fn unset_variables_are_accepted() {
    let check = |text: &str, names: &[&str]| {
        let manifest = read(text).unwrap_or_else(|problems| panic!("{problems}"));
        let actual: Vec<_> = manifest.handlers.iter().map(|handler| handler.name.as_str()).collect();
        assert_eq!(actual, names, "{text}");
    };
    check(&handler("timeout: 5s"), &["files"]);
    check(&handler("timeout: ${TIMEOUT:-5s}"), &["files"]);
    let token = "auth: {type: bearer, token: '${TOKEN}'}";
    check(
        &registry(&format!(
            "  - name: a\n    type: openapi\n    openAPIConfig: {{specURL: 'http://a/'}}\n    {token}\n"
        )),
        &["a"],
    );
    check(
        &registry("  - name: a\n    type: openapi\n    openAPIConfig: {specURL: 'http://${HOST}/'}\n"),
        &[],
    );
}

#[test]
fn mistakes_beside_references_are_reported() {
    assert_snapshot!(read(&handler("timeout: ${}\n    retries: 99")).unwrap_err(), @"
    tools.yaml:9:14: spec.handlers[0].timeout: `` is not the name of an environment variable
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    tools.yaml:10:14: spec.handlers[0].retries: this number is out of range
      expected a whole number from 0 to 10
    ");
}
