//! Each tool accepts arguments that can be sent.

use serde_json::{Value, json};
use toolyard_core::Json;
use toolyard_core::schema::{CompiledSchema, ValidationBudget};

use crate::response::ResultPromise;

use super::{DescriptionSources, ReadOptions, described, operation, read};

/// The schema of the only tool's arguments.
fn schema(document: &str) -> Value {
    described(document).operations[0].definition.get("inputSchema").unwrap().to_value()
}

/// A document whose operation has this body, and these components.
fn with_body(body: &str, components: &str) -> String {
    let text = format!(
        "requestBody: {{required: true, content: {{application/json: {{schema: {body}}}}}}}\nresponses: {{}}"
    );
    format!("{}components: {{schemas: {{{components}}}}}", operation(&text))
}

/// Checks whether arguments are accepted and become a request.
#[track_caller]
fn check(document: &str, arguments: Value, is_accepted: bool) {
    let described = described(document).operations.remove(0);
    let schema = described.definition.get("inputSchema").unwrap().to_value();
    let compiled = CompiledSchema::compile(&schema).unwrap();
    let checked = compiled.check(&arguments, &ValidationBudget::brief());
    assert_eq!(checked.is_ok(), is_accepted, "{arguments} {schema} {checked:?}");
    if is_accepted {
        described.operation.request(Some(&Json::from_value(&arguments)), Some("https://a.b")).unwrap();
    }
}

