//! How an answer reaches an HTTP client: as plain JSON, or as a stream once there is something to say
//! before the answer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream};
use futures_util::{FutureExt, StreamExt};
use http::{HeaderValue, StatusCode, header};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_net::body::{self, Pieces};
use toolyard_net::sse;

use super::replay::Purpose;
use super::session::Session;
use super::streams::{Reader, Said, Streams};
use super::{Answer, batch};
use crate::wire::{Id, RpcError, message};

/// How long a request is silent before its client is shown that it is still there. Proxies and clients
/// commonly give up after 30 or 60 seconds.
const QUIET: Duration = Duration::from_secs(15);

/// What a message of a client is answered with.
pub(super) enum Reply {
    /// The response to its request, and the status of one that comes alone.
    One(StatusCode, Vec<Bytes>),
    /// The responses to the requests of a batch.
    Batch(Vec<Vec<Bytes>>),
}

/// A reply that is being worked out; `None` if there is none, as for a request that the client withdrew meanwhile.
pub(super) type Pending = BoxFuture<'static, Option<Reply>>;

/// After how long a client that can come back is given something to come back with. What takes longer is worth a
/// stream.
const PRIME: Duration = Duration::from_secs(1);

impl Reply {
    /// The response to a request. `status` is the one of an error.
    pub(super) fn to(id: &Id, answer: Answer, status: fn(&RpcError) -> StatusCode) -> Self {
        let status = answer.as_ref().err().map_or(StatusCode::OK, status);
        Self::One(status, message::response(Some(id), answer))
    }

    /// The messages of a stream. They are single ones there, which every client takes; the responses to a batch may be
    /// either (2025-03-26, basic/transports, sending messages).
    fn messages(self) -> VecDeque<Vec<Bytes>> {
        match self {
            Self::One(_, response) => VecDeque::from([response]),
            Self::Batch(responses) => responses.into(),
        }
    }
}

/// Answers a request, or a batch: plainly if the answer comes before anything else is to be said, or if the client
/// takes no stream, in which case there are no `messages`. A stream of a session can be come back to.
///
/// Until there is a stream, a client that leaves has withdrawn its request: it knows of no event that it could
/// come back with, so nobody could ever read the answer.
pub(super) async fn respond(
    mut answer: Pending,
    messages: Option<mpsc::Receiver<Bytes>>,
    session: Option<Arc<Session>>,
) -> Response {
    let Some(mut messages) = messages else { return plain(answer.await) };
    let primed = session.as_ref().is_some_and(|session| session.streams.primed());
    let first = tokio::select! {
        biased;
        given = &mut answer => match messages.try_recv() {
            // Both came at once, as when a server writes them together.
            Ok(message) => {
                answer = std::future::ready(given).boxed();
                Some(message)
            }
            Err(_) => return plain(given),
        },
        Some(message) = messages.recv() => Some(message),
        () = tokio::time::sleep(if primed { PRIME } else { QUIET }) => None,
    };
    let opening = (first.is_none() && !primed).then(|| vec![sse::KEEP_ALIVE]);
    let opening = stream::iter(opening);
    match session {
        Some(session) => streamed(opening.chain(kept(&session, first, messages, answer))),
        None => {
            // The client's reading sets the pace of the stream, and must not set that of the call. It ends when the
            // client leaves and this is dropped.
            let mut work = JoinSet::new();
            work.spawn(answer);
            let answer = async move { work.join_next().await?.ok()? }.boxed();
            let said = said(first, messages, answer).map(Said::into_pieces);
            streamed(opening.chain(said.map(sse::message)))
        }
    }
}

/// The stream of an answer that goes on without its reader.
fn kept(
    session: &Arc<Session>,
    first: Option<Bytes>,
    messages: mpsc::Receiver<Bytes>,
    answer: Pending,
) -> Reader {
    let (sender, given) = oneshot::channel();
    let source = said(first, messages, async { given.await.ok()? }.boxed());
    Streams::begin(session, Purpose::Call, source.boxed(), |mut stream| async move {
        tokio::select! {
            biased;
            answer = answer => drop(sender.send(answer)),
            () = stream.abandoned() => return,
        }
        // What was sent may not have come.
        stream.abandoned().await;
    })
}

/// All messages about a request: what is said before the answer, then that.
fn said(
    first: Option<Bytes>,
    messages: mpsc::Receiver<Bytes>,
    answer: Pending,
) -> impl Stream<Item = Said> + Send {
    let rest = Rest { answer, answered: None, messages };
    stream::iter(first.map(|message| Said::Message(vec![message]))).chain(stream::unfold(rest, Rest::next))
}

/// A response that is one JSON text. A withdrawn request gets none.
fn plain(reply: Option<Reply>) -> Response {
    match reply {
        Some(Reply::One(status, response)) => json(status, response),
        Some(Reply::Batch(responses)) => json(StatusCode::OK, batch::joined(responses)),
        None => empty(StatusCode::ACCEPTED),
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
    answer: Pending,
    /// What is left to be sent of what came of that.
    answered: Option<VecDeque<Vec<Bytes>>>,
    messages: mpsc::Receiver<Bytes>,
}

impl Rest {
    async fn next(mut self) -> Option<(Said, Self)> {
        if self.answered.is_none() {
            tokio::select! {
                biased;
                Some(message) = self.messages.recv() => {
                    return Some((Said::Message(vec![message]), self));
                }
                answer = &mut self.answer => self.answered = Some(answer?.messages()),
            }
        }
        // What was said before the answer goes before it.
        match self.messages.try_recv() {
            Ok(message) => Some((Said::Message(vec![message]), self)),
            Err(_) => Some((Said::Answer(self.answered.as_mut()?.pop_front()?), self)),
        }
    }
}
