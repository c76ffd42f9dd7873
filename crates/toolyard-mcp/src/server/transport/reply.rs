//! Responses to an HTTP client: plain JSON, or a stream of events if a message precedes the answer.

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
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_net::body::{self, BodyPieces};
use toolyard_net::sse;

use super::batch;
use super::client_events::ClientEvents;
use super::replay::StreamPurpose;
use super::streams::{SessionStreams, StreamItem, StreamReader};
use crate::server::McpAnswer;
use crate::server::notify::notice_queue::NoticeReceiver;
use crate::server::session::LegacySession;
use crate::wire::{RequestId, RpcError, message};

/// Silence after which a client gets a sign of life. Proxies and clients commonly time out after 30 or 60 seconds.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(15);

/// The reply to a message of a client.
pub(super) enum HttpReply {
    /// The response to a request, and the HTTP status for a plain response.
    One(StatusCode, Vec<Bytes>),
    /// The responses to the requests of a batch.
    Batch(Vec<Vec<Bytes>>),
}

/// A future reply; `None` if there is none, as for a request that the client cancelled.
pub(super) type PendingReply = BoxFuture<'static, Option<HttpReply>>;

/// Time after which a client that can resume streams gets a stream, with an event to resume from.
const STREAM_AFTER: Duration = Duration::from_secs(1);

impl HttpReply {
    /// Creates the response to a request. `status` maps an error to its HTTP status.
    pub(super) fn of(id: &RequestId, answer: McpAnswer, status: fn(&RpcError) -> StatusCode) -> Self {
        let status = answer.as_ref().err().map_or(StatusCode::OK, status);
        Self::One(status, message::response(Some(id), answer))
    }

    /// Returns `true` if the client prefers an event. Errors with an HTTP status of their own are always plain.
    fn is_preferred_as(&self, events: ClientEvents) -> bool {
        matches!(self, Self::One(StatusCode::OK, response) if events.are_preferred_for(response))
    }

    /// Returns the messages of a stream. A batch is split into single messages, which every client accepts (2025-03-26,
    /// basic/transports, sending messages).
    fn messages(self) -> VecDeque<Vec<Bytes>> {
        match self {
            Self::One(_, response) => VecDeque::from([response]),
            Self::Batch(responses) => responses.into(),
        }
    }
}

/// Responds to a request or a batch: with plain JSON if the answer is the first message, or if the client accepts no
/// stream, in which case there are no `messages`. The stream of a session can be resumed.
///
/// Until there is a stream, a client that disconnects cancels its request: it has no event to resume from, so that it
/// could never get the answer.
///
/// A client that reads events of limited size gets a stream late, so that a large answer is plain JSON. One that prefers
/// events gets a stream for a small answer too.
pub(super) async fn respond(
    mut answer: PendingReply,
    messages: Option<NoticeReceiver>,
    session: Option<Arc<LegacySession>>,
    events: ClientEvents,
) -> Response {
    let Some(mut messages) = messages else { return json_reply(answer.await) };
    let is_primed = session.as_ref().is_some_and(|session| session.streams.is_primed());
    let mut is_answered = false;
    let first = tokio::select! {
        biased;
        reply = &mut answer => match messages.try_recv() {
            // Both are ready at once, as when the server writes them together.
            Some(message) => {
                answer = std::future::ready(reply).boxed();
                Some(message)
            }
            None if reply.as_ref().is_some_and(|reply| reply.is_preferred_as(events)) => {
                answer = std::future::ready(reply).boxed();
                is_answered = true;
                None
            }
            None => return json_reply(reply),
        },
        Some(message) = messages.recv() => Some(message),
        () = tokio::time::sleep(if is_primed && !events.are_limited() { STREAM_AFTER } else { KEEP_ALIVE_AFTER }) => None,
    };
    let opening = (first.is_none() && !is_answered && !is_primed).then(|| vec![sse::KEEP_ALIVE]);
    let opening = stream::iter(opening);
    match session {
        Some(session) => {
            event_stream(opening.chain(resumable_stream(&session, first, messages, answer, events)))
        }
        None => {
            // The client sets the pace of the stream, but must not delay the call. The call ends when the client
            // disconnects, which drops this.
            let mut work = JoinSet::new();
            work.spawn(answer);
            let answer = async move { work.join_next().await?.ok()? }.boxed();
            let items = reply_items(first, messages, answer, events).map(StreamItem::into_pieces);
            event_stream(opening.chain(items.map(sse::message_event)))
        }
    }
}

