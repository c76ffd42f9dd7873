//! Requests of a legacy server to clients, while calls run.
//!
//! Such a request does not name the call it belongs to. So it is forwarded only on a connection that serves a single
//! client, or a single call at a time; the newest running call receives it, which belongs to the right client in any
//! case. With streamable HTTP, a request on the stream of a call goes to that call. Some servers send their requests
//! before the first call and never again: a request that no call receives waits for the next call of the same client.

mod running_calls;
mod url_elicitations;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use toolyard_core::{Client, ClientNotification, InputRequest, InputRequestError, InputRequestKind, Object};

use running_calls::{RunningCall, RunningCalls};
use url_elicitations::UrlElicitations;

use super::connection::declared_capabilities::DeclaredCapabilities;
use super::transport::{ClientTransport, TransportError};
use crate::wire::{RequestId, RpcError, ask_kind, error, message, method};

/// Maximum number of unanswered requests per call. Further ones are refused.
const MAX_PENDING: usize = 16;

/// Maximum time that the first call of a connection waits until earlier requests of the server are answered.
const FIRST_CALL_TIME: Duration = Duration::from_secs(2);

/// Time for the server to process those answers, since nothing signals that it has done so.
const ANSWER_USE_TIME: Duration = Duration::from_millis(100);

/// Forwards the requests of a server to the clients of the running calls of one connection.
pub(super) struct ServerRequestRouter {
    declared: DeclaredCapabilities,
    state: Mutex<RouterState>,
    has_requested: AtomicBool,
    /// True once the server has requested roots.
    has_requested_roots: AtomicBool,
    /// True if the connection serves a single client.
    is_dedicated: AtomicBool,
    /// The running calls, whether or not their clients can be asked.
    calls: RunningCalls,
    /// Number of notifications without a recipient, of all connections to the server.
    dropped_notices: Arc<AtomicU64>,
    /// The URL elicitations that are not complete.
    pub(super) url_elicitations: UrlElicitations,
}

#[derive(Default)]
struct RouterState {
    running: BTreeMap<u64, AskableCall>,
    /// Requests for the next call, [`MAX_PENDING`] at most. They end with the connection, which ends when it is idle.
    unassigned: Vec<ServerRequest>,
    /// True once the first call has started, or if there will be no call.
    has_started: bool,
}

/// A running call whose client can be asked.
struct AskableCall {
    events: mpsc::Sender<CallEvent>,
}

/// A request of a server to a client.
#[derive(Clone)]
struct ServerRequest {
    id: RequestId,
    ask: InputRequest,
}

/// An event for a running call.
enum CallEvent {
    Request(ServerRequest),
    /// The server has cancelled a request.
    Cancellation(RequestId),
}

impl ServerRequestRouter {
    /// Creates a router without calls. `declared` is the capabilities that the server was told; `dropped_notices`
    /// counts notifications without a recipient.
    pub(super) fn new(declared: DeclaredCapabilities, dropped_notices: Arc<AtomicU64>) -> Self {
        let (state, calls) = (Mutex::default(), RunningCalls::default());
        let [has_requested, has_requested_roots, is_dedicated] = [false; 3].map(AtomicBool::new);
        Self {
            declared,
            state,
            has_requested,
            has_requested_roots,
            is_dedicated,
            calls,
            dropped_notices,
            url_elicitations: UrlElicitations::default(),
        }
    }

    /// Returns the capabilities that the server was told.
    pub(super) const fn declared(&self) -> &DeclaredCapabilities {
        &self.declared
    }

    /// True once the server has sent a request whose answer it may keep, or that it may repeat.
    pub(super) fn has_requested(&self) -> bool {
        self.has_requested.load(Ordering::Acquire)
    }

    /// True once the server has requested roots, so that it has to be told of changes.
    pub(super) fn has_requested_roots(&self) -> bool {
        self.has_requested_roots.load(Ordering::Relaxed)
    }

    /// Handles a request of the server. Returns the response, unless the client of a call is going to answer. `of` is
    /// the call whose stream the request came on, if any.
    pub(super) fn handle_request(
        &self,
        of: Option<u64>,
        id: RequestId,
        method: &str,
        params: Object,
    ) -> Option<Vec<Bytes>> {
        if method == method::PING {
            return Some(message::response(Some(&id), Ok(vec![Bytes::from_static(b"{}")])));
        }
        let Some(kind) = ask_kind(method).filter(|kind| self.declared.contains(*kind)) else {
            return Some(message::response(Some(&id), Err(RpcError::method_not_found(method))));
        };
        self.has_requested.store(true, Ordering::Release);
        self.has_requested_roots.fetch_or(kind == InputRequestKind::Roots, Ordering::Relaxed);
        let request = ServerRequest { id, ask: InputRequest { kind, params } };
        self.route(of, request, true).err().map(refusal)
    }

