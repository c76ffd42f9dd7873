//! One server, spoken to in its own era.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::registry::Kind;
use toolyard_core::{Call, Client, Json, NoClient, Object, Outcome};
use toolyard_net::trace;

use super::asked::Callers;
use super::capabilities::Capabilities;
use super::followed::Followed;
use super::repeat::Failure;
use super::stale::{Lists, Stale};
use super::transport::{Answer, Outgoing, Signals, Transport, TransportError};
use super::{ClientOptions, convert, exchange};
use crate::wire::headers::{self, HeaderParam};
use crate::wire::{Era, Id, Revision, RpcError, error, message, method, method_for};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error(transparent)]
    Spawn(#[from] toolyard_process::SpawnError),
    #[error("the server refused {method}: {error}")]
    Refused { method: &'static str, error: String },
    #[error("the server speaks no revision that is spoken here: {0}")]
    Revision(String),
    #[error("the server's answer to {0} is malformed")]
    Malformed(&'static str),
    #[error("the server took too long to connect")]
    TooSlow,
    /// Whatever answers may be a server somewhere else, or of another transport.
    #[error("{0}")]
    NotHere(&'static str),
    #[error("the server's stream names no endpoint of its own origin")]
    Endpoint,
    #[error("there is no MCP server: {0}")]
    Nowhere(String),
}

impl OpenError {
    /// Whether the server may be spoken to somewhere else, or in another way
    /// (2025-03-26, basic/transports, backwards compatibility).
    pub(super) fn is_elsewhere(&self) -> bool {
        const SAID_SO: [StatusCode; 3] =
            [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
        match self {
            Self::Transport(TransportError::Status(status)) => SAID_SO.contains(status),
            Self::NotHere(_) => true,
            _ => false,
        }
    }
}

/// An open connection. Dropping it closes it; a process ends with it.
pub(super) struct Connection {
    pub(super) transport: Transport,
    pub(super) revision: Revision,
    /// What the server says that it can do.
    pub(super) capabilities: Capabilities,
    pub(super) info: Json,
    pub(super) options: Arc<ClientOptions>,
    pub(super) ids: Arc<AtomicU64>,
    /// The arguments that tools of a modern HTTP server want mirrored, by the tool's name.
    pub(super) mirrored: RwLock<HashMap<Arc<str>, Vec<HeaderParam>>>,
    pub(super) signals: Arc<Signals>,
    /// Whether the server has forgotten the session.
    pub(super) is_forgotten: AtomicBool,
    /// How much log a legacy server was asked for: a place in [`LogLevel::ALL`], or behind the last one.
    pub(super) log_level: AtomicUsize,
    /// Whether the log says already which names of the filter mean no tool.
    pub(super) has_checked: AtomicBool,
    /// Whom the server may ask.
    pub(super) callers: Arc<Callers>,
    /// Follows the stream of changes.
    pub(super) follower: JoinSet<()>,
    pub(super) name: Arc<str>,
}

/// How long a server may take to answer what is arranged with it beside its calls.
pub(super) const ARRANGE_TIME: Duration = Duration::from_secs(10);

/// How long the end of a session may take.
const END_TIME: Duration = Duration::from_secs(1);

impl Connection {
    pub(super) const fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether the server was asked for something that it may keep, or ask again.
    pub(super) fn has_asked(&self) -> bool {
        self.callers.has_asked()
    }

    /// What the server holds for who uses this connection: a process has a memory, and so has a session.
    pub(super) fn has_state(&self) -> bool {
        match self.transport {
            Transport::Stdio(_) => true,
            Transport::Exchange(_) => false,
            Transport::Http(_) | Transport::Sse(_) => self.revision.era() == Era::Legacy,
        }
    }

    /// Tells the server that the client's folders are others, if it knows the ones that were.
    pub(super) fn roots_changed(&self) {
        if self.callers.knows_roots() {
            self.transport.post(vec![message::notification(method::ROOTS_CHANGED, &Object::new())]);
        }
    }

    /// How many messages have come by themselves, or as answers, where that can be told.
    pub(super) fn heard(&self) -> u64 {
        self.signals.heard.load(Ordering::Relaxed)
    }

    /// Asks the server whether it is there. That it does not know the question is an answer.
    ///
    /// # Errors
    /// When it did not answer.
    pub(super) async fn ping(&self) -> Result<(), TransportError> {
        let method = match self.revision.era() {
            Era::Legacy => method::PING,
            Era::Modern => method::DISCOVER,
        };
        self.ask(method, Object::new()).await.map(drop)
    }

    /// The lists that may have changed.
    pub(super) fn stale(&self) -> &Stale {
        &self.signals.stale
    }

    /// The resources that somebody follows.
    pub(super) fn followed(&self) -> &Arc<Followed> {
        &self.signals.followed
    }

    /// Waits until the connection is of no use any more.
    pub(super) async fn lost(&self) {
        self.signals.lost.notified().await;
    }

    /// Whether there is nobody any more who could answer a call. The keeper learns of it a moment later.
    pub(super) fn is_over(&self) -> bool {
        let is_closed = match &self.transport {
            Transport::Http(_) | Transport::Exchange(_) => false,
            Transport::Sse(sse) => sse.is_over(),
            Transport::Stdio(stdio) => stdio.is_over(),
        };
        is_closed || self.is_forgotten()
    }

    /// Whether the server has forgotten the session.
    pub(super) fn is_forgotten(&self) -> bool {
        self.is_forgotten.load(Ordering::Acquire)
    }

    /// Ends the process, or the session.
    pub(super) async fn close(&self) {
        match &self.transport {
            Transport::Stdio(stdio) => stdio.close().await,
            Transport::Http(http) => {
                let _too_slow = timeout(END_TIME, http.end_session()).await;
            }
            // The session is its stream, and goes with the last call.
            Transport::Sse(_) => {}
            // There is none.
            Transport::Exchange(_) => {}
        }
    }

    /// Waits until nothing is left of a server that is a process: there is never one beside its successor.
    pub(super) async fn end_process(&self) {
        if let Transport::Stdio(stdio) = &self.transport {
            stdio.close().await;
        }
    }

    /// Runs a call.
    pub(super) async fn call(&self, call: Call) -> Result<Outcome, Failure> {
        self.ask_for_log(&*call.client).await;
        let method = method_for(&call.target);
        // Only who is sent headers refuses for them.
        let again = self.mirrors_headers().then(|| call.clone());
        let mut answer = self.exchange(method, call).await?;
        if answer.as_ref().is_err_and(|error| error.code == error::HEADER_MISMATCH) {
            // The annotations are not what they were when the tools were listed: it was refused unread.
            self.signals.stale.note(Lists::of(&[Kind::Tools]));
            if let Some(again) = again
                && Box::pin(self.mirror_anew()).await
            {
                answer = Box::pin(self.exchange(method, again)).await?;
            }
        }
        Ok(convert::outcome(answer, self.revision.era())?)
    }

    /// Sends a request of a call. What the server says and asks meanwhile is for the call's client.
    pub(super) async fn exchange(&self, method: &'static str, call: Call) -> Result<Answer, TransportError> {
        let client = call.client.clone();
        self.callers.called_by(&client);
        let id = self.next_id();
        let (trace, deadline) = (self.trace_headers(&call.meta), call.deadline);
        let (name, mut params) = convert::call_params(call, id, self.revision, &self.info);
        if let Transport::Exchange(_) = self.transport {
            exchange::complete(method, &mut params);
        }
        let mut headers = self.call_headers(method, &name, &params);
        headers.extend(trace);
        let message = message::request(&Id::number(id), method, &params);
        // A modern server asks in its results, and whatever else it sends is nobody's.
        let is_legacy = self.revision.era() == Era::Legacy;
        let attended = is_legacy.then(|| self.callers.begin(id, &client, &self.transport)).flatten();
        let spoken = self.signals.spoken.load(Ordering::Relaxed);
        let outgoing = Outgoing { id, message, headers, deadline };
        let mut request = pin!(self.transport.request(outgoing, &client));
        let answer = match attended {
            Some(attended) => attended.until(|| Box::pin(self.ping()), request.as_mut()).await,
            None => request.await,
        };
        let answer = answer.map_err(|error| match error {
            // It was at work already, for this call or for another one.
            TransportError::Broken(error) if self.signals.spoken.load(Ordering::Relaxed) != spoken => {
                TransportError::Interrupted(error)
            }
            error => error,
        });
        if let Ok(Err(error)) = &answer {
            self.callers.visits.refused(error, &client);
        }
        answer.inspect_err(|error| self.note_failure(error))
    }

    /// Whether the connection is of use after this is for its keeper to know.
    pub(super) fn note_failure(&self, error: &TransportError) {
        // Calls that come now wait for the next session.
        let is_forgotten = matches!(error, TransportError::SessionOver | TransportError::SessionLost);
        self.is_forgotten.fetch_or(is_forgotten, Ordering::Release);
        if is_forgotten || matches!(error, TransportError::Unreachable(_)) {
            self.signals.lost.notify_one();
        }
    }

    /// Sees to it that a legacy server logs as much as this client wants; a modern one is told with each request. That
    /// others want less is no reason to ask for less again: what a client does not want does not reach it.
    pub(super) async fn ask_for_log(&self, client: &dyn Client) {
        let Some(level) = client.log_level() else { return };
        let is_enough = || self.log_level.load(Ordering::Relaxed) <= level as usize;
        if self.revision.era() == Era::Modern || !self.capabilities.may_log() || is_enough() {
            return;
        }
        let params = Object::new().with("level", Json::string(level.as_str()));
        Box::pin(self.arrange(method::SET_LEVEL, params)).await;
        // A server that refuses is not asked again.
        self.log_level.fetch_min(level as usize, Ordering::Relaxed);
    }

    /// Asks for something that nobody waits for the result of.
    pub(super) async fn arrange(&self, method: &'static str, params: Object) {
        match timeout(ARRANGE_TIME, self.ask(method, params)).await {
            Ok(Ok(Ok(_))) => {}
            Ok(Ok(Err(error))) => {
                let error = self.options.secrets.brief(error.body().as_text());
                tracing::debug!(handler = %self.name, method, %error, "the server refuses");
            }
            Ok(Err(error)) => self.note_failure(&error),
            Err(_) => tracing::debug!(handler = %self.name, method, "the server does not answer"),
        }
    }

    /// What a modern HTTP server wants mirrored of a call.
    fn call_headers(&self, method: &'static str, name: &Arc<str>, params: &Object) -> HeaderMap {
        let mut headers = self.method_headers(method);
        if headers.is_empty() || method == method::COMPLETE {
            return headers;
        }
        headers.insert(headers::NAME, headers::encode(name));
        if method != method::TOOLS_CALL {
            return headers;
        }
        let mirrored = self.mirrored.read().unwrap_or_else(PoisonError::into_inner);
        let Some(mirrored) = mirrored.get(name) else { return headers };
        let arguments = params.get("arguments").and_then(|arguments| arguments.to_object().ok());
        let arguments = arguments.unwrap_or_default();
        for param in mirrored {
            if let Some(value) = param.value(&arguments) {
                headers.insert(param.header.clone(), headers::encode(&value));
            }
        }
        headers
    }

    /// Which trace a call belongs to, for what stands between the gateway and the server: the server reads `_meta`.
    fn trace_headers(&self, meta: &Object) -> HeaderMap {
        match &self.transport {
            Transport::Http(_) => trace::headers(|name| meta.get_str(name)),
            Transport::Sse(_) | Transport::Stdio(_) | Transport::Exchange(_) => HeaderMap::new(),
        }
    }

    /// Whether what requests say stands in headers as well.
    fn mirrors_headers(&self) -> bool {
        matches!((&self.transport, self.revision.era()), (Transport::Http(_), Era::Modern))
    }

    fn method_headers(&self, method: &'static str) -> HeaderMap {
        match self.mirrors_headers() {
            true => headers::of_method(self.revision, method),
            false => HeaderMap::new(),
        }
    }

    /// A request of the gateway itself.
    pub(super) async fn ask(
        &self,
        method: &'static str,
        mut params: Object,
    ) -> Result<Answer, TransportError> {
        let request = self.outgoing(method, |id, info| {
            convert::set_meta(&mut params, Object::new(), id, self.revision, info, &NoClient);
            params
        });
        self.transport.request(request, &no_client()).await
    }

    pub(super) fn outgoing(
        &self,
        method: &'static str,
        params: impl FnOnce(u64, &Json) -> Object,
    ) -> Outgoing {
        let id = self.next_id();
        let message = message::request(&Id::number(id), method, &params(id, &self.info));
        Outgoing { id, message, headers: self.method_headers(method), deadline: None }
    }

    pub(super) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }
}

pub(super) fn no_client() -> Arc<dyn Client> {
    Arc::new(NoClient)
}

pub(super) fn refused(method: &'static str, error: &RpcError) -> OpenError {
    OpenError::Refused { method, error: error.body().as_text().to_owned() }
}
