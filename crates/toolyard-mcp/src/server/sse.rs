//! HTTP+SSE, the transport of 2024-11-05: one stream of events for all that goes to the client, and an address for
//! all that comes from it.

use std::collections::HashMap;
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
use toolyard_core::Caller;
use toolyard_net::{guard, sse};

use super::duplex::{self, Inbound, Outbound, Taken};
use super::http::{HttpOptions, caller, is_json, principal, session_not_found};
use super::reply::{self, empty, refusal};
use super::session::random_id;
use super::{Frontend, batch};
use crate::wire::error::INVALID_REQUEST;
use crate::wire::{Message, RpcError};

/// Messages that may wait to be taken from, or by, one client.
const QUEUE: usize = 64;

/// Requests of one client that run at once.
const REQUESTS: usize = 64;

/// The routes `/sse` and `/message`.
pub(super) fn router(frontend: Arc<Frontend>, options: HttpOptions) -> Router {
    let endpoint = Arc::new(Endpoint { frontend, options, streams: Mutex::default() });
    Router::new()
        .route("/sse", axum::routing::get(open).options(preflight))
        .route("/message", axum::routing::post(take).options(preflight))
        .with_state(endpoint)
}

struct Endpoint {
    frontend: Arc<Frontend>,
    options: HttpOptions,
    /// Where the messages of each client go.
    streams: Mutex<HashMap<Arc<str>, Open>>,
}

impl Endpoint {
    fn streams(&self) -> MutexGuard<'_, HashMap<Arc<str>, Open>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a request is turned away with, if it is.
    fn refusal(&self, request: &http::Request<Body>) -> Option<Response> {
        if let Err(problem) = self.options.guard.check(request) {
            let error = RpcError::new(INVALID_REQUEST, problem.to_string());
            return Some(refusal(StatusCode::FORBIDDEN, None, error));
        }
        self.frontend.stopping.borrow().then(|| empty(StatusCode::SERVICE_UNAVAILABLE))
    }

    /// Opens a stream; `None` where there are too many.
    fn add(self: &Arc<Self>, parts: &Parts) -> Option<(Registered, mpsc::Receiver<Bytes>)> {
        let (messages, taken) = mpsc::channel(QUEUE);
        let id = random_id()?;
        let mut streams = self.streams();
        if streams.len() >= self.options.sessions.sessions {
            return None;
        }
        streams.insert(id.clone(), Open { principal: principal(parts), messages });
        drop(streams);
        let caller = caller(parts, Some(id.clone()));
        Some((Registered { endpoint: self.clone(), id, caller }, taken))
    }
}

/// A stream that messages can be sent to.
struct Open {
    /// Whom its client acts for. Nobody else may use it.
    principal: Option<Arc<str>>,
    messages: mpsc::Sender<Bytes>,
}

/// An open stream: messages find it until this is dropped.
struct Registered {
    endpoint: Arc<Endpoint>,
    id: Arc<str>,
    caller: Caller,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.endpoint.streams().remove(&self.id);
    }
}

/// `GET /sse`: the first event says where messages are to be sent; each further one is a message.
async fn open(State(endpoint): State<Arc<Endpoint>>, request: http::Request<Body>) -> Response {
    if let Some(refusal) = endpoint.refusal(&request) {
        return refusal;
    }
    let (parts, _) = request.into_parts();
    let Some((registered, inbound)) = endpoint.add(&parts) else {
        return empty(StatusCode::SERVICE_UNAVAILABLE);
    };
    let first = sse::event("endpoint", &format!("{}/message?sessionId={}", prefix(&parts), registered.id));
    let (outbound, messages) = mpsc::channel(QUEUE);
    let mut conversation = JoinSet::new();
    let received = Received { messages: inbound, stopping: endpoint.frontend.stopping.clone() };
    let talk = duplex::converse(
        endpoint.frontend.clone(),
        registered.caller.clone(),
        received,
        Sent(outbound),
        REQUESTS,
        // The listener ends the stream, and with it what still runs.
        Duration::MAX,
    );
    conversation.spawn(talk);
    // All of it ends when the client leaves, and this is dropped.
    let state = (messages, conversation, registered);
    let rest = stream::unfold(state, async |(mut messages, conversation, registered)| {
        let message = messages.recv().await?;
        Some((sse::message(message), (messages, conversation, registered)))
    });
    let mut response = reply::streamed(stream::once(async { first }).chain(rest));
    guard::let_read(&parts.headers, &mut response, "");
    response
}

