#![expect(dead_code, reason = "only their forms are used")]

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

/// The fields of a form, or its fault.
fn fields<T: JsonSchema>() -> Result<Value, String> {
    form::of::<T>().map(|form| form["properties"].clone())
}

#[derive(Deserialize, JsonSchema)]
struct Defaults {
    #[serde(default = "john")]
    name: String,
    #[serde(default = "thirty")]
    age: u8,
    #[serde(default = "score")]
    score: f64,
    #[serde(default)]
    status: Status,
    #[serde(default)]
    verified: bool,
}

fn john() -> String {
    "John Doe".to_owned()
}

const fn thirty() -> u8 {
    30
}

const fn score() -> f64 {
    95.5
}

#[derive(Debug, Default, Deserialize, JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    #[default]
    Active,
    Inactive,
}

#[test]
fn defaults_are_part_of_the_form() {
    assert_eq!(
        form::of::<Defaults>(),
        Ok(json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "minimum": 0, "maximum": 255, "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive"], "default": "active"},
                "verified": {"type": "boolean", "default": false},
            },
        }))
    );
}

#[derive(Deserialize, JsonSchema)]
struct Texts {
    /// Your full name
    #[schemars(title = "Name", length(min = 3, max = 50), regex(pattern = "^[A-Z]"))]
    name: String,
    #[schemars(email)]
    email: Option<String>,
    #[schemars(url)]
    page: String,
    #[schemars(range(min = 18, max = 99))]
    age: Option<i64>,
    letter: char,
    #[schemars(extend("format" = "uuid"))]
    id: Wrapped,
    path: std::path::PathBuf,
}

#[derive(Deserialize, JsonSchema)]
struct Wrapped(String);

#[test]
fn constraints_of_strings_and_numbers_are_kept() {
    assert_eq!(
        form::of::<Texts>(),
        Ok(json!({
            "type": "object",
            "properties": {
                "name": {
                    "type": "string", "minLength": 3, "maxLength": 50, "title": "Name", "description": "Your full name",
                },
                "email": {"type": "string", "format": "email"},
                "page": {"type": "string", "format": "uri"},
                "age": {"type": "integer", "minimum": 18, "maximum": 99},
                "letter": {"type": "string", "minLength": 1, "maxLength": 1},
                "id": {"type": "string"},
                "path": {"type": "string"},
            },
            "required": ["name", "page", "letter", "id", "path"],
        }))
    );
}

#[derive(Deserialize, JsonSchema)]
struct Choosing {
    plain: Plain,
    titled: Titled,
    optional: Option<Plain>,
    optional_titled: Option<Titled>,
    several: Vec<Plain>,
    #[schemars(length(min = 1, max = 2))]
    several_titled: BTreeSet<Titled>,
    optional_several: Option<Vec<Plain>>,
    /// There is one only
    one: One,
}

#[derive(Deserialize, JsonSchema)]
enum Plain {
    A,
    B,
}

/// Has comments on some
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
enum Titled {
    /// The first
    A,
    #[schemars(title = "Second")]
    B,
    C,
}

#[derive(Deserialize, JsonSchema)]
enum One {
    Only,
}

#[test]
fn enums_become_choices() {
    let plain = json!({"type": "string", "enum": ["A", "B"]});
    let titled = json!([
        {"const": "A", "title": "The first"},
        {"const": "B", "title": "Second"},
        {"const": "C", "title": "C"},
    ]);
    let single = json!({"type": "string", "oneOf": titled, "description": "Has comments on some"});
    let mut fields = fields::<Choosing>().unwrap();
    // The order of the choices does not matter here.
    for pointer in ["/titled/oneOf", "/optional_titled/oneOf", "/several_titled/items/anyOf"] {
        let choices = fields.pointer_mut(pointer).unwrap().as_array_mut().unwrap();
        choices.sort_by_key(|choice| choice["const"].to_string());
    }
    assert_eq!(
        fields,
        json!({
            "plain": plain,
            "titled": single,
            "optional": plain,
            "optional_titled": single,
            "several": {"type": "array", "items": plain},
            "several_titled": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"anyOf": titled}},
            "optional_several": {"type": "array", "items": plain},
            "one": {"type": "string", "enum": ["Only"], "description": "There is one only"},
        })
    );
}

