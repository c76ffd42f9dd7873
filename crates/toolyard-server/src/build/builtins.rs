//! The handler that is the gateway itself, with the tools that the manifest switches on.

use std::sync::Arc;

use toolyard_core::Backend;
use toolyard_manifest::Builtins;
use toolyard_sdk::{RegisterError, Server};

use super::{Builder, NotYet};

impl Builder {
    pub(super) fn builtins(&self, builtins: &Builtins) -> Arc<dyn Backend> {
        match self.server(builtins) {
            Ok(server) => server.into_backend(),
            // Two of our own tools would have the same name.
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the built-in tools cannot be served"
                );
                Arc::new(NotYet::new("builtins", None))
            }
        }
    }

    fn server(&self, builtins: &Builtins) -> Result<Server, RegisterError> {
        let mut server = Server::new("toolyard", env!("CARGO_PKG_VERSION"));
        if let (Some(scripts), Some(hosting)) = (&builtins.scripts, &self.hosting) {
            server = toolyard_agent::scripts::add(server, hosting.runner(scripts))?;
        }
        Ok(server)
    }
}
