//! Output schemas for clients that accept only objects as structured results (MCP before 2026-07-28): a schema that is
//! not about objects is published as that of the member `result`, and a result becomes this member.

use memchr::memmem;
use serde_json::{Map, Value};

use crate::json::{Json, Object};
use crate::outcome::CallOutput;

/// The member of a result that has the structured result.
pub const STRUCTURED: &str = "structuredContent";

/// The member of the object that a result becomes.
const RESULT: &str = "result";

/// Pointer to the schema in the schema of the object.
const POINTER: &str = "#/properties/result";

/// The members of a schema that are moved to the schema of the object, so that references to them stay valid.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// The keywords whose values are not schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// The form of the structured results of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputForm {
    /// The tool has no output schema.
    #[default]
    Undeclared,
    /// Objects, by a schema with `type: object`.
    Object,
    /// Values that a schema describes in another way.
    Other,
}

/// Returns the form that a schema declares.
pub(crate) fn form(schema: Option<&Json>) -> OutputForm {
    let Some(schema) = schema else { return OutputForm::Undeclared };
    let is_object =
        schema.to_object().is_ok_and(|schema| schema.get_str("type").as_deref() == Some("object"));
    if is_object { OutputForm::Object } else { OutputForm::Other }
}

/// Makes an object of a structured result for a client that expects one. A result without a declared schema is changed
/// only if it is of a revision that allows other values, as its `resultType` says: those of older servers pass as they
/// are.
pub fn wrap_result(output: &mut CallOutput, form: OutputForm) {
    let Some(structured) = output.body.get(STRUCTURED) else { return };
    let is_wrapped = match form {
        OutputForm::Object => false,
        OutputForm::Other => true,
        OutputForm::Undeclared => !structured.is_object() && output.body.get("resultType").is_some(),
    };
    if is_wrapped {
        let wrapped = Object::new().with(RESULT, structured.clone()).to_json();
        output.body.set(STRUCTURED, wrapped);
    }
}

/// Returns the schema of an object with a value of this schema as its member `result`. References keep their targets.
pub(crate) fn wrap_schema(schema: &Json) -> Json {
    let schema = match has_root_references(schema) {
        true => with_moved_references(schema),
        false => schema.clone(),
    };
    let mut wrapper = Object::new();
    let mut inner = schema.to_object();
    if let Ok(inner) = &mut inner
        && inner.get("$id").is_none()
    {
        let moved = ["$schema"].into_iter().chain(DEFINITIONS);
        moved
            .for_each(|member| inner.remove(member).into_iter().for_each(|value| wrapper.set(member, value)));
    }
    let inner = inner.map_or(schema, |inner| inner.to_json());
    wrapper.set("type", Json::string("object"));
    wrapper.set("properties", Object::new().with(RESULT, inner).to_json());
    wrapper.set("required", Json::array([&Json::string(RESULT)]));
    wrapper.to_json()
}

/// Returns `true` if a schema may have references to its root or parts of it, other than its definitions. References in
/// a schema with an identifier are relative to that.
fn has_root_references(schema: &Json) -> bool {
    let text = schema.as_bytes();
    let is_definition = |rest: &[u8]| {
        DEFINITIONS.iter().any(|name| {
            let rest = rest.strip_prefix(b"/").and_then(|rest| rest.strip_prefix(name.as_bytes()));
            rest.is_some_and(|rest| rest.starts_with(b"/"))
        })
    };
    memmem::find_iter(text, b"\"#").any(|at| !is_definition(&text[at + 2..]))
}

/// Returns a schema whose references to its root lead to the root's new place. Numbers beyond 64 bits lose digits.
fn with_moved_references(schema: &Json) -> Json {
    let mut schema = schema.to_value();
    move_references(&mut schema);
    Json::from_value(&schema)
}

fn move_references(schema: &mut Value) {
    match schema {
        // References in a schema with an identifier are relative to that.
        Value::Object(members) if !members.get("$id").is_some_and(Value::is_string) => {
            members.iter_mut().for_each(|(keyword, value)| move_in_keyword(keyword, value));
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        _ => {}
    }
}

fn move_in_keyword(keyword: &str, value: &mut Value) {
    match (keyword, value) {
        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
            if let Some(moved) = moved_reference(reference) {
                *reference = moved;
            }
        }
        (
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies",
            Value::Object(schemas),
        ) => move_in_map(schemas),
        (keyword, value) if !DATA.contains(&keyword) => move_references(value),
        _ => {}
    }
}

/// Moves the references in schemas by names, which may be those of keywords.
fn move_in_map(schemas: &mut Map<String, Value>) {
    schemas.values_mut().for_each(move_references);
}

