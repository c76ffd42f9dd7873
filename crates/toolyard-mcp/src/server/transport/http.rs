//! Streamable HTTP for both eras on one endpoint.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tokio::time::timeout;
use toolyard_core::{ErrorCode, Json, Object, ToolError};
use toolyard_net::body::{self, BodyReadError};
use toolyard_net::budget::{ByteBudget, ReclaimBytes};
use toolyard_net::client::HttpClient;
use toolyard_net::guard::{self, BrowserGuard};
use toolyard_net::header_values::{self, EVENT_STREAM};

use super::client_events::ClientEvents;
use super::refusal::{
    BodyLimits, refuse_http, refuse_malformed, refuse_request, refuse_unbuffered, revision_of, unread_id,
};
use super::replay::StreamPurpose;
use super::reply::{self, HttpReply, empty_response, error_response, respond};
pub(super) use super::request_caller::caller_of;
pub use super::request_caller::peer_of;
pub(in crate::server) use super::request_caller::principal_of;
use super::streams::{ResumeOutcome, SessionStreams, StreamItem, StreamReader};
use super::{batch, sse};
use crate::server::interaction::request_client::RequestClient;
use crate::server::methods::admit;
use crate::server::notify::notice_queue::{NoticeReceiver, NoticeSender, notice_queue};
use crate::server::notify::notification_sink::NotificationSink;
use crate::server::session::owner::{SessionOwner, owner_of_request};
use crate::server::session::{LegacySession, SessionLimits, SessionTable};
use crate::server::tasks::gateway_relay::{is_relayed, relay_request};
use crate::server::{McpFrontend, McpRequest, RequestContext, modern};
use crate::wire::error::INVALID_REQUEST;
use crate::wire::headers::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use crate::wire::{ProtocolEra, ProtocolRevision, RequestId, RpcError, RpcMessage, message, method};

/// The options of the endpoint.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The accepted `Host` and `Origin` headers.
    pub guard: BrowserGuard,
    /// Maximum size of a message in bytes.
    pub max_body_bytes: usize,
    /// Maximum time to receive a message.
    pub body_timeout: Duration,
    /// Limits of legacy sessions.
    pub sessions: SessionLimits,
    /// HTTP client for the other gateways of the [cluster](crate::server::ClusterMember), if there is one.
    pub gateway_client: Option<HttpClient>,
}

/// Path of the endpoint.
pub const PATH: &str = "/mcp";

/// Returns the routes `/mcp`, and `/sse` and `/message` for clients of 2024-11-05.
pub fn router(frontend: Arc<McpFrontend>, options: HttpOptions) -> Router {
    McpEndpoint::new(frontend, options).into_router()
}

/// The endpoint of streamable HTTP. Clones share its sessions.
#[derive(Clone)]
pub struct McpEndpoint(Arc<HttpFrontend>);

impl McpEndpoint {
    /// Creates the endpoint of a frontend.
    pub fn new(frontend: Arc<McpFrontend>, options: HttpOptions) -> Self {
        let sessions =
            Arc::new(SessionTable::new(options.sessions, frontend.budget.clone(), frontend.stopping.clone()));
        frontend.budget.reclaim_from(Arc::downgrade(&sessions) as Weak<dyn ReclaimBytes>);
        Self(Arc::new(HttpFrontend { frontend, sessions, options }))
    }

    /// Returns the routes `/mcp`, and `/sse` and `/message` for clients of 2024-11-05.
    pub fn into_router(self) -> Router {
        let sse = sse::router(self.0.frontend.clone(), self.0.options.clone());
        let serve = |State(endpoint): State<Self>, request| async move { endpoint.serve(request).await };
        Router::new().route(PATH, axum::routing::any(serve)).with_state(self).merge(sse)
    }

    /// Answers a request to [`PATH`].
    pub async fn serve(self, request: http::Request<Body>) -> Response {
        serve(&self.0, request).await
    }
}

struct HttpFrontend {
    frontend: Arc<McpFrontend>,
    sessions: Arc<SessionTable>,
    options: HttpOptions,
}

