//! Documents for display.

use insta::assert_snapshot;

use super::{SECRET_VALUE, read, source};
use crate::{ManifestDifference, ManifestDocument, parse_copy, parse_elsewhere};

/// Returns the documents of a text without problems, as a gateway elsewhere reads it.
#[track_caller]
fn documents(text: &str) -> Vec<ManifestDocument> {
    parse_elsewhere(&[source("text", text)]).unwrap_or_else(|problems| panic!("{problems}")).documents
}

const WITH_SECRETS: &str = "\
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata:
  name: tools
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{\"authToken\": \"literal-a\"}'}
spec:
  handlers:
    - name: program
      type: mcp
      pin: hold
      mcpConfig:
        transport: stdio
        command: docker
        args:
          [run, -i, --rm, -e, KEY=literal-b, -H, 'X: literal-c', -pliteral-d, -p, literal-e, 'password=literal-f host=x',
           '${X:-literal-g}', '$${literal-h}', --token, '${TOKEN}', --key=literal-i, --no-warnings, server.ts, 'https://literal-j@h/x']
        env: {LEVEL: literal-k, TOKEN: '${TOKEN}', WITH_DEFAULT: '${TOKEN:-literal-l}', SCHEME: token}
    - name: remote
      type: mcp
      mcpConfig:
        transport: streamable-http
        endpoint: https://example.com/v1/LITERAL-M/mcp?key=literal-n&user=${TOKEN}&literal-o
        headers: {Authorization: 'Bearer ${TOKEN}', X-Key: literal-p, X-Kind: object}
      overrides: {t: {arguments: {a: {pin: 998877}, b: {default: literal-q}}}}
    - name: api
      type: http
      endpoint: {url: 'https://example.com/'}
      auth: {type: basic, token: 'me:literal-r'}
      tool: {name: t, description: d, inputSchema: {type: object, properties: {pin: {type: string}, headers: {type: object}}}}
      httpConfig: {staticQuery: {k: literal-s}, staticBody: {n: 887766, list: [true, literal-t]}}
---
apiVersion: toolyard.dev/v1alpha1
kind: Toolyard
spec:
  console: {traceURL: 'https://jaeger.example/trace/{traceId}'}
  store: {url: 'postgres://toolyard:literal-u@db/toolyard'}
  bus: {url: 'nats://a:literal-v@one:4222,nats://literal-w@two:4222'}
  llm: {baseURL: 'https://llm.example/v1', model: small, apiKey: 'literal://x'}
  builtins:
    schedules: {action: {webhook: {url: 'https://hooks.example.com/services/T0/B0/LITERALY', secret: 0123456789abcdefghijklmnopqrstuv}}}
";

#[test]
fn literal_secrets_are_not_shown() {
    let shown: Vec<_> = documents(WITH_SECRETS).into_iter().map(|document| document.to_yaml()).collect();
    assert_snapshot!(shown.join("---\n"));
    let leaked = |text: &str| text.to_lowercase().matches("literal").count();
    assert_eq!(shown.iter().map(|text| leaked(text)).sum::<usize>(), 0, "every literal is a secret");
}

#[test]
fn copy_of_shown_documents_is_valid() {
    let shown = documents(WITH_SECRETS);
    let text = shown.iter().map(ManifestDocument::to_yaml).collect::<Vec<_>>().join("---\n");
    let copy = parse_copy(&[source("copy", &text)]).unwrap_or_else(|problems| panic!("{problems}"));
    let same = ManifestDifference { unchanged: 3, ..ManifestDifference::default() };
    assert_eq!(ManifestDifference::between(&shown, &copy.documents), same);
    // What is left out of the copy does not shift what is beside it.
    let edited = text.replace("server.ts", "other.ts").replace("description: d", "description: e");
    let copy = parse_copy(&[source("copy", &edited)]).unwrap_or_else(|problems| panic!("{problems}"));
    let texts: Vec<_> = copy.documents.into_iter().map(|document| document.to_yaml()).collect();
    assert_eq!(texts.join("---\n"), edited);
}

#[test]
fn values_of_references_are_not_shown() {
    let manifest = read(WITH_SECRETS).unwrap_or_else(|problems| panic!("{problems}"));
    let texts: String = manifest.documents.into_iter().map(|document| document.to_yaml()).collect();
    assert!(texts.contains("Bearer ${TOKEN}") && !texts.contains(SECRET_VALUE), "{texts}");
}

#[test]
fn difference_between_manifests() {
    let registry = |handlers: &[(&str, &str)]| {
        let handler = |(name, command): &(&str, &str)| {
            format!(
                "    - {{name: {name}, type: mcp, mcpConfig: {{transport: stdio, command: {command}}}}}\n"
            )
        };
        format!(
            "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: tools}}\nspec:\n  handlers:\n{}",
            handlers.iter().map(handler).collect::<String>()
        )
    };
    let settings = |concurrent: usize| {
        format!(
            "---\napiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {{limits: {{concurrentCalls: {concurrent}}}}}\n"
        )
    };
    let before = documents(&(registry(&[("a", "x"), ("b", "x"), ("c", "x")]) + &settings(10)));
    let check = |text: &str, expected: ManifestDifference| {
        assert_eq!(ManifestDifference::between(&before, &documents(text)), expected, "{text}");
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let same = ManifestDifference { unchanged: 3, ..ManifestDifference::default() };
    check(&(registry(&[("c", "x"), ("b", "x"), ("a", "x")]) + &settings(10)), same.clone());
    let other_settings = ManifestDifference { changes_settings: true, ..same };
    check(&(registry(&[("a", "x"), ("b", "x"), ("c", "x")]) + &settings(20)), other_settings);
    let handlers = ManifestDifference {
        added: names(&["d"]),
        changed: names(&["b"]),
        removed: names(&["c"]),
        unchanged: 1,
        changes_settings: false,
    };
    check(&(registry(&[("a", "x"), ("b", "y"), ("d", "x")]) + &settings(10)), handlers);
}
