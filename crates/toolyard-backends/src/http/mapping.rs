//! JMESPath over raw JSON.

use jmespath::Expression;
use toolyard_core::{Code, Json, ToolError};

/// What an expression makes of a value. It reads typed values: numbers beyond 64 bits lose digits, and members
/// come out in the order of their names.
///
/// # Errors
/// [`Code::ExecutionFailed`] where the expression does not fit the value.
pub fn apply(expression: &Expression<'static>, json: &Json) -> Result<Json, ToolError> {
    let failed = || ToolError::new(Code::ExecutionFailed, "A mapping of this tool does not fit the data");
    let found = expression.search(json.to_value()).map_err(|error| failed().caused_by(error))?;
    let text = serde_json::to_vec(&found).map_err(|error| failed().caused_by(error))?;
    Json::parse(text).map_err(|error| failed().caused_by(error))
}
