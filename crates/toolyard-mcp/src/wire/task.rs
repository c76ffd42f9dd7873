//! Task support of tools.

use toolyard_core::Object;

/// The support of a tool for tasks (2025-11-25, basic/utilities/tasks, tool-level negotiation).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolTaskSupport {
    /// The tool never runs as a task.
    Forbidden,
    /// The caller decides.
    Optional,
    /// The tool only runs as a task.
    Required,
}

impl ToolTaskSupport {
    /// Reads `execution.taskSupport` of a definition.
    #[must_use]
    pub fn of(definition: &Object) -> Self {
        let execution = definition.get("execution").and_then(|execution| execution.to_object().ok());
        let support = execution.as_ref().and_then(|execution| execution.get_str("taskSupport"));
        match support.as_deref() {
            Some("required") => Self::Required,
            Some("optional") => Self::Optional,
            _ => Self::Forbidden,
        }
    }
}
