//! Calls that wait for input of their modern client.
//!
//! A modern client receives no requests: its request ends with a result that asks for input, and the client repeats the
//! request with the responses (2026-07-28, basic/patterns/mrtr). Meanwhile a backend that waits for the input stays
//! suspended here. The state that the client returns is a ticket for the same request of the same caller.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;
use toolyard_core::{CallTarget, Caller, ErrorCode, Json, Object, ToolError, seal};

use super::multi_round_trip::{CallExecution, ExecutionStep};
use super::ticket::{TicketIssuer, TicketLocation};
use crate::server::{FrontendLimits, McpAnswer};
use crate::wire::RpcError;

/// Prefix of the states that this frontend issues.
const STATE_PREFIX: &str = "parked.";

/// Prefix that escapes the state of a backend which could be mistaken for one of this frontend: another frontend behind
/// this one issues states of the same form.
const ESCAPE_PREFIX: &str = "passed.";

/// The suspended calls of one frontend.
pub(in crate::server) struct SuspendedCalls {
    table: Mutex<HashMap<Arc<str>, SuspendedEntry>>,
    /// The tasks that run them. A suspended call goes on, since it may hold resources, and its deadline approaches.
    running: Mutex<JoinSet<()>>,
    limits: FrontendLimits,
    tickets: Arc<TicketIssuer>,
}

/// A suspended call.
pub(in crate::server) struct SuspendedCall {
    pub(in crate::server) execution: CallExecution,
    pub(in crate::server) identity: CallIdentity,
}

/// The entry of a suspended call.
struct SuspendedEntry {
    caller: Caller,
    /// Receives the channel that returns the call. Dropping the sender ends the call.
    resume: oneshot::Sender<oneshot::Sender<CallExecution>>,
}

/// The identity of a request: its target, arguments and caller.
#[derive(Debug, Clone)]
pub(in crate::server) struct CallIdentity {
    pub(in crate::server) target: CallTarget,
    pub(in crate::server) arguments: Option<Json>,
    pub(in crate::server) caller: Caller,
}

impl CallIdentity {
    fn binding(&self) -> Vec<u8> {
        seal::binding(&self.target, self.arguments.as_ref(), &self.caller)
    }
}

/// Returns the state of a request if it continues a call that was suspended here or at another gateway.
pub(in crate::server) fn own_state(params: &Object) -> Option<String> {
    params.get_str("requestState").filter(|state| is_own_state(state)).map(Cow::into_owned)
}

fn is_own_state(state: &str) -> bool {
    state.starts_with(STATE_PREFIX)
}

/// Escapes the state of a backend if it looks like one of this frontend.
pub(in crate::server) fn escape_state(mut needed: Object) -> Object {
    let state = needed.get_str("requestState");
    let alike = state.filter(|state| is_own_state(state) || state.starts_with(ESCAPE_PREFIX));
    if let Some(state) = alike.map(|state| format!("{ESCAPE_PREFIX}{state}")) {
        needed.set("requestState", Json::string(&state));
    }
    needed
}

/// Restores the state of a backend.
pub(in crate::server) fn unescape_state(params: &mut Object) {
    let state = params.get_str("requestState");
    if let Some(state) = state.and_then(|state| state.strip_prefix(ESCAPE_PREFIX).map(Json::string)) {
        params.set("requestState", state);
    }
}

impl SuspendedCalls {
    pub(in crate::server) fn new(limits: FrontendLimits, tickets: Arc<TicketIssuer>) -> Self {
        Self { table: Mutex::default(), running: Mutex::default(), limits, tickets }
    }

    /// Ends all suspended calls.
    pub(in crate::server) async fn stop(&self) {
        let mut running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        running.shutdown().await;
    }

    /// Suspends a call and returns the result that asks for input.
    pub(in crate::server) fn suspend(self: &Arc<Self>, call: SuspendedCall) -> McpAnswer {
        let SuspendedCall { execution, identity } = call;
        let requests = execution.open.requests();
        let full = || {
            RpcError::from(&ToolError::new(ErrorCode::Overloaded, "Too many calls wait for their clients"))
        };
        let ticket = self.tickets.issue_local(&identity.binding(), self.limits.ask_timeout)?;
        let (resume, back) = oneshot::channel();
        {
            let mut table = self.table();
            if table.len() >= self.limits.suspended_calls {
                return Err(full());
            }
            table.insert(ticket.clone(), SuspendedEntry { caller: identity.caller, resume });
        }
        execution.client.pause();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.spawn(run_suspended(Arc::downgrade(self), ticket.clone(), execution, back));
        let result = Object::new()
            .with("resultType", Json::string("input_required"))
            .with("inputRequests", requests)
            .with("requestState", Json::string(&format!("{STATE_PREFIX}{ticket}")));
        Ok(result.to_pieces())
    }

    /// Returns the location of the call that a request continues.
    ///
    /// # Errors
    /// When the state was not issued for this request, or has expired.
    pub(in crate::server) fn locate(
        &self,
        state: &str,
        identity: &CallIdentity,
    ) -> Result<TicketLocation, RpcError> {
        let ticket = state.strip_prefix(STATE_PREFIX).ok_or_else(unknown_state)?;
        self.tickets.locate(&identity.binding(), ticket).map_err(|_unsealed| unknown_state())
    }

    /// Takes out the call that a request continues.
    pub(in crate::server) async fn resume(
        &self,
        state: &str,
        identity: CallIdentity,
    ) -> Result<SuspendedCall, RpcError> {
        if self.locate(state, &identity)? != TicketLocation::Here {
            return Err(unknown_state());
        }
        let waiting = state.strip_prefix(STATE_PREFIX).and_then(|ticket| self.table().remove(ticket));
        let SuspendedEntry { resume, .. } = waiting.ok_or_else(unknown_state)?;
        let (sender, execution) = oneshot::channel();
        resume.send(sender).map_err(|_| unknown_state())?;
        let execution = execution.await.map_err(|_| unknown_state())?;
        Ok(SuspendedCall { execution, identity })
    }

    /// Drops the calls of a caller.
    pub(in crate::server) fn forget_caller(&self, caller: &Caller) {
        self.table().retain(|_, waiting| waiting.caller != *caller);
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Arc<str>, SuspendedEntry>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown_state() -> RpcError {
    RpcError::invalid_params("invalid or expired `params.requestState`")
}

/// Runs a suspended call until it is resumed, or its time is over.
async fn run_suspended(
    calls: Weak<SuspendedCalls>,
    ticket: Arc<str>,
    mut execution: CallExecution,
    mut resume: oneshot::Receiver<oneshot::Sender<CallExecution>>,
) {
    let Some(time) = calls.upgrade().map(|calls| calls.limits.ask_timeout) else { return };
    let mut time = std::pin::pin!(sleep(time));
    let mut runs = true;
    loop {
        tokio::select! {
            biased;
            resume = &mut resume => {
                if let Ok(sender) = resume {
                    let _gone = sender.send(execution);
                }
                return;
            }
            () = &mut time => break,
            step = execution.step(), if runs => if let ExecutionStep::Finished(result) = step {
                execution.store_result(result);
                runs = false;
            },
        }
    }
    if let Some(calls) = calls.upgrade() {
        calls.table().remove(&ticket);
    }
}