/// A browser asks before it sends a message of a page.
async fn preflight(State(endpoint): State<Arc<Endpoint>>, request: http::Request<Body>) -> Response {
    if let Some(refusal) = endpoint.refusal(&request) {
        return refusal;
    }
    let mut response = empty(StatusCode::NO_CONTENT);
    guard::let_read(request.headers(), &mut response, "");
    guard::let_send(request.headers(), &mut response, "GET, POST");
    response
}

/// What stands in front of the routes, where they are part of another application's.
fn prefix(parts: &Parts) -> &str {
    let original = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0);
    original.path().strip_suffix("/sse").unwrap_or_default()
}

/// `POST /message`: one message; what it is answered with goes to the stream.
async fn take(State(endpoint): State<Arc<Endpoint>>, request: http::Request<Body>) -> Response {
    if let Some(refusal) = endpoint.refusal(&request) {
        return refusal;
    }
    let (parts, body) = request.into_parts();
    let mut response = endpoint.message(&parts, body).await;
    guard::let_read(&parts.headers, &mut response, "");
    response
}

impl Endpoint {
    /// The stream that a message is for. Somebody else's does not exist.
    fn stream(&self, parts: &Parts) -> Option<mpsc::Sender<Bytes>> {
        let streams = self.streams();
        let open = streams.get(session_id(parts)?)?;
        (open.principal == principal(parts)).then(|| open.messages.clone())
    }

    async fn message(&self, parts: &Parts, body: Body) -> Response {
        if !is_json(&parts.headers) {
            return empty(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        let Some(stream) = self.stream(parts) else { return session_not_found() };
        let text = match self.options.read(body).await {
            Ok(text) => text,
            Err(refusal) => return refusal,
        };
        // Said here, too, so that who sends what is no message is told at once.
        if !batch::is_array(&text)
            && let Err(bad) = Message::parse(text.clone())
        {
            return refusal(StatusCode::BAD_REQUEST, bad.id.as_ref(), bad.error);
        }
        match stream.try_send(text) {
            Ok(()) => empty(StatusCode::ACCEPTED),
            Err(mpsc::error::TrySendError::Full(_)) => later(),
            Err(mpsc::error::TrySendError::Closed(_)) => session_not_found(),
        }
    }
}

/// The session that the address names. Servers have spelt it in both ways.
fn session_id(parts: &Parts) -> Option<&str> {
    let members = parts.uri.query()?.split('&').filter_map(|member| member.split_once('='));
    members.into_iter().find(|(name, _)| ["sessionId", "session_id"].contains(name)).map(|(_, id)| id)
}

fn later() -> Response {
    let mut response = empty(StatusCode::TOO_MANY_REQUESTS);
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Messages that were posted. There are no more once the frontend stops.
struct Received {
    messages: mpsc::Receiver<Bytes>,
    stopping: watch::Receiver<bool>,
}

impl Inbound for Received {
    async fn next(&mut self) -> io::Result<Option<Taken>> {
        tokio::select! {
            biased;
            message = self.messages.recv() => Ok(message.map(Ok)),
            _ = self.stopping.wait_for(|stopping| *stopping) => Ok(None),
        }
    }
}

/// The stream of events.
struct Sent(mpsc::Sender<Vec<Bytes>>);

impl Outbound for Sent {
    async fn send(&mut self, message: &[Bytes]) -> io::Result<()> {
        self.0.send(message.to_vec()).await.map_err(io::Error::other)
    }
}
