//! One client on a pair of streams: standard input and output, a pipe in a test, or whatever else keeps messages in
//! their order both ways.

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
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use toolyard_core::{Caller, Code, Object, Registry, ToolError};

use super::listen::Messages;
use super::outlet::Outlet;
use super::peer::Peer;
use super::requester::Requester;
use super::session::random_id;
use super::{Frontend, Request, Sender, batch, modern};
use crate::lines::{self, Line, Lines};
use crate::wire::error::INVALID_REQUEST;
use crate::wire::{Era, Id, Message, RpcError, message, method};

/// What one client may take.
#[derive(Debug, Clone, Copy)]
pub struct DuplexLimits {
    /// Size of a message, in bytes.
    pub line_bytes: usize,
    /// Requests that run at once; further ones are refused. No message is read while as many responses wait to be taken.
    pub requests: usize,
    /// How long requests go on that run when the client says nothing more; then they are withdrawn.
    pub drain: Duration,
}

/// A message of a client; or why there is none, where that is for the client to hear.
pub(super) type Taken = Result<Bytes, RpcError>;

/// Where messages of a client come from. Dropping the future of `next` loses nothing.
pub(super) trait Inbound {
    async fn next(&mut self) -> io::Result<Option<Taken>>;
}

/// Where messages to a client go, each in its pieces.
pub(super) trait Outbound {
    async fn send(&mut self, message: &[Bytes]) -> io::Result<()>;
}

impl<R: AsyncRead + Unpin> Inbound for Lines<R> {
    async fn next(&mut self) -> io::Result<Option<Taken>> {
        Ok(Self::next(self).await?.map(|line| match line {
            Line::Whole(text) => Ok(text),
            Line::Cut(_) => {
                let problem = format!("the message is larger than {} bytes", self.limit());
                Err(RpcError::new(INVALID_REQUEST, problem))
            }
        }))
    }
}

/// A stream of bytes, on which each message is a line.
struct Written<W>(W);

impl<W: AsyncWrite + Unpin> Outbound for Written<W> {
    async fn send(&mut self, message: &[Bytes]) -> io::Result<()> {
        lines::write(&mut self.0, message).await
    }
}

/// Serves one client until its stream ends, then lets what runs end, for as long as the limits say.
///
/// # Errors
/// When a stream breaks.
pub async fn serve(
    frontend: Arc<Frontend>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    limits: DuplexLimits,
) -> io::Result<()> {
    // What this client begins, such as a task, is nobody else's.
    let caller = Caller { session: random_id(), ..Caller::default() };
    let input = Lines::new(input, limits.line_bytes);
    converse(frontend, caller, input, Written(output), limits.requests, limits.drain).await
}

