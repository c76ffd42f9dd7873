//! Problems of definitions, with their places.

use std::borrow::Cow;
use std::fmt;

/// Maximum number of problems in a message.
const MAX_SHOWN: usize = 20;

/// A problem of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionProblem {
    path: String,
    message: String,
    expected: Option<Cow<'static, str>>,
    hint: Option<String>,
}

/// Every problem of the definitions of a call. An agent reads the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct DefinitionProblems(Vec<DefinitionProblem>);

impl DefinitionProblem {
    /// Creates a problem of the value at a path, such as `definitions[0].steps[1].mode`.
    pub(super) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), expected: None, hint: None }
    }

    /// Adds the expectation.
    pub(super) fn expected(self, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { expected: Some(expected.into()), ..self }
    }

    /// Adds a remedy.
    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for DefinitionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)?;
        if let Some(expected) = &self.expected {
            write!(f, "\n  expected {expected}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl DefinitionProblems {
    fn text(&self) -> String {
        let problems = match self.0.len() {
            1 => "1 problem".to_owned(),
            count => format!("{count} problems"),
        };
        let mut lines = vec![format!("No wisp was started: the definitions have {problems}.")];
        lines.extend(self.0.iter().take(MAX_SHOWN).map(ToString::to_string));
        if self.0.len() > MAX_SHOWN {
            lines.push(format!("… and {} more", self.0.len() - MAX_SHOWN));
        }
        lines.join("\n")
    }
}

/// Collects problems.
#[derive(Default)]
pub(super) struct ProblemList(Vec<DefinitionProblem>);

impl ProblemList {
    pub(super) fn add(&mut self, problem: DefinitionProblem) {
        self.0.push(problem);
    }

    /// Returns a value if there are no problems.
    pub(super) fn into_result<T>(self, value: T) -> Result<T, DefinitionProblems> {
        if self.0.is_empty() { Ok(value) } else { Err(DefinitionProblems(self.0)) }
    }
}
