//! The output of a step.

use serde_json::Value;
use toolyard_core::output_schema::STRUCTURED;
use toolyard_core::{CallOutput, Json};

/// The output of a step: a text, and values in it.
#[derive(Debug, Clone, PartialEq)]
pub struct StepOutput {
    /// The texts of the result, or all of it as JSON if it has none.
    pub text: String,
    /// Structured content of the result.
    structured: Option<Value>,
}

/// The reason why an output has no value at a path. An agent reads the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The output is a text.
    #[error("the result is a text, not JSON, so that it has no `{0}`")]
    NotJson(String),
    /// The value has no such member.
    #[error("the result has no `{0}`{among}", among = among(.1))]
    Missing(String, Vec<String>),
}

/// Maximum number of names in a reason.
const MAX_NAMES: usize = 20;

fn among(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; there is {}", names.join(", ")) }
}

impl StepOutput {
    /// Returns the output of a tool.
    #[must_use]
    pub fn of_tool(output: &CallOutput) -> Self {
        let blocks = output.body.get("content").and_then(|content| content.to_items().ok());
        let text_of = |block: Json| Some(block.to_object().ok()?.get_str("text")?.into_owned());
        let texts: Vec<_> = blocks.into_iter().flatten().filter_map(text_of).collect();
        let structured = output.body.get(STRUCTURED).filter(|value| !value.is_null());
        let text = match (texts.is_empty(), structured) {
            (false, _) => texts.join("\n"),
            (true, Some(value)) => value.as_text().to_owned(),
            (true, None) => output.body.to_json().as_text().to_owned(),
        };
        Self { text, structured: structured.map(Json::to_value) }
    }

    /// Returns the output of a model.
    #[must_use]
    pub const fn of_text(text: String) -> Self {
        Self { text, structured: None }
    }

    /// Returns the value at a path of members, and of positions in arrays. Structured content is looked up first, then
    /// JSON in the text.
    ///
    /// # Errors
    /// If there is none.
    pub fn value_at(&self, path: &[String]) -> Result<Value, PathError> {
        let parsed = || serde_json::from_str::<Value>(self.text.trim()).ok().filter(is_container);
        let mut missing = None;
        for value in self.structured.clone().into_iter().chain(parsed()) {
            match value_in(value, path) {
                Ok(found) => return Ok(found),
                Err(error) => missing = missing.or(Some(error)),
            }
        }
        Err(missing.unwrap_or_else(|| PathError::NotJson(path.join("."))))
    }

    /// Returns the output as an object; `None` if it is none.
    #[must_use]
    pub fn object(text: &str) -> Option<serde_json::Map<String, Value>> {
        match serde_json::from_str(text.trim()) {
            Ok(Value::Object(members)) => Some(members),
            _ => None,
        }
    }
}

fn is_container(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

fn value_in(mut value: Value, path: &[String]) -> Result<Value, PathError> {
    for (depth, name) in path.iter().enumerate() {
        let next = match &mut value {
            Value::Object(members) => members.get_mut(name),
            Value::Array(items) => name.parse::<usize>().ok().and_then(|at| items.get_mut(at)),
            _ => None,
        };
        let Some(next) = next.map(Value::take) else {
            let names = match &value {
                Value::Object(members) => members.keys().take(MAX_NAMES).cloned().collect(),
                Value::Array(items) => vec![format!("an array of {}", items.len())],
                _ => Vec::new(),
            };
            return Err(PathError::Missing(path[..=depth].join("."), names));
        };
        value = next;
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_core::Object;

    use super::*;

    fn output(body: &str) -> StepOutput {
        let body = Object::parse(body.to_owned()).expect("an object");
        StepOutput::of_tool(&CallOutput { body, is_error: false })
    }

    #[test]
    fn text_of_a_result() {
        let check = |body: &str, expected: &str| assert_eq!(output(body).text, expected);
        check(
            r#"{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}"#,
            "a\nb",
        );
        check(r#"{"content":[],"structuredContent":{"n":1}}"#, r#"{"n":1}"#);
        check(r#"{"content":[{"type":"image"}]}"#, r#"{"content":[{"type":"image"}]}"#);
    }

    #[test]
    fn value_at_a_path() {
        #[track_caller]
        fn check(body: &str, path: &str, expected: &Value) {
            let path: Vec<_> = path.split('.').map(str::to_owned).collect();
            assert_eq!(output(body).value_at(&path), Ok(expected.clone()));
        }
        let structured =
            r#"{"content":[{"type":"text","text":"{\"t\":1}"}],"structuredContent":{"a":{"b":[10,20]}}}"#;
        check(structured, "a.b.1", &json!(20));
        check(structured, "a", &json!({"b": [10, 20]}));
        check(structured, "t", &json!(1));
        check(r#"{"content":[{"type":"text","text":" [{\"id\":\"x\"}] "}]}"#, "0.id", &json!("x"));
    }

    #[test]
    fn missing_value_is_explained() {
        #[track_caller]
        fn check(text: &str, path: &str, expected: &str) {
            let path: Vec<_> = path.split('.').map(str::to_owned).collect();
            let error = StepOutput::of_text(text.to_owned()).value_at(&path).expect_err("no value");
            assert_eq!(error.to_string(), expected);
        }
        check("plain", "a.b", "the result is a text, not JSON, so that it has no `a.b`");
        check("7", "a", "the result is a text, not JSON, so that it has no `a`");
        check(r#"{"a":{"x":1,"y":2}}"#, "a.b.c", "the result has no `a.b`; there is x, y");
        check("[1,2]", "5", "the result has no `5`; there is an array of 2");
        check(r#"{"a":1}"#, "a.b", "the result has no `a.b`");
    }
}