async fn serve(endpoint: &HttpFrontend, request: http::Request<Body>) -> Response {
    if let Err(problem) = endpoint.options.guard.check(&request) {
        return error_response(
            StatusCode::FORBIDDEN,
            None,
            RpcError::new(INVALID_REQUEST, problem.to_string()),
        );
    }
    let (parts, body) = request.into_parts();
    let parts = Arc::new(parts);
    let mut response = match endpoint.is_stopping() {
        true => refuse_http(&parts, body, endpoint.options.body_limits(), &stopping_error()).await,
        false => endpoint.handle(&parts, body).await,
    };
    guard::allow_read(&parts.headers, &mut response, "mcp-session-id");
    response
}

/// The HTTP methods of the endpoint.
const METHODS: &str = "GET, POST, DELETE";

/// The HTTP methods of the modern era (2026-07-28, basic/transports/streamable-http).
const MODERN_METHODS: &str = "POST";

/// The error for all requests while the gateway stops.
pub(super) fn stopping_error() -> ToolError {
    ToolError::new(ErrorCode::Unavailable, "The gateway is stopping: try again when it has been restarted")
}

impl HttpFrontend {
    fn is_stopping(&self) -> bool {
        *self.frontend.stopping.borrow()
    }

    async fn handle(&self, parts: &Arc<Parts>, body: Body) -> Response {
        match parts.method {
            Method::POST => self.handle_post(parts, body).await,
            Method::OPTIONS if parts.headers.contains_key(header::ORIGIN) => {
                let mut response = empty_response(StatusCode::NO_CONTENT);
                guard::allow_preflight(&parts.headers, &mut response, METHODS);
                response
            }
            _ => match era_of(&parts.headers) {
                Ok(ProtocolEra::Legacy) => self.handle_legacy_method(parts),
                // The modern era has no sessions and no other methods.
                Ok(ProtocolEra::Modern) => method_not_allowed(MODERN_METHODS),
                Err(_) => empty_response(StatusCode::BAD_REQUEST),
            },
        }
    }

    /// Handles a request without a message.
    fn handle_legacy_method(&self, parts: &Parts) -> Response {
        match parts.method {
            Method::GET => self.open_stream(parts),
            Method::DELETE => self.close_session(parts),
            _ => method_not_allowed(METHODS),
        }
    }

