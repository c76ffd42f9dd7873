//! Calls that wait for an answer of their modern client.
//!
//! Such a client is not asked while its request is open: the request ends with what is needed, and the client sends it
//! again with the answers (2026-07-28, basic/patterns/mrtr). A backend that asks and waits goes on waiting here
//! meanwhile. The state that the client brings back is a ticket that is good for the same request of the same caller
//! only.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;
use toolyard_core::{Caller, Code, Json, Object, Target, ToolError};

use super::rounds::{Job, Step};
use super::ticket::{Place, Tickets};
use super::{Answer, FrontendLimits};
use crate::seal;
use crate::wire::RpcError;

/// What the states given out here begin with.
const PREFIX: &str = "parked.";

/// What stands in front of a backend's own state that could be taken for one of these: another frontend behind this
/// one gives out states of the same kind.
const PASSED: &str = "passed.";

/// All parked calls of one frontend.
pub(super) struct Parked {
    table: Mutex<HashMap<Arc<str>, Waiting>>,
    /// The calls of the table. They go on: a backend may hold something that others wait for, and its time runs.
    running: Mutex<JoinSet<()>>,
    limits: FrontendLimits,
    tickets: Arc<Tickets>,
}

/// A call that waits.
pub(super) struct ParkedCall {
    pub(super) job: Job,
    pub(super) request: Identity,
}

/// How to come back to a call that waits.
struct Waiting {
    caller: Caller,
    /// Who sends something here is given the call. Dropping it ends the call.
    wanted: oneshot::Sender<oneshot::Sender<Job>>,
}

/// What tells one request from another: who wants what.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) target: Target,
    pub(super) arguments: Option<Json>,
    pub(super) caller: Caller,
}

impl Identity {
    fn binding(&self) -> Vec<u8> {
        seal::binding(&self.target, self.arguments.as_ref(), &self.caller)
    }
}

/// The state of a request that goes on with a call that was parked here, or at another gateway.
pub(super) fn state_of(params: &Object) -> Option<String> {
    params.get_str("requestState").filter(|state| is_state(state)).map(Cow::into_owned)
}

fn is_state(state: &str) -> bool {
    state.starts_with(PREFIX)
}

/// What a backend needs, with a state that is not one of these.
pub(super) fn pass_on(mut needed: Object) -> Object {
    let state = needed.get_str("requestState");
    let alike = state.filter(|state| is_state(state) || state.starts_with(PASSED));
    if let Some(state) = alike.map(|state| format!("{PASSED}{state}")) {
        needed.set("requestState", Json::string(&state));
    }
    needed
}

/// Gives a backend its state back as it was.
pub(super) fn pass_back(params: &mut Object) {
    let state = params.get_str("requestState");
    if let Some(state) = state.and_then(|state| state.strip_prefix(PASSED).map(Json::string)) {
        params.set("requestState", state);
    }
}

impl Parked {
    pub(super) fn new(limits: FrontendLimits, tickets: Arc<Tickets>) -> Self {
        Self { table: Mutex::default(), running: Mutex::default(), limits, tickets }
    }

    /// Ends the calls that wait.
    pub(super) async fn stop(&self) {
        let mut running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        running.shutdown().await;
    }

    /// Lets a call wait; gives the result that says what it needs.
    pub(super) fn park(self: &Arc<Self>, call: ParkedCall) -> Answer {
        let ParkedCall { job, request } = call;
        let requests = job.open.requests();
        let full =
            || RpcError::from(&ToolError::new(Code::Overloaded, "Too many calls wait for their clients"));
        let ticket = self.tickets.for_here(&request.binding(), self.limits.ask_time)?;
        let (wanted, back) = oneshot::channel();
        {
            let mut table = self.table();
            if table.len() >= self.limits.parked_calls {
                return Err(full());
            }
            table.insert(ticket.clone(), Waiting { caller: request.caller, wanted });
        }
        job.client.wait_for_next();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.spawn(wait(Arc::downgrade(self), ticket.clone(), job, back));
        let result = Object::new()
            .with("resultType", Json::string("input_required"))
            .with("inputRequests", requests)
            .with("requestState", Json::string(&format!("{PREFIX}{ticket}")));
        Ok(result.to_pieces())
    }

    /// Where the call is that a request goes on with.
    ///
    /// # Errors
    /// When the state was not given out for this request, or is too old.
    pub(super) fn place(&self, state: &str, request: &Identity) -> Result<Place, RpcError> {
        let ticket = state.strip_prefix(PREFIX).ok_or_else(unknown)?;
        self.tickets.place(&request.binding(), ticket).map_err(|_unsealed| unknown())
    }

    /// Takes the call that a request goes on with.
    pub(super) async fn take(&self, state: &str, request: Identity) -> Result<ParkedCall, RpcError> {
        if self.place(state, &request)? != Place::Here {
            return Err(unknown());
        }
        let waiting = state.strip_prefix(PREFIX).and_then(|ticket| self.table().remove(ticket));
        let Waiting { wanted, .. } = waiting.ok_or_else(unknown)?;
        let (sender, job) = oneshot::channel();
        wanted.send(sender).map_err(|_| unknown())?;
        let job = job.await.map_err(|_| unknown())?;
        Ok(ParkedCall { job, request })
    }

    /// Drops the calls of one caller.
    pub(super) fn forget(&self, caller: &Caller) {
        self.table().retain(|_, waiting| waiting.caller != *caller);
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Arc<str>, Waiting>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown() -> RpcError {
    RpcError::invalid_params("`params.requestState` is unknown here, or too old")
}

/// Lets a call go on until somebody wants it back. Where nobody does, it ends with the time that it waits.
async fn wait(
    parked: Weak<Parked>,
    ticket: Arc<str>,
    mut job: Job,
    mut wanted: oneshot::Receiver<oneshot::Sender<Job>>,
) {
    let Some(time) = parked.upgrade().map(|parked| parked.limits.ask_time) else { return };
    let mut time = std::pin::pin!(sleep(time));
    let mut runs = true;
    loop {
        tokio::select! {
            biased;
            wanted = &mut wanted => {
                if let Ok(sender) = wanted {
                    let _gone = sender.send(job);
                }
                return;
            }
            () = &mut time => break,
            step = job.step(), if runs => if let Step::Over(came) = step {
                job.keep(came);
                runs = false;
            },
        }
    }
    if let Some(parked) = parked.upgrade() {
        parked.table().remove(&ticket);
    }
}
