//! The steps that a step can refer to: those before it.

use serde_json::Value;
use toolyard_core::nearest::{did_you_mean, nearest_names};

use super::members::{MemberReader, excerpt};
use crate::shared_path::SharedPath;
use crate::template::{self, FORMS, StepPart, StepReference, TemplatePiece};

/// The steps before one, in order.
#[derive(Default)]
pub(super) struct EarlierSteps(Vec<EarlierStep>);

struct EarlierStep {
    id: String,
    output_to: Option<SharedPath>,
}

impl EarlierSteps {
    /// Adds the next step.
    pub(super) fn add(&mut self, id: &str, output_to: Option<&SharedPath>) {
        self.0.push(EarlierStep { id: id.to_owned(), output_to: output_to.cloned() });
    }

    /// Returns the number of the step with an id, ignoring case.
    pub(super) fn number_of_folded(&self, id: &str) -> Option<usize> {
        self.0.iter().position(|step| step.id.eq_ignore_ascii_case(id))
    }

    /// Returns the number of the last step that writes an output.
    pub(super) fn writer_of(&self, path: &SharedPath) -> Option<usize> {
        self.0.iter().rposition(|step| step.output_to.as_ref() == Some(path))
    }

    /// Reports invalid references in the strings of a value.
    pub(super) fn check_value(&self, members: &mut MemberReader<'_, '_>, name: &str, value: &Value) {
        match value {
            Value::String(text) => self.check_text(members, name, text),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.check_value(members, &format!("{name}[{at}]"), item);
                }
            }
            Value::Object(inner) => {
                for (member, value) in inner {
                    self.check_value(members, &format!("{name}.{}", excerpt(member)), value);
                }
            }
            _ => {}
        }
    }

    /// Reports invalid references in a text.
    pub(super) fn check_text(&self, members: &mut MemberReader<'_, '_>, name: &str, text: &str) {
        let pieces = match template::pieces(text) {
            Ok(pieces) => pieces,
            Err(error) => return members.fault(name, error.to_string(), FORMS),
        };
        for piece in pieces {
            if let TemplatePiece::Reference(reference) = piece {
                self.check_reference(members, name, &reference);
            }
        }
    }

    fn check_reference(&self, members: &mut MemberReader<'_, '_>, name: &str, reference: &StepReference) {
        let StepReference { step: id, part } = reference;
        let Some(step) = self.0.iter().find(|step| step.id == *id) else {
            let near = nearest_names(id, self.0.iter().map(|step| step.id.as_str()));
            let message = format!("`{}` is no earlier step.{}", excerpt(id), did_you_mean(&near));
            return members.fault(name, message, "the id of a step before this one");
        };
        if *part == StepPart::OutputTo && step.output_to.is_none() {
            let message = format!("the step `{id}` has no `output_to`");
            members.fault(name, message, format!("{{{{steps.{id}.result}}}}, or `output_to` in that step"));
        }
    }
}