    async fn handle_post(&self, parts: &Arc<Parts>, body: Body) -> Response {
        if !is_json(&parts.headers) {
            return empty_response(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        let text = match self.options.read_body(parts, body, &self.frontend.budget).await {
            Ok(text) => text,
            Err(refusal) => return refusal,
        };
        if batch::is_array(&text)
            && let Ok(Some(session)) = self.session(parts)
            && batch::is_batch(&text, &session.peer)
        {
            return self.handle_batch(parts, &session, text).await;
        }
        match RpcMessage::parse(text.clone()) {
            Ok(RpcMessage::Request { id, method, params, meta }) => {
                self.handle_request(parts, McpRequest { id, method, params, meta }, text).await
            }
            Ok(RpcMessage::Notification { method, body }) => {
                self.take_notification(parts, &method, &body.params)
            }
            Ok(RpcMessage::Response { id, answer }) => self.take_response(parts, id.as_ref(), answer),
            Err(bad) => refuse_malformed(&parts.headers, self.revision(parts), bad),
        }
    }

    /// Returns the revision of the client, if it is known: that of its version header, or of its session.
    fn revision(&self, parts: &Parts) -> Option<ProtocolRevision> {
        let session = || Some(self.session(parts).ok()??.peer.revision());
        revision_of(&parts.headers).or_else(session)
    }

    /// Handles a JSON-RPC request. `text` is its unparsed message, for relaying.
    async fn handle_request(&self, parts: &Arc<Parts>, request: McpRequest, text: Bytes) -> Response {
        match era_of(&parts.headers) {
            // The body decides; the header has to agree, which is checked later.
            _ if modern::is_modern(&request) => self.handle_modern(parts, request, text).await,
            Ok(ProtocolEra::Modern) => self.handle_modern(parts, request, text).await,
            Ok(ProtocolEra::Legacy) => self.handle_legacy(parts, request).await,
            Err(error) => error_response(StatusCode::BAD_REQUEST, Some(&request.id), error),
        }
    }

    /// Handles a batch.
    async fn handle_batch(&self, parts: &Arc<Parts>, session: &Arc<LegacySession>, text: Bytes) -> Response {
        let messages = match batch::split(text) {
            Ok(messages) => messages,
            // Only clients of 2025-03-26 send batches.
            Err(error) => return error_response(StatusCode::BAD_REQUEST, Some(&RequestId::null()), error),
        };
        let (queue, notifications) = self.notification_queue(&parts.headers).unzip();
        let sender = batch::BatchContext {
            frontend: self.frontend.clone(),
            peer: session.peer.clone(),
            caller: caller_of(parts, Some(session.id.clone())),
            origin: Some(parts.clone()),
            queue,
        };
        let answer = async move {
            let responses = batch::answer(sender, messages).await;
            (!responses.is_empty()).then_some(HttpReply::Batch(responses))
        };
        respond(Box::pin(answer), notifications, Some(session.clone()), ClientEvents::of(&parts.headers))
            .await
    }

    /// Handles a stateless request.
    async fn handle_modern(&self, parts: &Arc<Parts>, request: McpRequest, text: Bytes) -> Response {
        let caller = caller_of(parts, None);
        let registry = self.frontend.gateway.settled_for(&caller).await;
        let capabilities = match modern::check_request(&request, Some(&parts.headers), &registry) {
            Ok(capabilities) => capabilities,
            Err(error) => return error_response(StatusCode::BAD_REQUEST, Some(&request.id), error),
        };
        if let Some(gateways) = self.options.gateway_client.as_ref().filter(|_| !is_relayed(&parts.headers))
            && let Some(address) = self.frontend.other_gateway(&request, &caller)
        {
            return relay_request(gateways, &address, parts, &request.id, text).await;
        }
        let (sink, messages) = self.notification_sink(&request.meta, &parts.headers);
        let (client, questions) = RequestClient::modern(capabilities, sink, self.frontend.limits.ask_timeout);
        let origin = Some(parts.clone() as Arc<_>);
        let sender =
            RequestContext { era: ProtocolEra::Modern, caller, origin, client, peer: None, questions };
        let (id, frontend) = (request.id.clone(), self.frontend.clone());
        if request.method == method::LISTEN {
            // A gateway outside a cluster has no remote tasks; a relaying gateway collects them itself.
            let elsewhere = match self.options.gateway_client.as_ref().filter(|_| !is_relayed(&parts.headers))
            {
                Some(gateways) => frontend.remote_tasks(gateways, parts, &request, &sender.caller).await,
                None => Vec::new(),
            };
            return match frontend.listen(id.clone(), &request.params, &sender, elsewhere) {
                Ok(messages) => reply::event_stream(messages.map(sse_event)),
                Err(error) => error_response(modern::error_status(&error), Some(&id), error),
            };
        }
        let answer = async move {
            let answer = frontend.answer(request, sender).await;
            Some(HttpReply::of(&id, answer, modern::error_status))
        };
        respond(Box::pin(answer), messages, None, ClientEvents::of(&parts.headers)).await
    }

    /// Handles a request in a session, or one without a session from a client that only lists and calls.
    async fn handle_legacy(&self, parts: &Arc<Parts>, request: McpRequest) -> Response {
        if request.method == method::INITIALIZE {
            return self.open_session(parts, &request);
        }
        let Ok(session) = self.session(parts) else { return session_not_found() };
        let (sink, messages) = self.notification_sink(&request.meta, &parts.headers);
        let peer = session.as_ref().map(|session| session.peer.clone());
        let client = RequestClient::legacy(peer.as_ref(), sink, self.frontend.limits.ask_timeout);
        let session_id = session.as_ref().map(|session| session.id.clone());
        let caller = caller_of(parts, session_id);
        let origin = Some(parts.clone() as Arc<_>);
        let sender = RequestContext {
            era: ProtocolEra::Legacy,
            caller,
            origin,
            client,
            peer: peer.clone(),
            questions: None,
        };
        let (id, frontend) = (request.id.clone(), self.frontend.clone());
        let answer = async move {
            let answer = pin!(frontend.answer(request, sender));
            let answer = match peer {
                Some(peer) => peer.requests.run(&id, answer).await?,
                None => answer.await,
            };
            Some(HttpReply::of(&id, answer, |_| StatusCode::OK))
        };
        respond(Box::pin(answer), messages, session, ClientEvents::of(&parts.headers)).await
    }

    /// Creates the notification sink of a request, with a queue if the client accepts a stream.
    fn notification_sink(
        &self,
        meta: &Object,
        headers: &HeaderMap,
    ) -> (NotificationSink, Option<NoticeReceiver>) {
        let (sender, messages) = self.notification_queue(headers).unzip();
        (NotificationSink::new(meta, sender, &self.frontend.budget), messages)
    }

    /// Creates a queue of messages that precede the response, if the client accepts a stream.
    fn notification_queue(&self, headers: &HeaderMap) -> Option<(NoticeSender, NoticeReceiver)> {
        accepts_stream(headers).then(|| notice_queue(self.frontend.limits.max_queued_notices))
    }

    /// Handles the response of a legacy client to a request of the gateway.
    fn take_response(
        &self,
        parts: &Parts,
        id: Option<&RequestId>,
        answer: Result<Json, RpcError>,
    ) -> Response {
        let Ok(session) = self.session(parts) else { return session_not_found() };
        if let Some(session) = session {
            session.peer.outbound_requests.complete(id, answer);
        }
        empty_response(StatusCode::ACCEPTED)
    }

    fn take_notification(&self, parts: &Parts, method: &str, params: &Object) -> Response {
        if era_of(&parts.headers).is_err() {
            return empty_response(StatusCode::BAD_REQUEST);
        }
        let Ok(session) = self.session(parts) else { return session_not_found() };
        if let Some(session) = session {
            let caller = caller_of(parts, Some(session.id.clone()));
            self.frontend.handle_notification(&session.peer, &caller, method, params);
        }
        empty_response(StatusCode::ACCEPTED)
    }

    fn open_session(&self, parts: &Parts, request: &McpRequest) -> Response {
        let caller = caller_of(parts, None);
        if let Err(error) = admit(&caller) {
            return error_response(StatusCode::OK, Some(&request.id), error);
        }
        let result = match self.frontend.description.initialize_result(&request.params, &caller) {
            Ok(result) => result,
            Err(error) => return error_response(StatusCode::BAD_REQUEST, Some(&request.id), error),
        };
        let Some(session) = self.sessions.open(&request.params, SessionOwner::of(parts), principal_of(parts))
        else {
            let reason = "Too many sessions: close one, or try again later";
            return refuse_request(&request.id, &ToolError::new(ErrorCode::Overloaded, reason));
        };
        let mut response =
            reply::json_response(StatusCode::OK, message::response(Some(&request.id), Ok(result)));
        if let Ok(id) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(SESSION_ID, id);
        }
        response
    }

    /// Returns the session that a request names, if any. A session of another principal counts as unknown.
    fn session(&self, parts: &Parts) -> Result<Option<Arc<LegacySession>>, UnknownSession> {
        let Some(id) = parts.headers.get(SESSION_ID) else { return Ok(None) };
        let session = id.to_str().ok().and_then(|id| self.sessions.get(id));
        let session = session.filter(|session| session.principal == principal_of(parts));
        session.map(Some).ok_or(UnknownSession)
    }

    fn close_session(&self, parts: &Parts) -> Response {
        let Ok(session) = self.session(parts) else { return session_not_found() };
        let Some(session) = session else { return method_not_allowed(METHODS) };
        self.sessions.close(&session.id);
        empty_response(StatusCode::NO_CONTENT)
    }

    /// Opens or resumes the stream of messages that belong to no request.
    fn open_stream(&self, parts: &Parts) -> Response {
        let Ok(session) = self.session(parts) else { return session_not_found() };
        let Some(session) = session else { return method_not_allowed(METHODS) };
        if !accepts_stream(&parts.headers) {
            return empty_response(StatusCode::NOT_ACCEPTABLE);
        }
        let reader = match parts.headers.get(LAST_EVENT_ID) {
            Some(id) => match SessionStreams::resume(&session, id.to_str().unwrap_or_default()) {
                ResumeOutcome::Stream(reader) => reader,
                ResumeOutcome::MissedNotifications => self.notification_stream(parts, &session, true),
                ResumeOutcome::Unknown => return unknown_event(),
            },
            None => self.notification_stream(parts, &session, false),
        };
        reply::event_stream(reader)
    }

    /// Starts the stream of messages that belong to no request. It replaces an older one.
    fn notification_stream(&self, parts: &Parts, session: &Arc<LegacySession>, missed: bool) -> StreamReader {
        let caller = caller_of(parts, Some(session.id.clone()));
        let stream = self
            .frontend
            .legacy_notifications(&session.peer, caller, missed)
            .map(StreamItem::Message)
            .boxed();
        SessionStreams::start(session, StreamPurpose::Notifications, stream, |mut stream| async move {
            stream.wait_until_abandoned().await
        })
    }
}

impl HttpOptions {
    /// Returns the limits of a message.
    const fn body_limits(&self) -> BodyLimits {
        BodyLimits { max_bytes: self.max_body_bytes, timeout: self.body_timeout }
    }

