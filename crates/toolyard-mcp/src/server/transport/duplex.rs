//! A client on a pair of ordered streams, such as standard input and output.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::{FuturesUnordered, SelectAll, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};
use toolyard_core::{Caller, CallerPeer, ErrorCode, Object, Registry, ToolError};

use super::{batch, refusal};
use crate::lines::{self, InputLine, LineReader};
use crate::server::interaction::request_client::RequestClient;
use crate::server::methods::admit;
use crate::server::notify::listen::MessageStream;
use crate::server::notify::notice_queue::{NoticeReceiver, NoticeSender, notice_queue};
use crate::server::notify::notification_sink::NotificationSink;
use crate::server::session::legacy_client::LegacyClient;
use crate::server::session::random_id;
use crate::server::{McpFrontend, McpRequest, RequestContext, modern};
use crate::wire::error::INVALID_REQUEST;
use crate::wire::{ProtocolEra, RequestId, RpcError, RpcMessage, message, method};

/// The limits of one client.
#[derive(Debug, Clone, Copy)]
pub struct DuplexLimits {
    /// Maximum size of a message in bytes.
    pub max_line_bytes: usize,
    /// Maximum number of concurrent requests; further ones are refused. As many unsent responses stop reading.
    pub max_requests: usize,
    /// Time that running requests get after the end of the input; then they are cancelled.
    pub drain_time: Duration,
}

/// A message of the client, or the error to respond with if it could not be read.
pub(super) type InboundMessage = Result<Bytes, RpcError>;

/// The messages of a client. `next` is cancel safe.
pub(super) trait MessageSource {
    async fn next(&mut self) -> io::Result<Option<InboundMessage>>;
}

/// The receiver of messages to a client, each in pieces.
pub(super) trait MessageSink {
    async fn send(&mut self, message: &[Bytes]) -> io::Result<()>;
}

impl<R: AsyncRead + Unpin> MessageSource for LineReader<R> {
    async fn next(&mut self) -> io::Result<Option<InboundMessage>> {
        Ok(Self::next(self).await?.map(|line| match line {
            InputLine::Whole(text) => Ok(text),
            InputLine::TooLong(_) => {
                let problem = format!("the message is larger than {} bytes", self.limit());
                Err(RpcError::new(INVALID_REQUEST, problem))
            }
            InputLine::NoMemory(_) => {
                Err(RpcError::new(INVALID_REQUEST, "not enough memory for the message"))
            }
        }))
    }
}

/// A byte stream with one message per line.
struct LineSink<W>(W);

impl<W: AsyncWrite + Unpin> MessageSink for LineSink<W> {
    async fn send(&mut self, message: &[Bytes]) -> io::Result<()> {
        lines::write(&mut self.0, message).await
    }
}

/// Serves a client until the end of its input, and then finishes running requests within the drain time.
///
/// # Errors
/// When a stream fails.
pub async fn serve(
    frontend: Arc<McpFrontend>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    limits: DuplexLimits,
    peer: CallerPeer,
) -> io::Result<()> {
    // A session id of its own keeps the tasks of this client apart from those of others.
    let caller = Caller { session: random_id(), peer, ..Caller::default() };
    let input = LineReader::new(input, limits.max_line_bytes).with_budget(frontend.budget.clone());
    run_connection(frontend, caller, input, LineSink(output), limits.max_requests, limits.drain_time).await
}

