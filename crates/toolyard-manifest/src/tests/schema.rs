//! The schemas and the readers agree, in both directions.
//!
//! The readers are asked from the outside. Documents with every field are changed in one place at a time; what the
//! readers say to each change is held against what the schema says.

mod document;
mod mutation;

use std::collections::{BTreeMap, BTreeSet};

use insta::assert_snapshot;
use serde_json::Value;

use self::{
    document::{Document, Schema, documents},
    mutation::mutations,
};
use super::environment;
use crate::{Manifest, Problems, parse_with};

const EVERY_FIELD: &str = include_str!("../../fixtures/every-field.yaml");

/// Whatever document of a text is one of ours has to be right for its schema.
#[track_caller]
pub(super) fn accepts(text: &str) {
    for document in documents(text) {
        let schema = Schema::of(&document.0);
        let problems: Vec<_> = schema.problems(&document.0).collect();
        assert!(problems.is_empty(), "the schema refuses {:#}\n{problems:#?}", document.0);
    }
}

/// A document as the readers take it, with a folder for its secrets.
fn read(document: &Document) -> Result<Manifest, Problems> {
    let mut sources = vec![super::source("a.json", &document.0.to_string())];
    if document.0["kind"] == "ToolRegistry" {
        sources.push(super::source("b.yaml", &super::toolyard("secretsDir: /run/secrets")));
    }
    parse_with(&sources, &environment)
}

#[test]
fn every_example_and_fixture_is_right_for_its_schema() {
    accepts(EVERY_FIELD);
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for example in std::fs::read_dir(examples).unwrap() {
        accepts(&std::fs::read_to_string(example.unwrap().path()).unwrap());
    }
}