#[test]
fn unsupported_field_is_refused() {
    fn check<T: JsonSchema>(expected: &str) {
        assert_eq!(fields::<T>(), Err(expected.to_owned()));
    }
    #[derive(Deserialize, JsonSchema)]
    struct Of<T> {
        field: T,
    }
    #[derive(Deserialize, JsonSchema)]
    enum WithValue {
        A,
        B(u8),
    }
    #[derive(Deserialize, JsonSchema)]
    struct Tree {
        left: Option<Box<Tree>>,
    }
    check::<Of<Defaults>>("`field` is an object");
    check::<Of<Option<Defaults>>>("`field` is an object");
    check::<Of<BTreeSet<u8>>>("`field` is a list of something other than choices");
    check::<Of<Vec<Defaults>>>("`field` is a list of something other than choices");
    check::<Of<WithValue>>("`field` is something else");
    check::<Of<Value>>("`field` is something else");
    check::<Of<()>>("`field` is something else");
    check::<Tree>("`left` is something else");
    check::<Status>("it is not an object with fields");
    check::<()>("it is not an object with fields");
}

#[test]
fn explicit_schema_is_checked() {
    let check = |schema: Value, expected: Result<(), &str>| {
        let prepared = ElicitRequest::form_with_schema("?", schema.clone()).prepare();
        match (prepared, expected) {
            (Ok(prepared), Ok(())) => {
                assert_eq!(prepared.ask.params.get("requestedSchema").map(Json::to_value), Some(schema));
            }
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
            (prepared, _) => panic!("{schema}: {prepared:?}"),
        }
    };
    let legacy = json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"], "x-own": 1});
    check(json!({"type": "object", "properties": {"legacy": legacy}, "$comment": "kept"}), Ok(()));
    let titled = json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}});
    check(json!({"type": "object", "properties": {"titled": titled}}), Ok(()));
    let rule = "the fields of a form are strings, numbers, booleans and choices";
    let nested = json!({"type": "object", "properties": {"a": {"type": "object"}}});
    check(
        nested,
        Err(&format!("invalid question: `schema` is not a form, because `a` is an object: {rule}")),
    );
    let list = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}});
    let fault = "`a` is a list of something other than choices";
    check(list, Err(&format!("invalid question: `schema` is not a form, because {fault}: {rule}")));
    let string = json!({"type": "string"});
    check(
        string,
        Err(&format!(
            "invalid question: `schema` is not a form, because it is not an object with fields: {rule}"
        )),
    );
}

#[test]
fn question_becomes_parameters() {
    let describe = |question: ElicitRequest| {
        let prepared = question.prepare().unwrap();
        format!("{:?} {}", prepared.need, prepared.ask.params.to_json().as_text())
    };
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}
    insta::assert_snapshot!(describe(ElicitRequest::form::<Nothing>("Really?")), @r#"Form {"mode":"form","message":"Really?","requestedSchema":{"type":"object","properties":{}}}"#);
    insta::assert_snapshot!(describe(ElicitRequest::url("Sign in", "https://example.com/?a=1", "7")), @r#"Url {"mode":"url","message":"Sign in","url":"https://example.com/?a=1","elicitationId":"7"}"#);
}

#[test]
fn answer_is_parsed() {
    let read = |answer: Value| ElicitRequest::read(&Json::from_value(&answer)).map_err(|error| error.0);
    assert_eq!(read(json!({"action": "accept"})), Ok(ElicitResult::Accepted(json!({}))));
    assert_eq!(
        read(json!({"action": "accept", "content": {"a": 1}, "_meta": {}})),
        Ok(ElicitResult::Accepted(json!({"a": 1})))
    );
    assert_eq!(read(json!({"action": "decline", "content": {}})), Ok(ElicitResult::Declined));
    assert_eq!(read(json!({"action": "cancel"})).map(|done| done.action()), Ok("cancel"));
    assert_eq!(read(json!({})), Err("its `action` is not `accept`, `decline` or `cancel`".to_owned()));
    assert_eq!(read(json!([])), Err("it is not an object".to_owned()));
    assert_eq!(
        ElicitResult::Accepted(json!({})).parse::<Wrapped>().map(|_| ()).map_err(|error| error.0.len() > 5),
        Err(true)
    );
}
