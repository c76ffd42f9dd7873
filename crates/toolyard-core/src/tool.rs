//! A tool: its definition as text, and the parts that the gateway reads.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::argument_names::{self, RenamedTool};
use crate::definition;
use crate::error::{ErrorCode, ToolError};
use crate::item::{InvalidItem, keyed};
use crate::json::{self, Json, Object};
use crate::output_schema::{self, OutputForm};
use crate::registry::EntryKind;
use crate::schema::{CompiledSchema, InvalidSchema, SchemaMismatch, TooCostly, ValidationBudget};

/// A tool as its server defines it, or as it is published instead.
#[derive(Debug)]
pub struct Tool {
    /// The server's own name.
    pub name: Arc<str>,
    /// The whole definition as it arrived, or with overrides.
    pub definition: Object,
    /// Schema for validation, if it differs from the published one.
    accepted: Option<Json>,
    /// Whole texts, if the definition has only their beginning.
    manual: Option<Arc<str>>,
    check: OnceLock<SchemaCheck>,
    output_check: OnceLock<SchemaCheck>,
    /// Form of structured results, computed before it is first asked for.
    output_form: OnceLock<OutputForm>,
    /// Limit that the schema exceeds, computed before the first validation if it is asked for.
    cost: OnceLock<Option<TooCostly>>,
    /// Number of illegal argument names, computed before it is first asked for.
    illegal: OnceLock<usize>,
    /// The tool with legal argument names, computed before it is first published with them.
    renamed: OnceLock<Option<RenamedTool>>,
    /// The tool as MCP permits it, or the reason why there is none, computed before it is first published.
    repaired: OnceLock<Result<Option<RepairedTool>, Arc<str>>>,
}

/// A tool whose definition was not valid.
#[derive(Debug)]
pub(crate) struct RepairedTool {
    pub(crate) tool: Arc<Tool>,
    /// Repairs, for operators.
    pub(crate) report: Arc<str>,
}

/// A schema, compiled at the first call: a list of thousands of tools is ready sooner, and most of them are never
/// called.
#[derive(Debug)]
enum SchemaCheck {
    Schema(Box<CompiledSchema>),
    /// The tool has no schema.
    Nothing,
    /// The schema exceeds a limit or does not compile: values are not validated.
    Unchecked(InvalidSchema),
}

/// Size from which a schema or arguments are too large to be parsed on the thread of a connection.
const LARGE_BYTES: usize = 64 * 1024;

/// The name is part of the definition.
impl PartialEq for Tool {
    fn eq(&self, other: &Self) -> bool {
        self.definition == other.definition && self.accepted == other.accepted && self.manual == other.manual
    }
}

impl Eq for Tool {}

impl Tool {
    /// Parses a definition.
    ///
    /// # Errors
    /// If it is not an object with a non-empty `name`.
    pub fn from_definition(definition: &Json) -> Result<Self, InvalidItem> {
        let (name, definition) = keyed(definition, "name")?;
        Ok(Self::new(name, definition, None))
    }

    fn new(name: Arc<str>, definition: Object, accepted: Option<Json>) -> Self {
        Self {
            name,
            definition,
            accepted,
            manual: None,
            check: OnceLock::new(),
            output_check: OnceLock::new(),
            output_form: OnceLock::new(),
            cost: OnceLock::new(),
            illegal: OnceLock::new(),
            renamed: OnceLock::new(),
            repaired: OnceLock::new(),
        }
    }

    /// Creates a tool from its name and the rest of its definition.
    #[must_use]
    pub fn named(name: &str, rest: Object) -> Self {
        let mut definition = Object::new().with("name", Json::string(name));
        for (member, value) in rest.iter() {
            definition.set(&member, value.clone());
        }
        Self::new(name.into(), definition, None)
    }

    /// Validates arguments against another schema than the published one: a server may accept more than it advertises.
    #[must_use]
    pub fn accepting(mut self, schema: Json) -> Self {
        self.accepted = Some(schema);
        self
    }

    /// Adds the whole texts of a tool whose definition has only their beginning.
    #[must_use]
    pub fn with_manual(mut self, text: Option<&str>) -> Self {
        self.manual = text.map(Arc::from);
        self
    }

    /// Returns the whole description with those of the arguments, if the definition has only the beginning of one.
    #[must_use]
    pub fn manual(&self) -> Option<&str> {
        self.manual.as_deref()
    }

