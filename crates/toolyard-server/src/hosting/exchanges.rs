//! Hosted functions that are handlers of a manifest.

use std::sync::Arc;

use toolyard_core::Exchange;
use toolyard_functions::{FolderExchange, FunctionExchange, Wanted};
use toolyard_manifest::{FunctionHandler, FunctionSource};

use super::Hosting;
use crate::build::Functions;

impl Functions for Hosting {
    fn exchange(&self, handler: &FunctionHandler) -> Arc<dyn Exchange> {
        match &handler.source {
            FunctionSource::Published { id, version } => {
                // The manifest has only texts that are one.
                let wanted: Wanted = version.parse().unwrap_or_default();
                Arc::new(FunctionExchange::new(self.host.clone(), id.clone(), wanted))
            }
            FunctionSource::Folder(path) => {
                Arc::new(FolderExchange::new(self.host.clone(), path.clone(), self.look_every))
            }
        }
    }
}
