//! The servers behind the gateway, for the tools that show, add and remove them.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use toolyard_agent::management::{NewServer, Refusal, Registered, Servers};
use toolyard_core::{Caller, Gateway, Registry};
use toolyard_manifest::Handler;

use super::AddedServers;

/// All of them. It does not keep the gateway, of which it is a part.
pub struct Port {
    /// The gateway.
    pub gateway: Weak<Gateway>,
    /// Those that were added.
    pub added: Arc<AddedServers>,
}

impl Servers for Port {
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
        let known = self.added.known();
        let added = known.records.iter().filter(|record| !configured.contains(&record.name));
        added.map(|record| record.name.as_str().into()).collect()
    }

    fn is_own(&self, handler: &str) -> bool {
        handler == Handler::BUILTINS
    }

    fn register(&self, server: NewServer) -> BoxFuture<'_, Result<Registered, Refusal>> {
        Box::pin(self.added.add(server))
    }

    fn unregister<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(self.added.remove(name))
    }
}
