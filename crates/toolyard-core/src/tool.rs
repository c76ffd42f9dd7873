//! A tool: what its owner says of it, and the little that we route by.

use std::sync::{Arc, OnceLock};

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;

use crate::error::{Code, ToolError};
use crate::item::{BadItem, keyed};
use crate::json::{Json, Object};

/// A tool as its owner publishes it, or as it is published in its place.
#[derive(Debug)]
pub struct Tool {
    /// The name that the owner calls it by.
    pub name: Arc<str>,
    /// The whole definition, as it came, or as an operator changed it.
    pub definition: Object,
    /// What arguments are held to, where that is not what is published.
    accepted: Option<Json>,
    check: OnceLock<Check>,
}

/// The input schema, ready to check arguments. Made when the first call comes: a list of thousands
/// of tools is up sooner, and most of them are never called.
enum Check {
    Schema(Box<jsonschema::Validator>),
    /// There is none, or it does not compile: the tool is served unchecked.
    Nothing,
}

/// The name is part of the definition.
impl PartialEq for Tool {
    fn eq(&self, other: &Self) -> bool {
        self.definition == other.definition && self.accepted == other.accepted
    }
}

impl Eq for Tool {}

impl Tool {
    /// Reads a definition.
    ///
    /// # Errors
    /// When it is not an object with a non-empty `name`.
    pub fn from_definition(definition: &Json) -> Result<Self, BadItem> {
        let (name, definition) = keyed(definition, "name")?;
        Ok(Self { name, definition, accepted: None, check: OnceLock::new() })
    }

    /// A tool that is described here, not by a server: its name, and the rest of its definition.
    #[must_use]
    pub fn named(name: &str, rest: Object) -> Self {
        let mut definition = Object::new().with("name", Json::string(name));
        for (member, value) in rest.iter() {
            definition.set(&member, value.clone());
        }
        Self { name: name.into(), definition, accepted: None, check: OnceLock::new() }
    }

    /// Holds arguments to another schema than the published one: an owner may take more than it asks for.
    #[must_use]
    pub fn accepting(mut self, schema: Json) -> Self {
        self.accepted = Some(schema);
        self
    }

    /// The same tool, described in another way. What arguments are held to changes as their published schema does.
    pub(crate) fn changed(
        &self,
        describe: impl FnOnce(&mut Object),
        mut schema: impl FnMut(&Json) -> Json,
    ) -> Self {
        let mut definition = self.definition.clone();
        if let Some(input) = self.input_schema() {
            definition.set("inputSchema", schema(input));
        }
        describe(&mut definition);
        let accepted = self.accepted.as_ref().map(schema);
        Self { name: self.name.clone(), definition, accepted, check: OnceLock::new() }
    }

    /// The schema of its arguments.
    #[must_use]
    pub fn input_schema(&self) -> Option<&Json> {
        self.definition.get("inputSchema")
    }

    /// Checks arguments against the input schema, or what the owner accepts instead.
    ///
    /// # Errors
    /// [`Code::InvalidArguments`], with a message that names the place of each fault. Arguments that are
    /// no object, or name a member twice, fit no schema.
    pub fn check_arguments(&self, arguments: Option<&Json>) -> Result<(), ToolError> {
        if let Some(Err(error)) = arguments.map(Json::to_object) {
            return Err(ToolError::new(
                Code::InvalidArguments,
                format!("Invalid arguments: {}", error.problem),
            ));
        }
        match self.check.get_or_init(|| self.compile()) {
            Check::Nothing => Ok(()),
            Check::Schema(schema) => {
                let value = arguments.map_or_else(|| serde_json::json!({}), Json::to_value);
                check_value(schema, &value).map_err(|faults| {
                    ToolError::new(Code::InvalidArguments, format!("Invalid arguments: {faults}"))
                })
            }
        }
    }

    /// Checks the structure of a result against the output schema; `None` where the tool publishes none. For whoever
    /// tries a tool: the results of calls are not checked.
    ///
    /// # Errors
    /// [`Code::ExecutionFailed`], with a message that names the place of each fault.
    #[must_use]
    pub fn check_result(&self, result: &Object) -> Option<Result<(), ToolError>> {
        let schema = self.definition.get("outputSchema")?.to_value();
        let wrong = |problem: String| ToolError::new(Code::ExecutionFailed, problem);
        let schema = match jsonschema::validator_for(&schema) {
            Ok(schema) => schema,
            Err(error) => return Some(Err(wrong(format!("The output schema does not compile: {error}")))),
        };
        let Some(value) = result.get("structuredContent") else {
            return Some(Err(wrong(
                "The tool has an output schema, and its result no `structuredContent`".to_owned(),
            )));
        };
        let checked = check_value(&schema, &value.to_value());
        Some(checked.map_err(|faults| wrong(format!("The result does not fit the output schema: {faults}"))))
    }