/// Starts the stream of an answer, which goes on without its reader.
fn resumable_stream(
    session: &Arc<LegacySession>,
    first: Option<Bytes>,
    messages: NoticeReceiver,
    answer: PendingReply,
    events: ClientEvents,
) -> StreamReader {
    let (sender, reply) = oneshot::channel();
    let source = reply_items(first, messages, async { reply.await.ok()? }.boxed(), events);
    SessionStreams::start(session, StreamPurpose::Call, source.boxed(), |mut stream| async move {
        tokio::select! {
            biased;
            answer = answer => drop(sender.send(answer)),
            () = stream.wait_until_abandoned() => return,
        }
        // The client may not have received everything.
        stream.wait_until_abandoned().await;
    })
}

/// Returns all messages of a request that the client reads: those before the answer, then the answer.
fn reply_items(
    first: Option<Bytes>,
    messages: NoticeReceiver,
    answer: PendingReply,
    events: ClientEvents,
) -> impl Stream<Item = StreamItem> + Send {
    let rest = ReplyStream { answer, responses: None, messages };
    let items = stream::iter(first.map(|message| StreamItem::Message(vec![message])))
        .chain(stream::unfold(rest, ReplyStream::next));
    items.filter_map(move |item| std::future::ready(item.fit(events)))
}

/// Returns a plain JSON response. A cancelled request has an empty one.
fn json_reply(reply: Option<HttpReply>) -> Response {
    match reply {
        Some(HttpReply::One(status, response)) => json_response(status, response),
        Some(HttpReply::Batch(responses)) => json_response(StatusCode::OK, batch::join(responses)),
        None => empty_response(StatusCode::ACCEPTED),
    }
}

/// Creates a response with a JSON body.
pub(super) fn json_response(status: StatusCode, pieces: Vec<Bytes>) -> Response {
    let mut response = Response::new(Body::new(BodyPieces::new(pieces)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Creates a response with a JSON-RPC error.
pub(in crate::server) fn error_response(
    status: StatusCode,
    id: Option<&RequestId>,
    error: RpcError,
) -> Response {
    json_response(status, message::response(id, Err(error)))
}

/// Creates a response without a body.
pub(super) fn empty_response(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Creates a response with a stream of events, and with a sign of life after some silence.
pub(super) fn event_stream(events: impl Stream<Item = Vec<Bytes>> + Send + 'static) -> Response {
    let events = stream::unfold(Box::pin(events), |mut events| async move {
        match timeout(KEEP_ALIVE_AFTER, events.next()).await {
            Ok(event) => Some((event?, events)),
            Err(_) => Some((vec![sse::KEEP_ALIVE], events)),
        }
    });
    // Each piece becomes a chunk, so that a small event is a single one.
    let pieces =
        events.flat_map(|pieces| stream::iter(body::join_small(pieces).into_iter().map(Ok::<_, Infallible>)));
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies such as nginx would otherwise buffer events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The rest of an answer that is streamed.
struct ReplyStream {
    answer: PendingReply,
    /// The messages of the answer that are not sent yet.
    responses: Option<VecDeque<Vec<Bytes>>>,
    messages: NoticeReceiver,
}

impl ReplyStream {
    async fn next(mut self) -> Option<(StreamItem, Self)> {
        if self.responses.is_none() {
            tokio::select! {
                biased;
                Some(message) = self.messages.recv() => {
                    return Some((StreamItem::Message(vec![message]), self));
                }
                answer = &mut self.answer => self.responses = Some(answer?.messages()),
            }
        }
        // Messages that were sent before the answer precede it.
        match self.messages.try_recv() {
            Some(message) => Some((StreamItem::Message(vec![message]), self)),
            None => Some((StreamItem::Answer(self.responses.as_mut()?.pop_front()?), self)),
        }
    }
}
