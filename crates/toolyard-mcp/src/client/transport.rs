//! The transports to a server, and their common contract: streamable HTTP, HTTP+SSE, standard input and output, and
//! hosted functions.

pub(super) mod endpoint;
pub(super) mod events;
pub(super) mod function;
mod inbox;
mod non_messages;
mod session_errors;
pub(super) mod sse;
pub(super) mod stderr_log;
pub(super) mod stdio;
mod stream_flush;
pub(super) mod streamable_http;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::error::Error;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::Notify;
use tokio::time::Instant;
use toolyard_core::{CauseCode, Client, ClientNotification, Json, NotificationBody, Object, ToolError};
use toolyard_net::auth::CredentialsError;
use toolyard_net::budget::{BudgetExhausted, ByteBudget};
use toolyard_net::challenge::AuthChallenge;
use toolyard_net::client::RequestError;
use toolyard_net::failure::{connection_cause, connection_reason};

use function::FunctionTransport;
use sse::SseTransport;
use stdio::StdioTransport;
use stream_flush::StreamFlush;
use streamable_http::HttpTransport;

use super::catalog::followed_resources::FollowedResources;
use super::catalog::list_invalidation::{ListInvalidation, ListSet};
use crate::wire::headers::RequestHeaders;
use crate::wire::{RequestId, RpcError, RpcMessage, batch, meta, method};

/// The reason why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    #[error("the server cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// No part of an answer has come: it is unknown whether the server has executed the request.
    #[error("the connection broke before the response")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    /// The answer was interrupted.
    #[error("the connection broke during the response")]
    Interrupted(#[source] Box<dyn Error + Send + Sync>),
    /// The request was refused for lack of a session, and not executed.
    #[error("the server has ended the session")]
    SessionExpired,
    /// The session was lost while the request ran; its effect is unknown.
    #[error("the server has ended the session during the response")]
    SessionLost,
    /// The request was not sent.
    #[error(transparent)]
    Credentials(CredentialsError),
    #[error("the server answered with HTTP status {0}")]
    Status(StatusCode),
    /// HTTP status 401.
    #[error("{}", .0.problem())]
    Unauthorized(AuthChallenge),
    #[error("the server's response is not an MCP message: {0}")]
    Malformed(String),
    #[error("the server's response is larger than {0} bytes")]
    TooLarge(usize),
    /// The memory budget is exhausted.
    #[error(transparent)]
    NoMemory(#[from] BudgetExhausted),
    /// The error of a hosted function.
    #[error(transparent)]
    Function(#[from] ToolError),
}

/// The process of a server has ended, or has closed its output.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub(super) struct ProcessEnded {
    code: CauseCode,
    reason: Cow<'static, str>,
    /// The last lines of its error output, which may contain secrets.
    pub(super) output: String,
}

impl ProcessEnded {
    /// Describes the end by the status of the process, if it is known.
    pub(super) fn new(status: Option<ExitStatus>) -> Self {
        let (code, reason) = match status.map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => {
                (CauseCode::ProcessExited, format!("process exited with status {code}").into())
            }
            Some((None, Some(signal))) => {
                (CauseCode::ProcessKilled, format!("process ended by signal {signal}").into())
            }
            Some((None, None)) | None => (CauseCode::ConnectionBroken, "process closed its output".into()),
        };
        Self { code, reason, output: String::new() }
    }

    /// Returns the kind of the failure.
    pub(super) const fn code(&self) -> CauseCode {
        self.code
    }

    /// Adds the last lines of its error output.
    pub(super) fn with_output(self, output: String) -> Self {
        Self { output, ..self }
    }
}

