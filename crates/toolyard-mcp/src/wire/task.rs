//! What tools say of tasks.

use toolyard_core::Object;

/// Whether a tool may run as a task (2025-11-25, basic/utilities/tasks, tool-level negotiation).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSupport {
    /// It never does.
    Forbidden,
    /// As its callers like.
    Optional,
    /// It does not run otherwise.
    Required,
}

impl TaskSupport {
    /// What a definition says in `execution.taskSupport`.
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