/// Handles messages and sends responses until both have ended, or the drain time after the end of the input is over.
pub(super) async fn run_connection(
    frontend: Arc<McpFrontend>,
    caller: Caller,
    mut inbound: impl MessageSource,
    mut outbound: impl MessageSink,
    max_requests: usize,
    drain_time: Duration,
) -> io::Result<()> {
    let mut connection = DuplexConnection::new(frontend, caller, max_requests, drain_time);
    while let Some(message) = connection.next(&mut inbound).await? {
        let mut sending = pin!(outbound.send(&message));
        loop {
            // A slow reader delays its messages, but not the calls.
            tokio::select! {
                biased;
                sent = &mut sending => break sent?,
                worked = connection.step(&mut inbound, false) => drop(worked?),
            }
            if connection.is_drained() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The response of a running request; `None` if the request is cancelled.
type PendingResponse = BoxFuture<'static, Option<Vec<Bytes>>>;

/// The state of one client.
struct DuplexConnection {
    frontend: Arc<McpFrontend>,
    /// Queue of notifications of running requests, and of requests to the client.
    sender: NoticeSender,
    messages: NoticeReceiver,
    /// Number of messages taken from the queue.
    messages_sent: u64,
    requests: FuturesUnordered<PendingResponse>,
    max_requests: usize,
    responses: VecDeque<QueuedResponse>,
    /// Time when the input ended.
    input_ended: Option<Instant>,
    /// Time that running requests get after the end of the input.
    drain_time: Duration,
    /// The client that `initialize` describes. A modern client never sends it.
    peer: Arc<LegacyClient>,
    change_streams: SelectAll<Abortable<MessageStream>>,
    /// The handles of `change_streams`, by the requests that opened them; that of a legacy client has no request.
    subscriptions: Vec<(Option<RequestId>, AbortHandle)>,
    caller: Caller,
}

/// A response that waits to be sent.
struct QueuedResponse {
    /// The response is sent after this many messages: notifications of its request come first.
    after_messages: u64,
    pieces: Vec<Bytes>,
}

impl DuplexConnection {
    fn new(frontend: Arc<McpFrontend>, caller: Caller, max_requests: usize, drain_time: Duration) -> Self {
        let (sender, messages) = notice_queue(frontend.limits.max_queued_notices);
        Self {
            frontend,
            sender,
            messages,
            messages_sent: 0,
            requests: FuturesUnordered::new(),
            max_requests,
            responses: VecDeque::new(),
            input_ended: None,
            drain_time,
            peer: Arc::new(LegacyClient::new(&Object::new())),
            change_streams: SelectAll::new(),
            subscriptions: Vec::new(),
            caller,
        }
    }

    /// Returns the next message to send; `None` at the end.
    async fn next(&mut self, inbound: &mut impl MessageSource) -> io::Result<Option<Vec<Bytes>>> {
        loop {
            if let Some(message) = self.next_response() {
                return Ok(Some(message));
            }
            if self.is_drained() || (self.input_ended.is_some() && self.requests.is_empty()) {
                return Ok(None);
            }
            if let Some(message) = self.step(inbound, true).await? {
                return Ok(Some(message));
            }
        }
    }

    /// Makes one step: advances the requests, reads a message, or, if `may_send`, returns one. The order is fair: a
    /// call with many notifications blocks neither the others nor the input.
    async fn step(
        &mut self,
        inbound: &mut impl MessageSource,
        may_send: bool,
    ) -> io::Result<Option<Vec<Bytes>>> {
        tokio::select! {
            Some(message) = self.messages.recv(), if may_send => {
                self.messages_sent += 1;
                Ok(Some(vec![message]))
            }
            Some(notifications) = self.change_streams.next(), if may_send && self.input_ended.is_none() && !self.change_streams.is_empty() => Ok(Some(notifications)),
            Some(response) = self.requests.next(), if !self.requests.is_empty() => {
                let after_messages = self.messages_sent + self.messages.len() as u64;
                self.responses.extend(response.map(|pieces| QueuedResponse { after_messages, pieces }));
                Ok(None)
            }
            message = inbound.next(), if self.input_ended.is_none() && self.can_read() => {
                match message? {
                    Some(message) => {
                        let id = self.unread_id();
                        let refusal_response = |error| Some(message::response(id.as_ref(), Err(error)));
                        let response = message.map_or_else(refusal_response, |text| self.handle_message(text));
                        self.responses.extend(response.map(|pieces| QueuedResponse { after_messages: 0, pieces }));
                    }
                    None => {
                        self.input_ended = Some(Instant::now());
                        self.peer.outbound_requests.close();
                    }
                }
                Ok(None)
            }
            () = wait_until_drained(self.input_ended, self.drain_time) => Ok(None),
        }
    }

    /// True once the drain time is over: running requests are cancelled, and unsent responses are dropped.
    fn is_drained(&self) -> bool {
        self.input_ended.is_some_and(|ended| ended.elapsed() >= self.drain_time)
    }

    /// Returns the next response, or a message that has to precede it.
    fn next_response(&mut self) -> Option<Vec<Bytes>> {
        let first = self.responses.front()?;
        if self.messages_sent < first.after_messages
            && let Some(message) = self.messages.try_recv()
        {
            self.messages_sent += 1;
            return Some(vec![message]);
        }
        self.responses.pop_front().map(|response| response.pieces)
    }

    /// True if another message may be read. It may be a cancellation or a response, so that running requests do not
    /// count.
    fn can_read(&self) -> bool {
        self.responses.len() < self.max_requests
    }

    /// Handles a message, and returns the response if it is available at once.
    fn handle_message(&mut self, text: Bytes) -> Option<Vec<Bytes>> {
        if batch::is_batch(&text, &self.peer) {
            return self.handle_batch(text);
        }
        match RpcMessage::parse(text) {
            Ok(RpcMessage::Request { id, method, params, meta }) => {
                self.handle_request(McpRequest { id, method, params, meta })
            }
            Ok(RpcMessage::Notification { method, body }) => {
                self.handle_notification(&method, &body.params);
                None
            }
            Ok(RpcMessage::Response { id, answer }) => {
                self.peer.outbound_requests.complete(id.as_ref(), answer);
                None
            }
            Err(bad) => {
                let id = bad.id.or_else(|| self.unread_id());
                Some(message::response(id.as_ref(), Err(bad.error)))
            }
        }
    }

    /// Returns the id of the response to a message whose id could not be read.
    fn unread_id(&self) -> Option<RequestId> {
        refusal::unread_id(Some(self.peer.revision()))
    }

    fn handle_batch(&self, text: Bytes) -> Option<Vec<Bytes>> {
        // A batch may consist of responses only: it is accepted up to twice the limit.
        if self.requests.len() >= 2 * self.max_requests {
            return Some(message::response(self.unread_id().as_ref(), Err(too_many("requests"))));
        }
        match batch::split(text) {
            Ok(messages) => {
                let from = batch::BatchContext {
                    frontend: self.frontend.clone(),
                    peer: self.peer.clone(),
                    caller: self.caller.clone(),
                    origin: None,
                    queue: Some(self.sender.clone()),
                };
                self.requests.push(Box::pin(async move {
                    let responses = batch::answer(from, messages).await;
                    (!responses.is_empty()).then(|| batch::join(responses))
                }));
                None
            }
            Err(error) => Some(message::response(self.unread_id().as_ref(), Err(error))),
        }
    }

    fn handle_request(&mut self, request: McpRequest) -> Option<Vec<Bytes>> {
        if self.requests.len() >= self.max_requests {
            return Some(message::response(Some(&request.id), Err(too_many("requests"))));
        }
        if modern::is_modern(&request) || request.method == method::DISCOVER {
            let id = request.id.clone();
            let error = self.handle_modern(request).err();
            return error.map(|error| message::response(Some(&id), Err(error)));
        }
        if request.method == method::INITIALIZE {
            let admitted = admit(&self.caller);
            let description = &self.frontend.description;
            let answer = admitted.and_then(|()| description.initialize_result(&request.params, &self.caller));
            if answer.is_ok() {
                self.peer = Arc::new(self.peer.reopened(&request.params));
            }
            return Some(message::response(Some(&request.id), answer));
        }
        let sink = NotificationSink::new(&request.meta, Some(self.sender.clone()), &self.frontend.budget);
        let client = RequestClient::legacy(Some(&self.peer), sink, self.frontend.limits.ask_timeout);
        let peer = Some(self.peer.clone());
        self.spawn_request(
            request,
            RequestContext {
                era: ProtocolEra::Legacy,
                caller: self.caller.clone(),
                origin: None,
                client,
                peer,
                questions: None,
            },
        );
        None
    }

    fn handle_modern(&mut self, request: McpRequest) -> Result<(), RpcError> {
        let registry = Registry::view_for(self.frontend.gateway.registry(), &self.caller);
        let capabilities = modern::check_request(&request, None, &registry)?;
        let sink = NotificationSink::new(&request.meta, Some(self.sender.clone()), &self.frontend.budget);
        let (client, questions) = RequestClient::modern(capabilities, sink, self.frontend.limits.ask_timeout);
        let caller = self.caller.clone();
        let sender =
            RequestContext { era: ProtocolEra::Modern, caller, origin: None, client, peer: None, questions };
        if request.method == method::LISTEN {
            if self.change_streams.len() >= self.max_requests {
                return Err(too_many("subscriptions"));
            }
            let notifications =
                self.frontend.listen(request.id.clone(), &request.params, &sender, Vec::new())?;
            self.add_change_stream(Some(request.id), notifications);
        } else {
            self.spawn_request(request, sender);
        }
        Ok(())
    }

    fn spawn_request(&self, request: McpRequest, sender: RequestContext) {
        let (frontend, peer, id) = (self.frontend.clone(), self.peer.clone(), request.id.clone());
        self.requests.push(Box::pin(async move {
            let answer = peer.requests.run(&id, frontend.answer(request, sender)).await?;
            Some(message::response(Some(&id), answer))
        }));
    }

    fn add_change_stream(&mut self, id: Option<RequestId>, notifications: MessageStream) {
        let (handle, registration) = AbortHandle::new_pair();
        self.change_streams.push(Abortable::new(notifications, registration));
        self.subscriptions.retain(|(_, stream)| !stream.is_aborted());
        self.subscriptions.push((id, handle));
    }

    fn end_change_streams(&self, id: Option<&RequestId>) {
        let streams = self.subscriptions.iter().filter(|(opener, _)| opener.as_ref() == id);
        streams.for_each(|(_, stream)| stream.abort());
    }

    fn handle_notification(&mut self, method: &str, params: &Object) {
        match method {
            method::INITIALIZED => {
                self.end_change_streams(None);
                let notifications =
                    self.frontend.legacy_notifications(&self.peer, self.caller.clone(), false);
                self.add_change_stream(None, notifications);
            }
            method::CANCELLED => {
                let Some(id) = params.get("requestId").and_then(RequestId::parse) else { return };
                self.end_change_streams(Some(&id));
            }
            _ => {}
        }
        self.frontend.handle_notification(&self.peer, &self.caller, method, params);
    }
}

/// Waits until the drain time is over.
async fn wait_until_drained(ended: Option<Instant>, drain_time: Duration) {
    match ended.and_then(|ended| ended.checked_add(drain_time)) {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

fn too_many(what: &str) -> RpcError {
    RpcError::from(&ToolError::new(ErrorCode::Overloaded, format!("Too many {what} at once")))
}

/// Drops the tasks and suspended calls of the client, and ends what waits for it.
impl Drop for DuplexConnection {
    fn drop(&mut self) {
        self.peer.outbound_requests.close();
        self.frontend.forget_caller(&self.caller);
    }
}
