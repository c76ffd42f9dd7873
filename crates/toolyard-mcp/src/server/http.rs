//! Streamable HTTP, both eras on one endpoint.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tokio::sync::mpsc;
use tokio::time::timeout;
use toolyard_core::access::Grant;
use toolyard_core::{Caller, Json, Object};
use toolyard_net::body::{self, ReadError};
use toolyard_net::client::Client;
use toolyard_net::guard::{self, Guard};

use super::forward::{forward, is_forwarded};
use super::outlet::Outlet;
use super::replay::Purpose;
use super::reply::{self, Reply, empty, refusal, respond};
use super::requester::Requester;
use super::session::{Session, SessionLimits, Sessions};
use super::streams::{Reader, Resumed, Said, Streams};
use super::{Frontend, Principal, Request, Sender, batch, modern, sse};
use crate::wire::error::INVALID_REQUEST;
use crate::wire::headers::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use crate::wire::{Era, Id, Message, Revision, RpcError, message, method};

/// What the endpoint allows.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Which `Host` and `Origin` are ours.
    pub guard: Guard,
    /// Size of a message from a client, in bytes.
    pub body_bytes: usize,
    /// Time that a client has to send one.
    pub body_time: Duration,
    /// Sessions of legacy clients.
    pub sessions: SessionLimits,
    /// What reaches the other gateways of a [`Cluster`](super::Cluster), where this is one of several.
    pub gateways: Option<Client>,
}

/// The endpoint `/mcp`, and `/sse` with `/message` for clients of 2024-11-05, to be merged with other routes.
pub fn router(frontend: Arc<Frontend>, options: HttpOptions) -> Router {
    let sessions = Sessions::new(options.sessions, frontend.stopping.clone());
    let sse = sse::router(frontend.clone(), options.clone());
    let endpoint = Arc::new(Endpoint { frontend, sessions, options });
    Router::new().route("/mcp", axum::routing::any(serve)).with_state(endpoint).merge(sse)
}

struct Endpoint {
    frontend: Arc<Frontend>,
    sessions: Sessions,
    options: HttpOptions,
}

async fn serve(State(endpoint): State<Arc<Endpoint>>, request: http::Request<Body>) -> Response {
    if let Err(problem) = endpoint.options.guard.check(&request) {
        return refusal(StatusCode::FORBIDDEN, None, RpcError::new(INVALID_REQUEST, problem.to_string()));
    }
    if *endpoint.frontend.stopping.borrow() {
        return empty(StatusCode::SERVICE_UNAVAILABLE);
    }
    let (parts, body) = request.into_parts();
    let parts = Arc::new(parts);
    let mut response = endpoint.answer(&parts, body).await;
    guard::let_read(&parts.headers, &mut response, "mcp-session-id");
    response
}

/// The methods that the endpoint answers.
const METHODS: &str = "GET, POST, DELETE";

/// Those of them that the modern era has (2026-07-28, basic/transports/streamable-http).
const MODERN_METHODS: &str = "POST";

impl Endpoint {
    async fn answer(&self, parts: &Arc<Parts>, body: Body) -> Response {
        match parts.method {
            Method::POST => self.post(parts, body).await,
            Method::OPTIONS if parts.headers.contains_key(header::ORIGIN) => {
                let mut response = empty(StatusCode::NO_CONTENT);
                guard::let_send(&parts.headers, &mut response, METHODS);
                response
            }
            _ => match era_of(&parts.headers) {
                Ok(Era::Legacy) => self.legacy_only(parts),
                // It has no sessions, whatever else the request names.
                Ok(Era::Modern) => method_not_allowed(MODERN_METHODS),
                Err(_) => empty(StatusCode::BAD_REQUEST),
            },
        }
    }

    /// What is no message.
    fn legacy_only(&self, parts: &Parts) -> Response {
        match parts.method {
            Method::GET => self.open_stream(parts),
            Method::DELETE => self.close_session(parts),
            _ => method_not_allowed(METHODS),
        }
    }

