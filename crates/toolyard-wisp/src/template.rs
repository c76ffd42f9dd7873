//! References to earlier steps in texts: `{{steps.ID.result}}`, `{{steps.ID.result.a.b}}` and `{{steps.ID.output_to}}`.
//! Any other text in braces stays as it is.

use serde_json::{Map, Value};

use crate::failure::StepFailure;

/// Beginning and end of a reference.
const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// The expected form, for error messages.
pub const FORMS: &str = "{{steps.ID.result}}, {{steps.ID.result.MEMBER}} or {{steps.ID.output_to}}";

/// A reference to an earlier step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReference {
    /// Id of the step.
    pub step: String,
    /// The part of the step.
    pub part: StepPart,
}

/// The part of a step that a reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepPart {
    /// `result`: the output as a text; with a path, the value there.
    Result(Vec<String>),
    /// `output_to`: the name of the output.
    OutputTo,
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePiece<'a> {
    /// A text as it is.
    Text(&'a str),
    /// A reference.
    Reference(StepReference),
}

/// A text in braces that begins like a reference and is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a reference to a step")]
pub struct InvalidReference(pub String);

/// Maximum length of an invalid reference in a message, in characters.
const MAX_SHOWN: usize = 60;

/// Returns the values of references.
pub trait ReferenceValues {
    /// Returns the value of a reference.
    ///
    /// # Errors
    /// If the step has none.
    fn value(&self, reference: &StepReference) -> Result<Value, StepFailure>;
}

/// Splits a text at its references.
///
/// # Errors
/// If a text in braces begins with `steps.` and is no reference.
pub fn pieces(text: &str) -> Result<Vec<TemplatePiece<'_>>, InvalidReference> {
    let (mut pieces, mut from) = (Vec::new(), 0);
    let mut search = 0;
    while let Some(at) = text[search..].find(OPEN).map(|at| search + at) {
        let inner = &text[at + OPEN.len()..];
        if !inner.trim_start().starts_with("steps.") {
            // One byte further: of three braces, the last two may open a reference.
            search = at + 1;
            continue;
        }
        let shown = || InvalidReference(text[at..].chars().take(MAX_SHOWN).collect());
        let end = inner.find(CLOSE).ok_or_else(shown)?;
        let whole = at + OPEN.len() + end + CLOSE.len();
        let reference = reference(inner[..end].trim())
            .ok_or_else(|| InvalidReference(text[at..whole].chars().take(MAX_SHOWN).collect()))?;
        if from < at {
            pieces.push(TemplatePiece::Text(&text[from..at]));
        }
        pieces.push(TemplatePiece::Reference(reference));
        (from, search) = (whole, whole);
    }
    if from < text.len() {
        pieces.push(TemplatePiece::Text(&text[from..]));
    }
    Ok(pieces)
}

fn reference(text: &str) -> Option<StepReference> {
    let mut names = text.split('.');
    names.next().filter(|first| *first == "steps")?;
    let step = names.next().filter(|id| !id.is_empty())?.to_owned();
    let part = match names.next()? {
        "result" => {
            let path: Vec<_> = names.map(str::to_owned).collect();
            if path.iter().any(String::is_empty) {
                return None;
            }
            StepPart::Result(path)
        }
        "output_to" if names.next().is_none() => StepPart::OutputTo,
        _ => return None,
    };
    Some(StepReference { step, part })
}

/// Returns a text with the values of its references. Values are not read for references themselves.
///
/// # Errors
/// If a reference has no value.
pub fn filled_text(text: &str, values: &dyn ReferenceValues) -> Result<String, StepFailure> {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text).map_err(|error| StepFailure::structural(error.to_string()))? {
        match piece {
            TemplatePiece::Text(text) => filled.push_str(text),
            TemplatePiece::Reference(reference) => filled.push_str(&text_of(values.value(&reference)?)),
        }
    }
    Ok(filled)
}

/// Returns members with the values of the references in their strings. A string that is one reference becomes the value
/// itself, of any type; in a longer string, values that are no texts are written as JSON.
///
/// # Errors
/// If a reference has no value.
pub fn filled_members(
    members: &Map<String, Value>,
    values: &dyn ReferenceValues,
) -> Result<Map<String, Value>, StepFailure> {
    members.iter().map(|(name, value)| Ok((name.clone(), filled(value, values)?))).collect()
}

fn filled(value: &Value, values: &dyn ReferenceValues) -> Result<Value, StepFailure> {
    match value {
        Value::String(text) => match pieces(text).as_deref() {
            Ok([TemplatePiece::Reference(reference)]) => values.value(reference),
            _ => filled_text(text, values).map(Value::String),
        },
        Value::Array(items) => {
            let items: Result<_, _> = items.iter().map(|item| filled(item, values)).collect();
            items.map(Value::Array)
        }
        Value::Object(members) => filled_members(members, values).map(Value::Object),
        other => Ok(other.clone()),
    }
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