/// Takes messages, and sends what is to be said, until there are no more of either, or the first are over for as long as
/// `drain`.
pub(super) async fn converse(
    frontend: Arc<Frontend>,
    caller: Caller,
    mut inbound: impl Inbound,
    mut outbound: impl Outbound,
    most_requests: usize,
    drain: Duration,
) -> io::Result<()> {
    let mut conversation = Conversation::new(frontend, caller, most_requests, drain);
    while let Some(message) = conversation.next(&mut inbound).await? {
        let mut sending = pin!(outbound.send(&message));
        loop {
            // A client that reads slowly takes the time of its messages, not that of the calls.
            tokio::select! {
                biased;
                sent = &mut sending => break sent?,
                worked = conversation.step(&mut inbound, false) => drop(worked?),
            }
            if conversation.is_over() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A request that runs: its response, unless it was withdrawn.
type Work = BoxFuture<'static, Option<Vec<Bytes>>>;

/// What is remembered of the client.
struct Conversation {
    frontend: Arc<Frontend>,
    /// What is said of running requests.
    sender: mpsc::Sender<Bytes>,
    messages: mpsc::Receiver<Bytes>,
    /// How many of those were taken so far.
    taken: u64,
    requests: FuturesUnordered<Work>,
    most_requests: usize,
    responses: VecDeque<Response>,
    /// When the client has said its last; `None` while it may say more.
    ended: Option<Instant>,
    /// How long what runs goes on then.
    drain: Duration,
    /// The client as its `initialize` describes it. One of the modern era never sends that.
    peer: Arc<Peer>,
    news: SelectAll<Abortable<Messages>>,
    /// The streams of `news`, by the requests that opened them. What a legacy client is told belongs to none.
    subscriptions: Vec<(Option<Id>, AbortHandle)>,
    caller: Caller,
}

/// A response that waits to be sent.
struct Response {
    /// It is sent when so many messages were: what was said of its request goes first.
    after: u64,
    pieces: Vec<Bytes>,
}

impl Conversation {
    fn new(frontend: Arc<Frontend>, caller: Caller, most_requests: usize, drain: Duration) -> Self {
        let (sender, messages) = mpsc::channel(frontend.limits.queued_notices.max(1));
        Self {
            frontend,
            sender,
            messages,
            taken: 0,
            requests: FuturesUnordered::new(),
            most_requests,
            responses: VecDeque::new(),
            ended: None,
            drain,
            peer: Arc::new(Peer::new(&Object::new())),
            news: SelectAll::new(),
            subscriptions: Vec::new(),
            caller,
        }
    }

    /// What is to be sent next; `None` when nothing is left to be said.
    async fn next(&mut self, inbound: &mut impl Inbound) -> io::Result<Option<Vec<Bytes>>> {
        loop {
            if let Some(message) = self.response() {
                return Ok(Some(message));
            }
            if self.is_over() || (self.ended.is_some() && self.requests.is_empty()) {
                return Ok(None);
            }
            if let Some(message) = self.step(inbound, true).await? {
                return Ok(Some(message));
            }
        }
    }

    /// Goes on with the requests, takes a message of the client, or, where `speaks`, gives one to it. Nobody comes
    /// first: a call that says much keeps neither the others nor the client from being heard.
    async fn step(&mut self, inbound: &mut impl Inbound, speaks: bool) -> io::Result<Option<Vec<Bytes>>> {
        tokio::select! {
            Some(message) = self.messages.recv(), if speaks => {
                self.taken += 1;
                Ok(Some(vec![message]))
            }
            Some(news) = self.news.next(), if speaks && self.ended.is_none() && !self.news.is_empty() => Ok(Some(news)),
            Some(response) = self.requests.next(), if !self.requests.is_empty() => {
                let after = self.taken + self.messages.len() as u64;
                self.responses.extend(response.map(|pieces| Response { after, pieces }));
                Ok(None)
            }
            message = inbound.next(), if self.ended.is_none() && self.has_room() => {
                match message? {
                    Some(taken) => {
                        let refused = |error| Some(message::response(None, Err(error)));
                        let response = taken.map_or_else(refused, |text| self.take(text));
                        self.responses.extend(response.map(|pieces| Response { after: 0, pieces }));
                    }
                    None => {
                        self.ended = Some(Instant::now());
                        self.peer.asks.close();
                    }
                }
                Ok(None)
            }
            () = over(self.ended, self.drain) => Ok(None),
        }
    }

    /// Whether what still runs has had its time: it is withdrawn, and who has not read by now is not waited for.
    fn is_over(&self) -> bool {
        self.ended.is_some_and(|ended| ended.elapsed() >= self.drain)
    }

    /// The next response, or what goes before it.
    fn response(&mut self) -> Option<Vec<Bytes>> {
        let first = self.responses.front()?;
        if self.taken < first.after
            && let Ok(message) = self.messages.try_recv()
        {
            self.taken += 1;
            return Some(vec![message]);
        }
        self.responses.pop_front().map(|response| response.pieces)
    }

    /// Whether another message is to be read. However much runs, it may be a withdrawal or an answer.
    fn has_room(&self) -> bool {
        self.responses.len() < self.most_requests
    }

    /// Takes one message; what can be answered at once is.
    fn take(&mut self, text: Bytes) -> Option<Vec<Bytes>> {
        if batch::is_batch(&text, &self.peer) {
            return self.batch(text);
        }
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

    fn batch(&self, text: Bytes) -> Option<Vec<Bytes>> {
        // Answers may come in batches, too: they have room where requests have none any more.
        if self.requests.len() >= 2 * self.most_requests {
            return Some(message::response(None, Err(too_many("requests"))));
        }
        match batch::read(text) {
            Ok(messages) => {
                let from = batch::From {
                    frontend: self.frontend.clone(),
                    peer: self.peer.clone(),
                    caller: self.caller.clone(),
                    origin: None,
                    outlet: Some(self.sender.clone()),
                };
                self.requests.push(Box::pin(async move {
                    let responses = batch::answer(from, messages).await;
                    (!responses.is_empty()).then(|| batch::joined(responses))
                }));
                None
            }
            Err(error) => Some(message::response(None, Err(error))),
        }
    }

    fn request(&mut self, request: Request) -> Option<Vec<Bytes>> {
        if self.requests.len() >= self.most_requests {
            return Some(message::response(Some(&request.id), Err(too_many("requests"))));
        }
        if modern::is_modern(&request) || request.method == method::DISCOVER {
            let id = request.id.clone();
            let refused = self.modern(request).err();
            return refused.map(|error| message::response(Some(&id), Err(error)));
        }
        if request.method == method::INITIALIZE {
            let answer = self.frontend.described.initialize(&request.params);
            if answer.is_ok() {
                self.peer = Arc::new(self.peer.renewed(&request.params));
            }
            return Some(message::response(Some(&request.id), answer));
        }
        let outlet = Outlet::new(&request.meta, Some(self.sender.clone()));
        let client = Requester::legacy(Some(&self.peer), outlet, self.frontend.limits.ask_time);
        let peer = Some(self.peer.clone());
        self.run(
            request,
            Sender {
                era: Era::Legacy,
                caller: self.caller.clone(),
                origin: None,
                client,
                peer,
                questions: None,
            },
        );
        None
    }

    fn modern(&mut self, request: Request) -> Result<(), RpcError> {
        let registry = Registry::seen_by(self.frontend.gateway.registry(), &self.caller);
        let capabilities = modern::check(&request, None, &registry)?;
        let outlet = Outlet::new(&request.meta, Some(self.sender.clone()));
        let (client, questions) = Requester::modern(capabilities, outlet, self.frontend.limits.ask_time);
        let caller = self.caller.clone();
        let sender = Sender { era: Era::Modern, caller, origin: None, client, peer: None, questions };
        if request.method == method::LISTEN {
            if self.news.len() >= self.most_requests {
                return Err(too_many("subscriptions"));
            }
            let news = self.frontend.listen(request.id.clone(), &request.params, &sender, Vec::new())?;
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
        self.subscriptions.push((id, handle));
    }

    fn unlisten(&self, id: Option<&Id>) {
        let streams = self.subscriptions.iter().filter(|(opened, _)| opened.as_ref() == id);
        streams.for_each(|(_, stream)| stream.abort());
    }

    fn notification(&mut self, method: &str, params: &Object) {
        match method {
            method::INITIALIZED => {
                self.unlisten(None);
                let news = self.frontend.news(&self.peer, self.caller.clone(), false);
                self.listen(None, news);
            }
            method::CANCELLED => {
                let Some(id) = params.get("requestId").and_then(Id::parse) else { return };
                self.unlisten(Some(&id));
            }
            _ => {}
        }
        self.frontend.noticed(&self.peer, &self.caller, method, params);
    }
}

/// Waits until what runs has had its time.
async fn over(ended: Option<Instant>, drain: Duration) {
    match ended.and_then(|ended| ended.checked_add(drain)) {
        Some(over) => sleep_until(over).await,
        None => pending().await,
    }
}

fn too_many(what: &str) -> RpcError {
    RpcError::from(&ToolError::new(Code::Overloaded, format!("Too many {what} at once")))
}

/// Who is gone comes for nothing any more.
impl Drop for Conversation {
    fn drop(&mut self) {
        self.frontend.forget(&self.caller);
    }
}
