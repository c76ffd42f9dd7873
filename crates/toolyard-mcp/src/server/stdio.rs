//! One client on a pair of streams: standard input and output, or a pipe in a test.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, pending};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use toolyard_core::{Caller, Object};

use super::listen::{self, Changes, Subscription};
use super::requester::Requester;
use super::session::Running;
use super::{Frontend, Request, modern};
use crate::lines::{self, Lines};
use crate::wire::{Era, Id, Message, message, method};

/// What one client may take.
#[derive(Debug, Clone, Copy)]
pub struct StdioLimits {
    /// Size of a message, in bytes.
    pub line_bytes: usize,
    /// Requests that run at once. No further message is read until one has ended.
    pub requests: usize,
}

/// Serves one client until its stream ends, then lets what runs end.
///
/// # Errors
/// When a stream breaks, or the client sends a line that is too long.
pub async fn serve(
    frontend: Arc<Frontend>,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    limits: StdioLimits,
) -> io::Result<()> {
    let mut lines = Lines::new(input, limits.line_bytes);
    let (sender, mut notices) = mpsc::channel(frontend.queued_notices);
    let mut connection = Connection::new(frontend, sender);
    let mut running = FuturesUnordered::<Work>::new();
    let mut open = true;
    while open || !running.is_empty() {
        let message = tokio::select! {
            biased;
            Some(notice) = notices.recv() => Some(vec![notice]),
            Some(response) = running.next(), if !running.is_empty() => response,
            changed = connection.changed(), if open => changed,
            line = lines.next(), if open && running.len() < limits.requests => match line? {
                Some(line) => connection.take(line, &mut running),
                None => { open = false; None }
            },
        };
        for message in message.into_iter().chain(connection.outbox.drain(..)) {
            lines::write(&mut output, &message).await?;
        }
    }
    Ok(())
}

/// A request that runs: its response, unless it was withdrawn.
type Work = BoxFuture<'static, Option<Vec<Bytes>>>;

/// What is remembered of the client.
struct Connection {
    frontend: Arc<Frontend>,
    notices: mpsc::Sender<Bytes>,
    running: Arc<Running>,
    changes: Changes,
    /// Whether a legacy client has said that it is ready.
    initialized: bool,
    subscriptions: Vec<Subscription>,
    outbox: Vec<Vec<Bytes>>,
}

impl Connection {
    fn new(frontend: Arc<Frontend>, notices: mpsc::Sender<Bytes>) -> Self {
        let changes = frontend.changes();
        Self {
            frontend,
            notices,
            running: Arc::default(),
            changes,
            initialized: false,
            subscriptions: Vec::new(),
            outbox: Vec::new(),
        }
    }

    /// Takes one message; what can be answered at once is.
    fn take(&mut self, line: Bytes, running: &mut FuturesUnordered<Work>) -> Option<Vec<Bytes>> {
        match Message::parse(line) {
            Ok(Message::Request { id, method, params, meta }) => {
                self.request(Request { id, method, params, meta }, running)
            }
            Ok(Message::Notification { method, params }) => {
                self.notification(&method, &params);
                None
            }
            Ok(Message::Response { .. }) => None,
            Err(bad) => Some(message::response(bad.id.as_ref(), Err(bad.error))),
        }
    }

    fn request(&mut self, request: Request, running: &mut FuturesUnordered<Work>) -> Option<Vec<Bytes>> {
        if modern::is_modern(&request) || request.method == method::DISCOVER {
            return self.modern(request, running);
        }
        if request.method == method::INITIALIZE {
            let answer = self.frontend.initialize(&request.params);
            return Some(message::response(Some(&request.id), answer));
        }
        let client = Requester::new(None, &request.meta, Some(&self.notices));
        running.push(self.run(request, Era::Legacy, client));
        None
    }

    fn modern(&mut self, request: Request, running: &mut FuturesUnordered<Work>) -> Option<Vec<Bytes>> {
        let capabilities = match modern::check(&request, None, &self.frontend.gateway.registry()) {
            Ok(capabilities) => capabilities,
            Err(error) => return Some(message::response(Some(&request.id), Err(error))),
        };
        if request.method == method::LISTEN {
            let subscription = Subscription::new(request.id, &request.params);
            let acknowledgement = subscription.acknowledgement();
            self.subscriptions.push(subscription);
            return Some(vec![acknowledgement]);
        }
        let client = Requester::new(Some(capabilities), &request.meta, Some(&self.notices));
        running.push(self.run(request, Era::Modern, client));
        None
    }

    fn run(&self, request: Request, era: Era, client: Arc<Requester>) -> Work {
        let (frontend, running, id) = (self.frontend.clone(), self.running.clone(), request.id.clone());
        Box::pin(async move {
            let answer = frontend.answer(request, era, Caller::default(), client);
            let answer = running.run(&id, answer).await?;
            Some(message::response(Some(&id), answer))
        })
    }

    fn notification(&mut self, method: &str, params: &Object) {
        match method {
            method::INITIALIZED => self.initialized = true,
            method::CANCELLED => {
                if let Some(id) = params.get("requestId").and_then(Id::parse) {
                    self.running.cancel(&id);
                    self.subscriptions.retain(|subscription| subscription.id != id);
                }
            }
            _ => {}
        }
    }

    /// Waits for a change of the list, and puts what the subscriptions are told of it into the outbox.
    async fn changed(&mut self) -> Option<Vec<Bytes>> {
        if self.changes.next().await.is_none() {
            return pending().await;
        }
        let told = self.subscriptions.iter().filter(|subscription| subscription.tools);
        self.outbox.extend(told.map(|subscription| vec![subscription.tools_changed()]));
        self.initialized.then(|| vec![listen::tools_changed()])
    }
}