    /// Returns the tool with another definition. The schema for validation changes as the published one does.
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
        Self { manual: self.manual.clone(), ..Self::new(self.name.clone(), definition, accepted) }
    }

    /// Returns the tool with a definition that MCP permits; `None` if its own one is valid.
    ///
    /// # Errors
    /// The reason why the tool cannot be published.
    pub(crate) fn repaired(&self) -> Result<Option<&RepairedTool>, &Arc<str>> {
        let repair = || {
            let repaired = definition::repair(EntryKind::Tools, &self.definition)?;
            Ok(repaired.map(|repaired| {
                let tool = Self::new(self.name.clone(), repaired.definition, self.accepted.clone());
                RepairedTool { tool: Arc::new(tool), report: repaired.report }
            }))
        };
        self.repaired.get_or_init(repair).as_ref().map(Option::as_ref)
    }

    /// Returns the tool with names of arguments that the interfaces of models accept; `None` if it has no others that
    /// can be renamed.
    #[must_use]
    pub fn renamed(&self) -> Option<&RenamedTool> {
        self.renamed.get_or_init(|| RenamedTool::of(self)).as_ref()
    }

    /// Returns the number of arguments whose names the interfaces of models refuse.
    #[must_use]
    pub fn illegal_arguments(&self) -> usize {
        *self.illegal.get_or_init(|| argument_names::count_illegal(self))
    }

    /// Returns the schema of its arguments.
    #[must_use]
    pub fn input_schema(&self) -> Option<&Json> {
        self.definition.get("inputSchema")
    }

    /// Validates arguments against the input schema, or the accepted one. This may take a second: see `check_briefly`.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArguments`], with a message that locates each fault. Arguments that are not an object or
    /// have duplicate members match no schema.
    pub fn check_arguments(&self, arguments: Option<&Json>) -> Result<(), ToolError> {
        let bytes = arguments.map_or(0, |arguments| arguments.as_bytes().len());
        self.check_within(arguments, usize::MAX, &ValidationBudget::of(bytes))
    }

    /// Validates arguments if that takes less than a millisecond; otherwise returns `None`. Arguments that are nested
    /// more than `max_depth` levels deep are invalid.
    pub(crate) fn check_briefly(
        &self,
        arguments: Option<&Json>,
        max_depth: usize,
    ) -> Option<Result<(), ToolError>> {
        let is_large = |json: &Json| json.as_bytes().len() > LARGE_BYTES;
        let is_compiled = self.check.get().is_some();
        if arguments.is_some_and(is_large) || (!is_compiled && self.checked_schema().is_some_and(is_large)) {
            return None;
        }
        match self.faults(arguments, max_depth, &ValidationBudget::brief()) {
            Err(SchemaMismatch::OutOfSteps) => None,
            checked => Some(checked.map_err(|mismatch| bad_arguments(&mismatch))),
        }
    }

    /// Validates arguments within a budget.
    pub(crate) fn check_within(
        &self,
        arguments: Option<&Json>,
        max_depth: usize,
        budget: &ValidationBudget,
    ) -> Result<(), ToolError> {
        self.faults(arguments, max_depth, budget).map_err(|mismatch| bad_arguments(&mismatch))
    }

    fn faults(
        &self,
        arguments: Option<&Json>,
        max_depth: usize,
        budget: &ValidationBudget,
    ) -> Result<(), SchemaMismatch> {
        if let Some(Err(error)) = arguments.map(|arguments| arguments.check_object_within(max_depth)) {
            return Err(SchemaMismatch::Faults(match error.problem {
                json::TOO_DEEP => json::too_deep(max_depth),
                problem => problem.to_owned(),
            }));
        }
        let check = self.check.get_or_init(|| self.compile(self.checked_schema(), "arguments", "input"));
        match check {
            SchemaCheck::Nothing | SchemaCheck::Unchecked(_) => Ok(()),
            SchemaCheck::Schema(schema) => {
                let value = arguments.map_or_else(|| serde_json::json!({}), Json::to_value);
                schema.check(&value, budget)
            }
        }
    }

    /// Returns the schema of its structured results.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Json> {
        self.definition.get("outputSchema")
    }

    /// Returns the form of its structured results.
    #[must_use]
    pub fn output_form(&self) -> OutputForm {
        *self.output_form.get_or_init(|| output_schema::form(self.output_schema()))
    }

    /// Validates a structured result if that takes less than a millisecond; otherwise returns `None`.
    pub(crate) fn check_output_briefly(&self, structured: &Json) -> Option<Result<(), SchemaMismatch>> {
        let is_large = |json: &Json| json.as_bytes().len() > LARGE_BYTES;
        let is_compiled = self.output_check.get().is_some();
        if is_large(structured) || (!is_compiled && self.output_schema().is_some_and(is_large)) {
            return None;
        }
        match self.output_faults(structured, &ValidationBudget::brief()) {
            Err(SchemaMismatch::OutOfSteps) => None,
            checked => Some(checked),
        }
    }

    /// Validates a structured result within a budget.
    pub(crate) fn output_faults(
        &self,
        structured: &Json,
        budget: &ValidationBudget,
    ) -> Result<(), SchemaMismatch> {
        let check = self.output_check.get_or_init(|| self.compile(self.output_schema(), "results", "output"));
        match check {
            SchemaCheck::Nothing | SchemaCheck::Unchecked(_) => Ok(()),
            SchemaCheck::Schema(schema) => schema.check(&structured.to_value(), budget),
        }
    }

    /// Validates a structured result against the output schema; `None` if the tool has none. For tests of tools:
    /// results of calls are not validated.
    ///
    /// # Errors
    /// [`ErrorCode::ExecutionFailed`], with a message that locates each fault.
    #[must_use]
    pub fn check_result(&self, result: &Object) -> Option<Result<(), ToolError>> {
        let schema = self.output_schema()?.to_value();
        Some(check_result(&schema, result).map_err(|fault| ToolError::new(ErrorCode::ExecutionFailed, fault)))
    }

    fn checked_schema(&self) -> Option<&Json> {
        self.accepted.as_ref().or_else(|| self.input_schema())
    }

    /// Returns the reason why arguments are not validated; `None` if they are, or if there is no schema. The first
    /// request for it takes up to a second; a schema that does not compile is known after the first call.
    #[must_use]
    pub fn unchecked(&self) -> Option<String> {
        match self.check.get() {
            Some(SchemaCheck::Unchecked(error)) => Some(error.to_string()),
            Some(SchemaCheck::Nothing | SchemaCheck::Schema(_)) => None,
            None => {
                let cost = || CompiledSchema::cost(&self.checked_schema()?.to_value());
                self.cost.get_or_init(cost).map(|cost| InvalidSchema::from(cost).to_string())
            }
        }
    }

    fn compile(&self, schema: Option<&Json>, values: &str, kind: &str) -> SchemaCheck {
        let Some(schema) = schema else { return SchemaCheck::Nothing };
        match CompiledSchema::compile(&schema.to_value()) {
            Ok(schema) => SchemaCheck::Schema(Box::new(schema)),
            Err(error) => {
                tracing::warn!(tool = %self.name, "{values} go unchecked because of the {kind} schema: {error}");
                SchemaCheck::Unchecked(error)
            }
        }
    }
}

