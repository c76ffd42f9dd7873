//! HTTP+SSE, the transport of 2024-11-05: a stream of events to the client, and a URL for messages from it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{OriginalUri, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use toolyard_core::{Caller, ErrorCode, ToolError};
use toolyard_net::{guard, sse};

use super::batch;
use super::client_events::ClientEvents;
use super::duplex::{self, InboundMessage, MessageSink, MessageSource};
use super::http::{HttpOptions, caller_of, is_json, principal_of, session_not_found, stopping_error};
use super::refusal::refuse_without_id;
use super::reply::{self, empty_response, error_response};
use crate::server::McpFrontend;
use crate::server::session::owner::SessionOwner;
use crate::server::session::{SessionLimits, random_id};
use crate::wire::error::INVALID_REQUEST;
use crate::wire::{RequestId, RpcError, RpcMessage};

/// Capacity of the queues of messages from and to one client.
const QUEUE_CAPACITY: usize = 64;

/// Maximum number of concurrent requests of one client.
const MAX_REQUESTS: usize = 64;

/// Returns the routes `/sse` and `/message`.
pub(super) fn router(frontend: Arc<McpFrontend>, options: HttpOptions) -> Router {
    let endpoint = Arc::new(SseFrontend { frontend, options, streams: Mutex::default() });
    Router::new()
        .route("/sse", axum::routing::get(open_stream).options(preflight))
        .route("/message", axum::routing::post(post_message).options(preflight))
        .with_state(endpoint)
}

struct SseFrontend {
    frontend: Arc<McpFrontend>,
    options: HttpOptions,
    /// The queues of messages from clients.
    streams: Mutex<OpenStreams>,
}

/// The open streams by id.
#[derive(Default)]
struct OpenStreams {
    by_id: HashMap<Arc<str>, SseStream>,
    /// Number of streams by owner.
    counts: HashMap<SessionOwner, usize>,
}

impl OpenStreams {
    /// Adds a stream, if its owner may have another one.
    fn add(&mut self, id: Arc<str>, open: SseStream, limits: SessionLimits) -> bool {
        let share = open.owner.share(limits.max_per_owner, limits.max_sessions);
        let count = self.counts.get(&open.owner).copied().unwrap_or_default();
        if count >= share || self.by_id.len() >= limits.max_sessions {
            return false;
        }
        self.counts.insert(open.owner.clone(), count + 1);
        self.by_id.insert(id, open);
        true
    }