    async fn post(&self, parts: &Arc<Parts>, body: Body) -> Response {
        if !is_json(&parts.headers) {
            return empty(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        let text = match self.options.read(body).await {
            Ok(text) => text,
            Err(refusal) => return refusal,
        };
        if batch::is_array(&text)
            && let Ok(Some(session)) = self.session(parts)
            && batch::is_batch(&text, &session.peer)
        {
            return self.batch(parts, &session, text).await;
        }
        match Message::parse(text.clone()) {
            Ok(Message::Request { id, method, params, meta }) => {
                self.request(parts, Request { id, method, params, meta }, text).await
            }
            Ok(Message::Notification { method, params }) => self.notification(parts, &method, &params),
            Ok(Message::Response { id, answer }) => self.response(parts, id.as_ref(), answer),
            Err(bad) => refusal(StatusCode::BAD_REQUEST, bad.id.as_ref(), bad.error),
        }
    }

    /// Answers a request, which came as this text.
    async fn request(&self, parts: &Arc<Parts>, request: Request, text: Bytes) -> Response {
        match era_of(&parts.headers) {
            // What the body says counts; that the header says the same is checked there.
            _ if modern::is_modern(&request) => self.modern(parts, request, text).await,
            Ok(Era::Modern) => self.modern(parts, request, text).await,
            Ok(Era::Legacy) => self.legacy(parts, request).await,
            Err(error) => refusal(StatusCode::BAD_REQUEST, Some(&request.id), error),
        }
    }

    /// Several messages in one.
    async fn batch(&self, parts: &Arc<Parts>, session: &Arc<Session>, text: Bytes) -> Response {
        let messages = match batch::read(text) {
            Ok(messages) => messages,
            Err(error) => return refusal(StatusCode::BAD_REQUEST, None, error),
        };
        let (outlet, told) = self.queue(&parts.headers).unzip();
        let sender = batch::From {
            frontend: self.frontend.clone(),
            peer: session.peer.clone(),
            caller: caller(parts, Some(session.id.clone())),
            origin: Some(parts.clone()),
            outlet,
        };
        let answer = async move {
            let responses = batch::answer(sender, messages).await;
            (!responses.is_empty()).then_some(Reply::Batch(responses))
        };
        respond(Box::pin(answer), told, Some(session.clone())).await
    }

    /// A request that stands for itself.
    async fn modern(&self, parts: &Arc<Parts>, request: Request, text: Bytes) -> Response {
        let caller = caller(parts, None);
        let registry = self.frontend.gateway.settled_for(&caller).await;
        let capabilities = match modern::check(&request, Some(&parts.headers), &registry) {
            Ok(capabilities) => capabilities,
            Err(error) => return refusal(StatusCode::BAD_REQUEST, Some(&request.id), error),
        };
        if let Some(gateways) = self.options.gateways.as_ref().filter(|_| !is_forwarded(&parts.headers))
            && let Some(address) = self.frontend.elsewhere(&request, &caller)
        {
            return forward(gateways, &address, parts, &request.id, text).await;
        }
        let (outlet, messages) = self.outlet(&request.meta, &parts.headers);
        let (client, questions) = Requester::modern(capabilities, outlet, self.frontend.limits.ask_time);
        let origin = Some(parts.clone() as Arc<_>);
        let sender = Sender { era: Era::Modern, caller, origin, client, peer: None, questions };
        let (id, frontend) = (request.id.clone(), self.frontend.clone());
        if request.method == method::LISTEN {
            // Who is not of a cluster has no tasks elsewhere; another gateway asks for its own client.
            let elsewhere = match self.options.gateways.as_ref().filter(|_| !is_forwarded(&parts.headers)) {
                Some(gateways) => frontend.remote_tasks(gateways, parts, &request, &sender.caller).await,
                None => Vec::new(),
            };
            return match frontend.listen(id.clone(), &request.params, &sender, elsewhere) {
                Ok(messages) => reply::streamed(messages.map(sse_event)),
                Err(error) => refusal(modern::status(&error), Some(&id), error),
            };
        }
        let answer = async move {
            let answer = frontend.answer(request, sender).await;
            Some(Reply::to(&id, answer, modern::status))
        };
        respond(Box::pin(answer), messages, None).await
    }

    /// A request in a session, or a bare one, as operators send it that only want to list and call.
    async fn legacy(&self, parts: &Arc<Parts>, request: Request) -> Response {
        if request.method == method::INITIALIZE {
            return self.open_session(parts, &request);
        }
        let Ok(session) = self.session(parts) else { return session_not_found() };
        let (outlet, messages) = self.outlet(&request.meta, &parts.headers);
        let peer = session.as_ref().map(|session| session.peer.clone());
        let client = Requester::legacy(peer.as_ref(), outlet, self.frontend.limits.ask_time);
        let session_id = session.as_ref().map(|session| session.id.clone());
        let caller = caller(parts, session_id);
        let origin = Some(parts.clone() as Arc<_>);
        let sender = Sender { era: Era::Legacy, caller, origin, client, peer: peer.clone(), questions: None };
        let (id, frontend) = (request.id.clone(), self.frontend.clone());
        let answer = async move {
            let answer = pin!(frontend.answer(request, sender));
            let answer = match peer {
                Some(peer) => peer.running.run(&id, answer).await?,
                None => answer.await,
            };
            Some(Reply::to(&id, answer, |_| StatusCode::OK))
        };
        respond(Box::pin(answer), messages, session).await
    }

    /// Where the client is told something while its request runs, if it takes a stream.
    fn outlet(&self, meta: &Object, headers: &HeaderMap) -> (Outlet, Option<mpsc::Receiver<Bytes>>) {
        let (sender, messages) = self.queue(headers).unzip();
        (Outlet::new(meta, sender), messages)
    }

    /// What is said to a client while its message is worked on, if it takes a stream.
    fn queue(&self, headers: &HeaderMap) -> Option<(mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>)> {
        accepts_stream(headers).then(|| mpsc::channel(self.frontend.limits.queued_notices.max(1)))
    }

    /// An answer to what a legacy client was asked.
    fn response(&self, parts: &Parts, id: Option<&Id>, answer: Result<Json, RpcError>) -> Response {
        let Ok(session) = self.session(parts) else { return session_not_found() };
        if let Some(session) = session {
            session.peer.asks.answered(id, answer);
        }
        empty(StatusCode::ACCEPTED)
    }

    fn notification(&self, parts: &Parts, method: &str, params: &Object) -> Response {
        if era_of(&parts.headers).is_err() {
            return empty(StatusCode::BAD_REQUEST);
        }
        let Ok(session) = self.session(parts) else { return session_not_found() };
        if let Some(session) = session {
            let caller = caller(parts, Some(session.id.clone()));
            self.frontend.noticed(&session.peer, &caller, method, params);
        }
        empty(StatusCode::ACCEPTED)
    }

    fn open_session(&self, parts: &Parts, request: &Request) -> Response {
        let result = match self.frontend.described.initialize(&request.params) {
            Ok(result) => result,
            Err(error) => return refusal(StatusCode::BAD_REQUEST, Some(&request.id), error),
        };
        let Some(session) = self.sessions.open(&request.params, principal(parts)) else {
            let error = RpcError::new(INVALID_REQUEST, "Too many sessions are open: try again later");
            return refusal(StatusCode::SERVICE_UNAVAILABLE, Some(&request.id), error);
        };
        let mut response = reply::json(StatusCode::OK, message::response(Some(&request.id), Ok(result)));
        if let Ok(id) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(SESSION_ID, id);
        }
        response
    }

    /// The session that a request names, if it names one. Somebody else's does not exist.
    fn session(&self, parts: &Parts) -> Result<Option<Arc<Session>>, SessionOver> {
        let Some(id) = parts.headers.get(SESSION_ID) else { return Ok(None) };
        let session = id.to_str().ok().and_then(|id| self.sessions.get(id));
        let session = session.filter(|session| session.principal == principal(parts));
        session.map(Some).ok_or(SessionOver)
    }

    fn close_session(&self, parts: &Parts) -> Response {
        let Ok(session) = self.session(parts) else { return session_not_found() };
        let Some(session) = session else { return method_not_allowed(METHODS) };
        self.sessions.close(&session.id);
        empty(StatusCode::NO_CONTENT)
    }

    /// The stream on which a legacy client is told of what belongs to no request, or one that it comes back to.
    fn open_stream(&self, parts: &Parts) -> Response {
        let Ok(session) = self.session(parts) else { return session_not_found() };
        let Some(session) = session else { return method_not_allowed(METHODS) };
        if !accepts_stream(&parts.headers) {
            return empty(StatusCode::NOT_ACCEPTABLE);
        }
        let reader = match parts.headers.get(LAST_EVENT_ID) {
            Some(id) => match Streams::resume(&session, id.to_str().unwrap_or_default()) {
                Resumed::Stream(reader) => reader,
                Resumed::OldNews => self.news(parts, &session, true),
                Resumed::Unknown => return unknown_event(),
            },
            None => self.news(parts, &session, false),
        };
        reply::streamed(reader)
    }

    /// A stream of what belongs to no request. There is one: an older one ends.
    fn news(&self, parts: &Parts, session: &Arc<Session>, missed: bool) -> Reader {
        let caller = caller(parts, Some(session.id.clone()));
        let news = self.frontend.news(&session.peer, caller, missed).map(Said::Message).boxed();
        Streams::begin(session, Purpose::News, news, |mut stream| async move { stream.abandoned().await })
    }
}

impl HttpOptions {
    /// Reads a message, or refuses it.
    pub(super) async fn read(&self, body: Body) -> Result<Bytes, Response> {
        match timeout(self.body_time, body::read(body, self.body_bytes)).await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(error)) => Err(unreadable(&error)),
            Err(_) => Err(empty(StatusCode::REQUEST_TIMEOUT)),
        }
    }
}