fn bad_arguments(mismatch: &SchemaMismatch) -> ToolError {
    let message = match mismatch {
        SchemaMismatch::Faults(faults) => format!("Invalid arguments: {faults}"),
        SchemaMismatch::OutOfSteps => {
            "Invalid arguments: they are too large or too deeply nested to be checked. Send less at once"
                .to_owned()
        }
    };
    ToolError::new(ErrorCode::InvalidArguments, message)
}

fn check_result(schema: &Value, result: &Object) -> Result<(), String> {
    let schema = CompiledSchema::compile(schema)
        .map_err(|error| format!("The output schema is not checked: {error}"))?;
    let value = result.get(output_schema::STRUCTURED);
    let value = value.ok_or("The tool has an output schema, and its result no `structuredContent`")?;
    let checked = schema.check(&value.to_value(), &ValidationBudget::of(value.as_bytes().len()));
    checked.map_err(|mismatch| match mismatch {
        SchemaMismatch::Faults(faults) => format!("The result does not fit the output schema: {faults}"),
        SchemaMismatch::OutOfSteps => format!("The result is {mismatch}"),
    })
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
    fn faults_name_their_location() {
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

    #[test]
    fn reason_for_unchecked_arguments_is_available_before_and_after_a_call() {
        let arm = json!({"anyOf": vec![json!({"type": "string"}); 5000]});
        let tool = |schema: &serde_json::Value| {
            let definition = json!({"name": "t", "inputSchema": schema});
            Tool::from_definition(&Json::from_value(&definition)).unwrap()
        };
        let costly = tool(&json!({"properties": {"a": arm}}));
        let why = "it costs too much to check: more than 4096 of its branches apply to one value";
        assert_eq!(costly.unchecked().as_deref(), Some(why));
        costly.check_arguments(Some(&Json::from_value(&json!({"a": 1})))).unwrap();
        assert_eq!(costly.unchecked().as_deref(), Some(why));
        let checked = tool(&json!({"properties": {"a": {"type": "string"}}}));
        assert_eq!(checked.unchecked(), None);
        assert!(checked.check_arguments(Some(&Json::from_value(&json!({"a": 1})))).is_err());
        assert_eq!(checked.unchecked(), None);
        let invalid = tool(&json!({"type": "nonsense"}));
        assert_eq!(invalid.unchecked(), None);
        invalid.check_arguments(None).unwrap();
        assert!(invalid.unchecked().is_some_and(|why| why.starts_with("it does not compile")));
    }
}