    /// Handles `notifications/cancelled` of the server.
    pub(super) fn handle_cancellation(&self, params: &Object) {
        let Some(id) = params.get("requestId").and_then(RequestId::parse) else { return };
        let mut state = self.state();
        state.unassigned.retain(|request| request.id != id);
        for call in state.running.values() {
            // A full queue: the answer to a cancelled request is ignored by the server.
            let _full = call.events.try_send(CallEvent::Cancellation(id.clone()));
        }
    }

    /// Marks the connection as one that serves a single client.
    pub(super) fn dedicate(&self) {
        self.is_dedicated.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_dedicated(&self) -> bool {
        self.is_dedicated.load(Ordering::Relaxed)
    }

    /// True if the running calls are those of a single client.
    pub(super) fn serves_one_client(&self) -> bool {
        self.is_dedicated() || !self.declared.is_empty()
    }

    /// Forwards a notification that names no request: on a dedicated connection to its client, on a shared one to the
    /// client of the only running call. Otherwise it could reach another client; it is dropped and counted.
    pub(super) fn forward_notice(&self, notice: ClientNotification) {
        let recipient = match self.is_dedicated() {
            true => self.calls.latest_client(),
            false => self.calls.only_client(),
        };
        match recipient {
            Some(client) => client.notify(notice),
            None => drop(self.dropped_notices.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Registers a call, which runs until the returned guard is dropped.
    pub(super) fn register_call(&self, client: &Arc<dyn Client>) -> RunningCall<'_> {
        self.calls.register(client, self.is_dedicated())
    }

    /// Refuses all requests from now on: the connection serves no calls of clients.
    pub(super) fn refuse_all(&self, transport: &ClientTransport) {
        let mut state = self.state();
        state.has_started = true;
        for request in std::mem::take(&mut state.unassigned) {
            transport.enqueue(refusal(request));
        }
    }

    /// Hands a request to the call `of`, else to the newest call, else, if it `may_wait`, to the next call of the same
    /// client. Returns the request if no call receives it.
    fn route(&self, of: Option<u64>, request: ServerRequest, may_wait: bool) -> Result<(), ServerRequest> {
        let mut state = self.state();
        let named = of.and_then(|id| state.running.get(&id));
        if let Some(call) = named.or_else(|| state.running.values().next_back()) {
            return call.events.try_send(CallEvent::Request(request.clone())).map_err(|_full| request);
        }
        // Before the first call no client has used the connection, so the request cannot belong to another client.
        let is_for_next = self.is_dedicated() || !state.has_started;
        if !may_wait || !is_for_next || state.unassigned.len() >= MAX_PENDING {
            return Err(request);
        }
        state.unassigned.push(request);
        Ok(())
    }

    /// Registers a call whose client can be asked; `None` on a connection that declares no capabilities.
    pub(super) fn begin_call<'c>(
        &'c self,
        id: u64,
        client: &Arc<dyn Client>,
        transport: &'c ClientTransport,
    ) -> Option<InteractiveCall<'c>> {
        if self.declared.is_empty() {
            return None;
        }
        let (sender, receiver) = mpsc::channel(MAX_PENDING);
        let mut state = self.state();
        for request in std::mem::take(&mut state.unassigned) {
            // The channel has capacity for all of them.
            let _full = sender.try_send(CallEvent::Request(request));
        }
        state.running.insert(id, AskableCall { events: sender });
        let is_first = !std::mem::replace(&mut state.has_started, true);
        let (client, pending) = (client.clone(), Vec::new());
        Some(InteractiveCall {
            router: self,
            transport,
            id,
            client,
            events: receiver,
            pending,
            is_first,
            is_answered: false,
        })
    }

    fn state(&self) -> MutexGuard<'_, RouterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call whose client answers requests of the server while it runs. Dropping it withdraws these requests.
pub(super) struct InteractiveCall<'c> {
    router: &'c ServerRequestRouter,
    transport: &'c ClientTransport,
    id: u64,
    client: Arc<dyn Client>,
    events: mpsc::Receiver<CallEvent>,
    pending: Vec<PendingAnswer>,
    is_first: bool,
    is_answered: bool,
}

struct PendingAnswer {
    request: ServerRequest,
    /// Asks the client and returns the response to the server.
    answering: BoxFuture<'static, Vec<Bytes>>,
}

impl InteractiveCall<'_> {
    /// Waits for the answer to the call, and forwards requests of the server meanwhile. The first call of a connection
    /// starts once the requests that came before are answered, or after [`FIRST_CALL_TIME`].
    pub(super) async fn answer_until<'p, T>(
        mut self,
        ping: impl FnOnce() -> BoxFuture<'p, Result<(), TransportError>>,
        answer: impl Future<Output = T>,
    ) -> T {
        if self.is_first {
            let settle = async {
                let _refused = self.serve_while(ping()).await;
                self.serve_pending().await;
                if self.router.has_requested() {
                    self.serve_while(sleep(ANSWER_USE_TIME)).await;
                }
            };
            let _too_slow = Box::pin(timeout(FIRST_CALL_TIME, settle)).await;
        }
        let answer = self.serve_while(answer).await;
        self.is_answered = true;
        answer
    }

    async fn serve_while<T>(&mut self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                Some(event) = self.events.recv() => self.handle_event(event),
                response = next_response(&mut self.pending) => Box::pin(self.transport.respond(response)).await,
            }
        }
    }

    /// Serves requests until none is pending.
    async fn serve_pending(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.handle_event(event);
        }
        while !self.pending.is_empty() {
            tokio::select! {
                Some(event) = self.events.recv() => self.handle_event(event),
                response = next_response(&mut self.pending) => Box::pin(self.transport.respond(response)).await,
            }
        }
    }

    fn handle_event(&mut self, event: CallEvent) {
        match event {
            CallEvent::Request(request) if self.pending.len() < MAX_PENDING => self.ask_client(request),
            CallEvent::Request(request) => self.transport.enqueue(refusal(request)),
            CallEvent::Cancellation(id) => self.pending.retain(|pending| pending.request.id != id),
        }
    }

    fn ask_client(&mut self, request: ServerRequest) {
        let client = self.client.clone();
        let ServerRequest { id, ask } = request.clone();
        self.router.url_elicitations.record_request(&ask, &client);
        let answering = async move {
            let answer = client.ask(ask).await.map_err(ask_error);
            message::response(Some(&id), answer.map(|answer| vec![answer.bytes()]))
        };
        self.pending.push(PendingAnswer { request, answering: answering.boxed() });
    }
}