#[test]
fn every_field_of_the_schemas_is_in_the_fixture() {
    let mut all = BTreeSet::new();
    let mut met = BTreeSet::new();
    for document in documents(EVERY_FIELD) {
        assert!(read(&document).is_ok(), "{:?}", read(&document));
        let schema = Schema::of(&document.0);
        all.extend(schema.fields());
        document.walk(&mut |path, _| met.extend(schema.field_at(path)));
    }
    assert_eq!(all.difference(&met).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn every_field_has_a_description() {
    for document in documents(EVERY_FIELD) {
        let schema = Schema::of(&document.0);
        document.walk(&mut |path, _| {
            if schema.field_at(path).is_some() {
                assert!(schema.description(path).is_some(), "{path:?}");
            }
        });
    }
}

#[test]
fn every_field_that_a_reader_knows_is_in_the_schema() {
    for document in documents(EVERY_FIELD) {
        let schema = Schema::of(&document.0);
        document.walk(&mut |path, value| {
            let Value::Object(_) = value else { return };
            let unknown = document.with(&[path, &["zzz".to_owned()]].concat(), Value::from(1));
            let Some(known) = expected(&unknown, "zzz", "unknown field") else { return };
            assert!(known.is_subset(&schema.members_at(path)), "{path:?}: {known:?}");
        });
    }
}

#[test]
fn every_word_that_a_reader_knows_is_in_the_schema() {
    let mut compared = 0;
    for document in documents(EVERY_FIELD) {
        let schema = Schema::of(&document.0);
        document.walk(&mut |path, _| {
            // Each kind has a schema of its own.
            let words = schema.words_at(path).filter(|_| path != ["kind"]);
            let Some(words) = words else { return };
            let last = path.last().map_or("", |name| name);
            let known = expected(&document.with(path, Value::from("zzz")), last, "is not a known");
            assert_eq!(known, Some(words), "{path:?}");
            compared += 1;
        });
    }
    assert!(compared > 20, "{compared}");
}

/// The names or words that the problem with a field says are right.
fn expected(document: &Document, field: &str, message: &str) -> Option<BTreeSet<String>> {
    let problems = read(document).err()?;
    let is_it = |path: &str| path.ends_with(field) || path.ends_with(&format!("[{field}]"));
    let mut of_field = problems.iter().filter(|problem| is_it(&problem.place.path.to_string()));
    let problem = of_field.find(|problem| problem.message.contains(message))?;
    let words = problem.expected.as_deref()?.trim_start_matches("one of ");
    Some(words.split(", ").map(str::to_owned).collect())
}

/// What a reader takes, the schema takes. What a schema cannot say is listed here.
#[test]
fn schemas_and_readers_agree_about_every_change() {
    let mut only_the_reader_refuses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut refused, mut refused_by_both) = (0, 0);
    for document in documents(EVERY_FIELD) {
        let schema = Schema::of(&document.0);
        for mutation in mutations(&document) {
            let verdict = read(&mutation.document);
            let accepted = schema.problems(&mutation.document.0).next().is_none();
            match verdict {
                Ok(_) => assert!(accepted, "the schema refuses what the reader takes: {mutation}"),
                Err(_) => {
                    refused += 1;
                    refused_by_both += usize::from(!accepted);
                    if accepted {
                        let list = only_the_reader_refuses.entry(mutation.path.clone()).or_default();
                        list.push(mutation.what.clone());
                    }
                }
            }
        }
    }
    assert!(refused_by_both * 100 / refused >= 90, "{refused_by_both} of {refused}");
    let shown = only_the_reader_refuses.iter().map(|(path, what)| format!("{path}: {}", what.join(" ")));
    assert_snapshot!(shown.collect::<Vec<_>>().join("\n"), @r#"
    spec.builtins.mcp.allow.hosts.*: "~~" "~~"
    spec.guides.*.file: "~~"
    spec.handlers.*.endpoint: (absent)
    spec.handlers.*.endpoint.url: "~~" "~~"
    spec.handlers.*.httpConfig: {}
    spec.handlers.*.httpConfig.bodyMapping: "~~"
    spec.handlers.*.httpConfig.endpoint: (absent)
    spec.handlers.*.httpConfig.responseMapping: "~~"
    spec.handlers.*.httpConfig.urlTemplate: "~~"
    "#);
}

/// A default that is written out changes nothing.
#[test]
fn defaults_are_the_defaults() {
    let minimal = "
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata: {name: a}
spec:
  handlers:
    - {name: a, type: mcp, mcpConfig: {transport: stdio, command: x}}
    - name: b
      type: http
      endpoint: {serviceRef: {name: a, port: 1}}
      retryPolicy: {maxAttempts: 2}
      tool: {name: get, description: Gets, inputSchema: {type: object}}
      httpConfig: {}
    - name: c
      type: grpc
      endpoint: {url: 'a:1'}
      retryPolicy: {maxAttempts: 2}
      tool: {name: get, description: Gets, inputSchema: {type: object}}
      grpcConfig: {}
    - {name: d, type: openapi, openAPIConfig: {specURL: 'https://a.example'}}
    - {name: e, type: function, functionConfig: {id: a}}
    - {name: f, type: cortexone, cortexoneConfig: {id: a, version: '1', apiKey: a}}
---
apiVersion: toolyard.dev/v1alpha1
kind: Toolyard
spec: {limits: {}, timeouts: {}, telemetry: {otlp: {endpoint: 'https://a.example'}}, logs: {}}
";
    let mut all = BTreeSet::new();
    let mut compared = BTreeSet::new();
    for document in documents(minimal) {
        let schema = Schema::of(&document.0);
        let manifest = read(&document).unwrap();
        document.walk(&mut |path, _| {
            for (name, default) in schema.defaults_at(path) {
                let field = [path, &[name]].concat();
                all.extend(schema.field_at(&field));
                // Another type of handler may not have the field.
                if let Ok(written) = read(&document.with(&field, default)) {
                    assert_eq!(written, manifest, "{field:?}");
                    compared.extend(schema.field_at(&field));
                }
            }
        });
    }
    assert_eq!(all.difference(&compared).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(compared.len() > 25, "{compared:?}");
}
