//! A connection to one upstream server, in the server's era: its handshake, its state, and the requests sent on it.

pub(super) mod capabilities;
pub(super) mod declared_capabilities;
pub(super) mod handshake;
mod invoke;
pub(super) mod liveness;
pub(super) mod state;

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use http::StatusCode;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::registry::EntryKind;
use toolyard_core::{
    CauseCode, Client, FailureCause, Json, NoClient, Object, SecretRedactor, timed_out_after,
};
use toolyard_net::client::RequestError;
use toolyard_process::SpawnError;

use capabilities::ServerCapabilities;
use state::DownReason;

use super::catalog::followed_resources::FollowedResources;
use super::catalog::list_invalidation::{ListInvalidation, ListSet};
use super::launcher::package_of;
use super::server_requests::ServerRequestRouter;
use super::transport::{
    ClientTransport, ConnectionSignals, OutgoingRequest, ProcessEnded, TransportError, UpstreamResult,
};
use super::{ClientOptions, convert};
use crate::wire::headers::{self, HeaderParam, RequestHeaders};
use crate::wire::{ProtocolEra, ProtocolRevision, RequestId, RpcError, message, method};

/// The reason why a connection cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("the server refused {method}: {error}")]
    Refused { method: &'static str, error: String },
    #[error("unsupported protocol version {0}")]
    UnsupportedVersion(String),
    #[error("the server's response to {0} is malformed")]
    Malformed(&'static str),
    #[error("connecting to the server {}", timed_out_after(*.0))]
    Timeout(Duration),
    /// The peer may be a server of another transport, or at another URL.
    #[error("{0}")]
    WrongTransport(&'static str),
    #[error("the server's endpoint event names no URL of the same origin")]
    InvalidEndpoint,
    #[error("no MCP server found: {0}")]
    NoServerFound(String),
    #[error("the server does not speak MCP 2026-07-28, which the manifest prescribes: remove `era: modern`")]
    NotModern,
    /// Without a session, no request of the server reaches the client of a call.
    #[error("the server opens no session")]
    NoSession,
}

impl ConnectError {
    /// Returns the reason for callers, which names no address, host or path.
    pub(super) fn reason(&self) -> Cow<'static, str> {
        match self {
            Self::Transport(error) => error.reason(),
            Self::Spawn(error) => spawn_reason(error).into(),
            Self::Refused { method, .. } => format!("the server refused {method}").into(),
            Self::UnsupportedVersion(_) => "unsupported protocol version".into(),
            Self::Malformed(method) => format!("malformed response to {method}").into(),
            Self::Timeout(time) => timed_out_after(*time).into(),
            Self::WrongTransport(problem) => (*problem).into(),
            Self::InvalidEndpoint => "endpoint event without a URL of the same origin".into(),
            Self::NoServerFound(_) => "no MCP server at the URL".into(),
            Self::NotModern => "the server does not speak MCP 2026-07-28".into(),
            Self::NoSession => "the server opens no session".into(),
        }
    }

    /// Returns the cause for operators.
    pub(super) fn cause(&self, secrets: &SecretRedactor) -> FailureCause {
        let process_end = match self {
            Self::Transport(error) => error.process_end(),
            _ => None,
        };
        let cause = match process_end {
            Some(end) => FailureCause::new(self.code(), end.to_string()).with_output(&end.output),
            None => FailureCause::new(self.code(), self.chain() + &self.missing_package()),
        };
        cause.hiding(secrets)
    }

    /// Names the package of a missing launcher, as the end of a message.
    fn missing_package(&self) -> String {
        let Self::Spawn(SpawnError::Start { command, source }) = self else { return String::new() };
        let package = package_of(command).filter(|_| source.kind() == ErrorKind::NotFound);
        package.map(|package| format!("; it comes with {package}")).unwrap_or_default()
    }

    /// Returns the kind of the failure.
    fn code(&self) -> CauseCode {
        match self {
            Self::Transport(error) => error.code(),
            Self::Spawn(error) => match spawn_error_kind(error) {
                Some(ErrorKind::NotFound) => CauseCode::ProgramNotFound,
                _ => CauseCode::ProgramNotStarted,
            },
            Self::Timeout(_) => CauseCode::Timeout,
            Self::Refused { .. }
            | Self::UnsupportedVersion(_)
            | Self::Malformed(_)
            | Self::WrongTransport(_)
            | Self::InvalidEndpoint
            | Self::NoServerFound(_)
            | Self::NotModern
            | Self::NoSession => CauseCode::Protocol,
        }
    }

    /// Returns the error and its causes. A request that has failed names its reason only.
    fn chain(&self) -> String {
        let mut chain = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            if let Some(request) = error.downcast_ref::<RequestError>() {
                return format!("{chain}: {}", request.reason());
            }
            // An error may have the text of its cause.
            let text = error.to_string();
            if !chain.ends_with(&text) {
                chain = format!("{chain}: {text}");
            }
            cause = error.source();
        }
        chain
    }

    /// True if the server may be found at another URL or with another transport (2025-03-26, basic/transports,
    /// backwards compatibility).
    fn allows_next_route(&self) -> bool {
        const REFUSALS: [StatusCode; 3] =
            [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
        match self {
            Self::Transport(TransportError::Status(status)) => REFUSALS.contains(status),
            Self::WrongTransport(_) => true,
            _ => false,
        }
    }

    /// True if a server that is known to work does not speak the era of the attempt.
    pub(super) fn is_about_era(&self, is_remote: bool) -> bool {
        match self {
            // A slow start says nothing.
            Self::Spawn(_) | Self::Timeout(_) => false,
            Self::Transport(TransportError::Status(status)) => {
                status.is_client_error() && !convert::is_transient(*status)
            }
            Self::Transport(TransportError::Unauthorized(_)) => true,
            Self::Transport(TransportError::Malformed(_)) => true,
            // A process may die of the unknown request.
            Self::Transport(TransportError::Broken(_) | TransportError::Interrupted(_)) => !is_remote,
            Self::Transport(_) => false,
            _ => true,
        }
    }
}

/// Returns the kind of the system's error among the causes.
fn spawn_error_kind(error: &(dyn Error + 'static)) -> Option<ErrorKind> {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind).next()
}

/// Returns the reason why a program was not started.
fn spawn_reason(error: &(dyn Error + 'static)) -> &'static str {
    match spawn_error_kind(error) {
        Some(ErrorKind::NotFound) => "program not found",
        Some(ErrorKind::PermissionDenied) => "program not executable",
        _ => "program not started",
    }
}

/// An open connection. Dropping it closes the connection and stops a server process.
pub(super) struct UpstreamConnection {
    pub(super) transport: ClientTransport,
    pub(super) revision: ProtocolRevision,
    /// The capabilities that the server declares.
    pub(super) capabilities: ServerCapabilities,
    pub(super) info: Json,
    pub(super) options: Arc<ClientOptions>,
    pub(super) ids: Arc<AtomicU64>,
    /// The arguments that a modern HTTP server wants in headers, by tool.
    pub(super) header_params: RwLock<HashMap<Arc<str>, Vec<HeaderParam>>>,
    pub(super) signals: Arc<ConnectionSignals>,
    /// True once the server has lost the session.
    is_session_lost: AtomicBool,
    /// Log level of a legacy server: an index of [`LogLevel::ALL`], or past the end if it was never set.
    log_level: AtomicUsize,
    /// True once the log has a warning about names of the filter that match no tool.
    pub(super) has_warned_of_filter: AtomicBool,
    /// Requests of the server to clients.
    pub(super) server_requests: Arc<ServerRequestRouter>,
    /// The task that reads the stream of list changes.
    list_listener: JoinSet<()>,
    /// True if the server speaks the modern era, although the connection is of the legacy one: it has answered the probe
    /// late.
    pub(super) speaks_modern_too: bool,
    pub(super) name: Arc<str>,
}

/// Timeout of requests that accompany calls, such as subscriptions.
pub(super) const SIDE_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of ending a session.
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(1);

impl UpstreamConnection {
    pub(super) const fn revision(&self) -> ProtocolRevision {
        self.revision
    }

    /// True once the server has sent a request whose answer it may keep, or that it may repeat.
    pub(super) fn has_requested(&self) -> bool {
        self.server_requests.has_requested()
    }

    /// True if the server keeps state for the user of this connection, as processes and sessions do.
    pub(super) fn has_state(&self) -> bool {
        match self.transport {
            ClientTransport::Stdio(_) => true,
            ClientTransport::Function(_) => false,
            ClientTransport::Http(_) | ClientTransport::Sse(_) => self.revision.era() == ProtocolEra::Legacy,
        }
    }

    /// True if requests of the server reach the client of a call: in the legacy era, and over HTTP in a session.
    pub(super) fn can_send_requests(&self) -> bool {
        let has_channel = matches!(self.transport, ClientTransport::Stdio(_)) || self.transport.has_session();
        has_channel && self.revision.era() == ProtocolEra::Legacy
    }

    /// Tells the server that the client's roots have changed, if it has requested them.
    pub(super) fn roots_changed(&self) {
        if self.server_requests.has_requested_roots() {
            self.transport.enqueue(vec![message::notification(method::ROOTS_CHANGED, &Object::new())]);
        }
    }

    /// Waits until the stream of changes is open, if there is one. The handshake waits if capabilities are declared.
    pub(super) async fn wait_until_listening(&self) {
        if matches!(self.transport, ClientTransport::Http(_)) && self.server_requests.declared().is_empty() {
            self.signals.list_stream_opened.notified().await;
        }
    }

    /// Returns the lists that may have changed before the stream of changes was open. Servers that add tools for the
    /// capabilities of a client do so at the end of the handshake, which precedes the stream.
    pub(super) fn missed_lists(&self) -> ListSet {
        if !matches!(self.transport, ClientTransport::Http(_)) || self.revision.era() != ProtocolEra::Legacy {
            return ListSet::NONE;
        }
        let announced = EntryKind::ALL.into_iter().filter(|kind| self.capabilities.announces(*kind));
        announced.fold(ListSet::NONE, |lists, kind| lists.union(ListSet::of(&[kind])))
    }

    /// Returns the number of messages received so far, if the transport counts them.
    fn received(&self) -> u64 {
        self.signals.received.load(Ordering::Relaxed)
    }

    /// Checks that the server responds. An error response counts.
    ///
    /// # Errors
    /// When no response came.
    pub(super) async fn ping(&self) -> Result<(), TransportError> {
        let method = match self.revision.era() {
            ProtocolEra::Legacy => method::PING,
            ProtocolEra::Modern => method::DISCOVER,
        };
        self.request(method, Object::new()).await.map(drop)
    }

    /// Returns the lists that may have changed.
    pub(super) fn list_invalidation(&self) -> &ListInvalidation {
        &self.signals.list_invalidation
    }

    /// Returns the resources that are followed.
    pub(super) fn followed_resources(&self) -> &Arc<FollowedResources> {
        &self.signals.followed_resources
    }

    /// Returns the reason of the end of the connection, for callers, and its cause, for operators.
    pub(super) fn end_reason(&self) -> DownReason {
        let end = match &self.transport {
            ClientTransport::Stdio(stdio) => stdio.ended(),
            _ => None,
        };
        let reason = end.map_or("connection lost".to_owned(), ToString::to_string);
        let code = end.map_or(CauseCode::ConnectionBroken, ProcessEnded::code);
        let cause = FailureCause::new(code, format!("the connection is lost repeatedly: {reason}"));
        let cause = cause.with_output(end.map_or("", |end| &end.output)).hiding(&self.options.secrets);
        DownReason { cause: cause.into(), reason: reason.into() }
    }

    /// Waits until the connection is lost.
    pub(super) async fn wait_until_lost(&self) {
        self.signals.connection_lost.notified().await;
    }

    /// True if no call can be answered any more. The keeper notices a moment later.
    fn is_closed(&self) -> bool {
        let is_closed = match &self.transport {
            ClientTransport::Http(_) | ClientTransport::Function(_) => false,
            ClientTransport::Sse(sse) => sse.is_closed(),
            ClientTransport::Stdio(stdio) => stdio.is_closed(),
        };
        is_closed || self.is_session_lost()
    }

    /// True once the server has lost the session.
    pub(super) fn is_session_lost(&self) -> bool {
        self.is_session_lost.load(Ordering::Acquire)
    }

    /// Ends the process or the session.
    pub(super) async fn close(&self) {
        match &self.transport {
            ClientTransport::Stdio(stdio) => stdio.close().await,
            ClientTransport::Http(http) => {
                let _too_slow = timeout(SESSION_END_TIMEOUT, http.end_session()).await;
            }
            // The session is the stream, and ends with the last call.
            ClientTransport::Sse(_) => {}
            // There is no session.
            ClientTransport::Function(_) => {}
        }
    }

    /// Waits until the server process has ended, so that it never runs beside its successor.
    pub(super) async fn end_process(&self) {
        if let ClientTransport::Stdio(stdio) = &self.transport {
            stdio.close().await;
        }
    }

    /// Records a failure, so that the keeper replaces a connection that is of no use.
    fn record_failure(&self, error: &TransportError) {
        // New calls wait for the next session.
        let is_forgotten = matches!(error, TransportError::SessionExpired | TransportError::SessionLost);
        self.is_session_lost.fetch_or(is_forgotten, Ordering::Release);
        if is_forgotten || matches!(error, TransportError::Unreachable(_)) {
            self.signals.connection_lost.notify_one();
        }
    }

    /// Sends a request whose result is ignored.
    pub(super) async fn request_best_effort(&self, method: &'static str, params: Object) {
        match timeout(SIDE_REQUEST_TIMEOUT, self.request(method, params)).await {
            Ok(Ok(Ok(_))) => {}
            Ok(Ok(Err(error))) => {
                let error = self.options.secrets.brief(error.body().as_text());
                tracing::debug!(handler = %self.name, method, %error, "the server refused the request");
            }
            Ok(Err(error)) => self.record_failure(&error),
            Err(_) => tracing::debug!(handler = %self.name, method, "the server did not respond"),
        }
    }

    /// True if parts of requests are mirrored in headers.
    fn mirrors_headers(&self) -> bool {
        matches!((&self.transport, self.revision.era()), (ClientTransport::Http(_), ProtocolEra::Modern))
    }

    fn method_headers(&self, method: &'static str) -> RequestHeaders {
        match self.mirrors_headers() {
            true => headers::method_headers(self.revision, method),
            false => RequestHeaders::new(),
        }
    }

    /// Sends a request of the gateway itself.
    pub(super) async fn request(
        &self,
        method: &'static str,
        mut params: Object,
    ) -> Result<UpstreamResult, TransportError> {
        let request = self.build_request(method, |id, info| {
            convert::set_meta(&mut params, Object::new(), id, self.revision, info, &NoClient);
            params
        });
        self.transport.request(request, &no_client()).await
    }

    fn build_request(
        &self,
        method: &'static str,
        params: impl FnOnce(u64, &Json) -> Object,
    ) -> OutgoingRequest {
        let id = self.next_id();
        let message = message::request(&RequestId::number(id), method, &params(id, &self.info));
        OutgoingRequest { id, message, headers: self.method_headers(method), deadline: None, owner: None }
    }

    pub(super) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }
}

fn no_client() -> Arc<dyn Client> {
    Arc::new(NoClient)
}

pub(super) fn refusal_error(method: &'static str, error: &RpcError) -> ConnectError {
    ConnectError::Refused { method, error: error.body().as_text().to_owned() }
}
