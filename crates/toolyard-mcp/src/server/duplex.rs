//! One client on a pair of streams: standard input and output, a pipe in a test, or whatever else keeps messages in
//! their order both ways.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::{FuturesUnordered, SelectAll, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use toolyard_core::{Caller, Code, Object, ToolError};

use super::listen::Messages;
use super::peer::Peer;
use super::requester::{Outlet, Requester};
use super::session::random_id;
use super::{Frontend, Request, Sender, modern};
use crate::lines::{self, Lines};
use crate::wire::{Era, Id, Message, RpcError, message, method};

/// What one client may take.
#[derive(Debug, Clone, Copy)]
pub struct DuplexLimits {
    /// Size of a message, in bytes.
    pub line_bytes: usize,
    /// Requests that run at once. No further message is read until one has ended.
    pub requests: usize,
}

/// Where messages of a client come from. Dropping the future of `next` loses nothing.
pub(super) trait Inbound {
    async fn next(&mut self) -> io::Result<Option<Bytes>>;
}

/// Where messages to a client go, each in its pieces.
pub(super) trait Outbound {
    async fn send(&mut self, message: &[Bytes]) -> io::Result<()>;
}

impl<R: AsyncRead + Unpin> Inbound for Lines<R> {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        Self::next(self).await
    }
}

/// A stream of bytes, on which each message is a line.
struct Written<W>(W);

impl<W: AsyncWrite + Unpin> Outbound for Written<W> {
    async fn send(&mut self, message: &[Bytes]) -> io::Result<()> {
        lines::write(&mut self.0, message).await
    }
}

/// Serves one client until its stream ends, then lets what runs end.
///
/// # Errors
/// When a stream breaks, or the client sends a line that is too long.
pub async fn serve(
    frontend: Arc<Frontend>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    limits: DuplexLimits,
) -> io::Result<()> {
    converse(frontend, Lines::new(input, limits.line_bytes), Written(output), limits.requests).await
}

/// Takes messages, and sends what is to be said, until there are no more of either.
pub(super) async fn converse(
    frontend: Arc<Frontend>,
    mut inbound: impl Inbound,
    mut outbound: impl Outbound,
    most_requests: usize,
) -> io::Result<()> {
    let (sender, mut messages) = mpsc::channel(frontend.limits.queued_notices.max(1));
    let mut conversation = Conversation::new(frontend, sender, most_requests);
    let mut open = true;
    while open || !conversation.requests.is_empty() {
        let message = tokio::select! {
            biased;
            Some(message) = messages.recv() => Some(vec![message]),
            Some(response) = conversation.requests.next(), if !conversation.requests.is_empty() => response,
            Some(news) = conversation.news.next(), if open && !conversation.news.is_empty() => Some(news),
            message = inbound.next(), if open && conversation.has_room() => match message? {
                Some(text) => conversation.take(text),
                None => {
                    open = false;
                    conversation.peer.asks.close();
                    None
                }
            },
        };
        if let Some(message) = message {
            outbound.send(&message).await?;
        }
    }
    Ok(())
}

/// A request that runs: its response, unless it was withdrawn.
type Work = BoxFuture<'static, Option<Vec<Bytes>>>;

/// What is remembered of the client.
struct Conversation {
    frontend: Arc<Frontend>,
    messages: mpsc::Sender<Bytes>,
    requests: FuturesUnordered<Work>,
    most_requests: usize,
    /// The client as its `initialize` describes it. One of the modern era never sends that.
    peer: Arc<Peer>,
    news: SelectAll<Abortable<Messages>>,
    /// The streams of `news` that can be withdrawn.
    subscriptions: Vec<(Id, AbortHandle)>,
    caller: Caller,
}

impl Conversation {
    fn new(frontend: Arc<Frontend>, messages: mpsc::Sender<Bytes>, most_requests: usize) -> Self {
        Self {
            frontend,
            messages,
            requests: FuturesUnordered::new(),
            most_requests,
            peer: Arc::new(Peer::new(&Object::new())),
            news: SelectAll::new(),
            subscriptions: Vec::new(),
            // What this client began, such as a task, is nobody else's.
            caller: Caller { session: random_id() },
        }
    }

