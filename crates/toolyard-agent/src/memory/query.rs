//! Selects a part of a stored JSON value, for `query_working_memory`.
//!
//! A running expression cannot be cancelled, so its cost is limited in advance: [`GrowthBound`] tells how many copies
//! of the data it may make, and that number times the size of the data is limited. The length of the result is limited
//! too.

mod bounded_writer;
mod mistakes;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jmespath::{ErrorReason, JmespathError, RuntimeError, Variable};
use toolyard_core::growth::GrowthBound;
use toolyard_manifest::QuerySettings;

use super::blocking::{BlockingRunner, WorkError};
use bounded_writer::BoundedTextWriter;
use mistakes::Failure;

/// Maximum length of an expression in bytes.
const MAX_EXPRESSION_LENGTH: usize = 500;
/// Maximum number of characters that open a nested expression. Parsing, running and dropping an expression recurse as
/// deep as it is nested, on a stack of limited size.
const MAX_NESTED: usize = 64;
const NESTS: &[u8] = b"([{!&*.|";

/// Error of a query. A model reads the texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The expression is too long or too deeply nested.
    #[error(
        "expression: is longer than {MAX_EXPRESSION_LENGTH} bytes, or has more than {MAX_NESTED} dots and brackets. Ask for less at a time."
    )]
    LongExpression,
    /// The expression is invalid, or does not fit the value.
    #[error("expression: {0}")]
    Expression(String),
    /// The value is not JSON.
    #[error("The value is not JSON ({0}). Read it with get_from_working_memory.")]
    NotJson(String),
    /// The value has too many bytes.
    #[error(
        "The value has {bytes} bytes, and a query looks into {limit} at most. Read single chunks with get_from_working_memory."
    )]
    LargeValue {
        /// Bytes of the value.
        bytes: usize,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// The value has too many members and items.
    #[error(
        "The value has more than {0} members and items, which is more than a query looks into. Read single chunks with \
         get_from_working_memory."
    )]
    ManyValues(usize),
    /// The expression may create too many values.
    #[error(
        "expression: copies the value too many times over. Select from it in smaller steps, without nested lists."
    )]
    Costly,
    /// The result has too many characters.
    #[error(
        "The result has more than {0} characters. Select fewer members, such as `items[*].name`, or a part, such as \
         `items[0:20]`, or count with `length(items)`."
    )]
    LargeResult(usize),
    /// The query takes too long.
    #[error("The query took too long. Ask for less at a time.")]
    TooSlow,
    /// The query failed for an internal reason, such as a panic.
    #[error("The query failed because of a fault in the server.")]
    Fault,
}

impl From<WorkError> for QueryError {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::TooSlow => Self::TooSlow,
            WorkError::Fault => Self::Fault,
        }
    }
}

/// Runs a limited number of queries at a time.
#[derive(Debug, Clone)]
pub struct QueryRunner {
    limits: QuerySettings,
    runner: BlockingRunner,
}

impl QueryRunner {
    /// Returns a runner with these limits.
    #[must_use]
    pub fn new(limits: QuerySettings) -> Self {
        Self { limits, runner: BlockingRunner::new(limits.concurrent, limits.time) }
    }

    /// Returns the maximum length of a value in bytes.
    #[must_use]
    pub const fn input_bytes(&self) -> usize {
        self.limits.input_bytes
    }

    /// Returns the part of a JSON text that an expression selects.
    ///
    /// # Errors
    /// Returns a [`QueryError`].
    pub async fn run(&self, text: String, expression: String) -> Result<String, QueryError> {
        let limits = self.limits;
        self.runner.run(move || select(&text, &expression, &limits)).await?
    }
}

/// Returns the part of a JSON text that an expression selects, as JSON.
///
/// # Errors
/// Returns a [`QueryError`].
pub fn select(text: &str, expression: &str, limits: &QuerySettings) -> Result<String, QueryError> {
    if text.len() > limits.input_bytes {
        return Err(QueryError::LargeValue { bytes: text.len(), limit: limits.input_bytes });
    }
    if parts(text) > limits.input_values {
        return Err(QueryError::ManyValues(limits.input_values));
    }
    let nested = expression.bytes().filter(|byte| NESTS.contains(byte)).count();
    if expression.len() > MAX_EXPRESSION_LENGTH || nested > MAX_NESTED {
        return Err(QueryError::LongExpression);
    }
    let wrong = |error: JmespathError| QueryError::Expression(explained(expression, &error));
    let compiled = jmespath::compile(expression).map_err(wrong)?;
    let value = parse(text)?;
    if GrowthBound::of(compiled.as_ast()).values(nodes(&value), text.len()) > limits.values {
        return Err(QueryError::Costly);
    }
    let value = Arc::new(value);
    let selected = compiled.search(&value).map_err(wrong)?;
    let mut writer = BoundedTextWriter::new(limits.result_chars);
    serde_json::to_writer(&mut writer, &selected)
        .map_err(|_| QueryError::LargeResult(limits.result_chars))?;
    let mut result = writer.into_text();
    if selected.is_null() {
        result.push_str("\n\nThe expression selects nothing. The value is ");
        result.push_str(&shape_of(&value));
        result.push('.');
    }
    if selects_nothing(&selected)
        && let Some(hint) = mistakes::hint(expression, Failure::Nothing)
    {
        result.push_str("\n\n");
        result.push_str(&hint);
    }
    if is_empty_count(&selected) || selects_nothing(&selected) {
        let selects = |expression: &str| {
            let compiled = jmespath::compile(expression).ok().filter(|compiled| {
                GrowthBound::of(compiled.as_ast()).values(nodes(&value), text.len()) <= limits.values
            });
            let selected = compiled.and_then(|compiled| compiled.search(&value).ok());
            selected.is_some_and(|selected| !is_empty_count(&selected) && !selects_nothing(&selected))
        };
        if let Some(hint) = mistakes::mixed_types(expression, selects) {
            result.push_str("\n\n");
            result.push_str(&hint);
        }
    }
    Ok(result)
}