    fn remove(&mut self, id: &str) {
        let Some(open) = self.by_id.remove(id) else { return };
        if let Entry::Occupied(mut count) = self.counts.entry(open.owner) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl SseFrontend {
    fn streams(&self) -> MutexGuard<'_, OpenStreams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the response that refuses a request, if it has to be refused.
    fn check(&self, request: &http::Request<Body>) -> Option<Response> {
        if let Err(problem) = self.options.guard.check(request) {
            let error = RpcError::new(INVALID_REQUEST, problem.to_string());
            return Some(error_response(StatusCode::FORBIDDEN, None, error));
        }
        self.frontend.stopping.borrow().then(|| refuse_without_id(&stopping_error()))
    }

    /// Opens a stream; `None` if there are too many.
    fn add(self: &Arc<Self>, parts: &Parts) -> Option<(SseRegistration, mpsc::Receiver<Bytes>)> {
        let (messages, inbound) = mpsc::channel(QUEUE_CAPACITY);
        let id = random_id()?;
        let open = SseStream { principal: principal_of(parts), owner: SessionOwner::of(parts), messages };
        if !self.streams().add(id.clone(), open, self.options.sessions) {
            return None;
        }
        let caller = caller_of(parts, Some(id.clone()));
        Some((SseRegistration { endpoint: self.clone(), id, caller }, inbound))
    }
}

/// An open stream.
struct SseStream {
    /// The principal of the client. The stream is invisible to others.
    principal: Option<Arc<str>>,
    owner: SessionOwner,
    messages: mpsc::Sender<Bytes>,
}

/// The registration of an open stream; dropping it ends the registration.
struct SseRegistration {
    endpoint: Arc<SseFrontend>,
    id: Arc<str>,
    caller: Caller,
}

impl Drop for SseRegistration {
    fn drop(&mut self) {
        self.endpoint.streams().remove(&self.id);
    }
}

/// `GET /sse`: the first event names the URL for messages; each further one is a message.
async fn open_stream(State(endpoint): State<Arc<SseFrontend>>, request: http::Request<Body>) -> Response {
    if let Some(refusal) = endpoint.check(&request) {
        return refusal;
    }
    let (parts, _) = request.into_parts();
    let Some((registered, inbound)) = endpoint.add(&parts) else {
        let reason = "Too many streams: close one, or try again later";
        return refuse_without_id(&ToolError::new(ErrorCode::Overloaded, reason));
    };
    let first =
        sse::named_event("endpoint", &format!("{}/message?sessionId={}", path_prefix(&parts), registered.id));
    let (outbound, messages) = mpsc::channel(QUEUE_CAPACITY);
    let mut connection_task = JoinSet::new();
    let source = PostedMessages { messages: inbound, stopping: endpoint.frontend.stopping.clone() };
    let connection = duplex::run_connection(
        endpoint.frontend.clone(),
        registered.caller.clone(),
        source,
        EventSink { messages: outbound, events: ClientEvents::of(&parts.headers) },
        MAX_REQUESTS,
        // The listener ends the stream, which cancels running requests.
        Duration::MAX,
    );
    connection_task.spawn(connection);
    // Everything ends when the client disconnects, which drops this.
    let state = (messages, connection_task, registered);
    let rest = stream::unfold(state, async |(mut messages, conversation, registered)| {
        let message = messages.recv().await?;
        Some((sse::message_event(message), (messages, conversation, registered)))
    });
    let mut response = reply::event_stream(stream::once(async { first }).chain(rest));
    guard::allow_read(&parts.headers, &mut response, "");
    response
}

/// Answers the preflight request of a browser.
async fn preflight(State(endpoint): State<Arc<SseFrontend>>, request: http::Request<Body>) -> Response {
    if let Some(refusal) = endpoint.check(&request) {
        return refusal;
    }
    let mut response = empty_response(StatusCode::NO_CONTENT);
    guard::allow_read(request.headers(), &mut response, "");
    guard::allow_preflight(request.headers(), &mut response, "GET, POST");
    response
}

/// Returns the path in front of the routes, if they are nested in another application.
fn path_prefix(parts: &Parts) -> &str {
    let original = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0);
    original.path().strip_suffix("/sse").unwrap_or_default()
}

/// `POST /message`: a message, whose response goes to the stream.
async fn post_message(State(endpoint): State<Arc<SseFrontend>>, request: http::Request<Body>) -> Response {
    if let Some(refusal) = endpoint.check(&request) {
        return refusal;
    }
    let (parts, body) = request.into_parts();
    let mut response = endpoint.handle_message(&parts, body).await;
    guard::allow_read(&parts.headers, &mut response, "");
    response
}

impl SseFrontend {
    /// Returns the stream that a message is for. A stream of another principal counts as unknown.
    fn stream(&self, parts: &Parts) -> Option<mpsc::Sender<Bytes>> {
        let streams = self.streams();
        let open = streams.by_id.get(session_id(parts)?)?;
        (open.principal == principal_of(parts)).then(|| open.messages.clone())
    }

    async fn handle_message(&self, parts: &Parts, body: Body) -> Response {
        if !is_json(&parts.headers) {
            return empty_response(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        let Some(stream) = self.stream(parts) else { return session_not_found() };
        let text = match self.options.read_body(parts, body, &self.frontend.budget).await {
            Ok(text) => text,
            Err(refusal) => return refusal,
        };
        // Checked here as well, so that an invalid message is refused at once.
        if !batch::is_array(&text)
            && let Err(bad) = RpcMessage::parse(text.clone())
        {
            let id = bad.id.unwrap_or_else(RequestId::null);
            return error_response(StatusCode::BAD_REQUEST, Some(&id), bad.error);
        }
        match stream.try_send(text) {
            Ok(()) => empty_response(StatusCode::ACCEPTED),
            Err(mpsc::error::TrySendError::Full(_)) => too_many_requests(),
            Err(mpsc::error::TrySendError::Closed(_)) => session_not_found(),
        }
    }
}

/// Returns the session id of the URL. Servers use both spellings.
fn session_id(parts: &Parts) -> Option<&str> {
    let members = parts.uri.query()?.split('&').filter_map(|member| member.split_once('='));
    members.into_iter().find(|(name, _)| ["sessionId", "session_id"].contains(name)).map(|(_, id)| id)
}

fn too_many_requests() -> Response {
    let mut response = empty_response(StatusCode::TOO_MANY_REQUESTS);
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The messages posted by the client. They end once the frontend stops.
struct PostedMessages {
    messages: mpsc::Receiver<Bytes>,
    stopping: watch::Receiver<bool>,
}

impl MessageSource for PostedMessages {
    async fn next(&mut self) -> io::Result<Option<InboundMessage>> {
        tokio::select! {
            biased;
            message = self.messages.recv() => Ok(message.map(Ok)),
            _ = self.stopping.wait_for(|stopping| *stopping) => Ok(None),
        }
    }
}

/// The queue of the stream of events.
struct EventSink {
    messages: mpsc::Sender<Vec<Bytes>>,
    events: ClientEvents,
}

impl MessageSink for EventSink {
    async fn send(&mut self, message: &[Bytes]) -> io::Result<()> {
        match self.events.fit(message.to_vec()) {
            Some(message) => self.messages.send(message).await.map_err(io::Error::other),
            None => Ok(()),
        }
    }
}
