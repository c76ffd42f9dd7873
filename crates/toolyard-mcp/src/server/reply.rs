//! How an answer reaches an HTTP client: as plain JSON, or as a stream once there is something to say
//! before the answer.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream};
use futures_util::{FutureExt, StreamExt};
use http::{HeaderValue, StatusCode, header};
use tokio::sync::mpsc;
use toolyard_core::{Client, Json, Notice, Object};
use toolyard_net::{body::Pieces, sse};

use super::Answer;
use crate::wire::{Id, RpcError, message, meta, method};

/// How long a request is silent before its client is shown that it is still there. Proxies and clients
/// commonly give up after 30 or 60 seconds.
pub(super) const QUIET: Duration = Duration::from_secs(15);

/// An answer that is being worked out; `None` if the client withdrew the request meanwhile.
pub(super) type Pending = BoxFuture<'static, Option<Answer>>;

/// The client of one request, as its call sees it.
#[derive(Debug)]
pub(super) struct Listener {
    capabilities: Option<Json>,
    /// Where messages go, and what the client calls the progress of this request.
    progress: Option<(mpsc::Sender<Bytes>, Json)>,
}

impl Listener {
    /// A client with these capabilities, which said `meta` about its request. It gets messages where it
    /// gave a token to name them by.
    pub(super) fn new(
        capabilities: Option<Json>,
        meta: &Object,
        messages: &mpsc::Sender<Bytes>,
    ) -> Arc<Self> {
        let token = meta.get(meta::PROGRESS_TOKEN);
        Arc::new(Self { capabilities, progress: token.map(|token| (messages.clone(), token.clone())) })
    }
}

impl Client for Listener {
    fn capabilities(&self) -> Option<&Json> {
        self.capabilities.as_ref()
    }

    fn listens(&self) -> bool {
        self.progress.is_some()
    }

    fn notify(&self, notice: Notice) {
        let Some((messages, token)) = &self.progress else { return };
        let Notice::Progress(mut params) = notice;
        params.set(meta::PROGRESS_TOKEN, token.clone());
        // A full queue drops the notice: whoever reads slowly learns of later progress.
        let _full = messages.try_send(message::notification(method::PROGRESS, &params));
    }
}

/// Answers a request: plainly if the answer comes before anything else is to be said.
pub(super) async fn respond(
    id: Id,
    mut answer: Pending,
    mut messages: mpsc::Receiver<Bytes>,
    status: fn(&RpcError) -> StatusCode,
) -> Response {
    let (first, answer) = tokio::select! {
        biased;
        given = &mut answer => match messages.try_recv() {
            // Both came at once, as when a server writes them together.
            Ok(message) => (event([message]), std::future::ready(given).boxed()),
            Err(_) => return plain(&id, given, status),
        },
        Some(message) = messages.recv() => (event([message]), answer),
        () = tokio::time::sleep(QUIET) => (vec![sse::KEEP_ALIVE], answer),
    };
    let rest = Rest { id, answer, messages };
    streamed(stream::once(async { first }).chain(stream::unfold(Some(rest), Rest::next)))
}

/// A response that is one JSON text. A withdrawn request gets none.
pub(super) fn plain(id: &Id, answer: Option<Answer>, status: fn(&RpcError) -> StatusCode) -> Response {
    let Some(answer) = answer else { return empty(StatusCode::ACCEPTED) };
    match answer {
        Ok(result) => json(StatusCode::OK, message::response(Some(id), Ok(result))),
        Err(error) => json(status(&error), message::response(Some(id), Err(error))),
    }
}

/// A response with a JSON body.
pub(super) fn json(status: StatusCode, pieces: Vec<Bytes>) -> Response {
    let mut response = Response::new(Body::new(Pieces::new(pieces)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A response that is an error about the request as such.
pub(super) fn refusal(status: StatusCode, id: Option<&Id>, error: RpcError) -> Response {
    json(status, message::response(id, Err(error)))
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A response that is a stream of events.
pub(super) fn streamed(events: impl Stream<Item = Vec<Bytes>> + Send + 'static) -> Response {
    let pieces =
        events.flat_map(|pieces| stream::iter(pieces.into_iter().map(Ok::<_, std::convert::Infallible>)));
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies such as nginx would otherwise hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The pieces of an event that carries a message.
pub(super) fn event(message: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    sse::message(message)
}

/// What is left of an answer that is being streamed.
struct Rest {
    id: Id,
    answer: Pending,
    messages: mpsc::Receiver<Bytes>,
}

impl Rest {
    async fn next(state: Option<Self>) -> Option<(Vec<Bytes>, Option<Self>)> {
        let mut rest = state?;
        tokio::select! {
            biased;
            Some(message) = rest.messages.recv() => Some((event([message]), Some(rest))),
            answer = &mut rest.answer => Some((rest.last(answer?), None)),
            () = tokio::time::sleep(QUIET) => Some((vec![sse::KEEP_ALIVE], Some(rest))),
        }
    }

    /// What was said before the answer goes before it.
    fn last(&mut self, answer: Answer) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        while let Ok(message) = self.messages.try_recv() {
            pieces.extend(event([message]));
        }
        pieces.extend(event(message::response(Some(&self.id), answer)));
        pieces
    }
}
