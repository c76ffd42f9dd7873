//! Messages about the faults of a value.

use std::fmt::{self, Display, Write};

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;

use super::MAX_TEXT;

/// Maximum number of faults in a message: a model corrects the first ones and tries again.
const FAULTS_NAMED: usize = 5;

/// Marker of a text that was cut.
const CUT: &str = "...";

/// Returns the first faults as one text.
pub(super) fn first<'e>(errors: impl IntoIterator<Item = ValidationError<'e>>) -> String {
    let mut text = FaultText::default();
    let mut left = FAULTS_NAMED;
    for error in errors {
        name(&error, &mut text, &mut left);
        if left == 0 {
            break;
        }
    }
    text.0
}

/// Returns the fault of a schema with its location.
pub(super) fn of_schema(error: &ValidationError<'_>) -> String {
    let mut text = FaultText::default();
    let path = error.instance_path();
    // Writing fails once the text has its maximum length.
    let _ = write!(text, "{error}");
    if !path.as_str().is_empty() {
        let _ = write!(text, ", at {path}");
    }
    text.0
}

/// A text with a maximum length.
#[derive(Default)]
struct FaultText(String);

impl Write for FaultText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_TEXT.saturating_sub(self.0.len());
        if text.len() < room {
            self.0.push_str(text);
            return Ok(());
        }
        if !self.0.ends_with(CUT) {
            let last = room.saturating_sub(CUT.len());
            let end = (0..=last).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            self.0.push_str(&text[..end]);
            self.0.push_str(CUT);
        }
        Err(fmt::Error)
    }
}

/// Writes a fault with its location. Of several alternatives the closest one is reported: that none of them matches
/// would help no caller.
fn name(error: &ValidationError<'_>, text: &mut FaultText, left: &mut usize) {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return fault(error, &error.masked(), text, left);
    };
    let expected = |branch: &Vec<ValidationError<'_>>| match branch.as_slice() {
        [only] if only.instance_path() == error.instance_path() => match only.kind() {
            ValidationErrorKind::Constant { expected_value } => Some(expected_value.to_string()),
            _ => None,
        },
        _ => None,
    };
    if let Some(choices) = context.iter().map(expected).collect::<Option<Vec<_>>>() {
        return fault(error, &format_args!("value is none of {}", choices.join(", ")), text, left);
    }
    let closest = context.iter().min_by_key(|branch| (wrong_tags(error, branch), branch.len()));
    for error in closest.into_iter().flatten() {
        if *left > 0 {
            name(error, text, left);
        }
    }
}

/// Counts mismatches of constants and types, which distinguish alternatives.
fn wrong_tags(form: &ValidationError<'_>, branch: &[ValidationError<'_>]) -> usize {
    let is_tag = |error: &&ValidationError<'_>| match error.kind() {
        ValidationErrorKind::Constant { .. } => true,
        ValidationErrorKind::Type { .. } => error.instance_path() == form.instance_path(),
        _ => false,
    };
    branch.iter().filter(is_tag).count()
}

fn fault(error: &ValidationError<'_>, problem: &dyn Display, text: &mut FaultText, left: &mut usize) {
    *left = left.saturating_sub(1);
    let path = error.instance_path();
    let before = if text.0.is_empty() { "" } else { "; " };
    let between = if path.as_str().is_empty() { "" } else { ": " };
    // Writing fails once the text has its maximum length.
    let _ = write!(text, "{before}{path}{between}{problem}");
}