impl TransportError {
    /// Returns the HTTP status of the response, if it is one of failure.
    pub(super) const fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Status(status) => Some(*status),
            Self::Unauthorized(_) => Some(StatusCode::UNAUTHORIZED),
            _ => None,
        }
    }

    /// Returns the kind of the failure.
    pub(super) fn code(&self) -> CauseCode {
        match self {
            Self::Unreachable(cause) => cause_code(&**cause, CauseCode::Unreachable),
            Self::Broken(cause) | Self::Interrupted(cause) => {
                cause_code(&**cause, CauseCode::ConnectionBroken)
            }
            Self::SessionExpired | Self::SessionLost => CauseCode::ConnectionBroken,
            Self::Credentials(_) => CauseCode::Credentials,
            Self::Status(status) => CauseCode::of_status(status.as_u16()),
            Self::Unauthorized(_) => CauseCode::Unauthorized,
            Self::Malformed(_) | Self::TooLarge(_) => CauseCode::Protocol,
            Self::NoMemory(_) | Self::Function(_) => CauseCode::Other,
        }
    }

    /// Returns the end of the process among the causes.
    pub(super) fn process_end(&self) -> Option<&ProcessEnded> {
        match self {
            Self::Unreachable(cause) | Self::Broken(cause) | Self::Interrupted(cause) => cause.downcast_ref(),
            _ => None,
        }
    }

    /// Returns the reason for callers, which names no address, host or path.
    pub(super) fn reason(&self) -> Cow<'static, str> {
        match self {
            Self::Unreachable(cause) => cause_reason(&**cause, "cannot connect"),
            Self::Broken(cause) => cause_reason(&**cause, "connection broken"),
            Self::Interrupted(cause) => cause_reason(&**cause, "connection broken during the answer"),
            Self::SessionExpired | Self::SessionLost => "session ended by the server".into(),
            Self::Credentials(_) => "credentials cannot be read".into(),
            Self::Status(status) => format!("HTTP status {}", status.as_u16()).into(),
            Self::Unauthorized(_) => "HTTP status 401".into(),
            Self::Malformed(_) => "the answer is not an MCP message".into(),
            Self::TooLarge(limit) => format!("answer larger than {limit} bytes").into(),
            Self::NoMemory(_) => "no memory left for the answer".into(),
            Self::Function(error) => error.reason().to_owned().into(),
        }
    }
}

/// Returns the reason in the causes of a failure, else `unknown`.
fn cause_reason(cause: &(dyn Error + 'static), unknown: &'static str) -> Cow<'static, str> {
    if let Some(ProcessEnded { reason, .. }) = cause.downcast_ref() {
        return reason.clone();
    }
    if let Some(error) = cause.downcast_ref::<RequestError>() {
        return error.reason().into();
    }
    if let Some(error) = cause.downcast_ref::<TransportError>() {
        return error.reason();
    }
    connection_reason(cause).unwrap_or(unknown).into()
}

/// Returns the kind of a failure by its causes, else `unknown`.
fn cause_code(cause: &(dyn Error + 'static), unknown: CauseCode) -> CauseCode {
    if let Some(ProcessEnded { code, .. }) = cause.downcast_ref() {
        return *code;
    }
    if let Some(error) = cause.downcast_ref::<RequestError>() {
        return error.code();
    }
    if let Some(error) = cause.downcast_ref::<TransportError>() {
        return error.code();
    }
    connection_cause(cause).map_or(unknown, |(code, _)| code)
}

impl From<RequestError> for TransportError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Connect(_) | RequestError::NotPublic => Self::Unreachable(error.into()),
            RequestError::Broken(_) => Self::Broken(error.into()),
        }
    }
}

/// The answer to a request: its result or its error.
pub(super) type UpstreamResult = Result<Json, RpcError>;

/// A serialized request.
pub(super) struct OutgoingRequest {
    pub(super) id: u64,
    pub(super) message: Bytes,
    /// HTTP headers of the request.
    pub(super) headers: RequestHeaders,
    /// Time after which no caller waits for the answer, if known.
    pub(super) deadline: Option<Instant>,
    /// Name of the caller that the answer is for; `None` for the gateway itself and for clients of this machine.
    pub(super) owner: Option<Arc<str>>,
}

impl OutgoingRequest {
    /// Returns the budget of the answer: the share of its caller.
    fn answer_budget(&self, budget: &ByteBudget) -> ByteBudget {
        self.owner.as_ref().map_or_else(|| budget.clone(), |owner| budget.owned_by(owner))
    }
}

/// Signals from a connection to its keeper.
#[derive(Debug, Default)]
pub(super) struct ConnectionSignals {
    /// The lists that may have changed.
    pub(super) list_invalidation: ListInvalidation,
    /// The followed resources.
    pub(super) followed_resources: Arc<FollowedResources>,
    /// Notified when the connection is lost.
    pub(super) connection_lost: Notify,
    /// Notified when the stream of list changes is open, or known not to exist.
    pub(super) list_stream_opened: Arc<Notify>,
    /// Order between the stream of server notifications and answers.
    stream_flush: StreamFlush,
    /// Number of messages received on a stream that all requests share: a server that sends any is alive.
    pub(super) received: AtomicU64,
    /// Number of those that were not responses.
    pub(super) unsolicited: AtomicU64,
}

impl ConnectionSignals {
    /// Handles a notification about the server itself.
    fn handle_notification(&self, method: &str, params: &Object) {
        self.list_invalidation.invalidate(ListSet::changed_by(method));
        match method {
            method::RESOURCE_UPDATED => {
                self.followed_resources.handle_updated(&without_subscription_id(params))
            }
            method::ACKNOWLEDGED => self.handle_acknowledged(params),
            _ => {}
        }
    }

