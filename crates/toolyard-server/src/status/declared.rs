//! Facts about handlers that the manifest declares.

use toolyard_manifest::{FunctionSource, HandlerKind};

use super::StatusReporter;
use crate::fleet::HandlerStatus;

impl StatusReporter {
    /// Returns the names of the handlers of a published function, with the version that each wants.
    #[must_use]
    pub fn handlers_of_function(&self, id: &str) -> Vec<(String, String)> {
        let wanted = |handler: &HandlerStatus| match &handler.declared.kind {
            HandlerKind::Function(function) => match &function.source {
                FunctionSource::Published { id: published, version } if published == id => {
                    Some((handler.declared.name.to_string(), version.clone()))
                }
                _ => None,
            },
            _ => None,
        };
        self.statuses.borrow().iter().filter_map(wanted).collect()
    }

    /// Returns the type of a handler.
    #[must_use]
    pub fn kind_of(&self, name: &str) -> Option<String> {
        let statuses = self.statuses.borrow();
        let handler = statuses.iter().find(|handler| handler.declared.name.as_str() == name)?;
        Some(handler.declared.kind.name().to_owned())
    }
}
