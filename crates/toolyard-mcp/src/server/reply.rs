//! How an answer reaches an HTTP client: as plain JSON, or as a stream once there is something to say
//! before the answer.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream};
use futures_util::{FutureExt, StreamExt};
use http::{HeaderValue, StatusCode, header};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_net::body::{self, Pieces};
use toolyard_net::sse;

use super::Answer;
use crate::wire::{Id, RpcError, message};

/// How long a request is silent before its client is shown that it is still there. Proxies and clients
/// commonly give up after 30 or 60 seconds.
const QUIET: Duration = Duration::from_secs(15);

/// An answer that is being worked out; `None` if the client withdrew the request meanwhile.
pub(super) type Pending = BoxFuture<'static, Option<Answer>>;

/// Answers a request: plainly if the answer comes before anything else is to be said, or if the client
/// takes no stream, in which case there are no `messages`.
pub(super) async fn respond(
    id: Id,
    mut answer: Pending,
    messages: Option<mpsc::Receiver<Bytes>>,
    status: fn(&RpcError) -> StatusCode,
) -> Response {
    let Some(mut messages) = messages else { return plain(&id, answer.await, status) };
    let (first, answer) = tokio::select! {
        biased;
        given = &mut answer => match messages.try_recv() {
            // Both came at once, as when a server writes them together.
            Ok(message) => (sse::message([message]), std::future::ready(given).boxed()),
            Err(_) => return plain(&id, given, status),
        },
        Some(message) = messages.recv() => (sse::message([message]), answer),
        () = tokio::time::sleep(QUIET) => (vec![sse::KEEP_ALIVE], answer),
    };
    // From here on the client's reading sets the pace of the stream, and must not set that of the call.
    let mut work = JoinSet::new();
    work.spawn(answer);
    let rest = Rest { id, work, messages };
    streamed(stream::once(async { first }).chain(stream::unfold(Some(rest), Rest::next)))
}

/// A response that is one JSON text. A withdrawn request gets none.
fn plain(id: &Id, answer: Option<Answer>, status: fn(&RpcError) -> StatusCode) -> Response {
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

/// A response that is a stream of events. Where there are none for long, it says that it is still there.
pub(super) fn streamed(events: impl Stream<Item = Vec<Bytes>> + Send + 'static) -> Response {
    let events = stream::unfold(Box::pin(events), |mut events| async move {
        match timeout(QUIET, events.next()).await {
            Ok(event) => Some((event?, events)),
            Err(_) => Some((vec![sse::KEEP_ALIVE], events)),
        }
    });
    // Each piece becomes a chunk of its own: a small event is one.
    let pieces =
        events.flat_map(|pieces| stream::iter(body::joined(pieces).into_iter().map(Ok::<_, Infallible>)));
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies such as nginx would otherwise hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// What is left of an answer that is being streamed.
struct Rest {
    id: Id,
    /// The task that works the answer out. It ends when the client leaves and this is dropped.
    work: JoinSet<Option<Answer>>,
    messages: mpsc::Receiver<Bytes>,
}

impl Rest {
    async fn next(state: Option<Self>) -> Option<(Vec<Bytes>, Option<Self>)> {
        let mut rest = state?;
        tokio::select! {
            biased;
            Some(message) = rest.messages.recv() => Some((sse::message([message]), Some(rest))),
            Some(answer) = rest.work.join_next() => Some((rest.last(answer.ok()??), None)),
        }
    }

    /// What was said before the answer goes before it.
    fn last(&mut self, answer: Answer) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        while let Ok(message) = self.messages.try_recv() {
            pieces.extend(sse::message([message]));
        }
        pieces.extend(sse::message(message::response(Some(&self.id), answer)));
        pieces
    }
}
