//! A part of a stored JSON value: what `query_working_memory` selects.
//!
//! Nothing can stop an expression once it runs, so what it may come to is known before: `growth` says how many times over it
//! may copy the data, and that times the size of the data is bounded. What it gives is written into a bounded text.

mod bounded;
mod growth;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jmespath::Variable;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use bounded::Bounded;

/// What queries may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLimits {
    /// Bytes of the JSON that is looked into.
    pub input_bytes: usize,
    /// Characters of what is given.
    pub result_chars: usize,
    /// Values and names in it: what takes memory once it is read, some hundred bytes each.
    pub input_values: usize,
    /// Values that an expression may make.
    pub values: usize,
    /// How long anybody waits for one.
    pub time: Duration,
    /// How many run at a time; each has a thread for itself.
    pub at_once: usize,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self {
            input_bytes: 4 * 1024 * 1024,
            result_chars: 64_000,
            input_values: 500_000,
            values: 4_000_000,
            time: Duration::from_secs(5),
            at_once: 2,
        }
    }
}

/// How long an expression may be, in bytes.
const LONGEST_EXPRESSION: usize = 500;
/// How many characters it may have that begin something within something. Who reads it, runs it, and drops it goes as deep as it
/// does, on a stack that ends.
const MOST_NESTED: usize = 64;
const NESTS: &[u8] = b"([{!&*.|";

/// Why there is no result. The texts are for a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The expression is too long to be read.
    #[error(
        "expression: is longer than {LONGEST_EXPRESSION} bytes, or has more than {MOST_NESTED} dots and brackets. Ask for less at a time."
    )]
    LongExpression,
    /// The expression is none, or does not fit the value.
    #[error("expression: {0}")]
    Expression(String),
    /// The value is not JSON.
    #[error("The value is not JSON ({0}). Read it with get_from_working_memory.")]
    NotJson(String),
    /// The value is too large to be looked into.
    #[error(
        "The value has {bytes} bytes, and a query looks into {limit} at most. Read single chunks with get_from_working_memory."
    )]
    LargeValue {
        /// The value's.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// The value has too many parts to be looked into.
    #[error(
        "The value has more than {0} members and items, which is more than a query looks into. Read single chunks with \
         get_from_working_memory."
    )]
    ManyValues(usize),
    /// The expression might come to too much.
    #[error(
        "expression: copies the value too many times over. Select from it in smaller steps, without nested lists."
    )]
    Costly,
    /// What was selected is too much to be read.
    #[error(
        "The result has more than {0} characters. Select fewer members, such as `items[*].name`, or a part, such as \
         `items[0:20]`, or count with `length(items)`."
    )]
    LargeResult(usize),
    /// It takes longer than anybody waits.
    #[error("The query took too long. Ask for less at a time.")]
    TooSlow,
    /// Something is wrong here.
    #[error("The query failed because of a fault in the server.")]
    Fault,
}

/// Runs queries, some at a time.
#[derive(Debug, Clone)]
pub struct Queries {
    limits: QueryLimits,
    places: Arc<Semaphore>,
}

impl Queries {
    /// Queries within these limits.
    #[must_use]
    pub fn new(limits: QueryLimits) -> Self {
        Self { limits, places: Arc::new(Semaphore::new(limits.at_once.max(1))) }
    }

    /// What an expression selects from a JSON text.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn run(&self, text: String, expression: String) -> Result<String, QueryError> {
        let (limits, places) = (self.limits, self.places.clone());
        let work = async move {
            let place = places.acquire_owned().await.map_err(|_| QueryError::Fault)?;
            let selected = spawn_blocking(move || {
                let selected = select(&text, &expression, &limits);
                // Kept until the work is done, also where nobody waits for it any more.
                drop(place);
                selected
            });
            selected.await.unwrap_or(Err(QueryError::Fault))
        };
        timeout(limits.time, work).await.unwrap_or(Err(QueryError::TooSlow))
    }
}

/// What an expression selects from a JSON text, as JSON.
///
/// # Errors
/// See [`QueryError`].
pub fn select(text: &str, expression: &str, limits: &QueryLimits) -> Result<String, QueryError> {
    if text.len() > limits.input_bytes {
        return Err(QueryError::LargeValue { bytes: text.len(), limit: limits.input_bytes });
    }
    if parts(text) > limits.input_values {
        return Err(QueryError::ManyValues(limits.input_values));
    }
    let nested = expression.bytes().filter(|byte| NESTS.contains(byte)).count();
    if expression.len() > LONGEST_EXPRESSION || nested > MOST_NESTED {
        return Err(QueryError::LongExpression);
    }
    let wrong = |error: jmespath::JmespathError| QueryError::Expression(error.to_string());
    let expression = jmespath::compile(expression).map_err(wrong)?;
    let value = parse(text)?;
    let growth = growth::of(expression.as_ast());
    let strings = if growth.makes_strings { text.len() / 8 } else { 0 };
    if growth.times.saturating_mul(nodes(&value) + strings) > limits.values {
        return Err(QueryError::Costly);
    }
    let value = Arc::new(value);
    let selected = expression.search(&value).map_err(wrong)?;
    let mut written = Bounded::new(limits.result_chars);
    serde_json::to_writer(&mut written, &selected)
        .map_err(|_| QueryError::LargeResult(limits.result_chars))?;
    let mut written = written.into_text();
    if selected.is_null() {
        written.push_str("\n\nThe expression selects nothing. The value is ");
        written.push_str(&described(&value));
        written.push('.');
    }
    Ok(written)
}

/// One value, or the array of all values of a text that has several: results may be made of many.
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

/// How many values and names there are in a JSON text at most, without reading it.
fn parts(text: &str) -> usize {
    let (mut parts, mut rest) = (1, text.as_bytes());
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b',' | b':' | b'[' | b'{')) {
        let found = rest[at];
        rest = &rest[at + 1..];
        if found == b'"' {
            rest = behind_string(rest);
        } else {
            parts += 1;
        }
    }
    parts
}

/// What follows the string whose first quote was just read.
fn behind_string(mut text: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', text) {
        if text[at] == b'"' {
            return &text[at + 1..];
        }
        // What is escaped is one character, whatever it is.
        text = text.get(at + 2..).unwrap_or_default();
    }
    &[]
}

/// How many values there are in a value, itself included.
fn nodes(value: &Variable) -> usize {
    match value {
        Variable::Array(items) => 1 + items.iter().map(|item| nodes(item)).sum::<usize>(),
        Variable::Object(members) => 1 + members.values().map(|member| nodes(member)).sum::<usize>(),
        _ => 1,
    }
}

/// How many members of an object are named.
const MEMBERS_NAMED: usize = 20;
/// How much of the name of a member is shown, in characters.
const NAME_SHOWN: usize = 60;

/// What a value looks like from outside, for who has selected nothing of it.
fn described(value: &Variable) -> String {
    match value {
        Variable::Array(items) => {
            let first = items.first().filter(|first| first.is_object());
            let first = first.map(|first| format!(", the first of them {}", described(first)));
            let plural = if items.len() == 1 { "" } else { "s" };
            format!("an array of {} item{plural}{}", items.len(), first.unwrap_or_default())
        }
        Variable::Object(members) => {
            let shown = |name: &String| format!("`{}`", name.chars().take(NAME_SHOWN).collect::<String>());
            let names: Vec<_> = members.keys().take(MEMBERS_NAMED).map(shown).collect();
            let more = if members.len() > MEMBERS_NAMED { ", …" } else { "" };
            format!("an object with the members {}{more}", names.join(", "))
        }
        other => format!("a {}", other.get_type()),
    }
}