/// Returns a reference to the new place of its target; `None` if it stays valid.
fn moved_reference(reference: &str) -> Option<String> {
    let pointer = reference.strip_prefix('#')?;
    let first = pointer.strip_prefix('/').map(|path| path.split('/').next().unwrap_or_default());
    match first {
        Some(first) if DEFINITIONS.contains(&first) => None,
        Some(_) => Some(format!("{POINTER}{pointer}")),
        None if pointer.is_empty() => Some(POINTER.to_owned()),
        // An anchor.
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_schema(schema: &str, expected: &str) {
        let schema = Json::parse(schema.to_owned()).unwrap();
        assert_eq!(wrap_schema(&schema).as_text(), expected);
    }

    #[test]
    fn form_is_that_of_the_schema() {
        let check = |schema: &str, expected| {
            assert_eq!(form(Some(&Json::parse(schema.to_owned()).unwrap())), expected, "{schema}");
        };
        check(r#"{"type":"object"}"#, OutputForm::Object);
        check(r#"{"type":"string"}"#, OutputForm::Other);
        check(r#"{"type":["object","null"]}"#, OutputForm::Other);
        check(r#"{"properties":{}}"#, OutputForm::Other);
        check("true", OutputForm::Other);
        assert_eq!(form(None), OutputForm::Undeclared);
    }

    #[test]
    fn schema_becomes_that_of_a_member() {
        check_schema(
            r#"{"type":"number","maximum":1.10}"#,
            r#"{"type":"object","properties":{"result":{"type":"number","maximum":1.10}},"required":["result"]}"#,
        );
        check_schema("true", r#"{"type":"object","properties":{"result":true},"required":["result"]}"#);
        check_schema("7", r#"{"type":"object","properties":{"result":7},"required":["result"]}"#);
    }

    #[test]
    fn definitions_and_dialect_stay_at_the_root() {
        check_schema(
            r##"{"$schema":"s","type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"$ref":"#/definitions/b"}},"definitions":{"b":{}}}"##,
            r##"{"$schema":"s","$defs":{"a":{"$ref":"#/definitions/b"}},"definitions":{"b":{}},"type":"object","properties":{"result":{"type":"array","items":{"$ref":"#/$defs/a"}}},"required":["result"]}"##,
        );
    }

    #[test]
    fn references_to_the_root_follow_it() {
        check_schema(
            r##"{"anyOf":[{"type":"null"},{"items":{"$ref":"#"}}],"$defs":{"a":{"$ref":"#/anyOf/1"}}}"##,
            r##"{"$defs":{"a":{"$ref":"#/properties/result/anyOf/1"}},"type":"object","properties":{"result":{"anyOf":[{"type":"null"},{"items":{"$ref":"#/properties/result"}}]}},"required":["result"]}"##,
        );
    }

    #[test]
    fn only_references_are_changed() {
        // Anchors, data, a property with the name of a keyword, and a resource of its own.
        for part in [
            r##"{"$ref":"#anchor"}"##,
            r##"{"const":{"$ref":"#"}}"##,
            r##"{"enum":[{"$ref":"#"}]}"##,
            r##"{"description":"#"}"##,
            r##"{"$id":"urn:a","items":{"$ref":"#"}}"##,
        ] {
            check_schema(
                &format!(r#"{{"items":{part}}}"#),
                &format!(
                    r#"{{"type":"object","properties":{{"result":{{"items":{part}}}}},"required":["result"]}}"#
                ),
            );
        }
        check_schema(
            r##"{"properties":{"const":{"$ref":"#"},"$ref":{"type":"string"}}}"##,
            r##"{"type":"object","properties":{"result":{"properties":{"const":{"$ref":"#/properties/result"},"$ref":{"type":"string"}}}},"required":["result"]}"##,
        );
        let own =
            r##"{"$id":"urn:a","$defs":{"b":{}},"items":{"$ref":"#/items"},"anyOf":[{"$ref":"#/$defs/b"}]}"##;
        check_schema(
            own,
            &format!(r#"{{"type":"object","properties":{{"result":{own}}},"required":["result"]}}"#),
        );
    }

    #[test]
    fn results_become_members() {
        let check = |structured: &str, form, expected: &str| {
            let mut output = CallOutput::text("t");
            output.body.set(STRUCTURED, Json::parse(structured.to_owned()).unwrap());
            wrap_result(&mut output, form);
            assert_eq!(output.body.get(STRUCTURED).unwrap().as_text(), expected);
        };
        check("\"a\"", OutputForm::Other, r#"{"result":"a"}"#);
        check("{}", OutputForm::Other, r#"{"result":{}}"#);
        check("{}", OutputForm::Object, "{}");
        check("{}", OutputForm::Undeclared, "{}");
        check("[1.10]", OutputForm::Undeclared, "[1.10]");
        let mut modern = CallOutput::text("t");
        modern.body.set("resultType", Json::string("complete"));
        modern.body.set(STRUCTURED, Json::parse("[1.10]").unwrap());
        wrap_result(&mut modern, OutputForm::Undeclared);
        assert_eq!(modern.body.get(STRUCTURED).unwrap().as_text(), r#"{"result":[1.10]}"#);
        let mut nothing = CallOutput::text("t");
        wrap_result(&mut nothing, OutputForm::Other);
        assert_eq!(nothing, CallOutput::text("t"));
    }
}