    fn compile(&self) -> Check {
        let Some(schema) = self.accepted.as_ref().or_else(|| self.input_schema()) else {
            return Check::Nothing;
        };
        match jsonschema::validator_for(&schema.to_value()) {
            Ok(schema) => Check::Schema(Box::new(schema)),
            Err(error) => {
                tracing::warn!(tool = %self.name, %error, "the input schema does not compile: arguments go unchecked");
                Check::Nothing
            }
        }
    }
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Schema(_) => "Schema",
            Self::Nothing => "Nothing",
        })
    }
}

/// How many faults a message names: a model mends the first ones and tries again.
const FAULTS_NAMED: usize = 5;

fn check_value(schema: &jsonschema::Validator, value: &serde_json::Value) -> Result<(), String> {
    if schema.is_valid(value) {
        return Ok(());
    }
    let faults: Vec<_> =
        schema.iter_errors(value).flat_map(|error| faults(&error)).take(FAULTS_NAMED).collect();
    Err(faults.join("; "))
}

/// What is wrong, and where. Of several forms that a value could have, the one that it comes closest to is taken: that
/// it has none of them helps nobody.
fn faults(error: &ValidationError<'_>) -> Vec<String> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return vec![fault(error, &error.masked())];
    };
    let expected = |branch: &Vec<ValidationError<'_>>| match branch.as_slice() {
        [only] if only.instance_path() == error.instance_path() => match only.kind() {
            ValidationErrorKind::Constant { expected_value } => Some(expected_value.to_string()),
            _ => None,
        },
        _ => None,
    };
    if let Some(choices) = context.iter().map(expected).collect::<Option<Vec<_>>>() {
        return vec![fault(error, &format_args!("value is none of {}", choices.join(", ")))];
    }
    let closest = context.iter().min_by_key(|branch| (wrong_tags(error, branch), branch.len()));
    closest.map_or_else(Vec::new, |branch| branch.iter().flat_map(faults).collect())
}

/// Constants tell one form from another, and so does what kind of value it is at all.
fn wrong_tags(form: &ValidationError<'_>, branch: &[ValidationError<'_>]) -> usize {
    let is_tag = |error: &&ValidationError<'_>| match error.kind() {
        ValidationErrorKind::Constant { .. } => true,
        ValidationErrorKind::Type { .. } => error.instance_path() == form.instance_path(),
        _ => false,
    };
    branch.iter().filter(is_tag).count()
}

fn fault(error: &ValidationError<'_>, problem: &dyn std::fmt::Display) -> String {
    let path = error.instance_path().to_string();
    format!("{path}{}{problem}", if path.is_empty() { "" } else { ": " })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &serde_json::Value, arguments: &serde_json::Value, expected: &str) {
        let definition = json!({"name": "t", "inputSchema": schema});
        let tool = Tool::from_definition(&Json::from_value(&definition)).unwrap();
        let checked = tool.check_arguments(Some(&Json::from_value(arguments)));
        let message = checked.err().map(|error| error.message().to_owned()).unwrap_or_default();
        assert_eq!(message.trim_start_matches("Invalid arguments: "), expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let point =
            json!({"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x", "y"]});
        let tagged = |tag: &str| {
            json!({
                "type": "object",
                "properties": {"kind": {"const": tag}, "at": point},
                "required": ["kind", "at"],
            })
        };
        let shape =
            json!({"type": "object", "properties": {"shape": {"oneOf": [tagged("dot"), tagged("line")]}}});
        check(&shape, &json!({"shape": {"kind": "line", "at": {"x": 1, "y": 2}}}), "");
        check(
            &shape,
            &json!({"shape": {"kind": "line", "at": {"x": 1}}}),
            "/shape/at: \"y\" is a required property",
        );
        check(&shape, &json!({"shape": {"kind": "dot"}}), "/shape: \"at\" is a required property");
        let unit =
            json!({"type": "object", "properties": {"unit": {"oneOf": [{"const": "C"}, {"const": "F"}]}}});
        check(&unit, &json!({"unit": "kelvin"}), r#"/unit: value is none of "C", "F""#);
        let either = json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, point]}}});
        check(&either, &json!({"a": {"x": "1", "y": 2}}), "/a/x: value is not of type \"number\"");
    }
}
