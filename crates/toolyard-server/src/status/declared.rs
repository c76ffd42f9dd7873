//! Facts about handlers that the manifest declares.

use toolyard_manifest::{FunctionSource, HandlerKind};

use super::StatusReporter;
use crate::fleet::HandlerStatus;

impl StatusReporter {
    /// Returns the names of the handlers of a published function.
    #[must_use]
    pub fn handlers_of_function(&self, id: &str) -> Vec<String> {
        let is_published = |handler: &&HandlerStatus| match &handler.declared.kind {
            HandlerKind::Function(function) => {
                matches!(&function.source, FunctionSource::Published { id: published, .. } if published == id)
            }
            _ => false,
        };
        let statuses = self.statuses.borrow();
        statuses.iter().filter(is_published).map(|handler| handler.declared.name.to_string()).collect()
    }

    /// Returns the type of a handler.
    #[must_use]
    pub fn kind_of(&self, name: &str) -> Option<String> {
        let statuses = self.statuses.borrow();
        let handler = statuses.iter().find(|handler| handler.declared.name.as_str() == name)?;
        Some(handler.declared.kind.name().to_owned())
    }
}
