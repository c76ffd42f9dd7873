//! Builds handlers of the type `bus`.

use std::sync::Arc;

use toolyard_bus::remote::{RemoteBackend, RemoteOptions};
use toolyard_core::Backend;
use toolyard_manifest::{BusHandler, HandlerConfig};

use super::{HandlerBuilder, UnsupportedBackend};

impl HandlerBuilder {
    /// Each handler has a connection of its own.
    pub(super) fn bus(&self, handler: &HandlerConfig, bus: &BusHandler) -> Arc<dyn Backend> {
        let (settings, limits) = (&self.process.bus, &self.process.limits);
        // Without the parts of a gateway, as in a check of the manifest, there is no store.
        let connected = match &self.builtin_deps {
            Some(deps) => crate::bus::connect(settings, &deps.store),
            None => toolyard_bus::connect(settings),
        };
        let connection = match connected {
            Ok(connection) => connection,
            Err(error) => return Arc::new(UnsupportedBackend::because(error.to_string(), None)),
        };
        let options = RemoteOptions {
            name: handler.name.as_str().into(),
            handler: bus.clone(),
            settings: settings.clone(),
            max_tools: limits.tools_per_handler,
            max_definition_bytes: limits.response_bytes,
        };
        Arc::new(RemoteBackend::start(connection, options))
    }
}
