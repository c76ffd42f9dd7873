//! HTTP+SSE, the transport of 2024-11-05: one stream of events for all that goes to the client, and an address for
//! all that comes from it.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{OriginalUri, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolyard_net::{guard, sse};

use super::Frontend;
use super::duplex::{self, Inbound, Outbound};
use super::http::{HttpOptions, is_json, session_not_found};
use super::reply::{self, empty, refusal};
use super::session::random_id;
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
        .route("/sse", axum::routing::get(open))
        .route("/message", axum::routing::post(take))
        .with_state(endpoint)
}

struct Endpoint {
    frontend: Arc<Frontend>,
    options: HttpOptions,
    /// Where the messages of each client go.
    streams: Mutex<HashMap<Arc<str>, mpsc::Sender<Bytes>>>,
}

impl Endpoint {
    fn streams(&self) -> MutexGuard<'_, HashMap<Arc<str>, mpsc::Sender<Bytes>>> {
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
    fn add(self: &Arc<Self>) -> Option<(Registered, mpsc::Receiver<Bytes>)> {
        let (sender, messages) = mpsc::channel(QUEUE);
        let id = random_id()?;
        let mut streams = self.streams();
        if streams.len() >= self.options.sessions.sessions {
            return None;
        }
        streams.insert(id.clone(), sender);
        drop(streams);
        Some((Registered { endpoint: self.clone(), id }, messages))
    }
}

/// An open stream: messages find it until this is dropped.
struct Registered {
    endpoint: Arc<Endpoint>,
    id: Arc<str>,
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
    let Some((registered, inbound)) = endpoint.add() else { return empty(StatusCode::SERVICE_UNAVAILABLE) };
    let first = sse::event("endpoint", &format!("{}/message?sessionId={}", prefix(&request), registered.id));
    let (outbound, messages) = mpsc::channel(QUEUE);
    let mut conversation = JoinSet::new();
    let talk = duplex::converse(endpoint.frontend.clone(), Received(inbound), Sent(outbound), REQUESTS);
    conversation.spawn(talk);
    // All of it ends when the client leaves, and this is dropped.
    let state = (messages, conversation, registered);
    let rest = stream::unfold(state, async |(mut messages, conversation, registered)| {
        let message = messages.recv().await?;
        Some((sse::message(message), (messages, conversation, registered)))
    });
    let mut response = reply::streamed(stream::once(async { first }).chain(rest));
    let (parts, _) = request.into_parts();
    guard::let_read(&parts.headers, &mut response, "");
    response
}

/// What stands in front of the routes, where they are part of another application's.
fn prefix(request: &http::Request<Body>) -> &str {
    let original = request.extensions().get::<OriginalUri>().map_or(request.uri(), |original| &original.0);
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
    async fn message(&self, parts: &Parts, body: Body) -> Response {
        if !is_json(&parts.headers) {
            return empty(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        let Some(stream) = session_id(parts).and_then(|id| self.streams().get(id).cloned()) else {
            return session_not_found();
        };
        let text = match self.options.read(body).await {
            Ok(text) => text,
            Err(refusal) => return refusal,
        };
        // Said here, too, so that who sends what is no message is told at once.
        if let Err(bad) = Message::parse(text.clone()) {
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

/// Messages that were posted.
struct Received(mpsc::Receiver<Bytes>);

impl Inbound for Received {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        Ok(self.0.recv().await)
    }
}

/// The stream of events.
struct Sent(mpsc::Sender<Vec<Bytes>>);

impl Outbound for Sent {
    async fn send(&mut self, message: &[Bytes]) -> io::Result<()> {
        self.0.send(message.to_vec()).await.map_err(io::Error::other)
    }
}
