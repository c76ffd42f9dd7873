//! Calls that wait for an answer of their modern client.
//!
//! Such a client is not asked while its request is open: the request ends with what is needed, and the client sends it
//! again with the answers (2026-07-28, basic/patterns/mrtr). A backend that asks and waits goes on waiting here
//! meanwhile. The state that the client brings back is a name that nobody can guess; it opens the call only for the
//! same request of the same caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;
use toolyard_core::{Caller, Code, Json, Object, Target, ToolError};

use super::rounds::Job;
use super::session::random_id;
use super::{Answer, FrontendLimits};
use crate::wire::RpcError;

/// What the states given out here begin with. Those of backends do not.
const PREFIX: &str = "parked.";

/// All parked calls of one frontend.
pub(super) struct Parked {
    table: Mutex<HashMap<Arc<str>, ParkedCall>>,
    /// Takes out what nobody came back for.
    timers: Mutex<JoinSet<()>>,
    limits: FrontendLimits,
}

/// A call that waits.
pub(super) struct ParkedCall {
    pub(super) job: Job,
    pub(super) request: Identity,
}

/// What tells one request from another: who wants what.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Identity {
    pub(super) target: Target,
    pub(super) arguments: Option<Value>,
    pub(super) caller: Caller,
}

/// Whether a request goes on with a call that was parked here.
pub(super) fn is_state(state: &str) -> bool {
    state.starts_with(PREFIX)
}

impl Parked {
    pub(super) fn new(limits: FrontendLimits) -> Self {
        Self { table: Mutex::default(), timers: Mutex::default(), limits }
    }

    /// Lets a call wait; gives the result that says what it needs.
    pub(super) fn park(self: &Arc<Self>, call: ParkedCall) -> Answer {
        let requests = call.job.open.requests();
        let full =
            || RpcError::from(&ToolError::new(Code::Overloaded, "Too many calls wait for their clients"));
        let key: Arc<str> = random_id().ok_or_else(full)?;
        {
            let mut table = self.table();
            if table.len() >= self.limits.parked_calls {
                return Err(full());
            }
            table.insert(key.clone(), call);
        }
        self.forget_later(key.clone());
        let result = Object::new()
            .with("resultType", Json::string("input_required"))
            .with("inputRequests", requests)
            .with("requestState", Json::string(&format!("{PREFIX}{key}")));
        Ok(result.to_pieces())
    }

    /// Takes the call that a request goes on with.
    pub(super) fn take(&self, state: &str, request: &Identity) -> Result<ParkedCall, RpcError> {
        let unknown = || RpcError::invalid_params("`params.requestState` is unknown here, or too old");
        let key = state.strip_prefix(PREFIX).ok_or_else(unknown)?;
        let mut table = self.table();
        match table.get(key) {
            Some(call) if call.request == *request => table.remove(key).ok_or_else(unknown),
            Some(_) | None => Err(unknown()),
        }
    }

    /// Drops the calls of one caller.
    pub(super) fn forget(&self, caller: &Caller) {
        let forgotten: Vec<_> = self.table().extract_if(|_, call| call.request.caller == *caller).collect();
        drop(forgotten);
    }

    fn forget_later(self: &Arc<Self>, key: Arc<str>) {
        let (parked, time): (Weak<Self>, _) = (Arc::downgrade(self), self.limits.ask_time);
        let mut timers = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        while timers.try_join_next().is_some() {}
        timers.spawn(async move {
            sleep(time).await;
            if let Some(parked) = parked.upgrade() {
                let forgotten = parked.table().remove(&key);
                drop(forgotten);
            }
        });
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Arc<str>, ParkedCall>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
