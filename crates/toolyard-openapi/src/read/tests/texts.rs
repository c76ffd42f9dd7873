//! Texts and examples of a document are in its tools.

use serde_json::{Value, json};
use toolyard_core::text::TextBounds;

use super::{DescriptionSources, ReadOptions, described, operation, read};

/// The schema of the tool's arguments, and the tool's description.
fn tool(document: &str) -> (Value, String) {
    let description = described(document);
    let definition = &description.operations[0].definition;
    let schema = definition.get("inputSchema").unwrap().to_value();
    (schema, definition.get_str("description").unwrap_or_default().into_owned())
}

fn argument(text: &str, name: &str) -> Value {
    tool(&operation(text)).0["properties"][name].clone()
}

#[test]
fn parameter_examples_are_kept() {
    let check = |parameter: &str, expected: Value| {
        let parameter = format!("parameters: [{{name: q, in: query, {parameter}}}]\nresponses: {{}}");
        assert_eq!(argument(&parameter, "q")["examples"], expected, "{parameter}");
    };
    check("schema: {type: string}, example: 'size,weight'", json!(["size,weight"]));
    check("schema: {type: string}, examples: {a: {value: x}, b: {value: y}}", json!(["x", "y"]));
    check("schema: {type: string, example: inner}, example: outer", json!(["outer", "inner"]));
    check("schema: {type: string, example: same}, example: same", json!(["same"]));
    check("content: {text/plain: {schema: {type: string}, example: z}}", json!(["z"]));
    check("schema: {$ref: '#/paths'}, example: 5", json!([5]));
    // An example is published in the type of its argument.
    check("schema: {type: integer}, example: '7'", json!([7]));
    check("schema: {type: array, items: {type: integer}}, example: '1,2'", json!([[1, 2]]));
    check("schema: {type: boolean}, example: perhaps", Value::Null);
    check(&format!("schema: {{type: string}}, example: {}", "x".repeat(5000)), Value::Null);
}

#[test]
fn swagger_2_parameter_examples_are_kept() {
    let (schema, _) = tool(
        "swagger: '2.0'\npaths: {/a: {get: {parameters: [{name: q, in: query, type: string, x-example: abc}], responses: {}}}}",
    );
    assert_eq!(schema["properties"]["q"]["examples"], json!(["abc"]));
}

#[test]
fn body_texts_are_in_the_tool() {
    let body = |request: &str, media: &str| {
        let text = format!(
            "summary: Change\nrequestBody: {{{request} content: {{application/json: {{{media}}}}}}}\nresponses: {{}}"
        );
        tool(&operation(&text))
    };
    let object = |more: &str| {
        format!("schema: {{type: object, {more} properties: {{a: {{type: string}}, b: {{type: integer}}}}}}")
    };
    let (schema, text) = body(
        "description: Send only changes.,",
        &format!(
            "{}, examples: {{one: {{value: {{a: x}}}}, two: {{value: {{a: y, b: 2}}}}}}",
            object("description: In local time.,")
        ),
    );
    assert_eq!(text, "Change\n\nBody: Send only changes.\n\nIn local time.");
    assert_eq!(schema["properties"]["a"]["examples"], json!(["x", "y"]));
    assert_eq!(schema["properties"]["b"]["examples"], json!([2]));
    // Texts that the tool has already are not repeated, and neither are examples.
    let (_, text) = body("description: change,", &object("description: Change,"));
    assert_eq!(text, "Change");
    let (schema, _) = body("", &object("example: {a: z},"));
    assert_eq!(schema["properties"]["a"]["examples"], json!(["z"]));
    let (schema, _) = body("", &format!("{}, example: '{{\"a\": \"text\"}}'", object("")));
    assert_eq!(schema["properties"]["a"]["examples"], json!(["text"]));
    // A body that is one argument.
    let (schema, text) = body(
        "description: The list.,",
        "schema: {type: array, description: Of names., items: {type: string}}, example: [ann]",
    );
    assert_eq!(text, "Change");
    assert_eq!(schema["properties"]["body"]["description"], "The list.\n\nOf names.");
    assert_eq!(schema["properties"]["body"]["examples"], json!([["ann"]]));
}

