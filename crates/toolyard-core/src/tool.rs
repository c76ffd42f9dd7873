//! A tool: what its owner says of it, and the little that we route by.

use std::sync::{Arc, OnceLock};

use crate::error::{Code, ToolError};
use crate::json::{Json, JsonError, Object};

/// A tool as its owner publishes it.
#[derive(Debug)]
pub struct Tool {
    /// The name that the owner calls it by.
    pub name: Arc<str>,
    /// The whole definition, as it came.
    pub definition: Object,
    /// What arguments are held to, where that is not what is published.
    accepted: Option<Json>,
    check: OnceLock<Check>,
}

/// Why a definition is not one of a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTool {
    /// Not an object, or not JSON.
    #[error("the definition of a tool is not an object: {0}")]
    NotAnObject(#[from] JsonError),
    /// No name to call it by.
    #[error("a tool has no name")]
    NoName,
}

/// The input schema, ready to check arguments. Made when the first call comes: a list of thousands
/// of tools is up sooner, and most of them are never called.
enum Check {
    Schema(Box<jsonschema::Validator>),
    /// There is none, or it does not compile: the tool is served unchecked.
    Nothing,
}

impl Tool {
    /// Reads a definition.
    ///
    /// # Errors
    /// When it is not an object with a non-empty `name`.
    pub fn from_definition(definition: &Json) -> Result<Self, BadTool> {
        let definition = definition.detach().to_object()?;
        let name = definition.get_str("name").filter(|name| !name.is_empty()).ok_or(BadTool::NoName)?;
        Ok(Self { name: name.into(), definition, accepted: None, check: OnceLock::new() })
    }

    /// Holds arguments to another schema than the published one: an owner may take more than it asks for.
    #[must_use]
    pub fn accepting(mut self, schema: Json) -> Self {
        self.accepted = Some(schema);
        self
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
                check_value(schema, &value)
            }
        }
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

fn check_value(schema: &jsonschema::Validator, value: &serde_json::Value) -> Result<(), ToolError> {
    if schema.is_valid(value) {
        return Ok(());
    }
    let fault = |error: jsonschema::ValidationError<'_>| {
        let path = error.instance_path().to_string();
        format!("{path}{}{}", if path.is_empty() { "" } else { ": " }, error.masked())
    };
    let faults: Vec<_> = schema.iter_errors(value).take(FAULTS_NAMED).map(fault).collect();
    Err(ToolError::new(Code::InvalidArguments, format!("Invalid arguments: {}", faults.join("; "))))
}