/// The requests of a finished call may belong to another call of the same client, which receives them. Without such a
/// call they wait for the next one, unless the call was cancelled and may have caused them.
impl Drop for InteractiveCall<'_> {
    fn drop(&mut self) {
        self.router.state().running.remove(&self.id);
        self.events.close();
        let events = std::iter::from_fn(|| self.events.try_recv().ok()).collect::<Vec<_>>();
        let mut requests: Vec<_> =
            std::mem::take(&mut self.pending).into_iter().map(|pending| pending.request).collect();
        for event in events {
            match event {
                CallEvent::Request(request) => requests.push(request),
                CallEvent::Cancellation(id) => requests.retain(|request| request.id != id),
            }
        }
        for request in requests {
            let may_stay = self.is_answered || request.ask.kind == InputRequestKind::Roots;
            if let Err(request) = self.router.route(None, request, may_stay) {
                self.transport.enqueue(refusal(request));
            }
        }
    }
}

/// Polls all pending answers until one is ready.
async fn next_response(pending: &mut Vec<PendingAnswer>) -> Vec<Bytes> {
    poll_fn(|cx| {
        for at in 0..pending.len() {
            if let Poll::Ready(response) = pending[at].answering.poll_unpin(cx) {
                pending.remove(at);
                return Poll::Ready(response);
            }
        }
        Poll::Pending
    })
    .await
}

/// The response to a request that no call receives.
fn refusal(request: ServerRequest) -> Vec<Bytes> {
    message::response(Some(&request.id), Err(ask_error(InputRequestError::Gone)))
}

/// The error that a server gets for an unanswered request.
fn ask_error(error: InputRequestError) -> RpcError {
    match error {
        InputRequestError::Refused(error) => RpcError::from_peer(error),
        InputRequestError::BadQuestion(problem) => RpcError::invalid_params(problem),
        // The method is supported, so the mode is not (2025-11-25, client/elicitation, error handling).
        InputRequestError::Unsupported(_) => RpcError::invalid_params(error.to_string()),
        InputRequestError::BadAnswer(_) | InputRequestError::TooLate | InputRequestError::Gone => {
            RpcError::new(error::INTERNAL_ERROR, error.to_string())
        }
    }
}