    /// Handles the first message of a modern stream, which names the granted subscriptions.
    fn handle_acknowledged(&self, params: &Object) {
        let granted = params.get("notifications").and_then(|granted| granted.to_object().ok());
        let uris = granted.and_then(|granted| granted.get("resourceSubscriptions")?.to_items().ok());
        for uri in uris.iter().flatten().filter_map(Json::to_str) {
            self.followed_resources.confirm(&uri);
        }
    }
}

/// The transport to a server.
pub(super) enum ClientTransport {
    Http(HttpTransport),
    Sse(SseTransport),
    Stdio(Arc<StdioTransport>),
    Function(FunctionTransport),
}

impl ClientTransport {
    /// Sends a request and waits for its answer. Notifications meanwhile go to `client`. Dropping the future cancels
    /// the request.
    pub(super) async fn request(
        &self,
        request: OutgoingRequest,
        client: &Arc<dyn Client>,
    ) -> Result<UpstreamResult, TransportError> {
        let answer = match self {
            Self::Http(http) => http.request(request, client).await.map(|(answer, _)| answer),
            Self::Sse(sse) => sse.request(request, client).await,
            Self::Stdio(stdio) => stdio.request(request, client).await,
            Self::Function(answerer) => answerer.request(request).await,
        }?;
        match &answer {
            Err(error) if self.has_session() && session_errors::is_session_error(error) => {
                Err(TransportError::SessionExpired)
            }
            _ => Ok(answer),
        }
    }

    /// True if there is a session that the server may lose.
    pub(super) fn has_session(&self) -> bool {
        match self {
            Self::Http(http) => http.has_session(),
            Self::Sse(_) => true,
            Self::Stdio(_) | Self::Function(_) => false,
        }
    }

    /// Sends the response to a request of the server. A failure is only logged.
    pub(super) async fn respond(&self, response: Vec<Bytes>) {
        match self {
            // Not awaited: a server may use the answer on the stream of the call before it confirms the receipt.
            Self::Http(http) => http.enqueue(response.concat().into()),
            Self::Sse(sse) => sse.respond(response).await,
            Self::Stdio(stdio) => drop(stdio.notify(response).await),
            // A function takes requests only.
            Self::Function(_) => {}
        }
    }

    /// Queues a message without waiting.
    pub(super) fn enqueue(&self, response: Vec<Bytes>) {
        match self {
            Self::Http(http) => http.enqueue(response.concat().into()),
            Self::Sse(sse) => sse.enqueue(response),
            Self::Stdio(stdio) => stdio.enqueue(response),
            Self::Function(_) => {}
        }
    }
}

/// Removes the subscription id from an update: it belongs to the gateway's own subscription.
fn without_subscription_id(params: &Object) -> Object {
    let mut params = params.clone();
    let meta = params.get("_meta").and_then(|meta| meta.to_object().ok());
    let Some(mut meta) = meta.filter(|meta| meta.get(meta::SUBSCRIPTION_ID).is_some()) else { return params };
    meta.remove(meta::SUBSCRIPTION_ID);
    match meta.is_empty() {
        true => drop(params.remove("_meta")),
        false => params.set("_meta", meta.to_json()),
    }
    params
}

/// Returns the messages of a text: the text itself, or those of a batch, which servers of revision 2025-03-26 may send.
fn messages_in(text: Bytes) -> Result<VecDeque<Bytes>, TransportError> {
    match batch::is_array(&text) {
        true => batch::split(text)
            .map(VecDeque::from)
            .map_err(|fault| TransportError::Malformed(fault.to_owned())),
        false => Ok([text].into()),
    }
}

/// Parses a message of a server.
fn parse_message(text: Bytes) -> Result<RpcMessage, TransportError> {
    RpcMessage::parse(text).map_err(|bad| TransportError::Malformed(bad.error.body().as_text().to_owned()))
}

/// Returns a notification for clients: a log message, or one that the specification does not have. Any other one is
/// returned unchanged.
fn client_notification(method: &str, body: NotificationBody) -> Result<ClientNotification, NotificationBody> {
    match method {
        method::LOG => Ok(ClientNotification::Log(body)),
        method if method::OWN_NOTIFICATIONS.contains(&method) => Err(body),
        method => Ok(ClientNotification::Other { method: method.into(), body }),
    }
}

/// Returns the request that progress belongs to, whose id is the token.
fn progress_request(params: &Object) -> Option<u64> {
    params.get(meta::PROGRESS_TOKEN).and_then(RequestId::parse)?.to_number()
}

/// Returns the parameters of `notifications/cancelled`.
pub(super) fn cancel_params(id: u64) -> Object {
    Object::new().with("requestId", RequestId::number(id).to_json())
}