    /// Reads a message out of its owner's share of the budget, or refuses it.
    pub(super) async fn read_body(
        &self,
        parts: &Parts,
        body: Body,
        budget: &ByteBudget,
    ) -> Result<Bytes, Response> {
        let owned =
            || owner_of_request(parts).map_or_else(|| budget.clone(), |owner| budget.owned_by(&owner));
        let read = body::read_request(&parts.headers, body, self.max_body_bytes, owned);
        match timeout(self.body_timeout, read).await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(BodyReadError::UsedUp(used_up, ends))) => Err(refuse_unbuffered(used_up, &ends)),
            Ok(Err(error)) => Err(read_refusal(&parts.headers, &error)),
            Err(_) => Err(empty_response(StatusCode::REQUEST_TIMEOUT)),
        }
    }
}

/// Wraps a message in an SSE event.
fn sse_event(message: Vec<Bytes>) -> Vec<Bytes> {
    toolyard_net::sse::message_event(message)
}

/// The named session does not exist (any more): the client has to open another.
struct UnknownSession;

/// True if the content type is JSON. A page of another origin can make a browser send a form or plain text without a
/// preflight request.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    header_values::content_is(headers, header_values::JSON)
}

/// Returns the era of the revision in the version header. Clients before 2025-06-18 send none.
fn era_of(headers: &HeaderMap) -> Result<ProtocolEra, RpcError> {
    let Some(version) = headers.get(PROTOCOL_VERSION) else { return Ok(ProtocolEra::Legacy) };
    let version = version.to_str().unwrap_or_default();
    ProtocolRevision::parse(version)
        .map(ProtocolRevision::era)
        .ok_or_else(|| RpcError::unsupported_version(version))
}

