//! Definitions of wisps in the JSON of an agent. All of them are read before anything runs, and every problem is reported.
//!
//! - `problem`: problems, with their places;
//! - `members`: the members of an object;
//! - `step`: a step;
//! - `references`: references to earlier steps.

mod members;
mod problem;
mod references;
mod step;

use std::collections::HashMap;

use serde_json::Value;
use sha2::{Digest, Sha256};
use toolyard_core::random::hex;
use toolyard_manifest::WispSettings;

pub use self::problem::{DefinitionProblem, DefinitionProblems};

use self::members::MemberReader;
use self::problem::ProblemList;
use self::step::StepParser;
use crate::definition::{WispDefinition, WispStep};
use crate::shared_path::SharedPath;

/// Number of bytes of the digest of a definition.
const DIGEST_BYTES: usize = 8;

/// Maximum number of names in `tools`, and maximum length of a description in characters.
const MAX_TOOLS: usize = 50;
const MAX_DESCRIPTION: usize = 500;

/// The abilities of the gateway that definitions may use.
#[derive(Debug, Clone, Copy)]
pub struct DefinitionRules<'a> {
    /// Limits.
    pub settings: &'a WispSettings,
    /// `true` if there is a language model for `Llm` steps.
    pub has_model: bool,
}

/// Reads definitions: an array of at least one, or one object. Each, and the whole, may also be a string with its JSON.
///
/// # Errors
/// Every problem, in the order of the text.
pub fn definitions(
    value: &Value,
    rules: DefinitionRules<'_>,
) -> Result<Vec<WispDefinition>, DefinitionProblems> {
    let mut problems = ProblemList::default();
    let definitions = Parser { rules, problems: &mut problems }.batch(value);
    problems.into_result(definitions)
}

struct Parser<'a, 'p> {
    rules: DefinitionRules<'a>,
    problems: &'p mut ProblemList,
}

impl Parser<'_, '_> {
    fn batch(&mut self, value: &Value) -> Vec<WispDefinition> {
        const ROOT: &str = "definitions";
        let Some(value) = self.unquoted(ROOT, value) else { return Vec::new() };
        let items = match value {
            Value::Array(items) => items,
            one @ Value::Object(_) => vec![one],
            other => {
                let found = DefinitionProblem::new(ROOT, format!("found {}", noun(&other)));
                self.problems.add(found.expected("an array of definitions, or one definition"));
                return Vec::new();
            }
        };
        let limit = self.rules.settings.batch;
        if items.is_empty() {
            let empty = DefinitionProblem::new(ROOT, "the array is empty");
            self.problems.add(empty.expected("at least one definition"));
        } else if items.len() > limit {
            let many = DefinitionProblem::new(ROOT, format!("there are {} definitions", items.len()));
            let many = many.expected(format!("at most {limit}"));
            self.problems.add(many.hint("spawn the others with another call"));
        }
        let definitions = items.iter().take(limit).enumerate();
        let definitions: Vec<_> = definitions
            .filter_map(|(at, item)| {
                let path = format!("{ROOT}[{at}]");
                let item = self.unquoted(&path, item)?;
                self.definition(&path, &item)
            })
            .collect();
        self.check_files(&definitions);
        definitions
    }

    /// Returns the JSON of a string, since some models quote what they write; any other value as it is.
    fn unquoted(&mut self, path: &str, value: &Value) -> Option<Value> {
        let Value::String(text) = value else { return Some(value.clone()) };
        match serde_json::from_str(text) {
            Ok(value) => Some(value),
            Err(error) => {
                let problem = DefinitionProblem::new(path, format!("the text is not JSON: {error}"));
                self.problems.add(problem.expected("a JSON object, or a text with one"));
                None
            }
        }
    }

    fn definition(&mut self, path: &str, value: &Value) -> Option<WispDefinition> {
        let mut members = MemberReader::new(path, value, self.problems)?;
        members.reject_unknown(&["description", "tools", "steps"]);
        let description = members.required_text("description", "one line about the purpose of the wisp");
        let tools = members.texts("tools", MAX_TOOLS);
        let steps = members.required_array("steps", "at least one step", self.rules.settings.steps);
        let steps = self.steps(&format!("{path}.steps"), steps?);
        let digest = hex(&Sha256::digest(value.to_string())[..DIGEST_BYTES]);
        let description = description?.chars().take(MAX_DESCRIPTION).collect();
        Some(WispDefinition { description, tools, steps, digest })
    }

    fn steps(&mut self, path: &str, values: &[Value]) -> Vec<WispStep> {
        let mut parser = StepParser::new(self.rules, values, self.problems);
        let steps = values.iter().enumerate();
        steps.filter_map(|(at, value)| parser.step(&format!("{path}[{at}]"), at, value)).collect()
    }

    /// Reports files that two wisps would write at the same time.
    fn check_files(&mut self, definitions: &[WispDefinition]) {
        if self.rules.settings.shared_folder.is_none() {
            return;
        }
        let mut writers = HashMap::<&SharedPath, usize>::new();
        for (wisp, definition) in definitions.iter().enumerate() {
            for (at, step) in definition.steps.iter().enumerate() {
                let Some(file) = &step.output_to else { continue };
                let first = *writers.entry(file).or_insert(wisp);
                if first != wisp {
                    let path = format!("definitions[{wisp}].steps[{at}].output_to");
                    let problem = format!("definitions[{first}] writes the file `{file}` as well");
                    let problem = DefinitionProblem::new(path, problem);
                    self.problems.add(problem.expected("a file of its own for each wisp"));
                }
            }
        }
    }
}

/// Returns the noun for a value.
fn noun(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