/// A message as an event of a stream.
fn sse_event(message: Vec<Bytes>) -> Vec<Bytes> {
    toolyard_net::sse::message(message)
}

/// Whom a request acts for.
pub(super) fn principal(parts: &Parts) -> Option<Arc<str>> {
    parts.extensions.get::<Principal>().map(|principal| principal.0.clone())
}

/// Who sends a request.
pub(super) fn caller(parts: &Parts, session: Option<Arc<str>>) -> Caller {
    let grant = parts.extensions.get::<Arc<Grant>>().cloned();
    Caller { session, principal: principal(parts), grant }
}

/// The named session is over: its client has to open another.
struct SessionOver;

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return true };
    let essence = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// The era of the revision that the version header names. Clients before 2025-06-18 send none.
fn era_of(headers: &HeaderMap) -> Result<Era, RpcError> {
    let Some(version) = headers.get(PROTOCOL_VERSION) else { return Ok(Era::Legacy) };
    let version = version.to_str().unwrap_or_default();
    Revision::parse(version).map(Revision::era).ok_or_else(|| RpcError::unsupported_version(version))
}

pub(super) fn accepts_stream(headers: &HeaderMap) -> bool {
    let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("text/event-stream"));
    headers.get_all(header::ACCEPT).iter().any(accepts)
}

fn unreadable(error: &ReadError) -> Response {
    let status = match error {
        ReadError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
        ReadError::Broken(_) => StatusCode::BAD_REQUEST,
    };
    refusal(status, None, RpcError::new(INVALID_REQUEST, error.to_string()))
}

pub(super) fn session_not_found() -> Response {
    refusal(StatusCode::NOT_FOUND, None, RpcError::new(INVALID_REQUEST, "Session not found"))
}

/// What the specification leaves open is answered as the official SDKs do. To replay nothing and to wait would have the
/// client wait for an answer that never comes.
fn unknown_event() -> Response {
    let problem = "`Last-Event-ID` names nothing that is kept: its stream is over, or was of another session";
    refusal(StatusCode::BAD_REQUEST, None, RpcError::new(INVALID_REQUEST, problem))
}

fn method_not_allowed(allowed: &'static str) -> Response {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}
