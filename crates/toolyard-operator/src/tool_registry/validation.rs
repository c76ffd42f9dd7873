//! Problems of a `ToolRegistry`, found by the reader of manifests.

use std::fmt;

use serde_json::{Value, json};
use toolyard_manifest::{Manifest, ManifestProblem, ManifestProblems, ManifestSource, parse_elsewhere};

/// A problem of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryProblem {
    /// Path of the field, such as `spec.handlers[0].timeout`.
    pub field: String,
    /// Description of the problem.
    pub message: String,
    /// The expected value, as a continuation of the word "expected".
    pub expected: Option<String>,
    /// A suggestion.
    pub hint: Option<String>,
}

impl fmt::Display for RegistryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)?;
        if let Some(expected) = &self.expected {
            write!(f, ", expected {expected}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl From<&ManifestProblem> for RegistryProblem {
    fn from(problem: &ManifestProblem) -> Self {
        Self {
            field: problem.location.path.to_string(),
            message: problem.message.clone(),
            expected: problem.expected.clone(),
            hint: problem.hint.clone(),
        }
    }
}

/// Returns all problems of a resource, as JSON; none if it is valid. Reads no file and no environment.
#[must_use]
pub fn problems(registry: &Value) -> Vec<RegistryProblem> {
    let mut found = match parsed(&[registry]) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(RegistryProblem::from).collect(),
    };
    found.extend(unresolved_selectors(registry));
    found
}

/// Selectors are resolved by the operator, which has none of the variables of the gateway.
fn unresolved_selectors(registry: &Value) -> impl Iterator<Item = RegistryProblem> {
    let handlers = registry["spec"]["handlers"].as_array().into_iter().flatten().enumerate();
    let affected = handlers.filter(|(_, handler)| handler["selector"].to_string().contains("${"));
    affected.map(|(index, _)| RegistryProblem {
        field: format!("spec.handlers[{index}].selector"),
        message: "references to variables are not available here".to_owned(),
        expected: None,
        hint: Some("write the labels out".to_owned()),
    })
}

/// Parses the documents of registries, with a folder for their secrets.
pub(super) fn parsed(registries: &[&Value]) -> Result<Manifest, ManifestProblems> {
    let settings = json!({
        "apiVersion": "toolyard.dev/v1alpha1", "kind": "Toolyard", "spec": {"secretsDir": "/secrets"},
    });
    let sources: Vec<_> = registries.iter().copied().chain([&settings]).map(source).collect();
    parse_elsewhere(&sources)
}

fn source(document: &Value) -> ManifestSource {
    let name = &document["metadata"]["name"];
    ManifestSource { name: name.as_str().unwrap_or_default().to_owned(), text: document.to_string() }
}