/// Returns `true` for the length of an empty array.
fn is_empty_count(selected: &Variable) -> bool {
    selected.as_number() == Some(0.0)
}

/// Returns `true` for null, and for an empty array.
fn selects_nothing(selected: &Variable) -> bool {
    selected.is_null() || selected.as_array().is_some_and(Vec::is_empty)
}

/// Returns the fault of an expression with its place, and what to write instead.
fn explained(expression: &str, error: &JmespathError) -> String {
    let (failure, is_unknown) = match &error.reason {
        ErrorReason::Parse(_) => (Failure::Syntax, false),
        ErrorReason::Runtime(reason) => {
            (Failure::Runtime, matches!(reason, RuntimeError::UnknownFunction(_)))
        }
    };
    let hint = mistakes::hint(expression, failure).or_else(|| is_unknown.then(mistakes::unknown_function));
    let fault = format!("{} (character {} of `{expression}`)", error.reason, error.offset + 1);
    hint.map_or_else(|| fault.clone(), |hint| format!("{fault}\n{hint}"))
}

/// Parses one value, or several values as an array: a result may consist of several JSON texts.
fn parse(text: &str) -> Result<Variable, QueryError> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Variable>();
    let values: Result<Vec<_>, _> = values.map(|value| value.map(Arc::new)).collect();
    let mut values = values.map_err(|error| QueryError::NotJson(error.to_string()))?;
    match values.len() {
        0 => Err(QueryError::NotJson("it is empty".to_owned())),
        1 => Ok(values.pop().and_then(Arc::into_inner).unwrap_or(Variable::Null)),
        _ => Ok(Variable::Array(values)),
    }
}

/// Returns an upper bound of the number of values and names in a JSON text, without parsing it.
fn parts(text: &str) -> usize {
    let (mut parts, mut rest) = (1, text.as_bytes());
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b',' | b':' | b'[' | b'{')) {
        let byte = rest[at];
        rest = &rest[at + 1..];
        if byte == b'"' {
            rest = behind_string(rest);
        } else {
            parts += 1;
        }
    }
    parts
}

/// Returns the text after a string, whose first quote precedes `text`.
fn behind_string(mut text: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', text) {
        if text[at] == b'"' {
            return &text[at + 1..];
        }
        // Skip the escaped character.
        text = text.get(at + 2..).unwrap_or_default();
    }
    &[]
}

/// Returns the number of values in a value, including itself.
fn nodes(value: &Variable) -> usize {
    match value {
        Variable::Array(items) => 1 + items.iter().map(|item| nodes(item)).sum::<usize>(),
        Variable::Object(members) => 1 + members.values().map(|member| nodes(member)).sum::<usize>(),
        _ => 1,
    }
}

/// Maximum number of members that a description names.
const MEMBERS_NAMED: usize = 20;
/// Maximum length of a member's name in a description, in characters.
const MAX_MEMBER_NAME_LENGTH: usize = 60;

/// Describes the shape of a value, for an expression that selects nothing.
fn shape_of(value: &Variable) -> String {
    match value {
        Variable::Array(items) => {
            let first = items.first().filter(|first| first.is_object());
            let first = first.map(|first| format!(", the first of them {}", shape_of(first)));
            let plural = if items.len() == 1 { "" } else { "s" };
            format!("an array of {} item{plural}{}", items.len(), first.unwrap_or_default())
        }
        Variable::Object(members) => {
            let quoted = |name: &String| {
                format!("`{}`", name.chars().take(MAX_MEMBER_NAME_LENGTH).collect::<String>())
            };
            let names: Vec<_> = members.keys().take(MEMBERS_NAMED).map(quoted).collect();
            let more = if members.len() > MEMBERS_NAMED { ", …" } else { "" };
            format!("an object with the members {}{more}", names.join(", "))
        }
        other => format!("a {}", other.get_type()),
    }
}

impl QueryRunner {
    /// Returns a runner whose results have at most this many characters.
    #[must_use]
    pub fn within(&self, chars: usize) -> Self {
        let result_chars = self.limits.result_chars.min(chars);
        Self { limits: QuerySettings { result_chars, ..self.limits }, ..self.clone() }
    }
}
