//! The gateway's servers, for the tools that list, add and remove them.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use toolyard_agent::management::{NewServer, RegisteredServer, RegistrationError, ServerManager};
use toolyard_core::{Caller, Gateway, Registry};
use toolyard_manifest::HandlerConfig;

use super::AddedServers;

/// All servers of the gateway. Holds the gateway weakly because it is a part of it.
pub struct GatewayServers {
    /// The gateway.
    pub gateway: Weak<Gateway>,
    /// The servers added at run time.
    pub added: Arc<AddedServers>,
}

impl ServerManager for GatewayServers {
    fn seen_by<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Arc<Registry>> {
        Box::pin(async move {
            match self.gateway.upgrade() {
                Some(gateway) => gateway.settled_for(caller).await,
                None => Arc::default(),
            }
        })
    }

    fn added(&self) -> Vec<Arc<str>> {
        let configured = self.added.configured();
        let state = self.added.state();
        let added = state.records.iter().filter(|record| !configured.contains(&record.name));
        added.map(|record| record.name.as_str().into()).collect()
    }

    fn is_own(&self, handler: &str) -> bool {
        handler == HandlerConfig::BUILTINS
    }

    fn register(&self, server: NewServer) -> BoxFuture<'_, Result<RegisteredServer, RegistrationError>> {
        Box::pin(self.added.add(server))
    }

    fn unregister<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), RegistrationError>> {
        Box::pin(self.added.remove(name))
    }
}