    /// Whether another message is to be read. Where a question is open, its answer may be the next one.
    fn has_room(&self) -> bool {
        self.requests.len() < self.most_requests || !self.peer.asks.is_empty()
    }

    /// Takes one message; what can be answered at once is.
    fn take(&mut self, text: Bytes) -> Option<Vec<Bytes>> {
        match Message::parse(text) {
            Ok(Message::Request { id, method, params, meta }) => {
                self.request(Request { id, method, params, meta })
            }
            Ok(Message::Notification { method, params }) => {
                self.notification(&method, &params);
                None
            }
            Ok(Message::Response { id, answer }) => {
                self.peer.asks.answered(id.as_ref(), answer);
                None
            }
            Err(bad) => Some(message::response(bad.id.as_ref(), Err(bad.error))),
        }
    }

    fn request(&mut self, request: Request) -> Option<Vec<Bytes>> {
        if self.requests.len() >= self.most_requests {
            let error = RpcError::from(&ToolError::new(Code::Overloaded, "Too many requests at once"));
            return Some(message::response(Some(&request.id), Err(error)));
        }
        if modern::is_modern(&request) || request.method == method::DISCOVER {
            let id = request.id.clone();
            let refused = self.modern(request).err();
            return refused.map(|error| message::response(Some(&id), Err(error)));
        }
        if request.method == method::INITIALIZE {
            let answer = self.frontend.described.initialize(&request.params);
            self.peer = Arc::new(Peer::new(&request.params));
            return Some(message::response(Some(&request.id), answer));
        }
        let outlet = Outlet::new(&request.meta, Some(self.messages.clone()));
        let client = Requester::legacy(Some(&self.peer), outlet, self.frontend.limits.ask_time);
        let peer = Some(self.peer.clone());
        self.run(
            request,
            Sender { era: Era::Legacy, caller: self.caller.clone(), client, peer, questions: None },
        );
        None
    }

    fn modern(&mut self, request: Request) -> Result<(), RpcError> {
        let capabilities = modern::check(&request, None, &self.frontend.gateway.registry())?;
        let outlet = Outlet::new(&request.meta, Some(self.messages.clone()));
        let (client, questions) = Requester::modern(capabilities, outlet, self.frontend.limits.ask_time);
        let sender = Sender { era: Era::Modern, caller: self.caller.clone(), client, peer: None, questions };
        if request.method == method::LISTEN {
            let news = self.frontend.listen(request.id.clone(), &request.params, &sender)?;
            self.listen(Some(request.id), news);
        } else {
            self.run(request, sender);
        }
        Ok(())
    }

    fn run(&self, request: Request, sender: Sender) {
        let (frontend, peer, id) = (self.frontend.clone(), self.peer.clone(), request.id.clone());
        self.requests.push(Box::pin(async move {
            let answer = peer.running.run(&id, frontend.answer(request, sender)).await?;
            Some(message::response(Some(&id), answer))
        }));
    }

    fn listen(&mut self, id: Option<Id>, news: Messages) {
        let (handle, registration) = AbortHandle::new_pair();
        self.news.push(Abortable::new(news, registration));
        self.subscriptions.retain(|(_, stream)| !stream.is_aborted());
        self.subscriptions.extend(id.map(|id| (id, handle)));
    }

    fn notification(&mut self, method: &str, params: &Object) {
        match method {
            method::INITIALIZED => {
                let news = self.frontend.news(&self.peer);
                self.listen(None, news);
            }
            method::CANCELLED => {
                let Some(id) = params.get("requestId").and_then(Id::parse) else { return };
                self.peer.running.cancel(&id);
                let streams = self.subscriptions.iter().filter(|(subscription, _)| *subscription == id);
                streams.for_each(|(_, stream)| stream.abort());
            }
            _ => {}
        }
    }
}