#[test]
fn keywords_beside_one_reference_are_kept() {
    let order = |schema: &str| {
        let text = format!("parameters: [{{name: q, in: query, schema: {schema}}}]\nresponses: {{}}");
        let document =
            format!("{}components: {{schemas: {{Order: {{enum: [up, down]}}}}}}", operation(&text));
        tool(&document).0["properties"]["q"].clone()
    };
    let wrapped = order("{default: down, example: up, allOf: [{$ref: '#/components/schemas/Order'}]}");
    assert_eq!(wrapped, json!({"$ref": "#/$defs/Order", "default": "down", "examples": ["up"]}));
    let beside = order("{$ref: '#/components/schemas/Order', deprecated: true, default: up}");
    assert_eq!(beside, json!({"$ref": "#/$defs/Order", "default": "up", "deprecated": true}));
}

#[test]
fn descriptions_of_files_are_kept() {
    let file = |schema: &str| {
        argument(
            &format!(
                "requestBody: {{content: {{multipart/form-data: {{schema: {{type: object, properties: {{f: {schema}}}}}}}}}}}\nresponses: {{}}"
            ),
            "f",
        )
    };
    let listed = file(
        "{type: array, description: All, items: {type: string, format: binary, description: 'Scan, PDF'}}",
    );
    assert_eq!(listed["description"], "All");
    assert_eq!(listed["items"]["description"], "Scan, PDF (Base64-encoded.)");
    let optional = file("{anyOf: [{type: string, format: binary, description: Photo}, {type: 'null'}]}");
    assert_eq!(optional["description"], "Photo (Base64-encoded.)");
}

#[test]
fn references_in_examples_are_followed() {
    let rule = |example: &str| {
        let text = format!(
            "requestBody: {{content: {{application/json: {{schema: {{type: object, properties: {{r: {{type: object, example: {example}}}}}}}}}}}}}\nresponses: {{}}"
        );
        let components = "components: {examples: {Rule: {value: {when: now, who: {$ref: '#/components/examples/Who/value'}}}, Who: {value: ann}, Loop: {value: {$ref: '#/components/examples/Loop/value'}}}}";
        tool(&format!("{}{components}", operation(&text))).0["properties"]["r"]["examples"].clone()
    };
    let value = json!([{"when": "now", "who": "ann"}]);
    assert_eq!(rule("{$ref: '#/components/examples/Rule/value'}"), value);
    assert_eq!(rule("{$ref: '#/components/examples/Rule'}"), value);
    assert_eq!(rule("{$ref: '#/components/examples/None'}"), Value::Null);
    assert_eq!(rule("{$ref: '#/components/examples/Loop/value'}"), Value::Null);
}

#[test]
fn long_texts_are_cut_and_whole_in_the_manual() {
    let sentence = "A shelf holds books or boxes. ";
    let (long, filter) = (format!("{}Syntax: FIELD:VALUE.", sentence.repeat(50)), sentence.repeat(30));
    let document = operation(&format!(
        "summary: Find\ndescription: '{long}'\nparameters: [{{name: f, in: query, description: '{filter}', schema: {{type: string}}}}]\nresponses: {{}}"
    ));
    let options = |tool_chars, argument_chars| ReadOptions {
        texts: TextBounds { tool_chars, argument_chars, ..TextBounds::DEFAULT },
        ..ReadOptions::default()
    };
    let check = |options: ReadOptions, lengths: [usize; 2], has_manual: bool| {
        let sources = DescriptionSources::new("a.yaml", &*document);
        let described = read(&sources, &options).unwrap().operations.remove(0);
        let text = described.definition.get_str("description").unwrap().into_owned();
        let schema = described.definition.get("inputSchema").unwrap().to_value();
        let argument = schema["properties"]["f"]["description"].as_str().unwrap().to_owned();
        for (text, length) in [&text, &argument].into_iter().zip(lengths) {
            assert!(text.len() <= length + 4 && (text.ends_with(". \u{2026}") || !has_manual), "{text}");
        }
        let manual = described.manual.unwrap_or_default();
        assert_eq!(manual.contains("Syntax: FIELD:VALUE."), has_manual);
        assert_eq!(manual.ends_with(&format!("\n\n`f`: {}", filter.trim())), has_manual, "{manual}");
    };
    check(options(1024, 512), [1024, 512], true);
    check(options(200, 100), [200, 100], true);
    check(options(10_000, 10_000), [10_000, 10_000], false);
}