#[test]
fn enum_values_have_the_declared_type() {
    let of = |parameter: &str| {
        let text = format!("parameters: [{{name: q, in: query, schema: {parameter}}}]\nresponses: {{}}");
        schema(&operation(&text))["properties"]["q"].clone()
    };
    let integers = of("{type: integer, enum: ['1', '2'], default: '2'}");
    assert_eq!(integers, json!({"type": "integer", "enum": [1, 2], "default": 2}));
    assert_eq!(of("{type: number, enum: ['1.5', 2]}"), json!({"type": "number", "enum": [1.5, 2]}));
    assert_eq!(
        of("{type: boolean, enum: ['true', 'False']}"),
        json!({"type": "boolean", "enum": [true, false]})
    );
    assert_eq!(of("{type: string, enum: [404, true]}"), json!({"type": "string", "enum": ["404", "true"]}));
    assert_eq!(
        of("{type: array, enum: [red, blue], items: {type: string}}"),
        json!({"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}})
    );
    assert_eq!(
        of("{type: array, enum: ['1'], items: {type: integer}}"),
        json!({"type": "array", "items": {"type": "integer", "enum": [1]}})
    );
    // The values are more specific than the type.
    assert_eq!(
        of("{type: integer, enum: [low, 5]}"),
        json!({"type": ["integer", "string"], "enum": ["low", 5]})
    );
    assert_eq!(of("{type: object, enum: [low]}"), json!({"type": "string", "enum": ["low"]}));
    assert_eq!(
        of("{type: string, nullable: true, enum: [a, null]}"),
        json!({"type": ["string", "null"], "enum": ["a", null]})
    );
}

#[test]
fn closed_objects_have_the_members_of_all_parts() {
    let closed = "Named: {type: object, additionalProperties: false, required: [name], properties: {name: {type: string}}}";
    let body = "{type: object, additionalProperties: false, allOf: [{$ref: '#/components/schemas/Named'}]}";
    check(&with_body(body, closed), json!({"id": "1", "name": "x"}), true);
    check(&with_body(body, closed), json!({"id": "1", "name": "x", "other": 1}), false);
    let nested = |part: &str| {
        with_body(&format!("{{type: object, required: [at], properties: {{at: {part}}}}}"), closed)
    };
    let two = nested(
        "{allOf: [{$ref: '#/components/schemas/Named'}, {type: object, additionalProperties: false, properties: {age: {type: integer}}}]}",
    );
    check(&two, json!({"id": "1", "at": {"name": "x", "age": 5}}), true);
    check(&two, json!({"id": "1", "at": {"name": "x", "other": 5}}), false);
    // Parts that cannot be merged.
    let same = nested(
        "{additionalProperties: false, allOf: [{$ref: '#/components/schemas/Named'}, {properties: {name: {minLength: 2}, age: {}}}]}",
    );
    check(&same, json!({"id": "1", "at": {"name": "xy", "age": 5}}), true);
    check(&same, json!({"id": "1", "at": {"name": "x"}}), false);
    check(&same, json!({"id": "1", "at": {"name": "xy", "other": 5}}), false);
    let either = nested(
        "{type: object, additionalProperties: false, properties: {b: {}}, oneOf: [{required: [b]}, {required: [c], properties: {c: {type: string}}}]}",
    );
    check(&either, json!({"id": "1", "at": {"c": "x"}}), true);
    check(&either, json!({"id": "1", "at": {"c": "x", "other": 1}}), false);
}

#[test]
fn members_that_a_closed_object_lacks_are_not_required() {
    let document = with_body(
        "{type: object, required: [at], properties: {at: {type: object, additionalProperties: false, required: [naem], properties: {name: {type: string}}}}}",
        "",
    );
    check(&document, json!({"id": "1", "at": {"name": "x"}}), true);
    let faults = described(&document).faults;
    let fault = faults.iter().find(|fault| fault.location.ends_with("/at/required")).unwrap();
    assert_eq!(fault.problem, "the closed object has no member `naem`: it is not required");
    let pattern = with_body(
        "{type: object, required: [at], properties: {at: {additionalProperties: false, required: [x-a], patternProperties: {^x-: {}}}}}",
        "",
    );
    let pattern = pattern.replace("3.0.3", "3.1.0");
    check(&pattern, json!({"id": "1", "at": {}}), false);
    assert!(!described(&pattern).faults.iter().any(|fault| fault.location.ends_with("/required")));
}

#[test]
fn read_only_members_are_never_required() {
    let document = with_body(
        "{type: object, required: [at], properties: {at: {allOf: [{$ref: '#/components/schemas/Fields'}, {required: [id, text]}]}}}",
        "Fields: {type: object, properties: {id: {type: string, readOnly: true}, text: {type: string}}}",
    );
    check(&document, json!({"id": "1", "at": {"text": "x"}}), true);
    check(&document, json!({"id": "1", "at": {"id": "2", "text": "x"}}), true);
    check(&document, json!({"id": "1", "at": {}}), false);
}

#[test]
fn parameter_of_read_only_members_is_a_text() {
    let document = operation(
        "parameters: [{name: v, in: query, required: true, description: The version, schema: {type: object, additionalProperties: false, properties: {major: {type: integer, readOnly: true}}}}]\nresponses: {}",
    );
    assert_eq!(schema(&document)["properties"]["v"], json!({"type": "string", "description": "The version"}));
    check(&document, json!({"id": "1", "v": "1.0.0"}), true);
}

#[test]
fn nullable_beside_a_reference_accepts_null() {
    let document = with_body(
        "{type: object, properties: {owner: {$ref: '#/components/schemas/Person', nullable: true, description: Nobody if null}}}",
        "Person: {type: object, properties: {name: {type: string}}}",
    );
    check(&document, json!({"id": "1", "owner": null}), true);
    check(&document, json!({"id": "1", "owner": {"name": "x"}}), true);
    check(&document, json!({"id": "1", "owner": "x"}), false);
    assert_eq!(schema(&document)["properties"]["owner"]["description"], "Nobody if null");
}

#[test]
fn multipart_body_without_parts_takes_files() {
    for body in ["{schema: {}}", "{}", "{schema: {type: object}}"] {
        let document =
            operation(&format!("requestBody: {{content: {{multipart/form-data: {body}}}}}\nresponses: {{}}"));
        let argument = schema(&document)["properties"]["body"].clone();
        assert_eq!(argument["type"], "object", "{body}");
        assert!(argument["description"].as_str().unwrap().contains("`data:`"), "{body}");
        let described = described(&document).operations.remove(0);
        let arguments =
            json!({"id": "1", "body": {"note": "data: none", "scan": "data:text/plain;base64,aGVsbG8="}});
        let request =
            described.operation.request(Some(&Json::from_value(&arguments)), Some("https://a.b")).unwrap();
        let sent = String::from_utf8_lossy(request.body()).into_owned();
        assert!(
            sent.contains(
                "name=\"scan\"; filename=\"scan.txt\"\r\nContent-Type: text/plain\r\n\r\nhello\r\n"
            ),
            "{sent}"
        );
        assert!(sent.contains("name=\"note\"\r\n\r\ndata: none\r\n"), "{sent}");
    }
}

#[test]
fn scalars_of_results_have_any_scalar_type() {
    let document = operation(
        "responses: {'200': {content: {application/json: {schema: {type: object, properties: {n: {type: string}, paid: {type: boolean}, all: {type: array, items: {type: integer}}}}}}}}",
    );
    let output = described(&document).operations[0].definition.get("outputSchema").unwrap().to_value();
    let compiled = CompiledSchema::compile(&output).unwrap();
    let is_accepted = |result: Value| compiled.check(&result, &ValidationBudget::brief()).is_ok();
    assert!(is_accepted(json!({"n": 1, "paid": "yes", "all": ["3", 4, null]})));
    assert!(!is_accepted(json!({"n": {}})) && !is_accepted(json!({"all": 3})));
    assert_eq!(output["properties"]["paid"]["type"][0], "boolean", "the declared type is the first");
}

#[test]
fn configured_key_is_not_an_argument() {
    let document = |security: &str| {
        format!(
            "openapi: 3.0.3\ncomponents: {{securitySchemes: {{key: {{type: apiKey, in: header, name: X-Key}}, token: {{type: apiKey, in: query, name: token}}, login: {{type: http, scheme: basic}}}}}}\n\
             paths: {{/a: {{get: {{{security} parameters: [{{name: x-key, in: header, required: true, schema: {{type: string}}}}, {{name: token, in: query, schema: {{type: string}}}}, {{name: q, in: query, schema: {{type: string}}}}]}}}}}}"
        )
    };
    let check = |security: &str, configured: &[&str], arguments: &[&str], required: &str| {
        let credentials = configured.iter().map(|name| (*name).to_owned()).collect();
        let options = ReadOptions { credentials, ..ReadOptions::default() };
        let sources = DescriptionSources::new("a.yaml", document(security));
        let described = read(&sources, &options).unwrap().operations.remove(0);
        let schema = described.definition.get("inputSchema").unwrap().to_value();
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, arguments, "{security} {configured:?}");
        let parameters = described.operation.parameters.iter().map(|parameter| &*parameter.argument);
        assert_eq!(parameters.collect::<Vec<_>>(), arguments);
        let schemes = described
            .security
            .iter()
            .map(|all| all.iter().map(|one| &*one.scheme).collect::<Vec<_>>().join("+"));
        assert_eq!(schemes.collect::<Vec<_>>().join(" | "), required, "{security} {configured:?}");
    };
    let both = "security: [{login: []}, {key: [], token: []}],";
    check(both, &[], &["x-key", "token", "q"], "login | key+token");
    check(both, &["key", "token"], &["q"], "login | key+token");
    check(both, &["key"], &["token", "q"], "key | login | key+token");
    check(both, &["login", "token"], &["x-key", "q"], "login+token | key+token");
    check(both, &["other"], &["x-key", "token", "q"], "login | key+token");
    // The document forgets the requirement.
    check("", &["key"], &["token", "q"], "key");
}

#[test]
fn remaining_contradictions_are_named() {
    let document = with_body(
        "{type: object, required: [a], properties: {a: {type: string, minLength: 5, maxLength: 2}}}",
        "",
    );
    let description = described(&document);
    let found: Vec<_> = description.contradictions().collect();
    assert_eq!(found, [("op", "/a: `minLength` is above `maxLength`".to_owned())]);
    assert!(!description.lacks_server());
    let path = "a.yaml";
    let description = read(&DescriptionSources::new(path, document), &ReadOptions::default()).unwrap();
    assert!(description.lacks_server());
}

/// A response without a body becomes `null`.
#[test]
fn promised_values_may_be_null() {
    let check = |schema: &str, promise: ResultPromise| {
        let document = operation(&format!(
            "responses: {{'200': {{content: {{application/json: {{schema: {schema}}}}}}}}}"
        ));
        let described = &described(&document).operations[0];
        assert_eq!(described.promise, promise, "{schema}");
        let output = described.definition.get("outputSchema").unwrap().to_value();
        let none = if promise == ResultPromise::Object { json!({}) } else { json!({"result": null}) };
        let compiled = CompiledSchema::compile(&output).unwrap();
        assert!(compiled.check(&none, &ValidationBudget::brief()).is_ok(), "{schema}: {output}");
    };
    check("{type: array, items: {type: object}}", ResultPromise::Result);
    check("{type: string, enum: [a, b]}", ResultPromise::Scalar);
    check("{type: integer, minimum: 1}", ResultPromise::Scalar);
    check("{type: object, required: [id], properties: {id: {type: string}}}", ResultPromise::Object);
    check("{type: object, required: [id], additionalProperties: false}", ResultPromise::Object);
    check(
        "{type: object, allOf: [{required: [id]}, {properties: {id: {type: string}}}]}",
        ResultPromise::Object,
    );
}
