//! The rights that a key has now, for activities that outlive the call that started them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolyard_core::store::StoreErrorKind;
use toolyard_core::{Caller, CallerDirectory, ErrorCode, ToolError};
use toolyard_schedule::{OwnerDirectory, OwnerRefusal, ScheduleOwner};

use super::KeyCache;
use super::key_cache::KeyVerdict;

/// The keys of a gateway as callers of later calls.
pub(crate) struct CurrentCallers {
    keys: Arc<KeyCache>,
    /// True for a gateway without listeners, whose only client needs no key.
    is_local: bool,
}

impl CurrentCallers {
    /// Creates it. `is_local`: the gateway has no listeners.
    pub(crate) const fn new(keys: Arc<KeyCache>, is_local: bool) -> Self {
        Self { keys, is_local }
    }

    /// Returns the caller with this key, or without one.
    async fn by_key(&self, id: Option<&str>) -> Result<Caller, OwnerRefusal> {
        match self.keys.current_by_id(id).await {
            KeyVerdict::Granted(caller) => Ok(caller.to_caller()),
            _ if self.is_local && id.is_none() => Ok(Caller::default()),
            KeyVerdict::Revoked => Err(OwnerRefusal::Ended("was revoked")),
            KeyVerdict::Expired => Err(OwnerRefusal::Ended("has expired")),
            KeyVerdict::Denied if id.is_some() => Err(OwnerRefusal::Ended("was deleted")),
            KeyVerdict::Denied | KeyVerdict::SessionEnded => {
                Err(OwnerRefusal::Refused("the gateway now requires a key".to_owned()))
            }
            KeyVerdict::Unavailable(kind) => Err(unavailable(kind)),
        }
    }
}

impl OwnerDirectory for CurrentCallers {
    fn caller<'a>(&'a self, owner: &'a ScheduleOwner) -> BoxFuture<'a, Result<Caller, OwnerRefusal>> {
        Box::pin(self.by_key(owner.key_id()))
    }
}

impl CallerDirectory for CurrentCallers {
    fn current<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Caller, ToolError>> {
        Box::pin(async move {
            let current = self.by_key(caller.principal.as_deref()).await;
            let current =
                current.map_err(|refusal| ToolError::new(ErrorCode::Denied, refusal.to_string()))?;
            Ok(Caller { session: caller.session.clone(), peer: caller.peer, ..current })
        })
    }
}

fn unavailable(kind: StoreErrorKind) -> OwnerRefusal {
    OwnerRefusal::Refused(format!("the store with the keys is unavailable: {kind}"))
}
