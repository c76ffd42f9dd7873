//! The schemas and the readers agree, in both directions.
//!
//! The tests use the public interface of the readers. They change documents with every field in one place at a time and
//! compare the problems of the readers with the verdict of the schema.

mod document;
mod mutation;

use std::collections::{BTreeMap, BTreeSet};

use insta::assert_snapshot;
use serde_json::Value;

use self::{
    document::{DocumentSchema, JsonDocument, documents},
    mutation::mutations,
};
use super::environment;
use crate::{Manifest, ManifestProblems, parse_with};

const EVERY_FIELD: &str = include_str!("../../fixtures/every-field.yaml");

/// Asserts that every known document of a text matches its schema.
#[track_caller]
pub(super) fn accepts(text: &str) {
    for document in documents(text) {
        let schema = DocumentSchema::of(&document.0);
        let problems: Vec<_> = schema.problems(&document.0).collect();
        assert!(problems.is_empty(), "the schema refuses {:#}\n{problems:#?}", document.0);
    }
}

/// The fields of its schema that a document does not have.
pub(super) fn missing_fields(text: &str) -> BTreeSet<String> {
    let [document] = &documents(text)[..] else { panic!("it is one document") };
    let schema = DocumentSchema::of(&document.0);
    let mut missing = schema.fields();
    document.walk(&mut |path, _| {
        schema.field_at(path).map(|field| missing.remove(&field));
    });
    missing
}

#[test]
fn committed_schema_matches_the_declarations() {
    let committed = include_str!("../../../../schema/toolyard.json");
    assert!(
        committed == crate::schema::toolyard(),
        "schema/toolyard.json is out of date: run `cargo xtask reference`"
    );
}

/// The documents of the fixture. A field that is in none of them, but has a default, is added with its default.
fn every_field() -> Vec<JsonDocument> {
    let mut documents = documents(EVERY_FIELD);
    let schemas: Vec<_> = documents.iter().map(|document| DocumentSchema::of(&document.0)).collect();
    let mut met = BTreeSet::new();
    for (document, schema) in documents.iter().zip(&schemas) {
        document.walk(&mut |path, _| met.extend(schema.field_at(path)));
    }
    for (document, schema) in documents.iter_mut().zip(&schemas) {
        let mut complete = document.clone();
        document.walk(&mut |path, value| {
            for (name, default) in schema.defaults_at(path).into_iter().filter(|_| value.is_object()) {
                let field = [path, &[name]].concat();
                if schema.field_at(&field).is_some_and(|field| met.insert(field)) {
                    complete = complete.with(&field, default);
                }
            }
        });
        *document = complete;
    }
    documents
}

/// Parses a document, with a folder for its secrets.
fn read(document: &JsonDocument) -> Result<Manifest, ManifestProblems> {
    let mut sources = vec![super::source("a.json", &document.0.to_string())];
    if document.0["kind"] == "ToolRegistry" {
        sources.push(super::source(
            "b.yaml",
            &super::toolyard("secretsDir: /run/secrets\nbus: {url: 'nats://a'}"),
        ));
    }
    parse_with(&sources, &environment)
}

