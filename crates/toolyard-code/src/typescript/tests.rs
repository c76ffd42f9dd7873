use serde_json::json;

use super::*;

#[track_caller]
fn check(schema: Value, expected: &str) {
    assert_eq!(type_of_schema(&schema), expected, "{schema}");
}

#[test]
fn simple_types() {
    check(json!({"type": "string"}), "string");
    check(json!({"type": "integer"}), "number");
    check(json!({"type": ["string", "null"]}), "string | null");
    check(json!({"enum": ["a", "b", 1, null]}), r#""a" | "b" | 1 | null"#);
    check(json!({"const": true}), "true");
    check(json!({"type": "array", "items": {"type": "string"}}), "string[]");
    check(json!({"type": "array", "items": {"type": ["string", "number"]}}), "(string | number)[]");
    check(json!({"type": "array"}), "unknown[]");
    check(json!({"prefixItems": [{"type": "string"}, {}], "type": "array"}), "[string, unknown]");
    for nothing in
        [json!({}), json!(true), json!(7), json!(null), json!({"type": "date"}), json!({"type": []})]
    {
        check(nothing, UNKNOWN);
    }
}

#[test]
fn objects() {
    check(json!({"type": "object"}), "{ [key: string]: unknown }");
    check(json!({"type": "object", "additionalProperties": false}), "{}");
    check(json!({"type": "object", "additionalProperties": {"type": "number"}}), "{ [key: string]: number }");
    check(
        json!({"properties": {"a": {"type": "string"}, "b-c": {"type": "boolean"}}, "required": ["a"]}),
        r#"{ a: string; "b-c"?: boolean }"#,
    );
    check(
        json!({"properties": {"all": {"type": "array", "items": {"properties": {"id": {"type": "number"}}}}}}),
        "{ all?: { id?: number }[] }",
    );
}

#[test]
fn comments_make_lines() {
    let schema = json!({"type": "object", "required": ["q"], "properties": {
        "q": {"type": "string", "description": "Words\n  to find */"},
        "limit": {"type": "integer", "default": 10},
        "at": {"type": "object", "properties": {"x": {"type": "number", "description": "East"}}},
    }});
    insta::assert_snapshot!(type_of_schema(&schema), @r"
    {
      /** Words to find * / */
      q: string;
      /** Default: 10 */
      limit?: number;
      at?: {
        /** East */
        x?: number;
      };
    }
    ");
}

#[test]
fn combinations() {
    check(json!({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}), "string | null");
    check(json!({"oneOf": [{"type": "string"}, {}]}), UNKNOWN);
    check(
        json!({"allOf": [{"properties": {"a": {"type": "number"}}}, {"properties": {"b": {"type": "string"}}}]}),
        "{ a?: number } & { b?: string }",
    );
    // Alternatives that only require members.
    check(
        json!({"properties": {"a": {"type": "number"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        "{ a?: number }",
    );
    check(json!({"$defs": {"Id": {"type": "string"}}, "$ref": "#/$defs/Id"}), "string");
    check(json!({"$ref": "https://example.com/schema"}), UNKNOWN);
    check(json!({"$ref": "#/absent"}), UNKNOWN);
}

#[test]
fn types_are_bounded() {
    let node = json!({"$defs": {"Node": {"properties": {"next": {"$ref": "#/$defs/Node"}}}}, "$ref": "#/$defs/Node"});
    let recursive = type_of_schema(&node);
    assert!(recursive.len() < 200 && recursive.contains("next?: unknown"), "{recursive}");
    let children = json!({"$ref": "#/$defs/Node"});
    let twice = json!({"$defs": {"Node": {"properties": {"a": children, "b": children, "c": children, "d": children}}},
        "$ref": "#/$defs/Node"});
    assert!(type_of_schema(&twice).len() < 20_000);
    let wide: Map<_, _> = (0..10_000).map(|n| (format!("member{n}"), json!({"type": "string"}))).collect();
    let wide = type_of_schema(&json!({"properties": wide}));
    assert!(wide.lines().count() < MAX_PARTS + 2, "{}", wide.lines().count());
    let long = json!({"properties": {"a": {"type": "string", "description": "word ".repeat(1000)}}});
    assert!(type_of_schema(&long).chars().count() < MAX_DESCRIPTION_CHARS + 40);
    let many: Vec<_> = (0..1000).map(Value::from).collect();
    check(json!({"enum": many, "type": "integer"}), "number");
}