pub(in crate::server) fn accepts_stream(headers: &HeaderMap) -> bool {
    header_values::names_media_type(headers, &header::ACCEPT, EVENT_STREAM)
}

fn read_refusal(headers: &HeaderMap, error: &BodyReadError) -> Response {
    let status = match error {
        BodyReadError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
        BodyReadError::Broken(_) => StatusCode::BAD_REQUEST,
        BodyReadError::Stalled => StatusCode::REQUEST_TIMEOUT,
        BodyReadError::UsedUp(..) => StatusCode::SERVICE_UNAVAILABLE,
    };
    let id = unread_id(revision_of(headers));
    error_response(status, id.as_ref(), RpcError::new(INVALID_REQUEST, error.to_string()))
}

pub(super) fn session_not_found() -> Response {
    error_response(StatusCode::NOT_FOUND, None, RpcError::new(INVALID_REQUEST, "Session not found"))
}

/// The specification leaves this case open; the official SDKs refuse as well. An empty stream would make the client
/// wait for an answer that never comes.
fn unknown_event() -> Response {
    let problem = "unknown `Last-Event-ID`: the stream has ended, or belongs to another session";
    error_response(StatusCode::BAD_REQUEST, None, RpcError::new(INVALID_REQUEST, problem))
}

fn method_not_allowed(allowed: &'static str) -> Response {
    let mut response = empty_response(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}
