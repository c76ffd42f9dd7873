//! Hosted functions as handlers of a manifest.

use std::sync::Arc;

use toolyard_core::MessageExchange;
use toolyard_functions::{FolderExchange, FunctionExchange, VersionSelector};
use toolyard_manifest::{FunctionHandler, FunctionSource};

use super::CodeHosting;
use crate::build::FunctionExchanges;

impl FunctionExchanges for CodeHosting {
    fn exchange(&self, handler: &FunctionHandler) -> Arc<dyn MessageExchange> {
        match &handler.source {
            FunctionSource::Published { id, version } => {
                // Validation accepts only valid versions.
                let selector: VersionSelector = version.parse().unwrap_or_default();
                Arc::new(FunctionExchange::new(self.host.clone(), id.clone(), selector))
            }
            FunctionSource::Folder(path) => {
                Arc::new(FolderExchange::new(self.host.clone(), path.clone(), self.check_interval))
            }
        }
    }
}
