use insta::assert_snapshot;

use crate::{DescriptionSources, ReadOptions, read};

/// The faults of a description with these files, the first of which is its root.
fn faults(files: &[(&str, &str)]) -> Vec<String> {
    let mut sources = DescriptionSources::new(files[0].0, files[0].1);
    files[1..].iter().for_each(|(file, text)| sources.add(*file, *text));
    let description = read(&sources, &ReadOptions::default()).unwrap();
    description.faults.iter().map(|fault| format!("{} {}", fault.location, fault.problem)).collect()
}

#[test]
fn faults_of_documents_have_locations() {
    let dangling = "openapi: 3.0.0
paths:
  /a: {post: {requestBody: {content: {application/json: {schema: {properties: {$ref: {}, b: {$ref: '#/components/schemas/B'}}}}}}, responses: {'200': {$ref: '#/components/responses/R'}}}}
components: {schemas: {C: {type: object, properties: {example: {$ref: '#/components/schemas/D'}}, example: {$ref: x}}}, responses: {}}
";
    assert_snapshot!(faults(&[("a.yaml", dangling)]).join("\n"), @r"
    a.yaml#/paths/~1a/post/requestBody/content/application~1json/schema/properties/b unresolved reference `#/components/schemas/B`: any value is accepted
    a.yaml#/paths/~1a/post/responses/200 unresolved reference `#/components/responses/R`: it is ignored
    a.yaml#/components/schemas/C/properties/example unresolved reference `#/components/schemas/D`: any value is accepted
    ");
    let repeated = "openapi: 3.0.0\npaths:\n  /a: {get: {operationId: first}}\n  /a: {get: {operationId: second, operationId: third}}\n";
    assert_snapshot!(faults(&[("a.yaml", repeated)]).join("\n"), @r"
    a.yaml#/paths/~1a duplicate key: the last value is used
    a.yaml#/paths/~1a/get/operationId duplicate key: the last value is used
    ");
    let json = r#"{"openapi": "3.0.0", "paths": {}, "paths": {"/a": {"get": {}}}}"#;
    assert_eq!(faults(&[("a.json", json)]), ["a.json#/paths duplicate key: the last value is used"]);
    let many: String = (0..2000).map(|index| format!("{{$ref: '#/components/a{index}'}}, ")).collect();
    let many = faults(&[("a.yaml", &format!("openapi: 3.0.0\npaths: {{}}\ncomponents: {{x: [{many}]}}"))]);
    assert_eq!(many.len(), 1001);
    assert_eq!(
        many[1000],
        "a.yaml#/components/x/1000 more than 1000 faults of this kind: the others are not listed"
    );
    let files = "openapi: 3.0.0\npaths: {/a: {$ref: html.yaml}, /b: {$ref: 'broken.yaml#/x'}, /c: {$ref: none.yaml}}\nx: [{$ref: none.yaml}]\n";
    let files = [
        ("a.yaml", files),
        ("html.yaml", "\n<!DOCTYPE html><html></html>"),
        ("broken.yaml", "a: [1"),
        ("none.yaml", ""),
    ];
    assert_snapshot!(faults(&files).join("\n"), @r"
    broken.yaml# invalid JSON or YAML: while parsing a flow sequence, expected ',' or ']' at line 2, column 1: nothing in it is used
    html.yaml# it is an HTML page instead of JSON or YAML: nothing in it is used
    none.yaml# it is missing or empty: nothing in it is used
    a.yaml#/paths/~1a unresolved reference `html.yaml`: the path is skipped
    a.yaml#/paths/~1b unresolved reference `broken.yaml#/x`: the path is skipped
    a.yaml#/paths/~1c unresolved reference `none.yaml`: the path is skipped
    ");
}

/// A text that was cut off can still be valid YAML.
#[test]
fn incomplete_document_is_a_fault() {
    let whole = "openapi: 3.0.0
paths:
  /a:
    post:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/A'}}}}
      responses: {'200': {$ref: '#/components/responses/R'}}
    get:
      responses:
components:
  schemas: {A: {type: object}}
  responses: {R: {description: x}}
";
    let incomplete = |text: &str| {
        let mut faults = faults(&[("a.yaml", text)]);
        faults.retain(|fault| fault.contains("incomplete"));
        faults.join("\n")
    };
    assert_eq!(incomplete(whole), "");
    assert_eq!(
        incomplete(whole.split("components:\n").next().unwrap()),
        "a.yaml#/components missing, although 2 references lead there: the document seems to be incomplete"
    );
    assert_eq!(
        incomplete("openapi: 3.0.0\npaths:\n  /a:\n    get:"),
        "a.yaml#/paths/~1a/get the text ends without a value: the document seems to be incomplete"
    );
    let no_paths = "a.yaml#/paths missing: the document seems to be incomplete";
    assert_eq!(incomplete("swagger: '2.0'\ndefinitions: {A: {type: object}}"), no_paths);
    assert_eq!(incomplete("openapi: 3.0.0\ninfo: {title: a}"), no_paths);
    assert_eq!(incomplete("openapi: 3.1.0\ninfo: {title: a}"), no_paths);
    // Since 3.1 one of three is enough (section 4.8.1).
    assert_eq!(incomplete("openapi: 3.1.0\nwebhooks: {}"), "");
    assert_eq!(incomplete("openapi: 3.1.0\ncomponents: {}"), "");
}

#[test]
fn invalid_values_are_faults() {
    let document = r#"
openapi: 3.0.0
paths:
  /a:
    post:
      requestBody:
        content: {application/json: {schema: {properties: {q: {type: obj}, type: {type: string}, e: {enum: []}, x: y}}}}
      responses:
        "200":
          descr
        x-a: b
components:
  securitySchemes: {s: {type: http, scheme: bearer}}
  parameters: {p: {name: p, in: query, schema: {type: int64, pattern: '^a$', minLength: 0, enum: [a]}}}
  schemas:
    A: {properties: {p: {pattern: '('}, t: {type: [string, no]}, pattern: {type: string}}, minLength: -1, example: {type: obj}}
    B: {pattern: '/^a$/i', maxItems: x, patternProperties: {'[': {type: string}}}
"#;
    assert_snapshot!(faults(&[("a.yaml", document)]).join("\n"), @r#"
    a.yaml#/paths/~1a/post/requestBody/content/application~1json/schema/properties/q/type unknown type `obj`: any value is accepted
    a.yaml#/paths/~1a/post/requestBody/content/application~1json/schema/properties/e/enum no list of values: it is ignored
    a.yaml#/paths/~1a/post/requestBody/content/application~1json/schema/properties/x not an object: any value is accepted
    a.yaml#/paths/~1a/post/responses/200 not an object: it is ignored
    a.yaml#/components/schemas/A/properties/p/pattern `(` is no regular expression of ECMAScript: it is ignored
    a.yaml#/components/schemas/A/properties/t/type unknown type `["string","no"]`: any value is accepted
    a.yaml#/components/schemas/A/minLength `-1` is no number of items or characters: it is ignored
    a.yaml#/components/schemas/B/pattern `/^a$/i` is no regular expression of ECMAScript: it is ignored
    a.yaml#/components/schemas/B/maxItems `x` is no number of items or characters: it is ignored
    a.yaml#/components/schemas/B/patternProperties/[ no regular expression of ECMAScript: it is ignored
    "#);
    let old = "swagger: '2.0'\npaths: {}\nparameters: {p: {name: p, in: query, type: obj}}\n";
    assert_eq!(
        faults(&[("a.yaml", old)]),
        ["a.yaml#/parameters/p/type unknown type `obj`: any value is accepted"]
    );
    let many = "{type: obj}, ".repeat(2000);
    let many = format!("openapi: 3.0.0\npaths: {{}}\ncomponents: {{schemas: {{A: {{allOf: [{many}]}}}}}}");
    assert_eq!(faults(&[("a.yaml", &many)]).len(), 1001);
}

#[test]
fn html_is_refused_by_name() {
    let refused = |text: &str| {
        read(&DescriptionSources::new("a.yaml", text), &ReadOptions::default()).unwrap_err().to_string()
    };
    let html = "a.yaml: it is an HTML page instead of a service description: check the URL, and whether it needs credentials";
    assert_eq!(refused("<!doctype html>\n<html><body>Sign in: <a href='x'>here</a></body></html>"), html);
    assert_eq!(refused("\n <HTML lang=en>"), html);
}