#[test]
fn examples_and_fixtures_match_their_schema() {
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
    for document in every_field() {
        assert!(read(&document).is_ok(), "{:?}", read(&document));
        let schema = DocumentSchema::of(&document.0);
        all.extend(schema.fields());
        document.walk(&mut |path, _| met.extend(schema.field_at(path)));
    }
    assert_eq!(all.difference(&met).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn every_field_has_a_description() {
    for document in every_field() {
        let schema = DocumentSchema::of(&document.0);
        document.walk(&mut |path, _| {
            if schema.field_at(path).is_some() {
                assert!(schema.description(path).is_some(), "{path:?}");
            }
        });
    }
}

#[test]
fn every_field_of_a_reader_is_in_the_schema() {
    for document in every_field() {
        let schema = DocumentSchema::of(&document.0);
        document.walk(&mut |path, value| {
            let Value::Object(_) = value else { return };
            let unknown = document.with(&[path, &["zzz".to_owned()]].concat(), Value::from(1));
            let Some(allowed) = expected_names(&unknown, "zzz", "unknown field") else { return };
            assert!(allowed.is_subset(&schema.members_at(path)), "{path:?}: {allowed:?}");
        });
    }
}

#[test]
fn every_keyword_of_a_reader_is_in_the_schema() {
    let mut compared = 0;
    for document in every_field() {
        let schema = DocumentSchema::of(&document.0);
        document.walk(&mut |path, _| {
            // Each kind has a schema of its own.
            let words = schema.keywords_at(path).filter(|_| path != ["kind"]);
            let Some(words) = words else { return };
            let last = path.last().map_or("", |name| name);
            let allowed = expected_names(&document.with(path, Value::from("zzz")), last, "is not a known");
            assert_eq!(allowed, Some(words), "{path:?}");
            compared += 1;
        });
    }
    assert!(compared > 20, "{compared}");
}

/// The valid names or keywords that the problem of a field lists.
fn expected_names(document: &JsonDocument, field: &str, message: &str) -> Option<BTreeSet<String>> {
    let problems = read(document).err()?;
    let is_it = |path: &str| path.ends_with(field) || path.ends_with(&format!("[{field}]"));
    let mut of_field = problems.iter().filter(|problem| is_it(&problem.location.path.to_string()));
    let problem = of_field.find(|problem| problem.message.contains(message))?;
    let words = problem.expected.as_deref()?.trim_start_matches("one of ");
    Some(words.split(", ").map(str::to_owned).collect())
}

/// The schema accepts everything that the readers accept. The snapshot lists change only the readers refuse.
#[test]
fn schemas_and_readers_agree_on_mutations() {
    let mut refused_only_by_reader: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut refused, mut refused_by_both) = (0, 0);
    for document in every_field() {
        let schema = DocumentSchema::of(&document.0);
        for mutation in mutations(&document, |part| read(part).is_ok()) {
            let verdict = read(&mutation.document);
            let accepted = schema.problems(&mutation.document.0).next().is_none();
            match verdict {
                Ok(_) => assert!(accepted, "the schema refuses change the reader takes: {mutation}"),
                Err(_) => {
                    refused += 1;
                    refused_by_both += usize::from(!accepted);
                    if accepted {
                        let list = refused_only_by_reader.entry(mutation.path.clone()).or_default();
                        list.push(mutation.change.clone());
                    }
                }
            }
        }
    }
    assert!(refused_by_both * 100 / refused >= 90, "{refused_by_both} of {refused}");
    let report_lines =
        refused_only_by_reader.iter().map(|(path, change)| format!("{path}: {}", change.join(" ")));
    assert_snapshot!(report_lines.collect::<Vec<_>>().join("\n"), @r#"
    spec.builtins.agents.cards.*.signature: {}
    spec.builtins.mcp.allow.hosts.*: "~~" "~~"
    spec.builtins.schedules.action: {} {} {}
    spec.builtins.schedules.action.bus: (absent)
    spec.builtins.schedules.action.tool: (absent)
    spec.builtins.schedules.action.webhook: (absent)
    spec.builtins.schedules.action.webhook.secret: "~~"
    spec.builtins.schedules.timeZone: "~~"
    spec.builtins.subagents.cost: "~~"
    spec.builtins.subagents.inputPrice: "~~"
    spec.builtins.subagents.outputPrice: "~~"
    spec.builtins.web.endpoint: (absent)
    spec.builtins.web.hosts.*: "~~"
    spec.builtins.web.privateHosts.*: "~~"
    spec.builtins.web.userAgent: "~~"
    spec.bus: (absent) {}
    spec.bus.url: (absent)
    spec.bus.worker.tools: []
    spec.bus.worker.tools.*: "~~"
    spec.guides.*.file: "~~"
    spec.handlers.*.endpoint: (absent)
    spec.handlers.*.endpoint.url: "~~" "~~"
    spec.handlers.*.grpcConfig: {}
    spec.handlers.*.grpcConfig.endpoint: (absent)
    spec.handlers.*.httpConfig: {}
    spec.handlers.*.httpConfig.bodyMapping: "~~"
    spec.handlers.*.httpConfig.endpoint: (absent)
    spec.handlers.*.httpConfig.responseMapping: "~~"
    spec.handlers.*.httpConfig.urlTemplate: "~~"
    spec.handlers.*.selector.matchLabels.a.example/tool: "~~"
    spec.handlers.*.selector.matchLabels.team: "~~"
    spec.llm: (absent)
    spec.sandbox.packageHosts.*: "~~" "~~"
    spec.secretsDir: (absent)
    "#);
}

/// A field with its default is equivalent to an absent field.
#[test]
fn schema_defaults_change_nothing() {
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
    - {name: g, type: grpc, grpcConfig: {endpoint: 'a:1'}}
    - {name: h, type: bus, busConfig: {}}
---
apiVersion: toolyard.dev/v1alpha1
kind: Toolyard
spec: {limits: {}, timeouts: {}, telemetry: {otlp: {endpoint: 'https://a.example'}}, logs: {}}
";
    let mut all = BTreeSet::new();
    let mut compared = BTreeSet::new();
    for document in documents(minimal) {
        let schema = DocumentSchema::of(&document.0);
        let manifest = read(&document).unwrap();
        document.walk(&mut |path, _| {
            for (name, default) in schema.defaults_at(path) {
                let field = [path, &[name]].concat();
                all.extend(schema.field_at(&field));
                // Other types of handlers may not have the field.
                if let Ok(explicit) = read(&document.with(&field, default)) {
                    let explicit = Manifest {
                        digest: manifest.digest.clone(),
                        documents: manifest.documents.clone(),
                        ..explicit
                    };
                    assert_eq!(explicit, manifest, "{field:?}");
                    compared.extend(schema.field_at(&field));
                }
            }
        });
    }
    assert_eq!(all.difference(&compared).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(compared.len() > 25, "{compared:?}");
}
