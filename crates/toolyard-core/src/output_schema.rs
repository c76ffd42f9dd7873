//! Output schemas as clients see them.
//!
//! - Clients that accept only objects as structured results (MCP before 2026-07-28): a schema that is not about objects
//!   is published as that of the member `result`, and a result becomes this member.
//! - Models: a result that is too large for them is replaced by a [`StoredResult`], which the published schema allows.

mod references;
mod repeated_content;
mod stored_result;

use crate::json::{Json, Object};
use crate::outcome::CallOutput;

pub use repeated_content::{ComparedText, RepeatedContent};
pub use stored_result::StoredResult;

/// The member of a result that has the structured result.
pub const STRUCTURED: &str = "structuredContent";

/// The member of the object that a result becomes.
const RESULT: &str = "result";

/// Pointer to the schema in the schema of the object.
const RESULT_POINTER: &str = "#/properties/result";

/// Pointer to the schema in the extended schema.
const ORIGINAL_POINTER: &str = "#/anyOf/0";

/// The member by which FastMCP's servers tell its clients that the result is the member `result`.
const FASTMCP_WRAPS: &str = "x-fastmcp-wrap-result";

/// The treatment of the output schemas of tools whose results may be too large for a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputSchemaMode {
    /// The schema also allows a [`StoredResult`], which replaces a large result.
    #[default]
    Extend,
    /// The tool is listed without its schema, and large results have no structured content.
    Withdraw,
    /// The tool is listed with its schema, and structured content passes at any length.
    Keep,
}

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
    let (mut wrapper, inner) = hoisted(schema, RESULT_POINTER);
    wrapper.set("type", Json::string("object"));
    wrapper.set("properties", Object::new().with(RESULT, inner).to_json());
    wrapper.set("required", Json::array([&Json::string(RESULT)]));
    wrapper.to_json()
}

/// Returns the schema of a value of this schema or of a [reference](StoredResult) to it. References in the schema keep
/// their targets. `None` if it is not a schema.
pub(crate) fn extend_schema(schema: &Json) -> Option<Json> {
    if !schema.is_object() && schema.to_bool().is_none() {
        return None;
    }
    let (mut extended, original) = hoisted(schema, ORIGINAL_POINTER);
    if let Ok(members) = original.to_object() {
        if members.get_str("type").as_deref() == Some("object") {
            extended.set("type", Json::string("object"));
            // The places of other references would have to be at the root as well.
            if !references::has_root_references(schema) {
                repeat_properties(&mut extended, &members);
            }
        }
        mark_wrapped_result(&mut extended, &members);
    }
    extended.set("anyOf", Json::array([&original, &StoredResult::schema()]));
    Some(extended.to_json())
}

/// Repeats the properties of a result beside those of a reference. FastMCP's clients make the members of their result
/// object of the properties at the root. They are left out if they do not say which members there may be.
fn repeat_properties(extended: &mut Object, original: &Object) {
    let is_closed = |more: &Json| more.to_bool() == Some(false);
    let has_more = !original.get("additionalProperties").is_none_or(is_closed)
        || original.get("patternProperties").is_some()
        || original.get("$id").is_some();
    let properties = original.get("properties").and_then(|properties| properties.to_object().ok());
    let Some(properties) = properties.filter(|all| !has_more && !all.is_empty()) else { return };
    if properties.get(stored_result::MEMBER).is_none() {
        let all = properties.with(stored_result::MEMBER, StoredResult::member_schema());
        extended.set("properties", all.to_json());
    }
}

/// Repeats FastMCP's mark of a wrapped result, and the schema of the result, where its clients look for them. They read
/// a reference as `null`, because it has no member `result`.
fn mark_wrapped_result(extended: &mut Object, original: &Object) {
    let properties = original.get("properties").and_then(|properties| properties.to_object().ok());
    let result = properties.and_then(|properties| properties.get(RESULT).cloned());
    if let (Some(mark), Some(result)) = (original.get(FASTMCP_WRAPS), result) {
        let null = Object::new().with("type", Json::string("null")).to_json();
        let result = Object::new().with("anyOf", Json::array([&result, &null])).to_json();
        extended.set("properties", Object::new().with(RESULT, result).to_json());
        extended.set(FASTMCP_WRAPS, mark.clone());
    }
}

/// Splits a schema into the members that belong to the root of a schema, and the rest for the place of `pointer` in it.
/// A schema with an identifier stays whole: its references are relative to that.
fn hoisted(schema: &Json, pointer: &str) -> (Object, Json) {
    let schema = references::moved_to(schema, pointer);
    let mut root = Object::new();
    let mut inner = schema.to_object();
    if let Ok(inner) = &mut inner
        && inner.get("$id").is_none()
    {
        let moved = ["$schema"].into_iter().chain(references::DEFINITIONS);
        moved.for_each(|member| inner.remove(member).into_iter().for_each(|value| root.set(member, value)));
    }
    (root, inner.map_or(schema, |inner| inner.to_json()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{CompiledSchema, ValidationBudget};

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

    /// The schema of references.
    const STORED: &str = r#"{"type":"object","properties":{"storedResult":{"type":"object","properties":{"key":{"type":"string"},"chunks":{"type":"integer"},"chars":{"type":"integer"},"note":{"type":"string"}},"required":["note"]}},"required":["storedResult"]}"#;

    #[track_caller]
    fn check_extended(schema: &str, expected: Option<&str>) {
        let extended = extend_schema(&Json::parse(schema.to_owned()).unwrap());
        let member = StoredResult::member_schema();
        let text = extended
            .map(|schema| schema.as_text().replace(STORED, "STORED").replace(member.as_text(), "MEMBER"));
        assert_eq!(text.as_deref(), expected);
    }

    #[test]
    fn schema_allows_references() {
        check_extended(
            r#"{"type":"object","properties":{"a":{"maximum":1.10}},"required":["a"],"additionalProperties":false}"#,
            Some(
                r#"{"type":"object","properties":{"a":{"maximum":1.10},"storedResult":MEMBER},"anyOf":[{"type":"object","properties":{"a":{"maximum":1.10}},"required":["a"],"additionalProperties":false},STORED]}"#,
            ),
        );
        check_extended(r#"{"type":"array"}"#, Some(r#"{"anyOf":[{"type":"array"},STORED]}"#));
        check_extended("true", Some(r#"{"anyOf":[true,STORED]}"#));
        check_extended("7", None);
        check_extended("null", None);
    }

    /// FastMCP's clients make the members of a result of the properties at the root.
    #[test]
    fn properties_are_repeated_where_they_are_all() {
        let repeated = |rest: &str| {
            let schema = format!(r#"{{"type":"object","properties":{{"a":{{}}}}{rest}}}"#);
            let extended = extend_schema(&Json::parse(schema).unwrap()).unwrap();
            extended.to_value()["properties"]["storedResult"].is_object()
        };
        for rest in
            ["", r#","additionalProperties":false"#, r#","required":["a"],"title":"A","$defs":{"b":{}}"#]
        {
            assert!(repeated(rest), "{rest}");
        }
        for rest in [
            r#","additionalProperties":true"#,
            r#","additionalProperties":{"type":"string"}"#,
            r#","patternProperties":{"^b":{}}"#,
            r#","$id":"urn:example:a""#,
            r##","$defs":{"b":{"$ref":"#"}}"##,
        ] {
            assert!(!repeated(rest), "{rest}");
        }
        check_extended(
            r#"{"type":"object","properties":{"storedResult":{"type":"string"}}}"#,
            Some(
                r#"{"type":"object","anyOf":[{"type":"object","properties":{"storedResult":{"type":"string"}}},STORED]}"#,
            ),
        );
        check_extended(
            r#"{"type":"object"}"#,
            Some(r#"{"type":"object","anyOf":[{"type":"object"},STORED]}"#),
        );
    }

    #[test]
    fn references_in_an_extended_schema_keep_their_targets() {
        check_extended(
            r##"{"$schema":"s","type":"object","properties":{"next":{"$ref":"#"},"a":{"$ref":"#/$defs/a"},"b":{"$ref":"#/properties/a"},"c":{"$ref":"#/%24defs/a"}},"$defs":{"a":{"$ref":"#/properties/next"}}}"##,
            Some(
                r##"{"$schema":"s","$defs":{"a":{"$ref":"#/anyOf/0/properties/next"}},"type":"object","anyOf":[{"type":"object","properties":{"next":{"$ref":"#/anyOf/0"},"a":{"$ref":"#/$defs/a"},"b":{"$ref":"#/anyOf/0/properties/a"},"c":{"$ref":"#/%24defs/a"}}},STORED]}"##,
            ),
        );
        let own = r##"{"$id":"urn:example:a","type":"object","$defs":{"b":{"$ref":"#"}}}"##;
        check_extended(own, Some(&format!(r#"{{"type":"object","anyOf":[{own},STORED]}}"#)));
    }

    /// FastMCP's clients take the mark and the schema of the result from the root.
    #[test]
    fn mark_of_a_wrapped_result_stays_at_the_root() {
        check_extended(
            r#"{"type":"object","properties":{"result":{"type":"string"}},"required":["result"],"x-fastmcp-wrap-result":true}"#,
            Some(
                r#"{"type":"object","properties":{"result":{"anyOf":[{"type":"string"},{"type":"null"}]}},"x-fastmcp-wrap-result":true,"anyOf":[{"type":"object","properties":{"result":{"type":"string"}},"required":["result"],"x-fastmcp-wrap-result":true},STORED]}"#,
            ),
        );
    }

    /// A legacy client gets an object with the value or the reference.
    #[test]
    fn extended_schema_becomes_that_of_a_member() {
        let schema = Json::parse(r##"{"items":{"$ref":"#"}}"##.to_owned()).unwrap();
        let wrapped = wrap_schema(&extend_schema(&schema).unwrap());
        let expected = r##"{"type":"object","properties":{"result":{"anyOf":[{"items":{"$ref":"#/properties/result/anyOf/0"}},STORED]}},"required":["result"]}"##;
        assert_eq!(wrapped.as_text().replace(STORED, "STORED"), expected);
    }

    #[test]
    fn references_match_their_schema() {
        let schema = CompiledSchema::compile(&StoredResult::schema().to_value()).unwrap();
        let check = |stored, expected: &str| {
            let reference = StoredResult { stored, chars: 70_000, note: "why" }.to_json();
            assert_eq!(reference.as_text(), expected);
            assert_eq!(schema.check(&reference.to_value(), &ValidationBudget::brief()), Ok(()));
        };
        check(
            Some(("k-index", 2)),
            r#"{"storedResult":{"key":"k-index","chunks":2,"chars":70000,"note":"why"}}"#,
        );
        check(None, r#"{"storedResult":{"chars":70000,"note":"why"}}"#);
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
