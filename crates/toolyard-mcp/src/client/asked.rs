//! What a legacy server asks while calls run, and who answers.
//!
//! Its questions do not say which call they belong to. So they are answered only on a connection that is one client's
//! (or, where it is nobody's in particular, one call's at a time): there the newest call that runs is asked, which is
//! of the right client in any case. Over streamable HTTP a question on the stream of a request is put to that call.
//! Some servers ask before they have any call, and never again: what nobody takes stays open for the next call, as far
//! as that is of the same client.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use toolyard_core::{Ask, AskError, AskKind, Client, Notice, Object};

use super::declared::Declared;
use super::transport::{Transport, TransportError};
use super::visits::Visits;
use crate::wire::{Id, RpcError, error, kind_of, message, method};

/// Questions of one call that may be open. A server that asks more at once is told so.
const MOST_OPEN: usize = 16;

/// How long the first call of a connection waits for the answers to what the server asks before it.
const FIRST_TIME: Duration = Duration::from_secs(2);

/// What a server gets of that to make use of the answers: nothing says when it has.
const USE_TIME: Duration = Duration::from_millis(100);

/// The calls of one connection whose clients can be asked.
pub(super) struct Callers {
    declared: Declared,
    state: Mutex<State>,
    has_asked: AtomicBool,
    /// Whether it has asked for folders.
    knows_roots: AtomicBool,
    /// Whether the connection is one client's alone.
    is_one_clients: AtomicBool,
    /// Then, who called last: what the server logs between calls is for the same client.
    last: Mutex<Option<Arc<dyn Client>>>,
    /// Who was sent to which URL.
    pub(super) visits: Visits,
}

#[derive(Default)]
struct State {
    running: BTreeMap<u64, Caller>,
    /// Questions for the next call, [`MOST_OPEN`] at most. They end with the connection, which ends when it is idle.
    left: Vec<Question>,
    /// Whether the first call has come, or none will.
    has_begun: bool,
}

/// A call that runs.
struct Caller {
    client: Arc<dyn Client>,
    said: mpsc::Sender<Said>,
}

/// A request of a server for a call's client.
#[derive(Clone)]
struct Question {
    id: Id,
    ask: Ask,
}

/// What a server says to a call, beside its answer.
enum Said {
    Asks(Question),
    /// A question is not asked any more.
    Withdraws(Id),
}

impl Callers {
    /// Nobody calls yet; `declared` is what those who will can be asked.
    pub(super) fn new(declared: Declared) -> Self {
        let (state, last) = (Mutex::default(), Mutex::default());
        let [has_asked, knows_roots, is_one_clients] = [false; 3].map(AtomicBool::new);
        Self { declared, state, has_asked, knows_roots, is_one_clients, last, visits: Visits::default() }
    }

    /// What the server was told that it may ask.
    pub(super) const fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Whether the server has ever asked for anything that it may keep, or may ask again.
    pub(super) fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Acquire)
    }

    /// Whether the server has asked for folders, and may want to know that they are others.
    pub(super) fn knows_roots(&self) -> bool {
        self.knows_roots.load(Ordering::Relaxed)
    }

    /// Takes a request of the server; gives the response to it unless a call's client is to answer. `of` is the call
    /// on whose stream it came, where it came on one.
    pub(super) fn asked(&self, of: Option<u64>, id: Id, method: &str, params: Object) -> Option<Vec<Bytes>> {
        if method == method::PING {
            return Some(message::response(Some(&id), Ok(vec![Bytes::from_static(b"{}")])));
        }
        let Some(kind) = kind_of(method).filter(|kind| self.declared.has(*kind)) else {
            return Some(message::response(Some(&id), Err(RpcError::method_not_found(method))));
        };
        self.has_asked.store(true, Ordering::Release);
        self.knows_roots.fetch_or(kind == AskKind::Roots, Ordering::Relaxed);
        let question = Question { id, ask: Ask { kind, params } };
        self.put_or_keep(of, question, true).err().map(refusal)
    }

    /// Takes `notifications/cancelled` of the server.
    pub(super) fn withdrawn(&self, params: &Object) {
        let Some(id) = params.get("requestId").and_then(Id::parse) else { return };
        let mut state = self.state();
        state.left.retain(|question| question.id != id);
        for call in state.running.values() {
            // One that has so much to do finds out with the answer that nobody wants.
            let _full = call.said.try_send(Said::Withdraws(id.clone()));
        }
    }

    /// Nobody else will use the connection.
    pub(super) fn be_one_clients(&self) {
        self.is_one_clients.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_one_clients(&self) -> bool {
        self.is_one_clients.load(Ordering::Relaxed)
    }

    /// Takes a line of the server's log that belongs to no request: it is for whose connection this is.
    pub(super) fn logged(&self, params: Object) {
        let newest = self.state().running.values().next_back().map(|caller| caller.client.clone());
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(client) = newest.or_else(last) {
            client.notify(Notice::Log(params));
        }
    }

    /// Notes who calls.
    pub(super) fn called_by(&self, client: &Arc<dyn Client>) {
        if self.is_one_clients() {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        }
    }

    /// Nobody will call: what was asked is refused, and so is what will be.
    pub(super) fn be_nobodys(&self, transport: &Transport) {
        let mut state = self.state();
        state.has_begun = true;
        for question in std::mem::take(&mut state.left) {
            transport.post(refusal(question));
        }
    }

    /// Puts a question to a call, or else to the newest one, or, where it `may_stay`, to the next one of the same
    /// client; gives it back where none takes it.
    fn put_or_keep(&self, of: Option<u64>, question: Question, may_stay: bool) -> Result<(), Question> {
        let mut state = self.state();
        let named = of.and_then(|id| state.running.get(&id));
        if let Some(call) = named.or_else(|| state.running.values().next_back()) {
            return call.said.try_send(Said::Asks(question.clone())).map_err(|_full| question);
        }
        // Before the first call nobody has told the server anything: its question can be of no other client.
        let is_for_next = self.is_one_clients() || !state.has_begun;
        if !may_stay || !is_for_next || state.left.len() >= MOST_OPEN {
            return Err(question);
        }
        state.left.push(question);
        Ok(())
    }

    /// Begins a call of a client that can be asked; `None` on a connection that declares nothing.
    pub(super) fn begin<'c>(
        &'c self,
        id: u64,
        client: &Arc<dyn Client>,
        transport: &'c Transport,
    ) -> Option<Attended<'c>> {
        if self.declared.is_nothing() {
            return None;
        }
        let (sender, said) = mpsc::channel(MOST_OPEN);
        let mut state = self.state();
        for question in std::mem::take(&mut state.left) {
            // There is room for all that are left.
            let _full = sender.try_send(Said::Asks(question));
        }
        state.running.insert(id, Caller { client: client.clone(), said: sender });
        let is_first = !std::mem::replace(&mut state.has_begun, true);
        let (client, open) = (client.clone(), Vec::new());
        Some(Attended { callers: self, transport, id, client, said, open, is_first, is_answered: false })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call whose client is asked while it runs. With its end, whichever way it comes, its questions are withdrawn.
pub(super) struct Attended<'c> {
    callers: &'c Callers,
    transport: &'c Transport,
    id: u64,
    client: Arc<dyn Client>,
    said: mpsc::Receiver<Said>,
    open: Vec<Open>,
    is_first: bool,
    is_answered: bool,
}

struct Open {
    question: Question,
    /// Asks the client; gives the response to the server.
    answering: BoxFuture<'static, Vec<Bytes>>,
}

impl Attended<'_> {
    /// Waits for the answer to the call; meanwhile its client is asked what the server asks. Before the first call of a
    /// connection, what the server has asked until it answers `ping` is answered, if that does not take long.
    pub(super) async fn until<'p, T>(
        mut self,
        ping: impl FnOnce() -> BoxFuture<'p, Result<(), TransportError>>,
        answer: impl Future<Output = T>,
    ) -> T {
        if self.is_first {
            let settle = async {
                let _refused = self.attend(ping()).await;
                self.attend_all().await;
                if self.callers.has_asked() {
                    self.attend(sleep(USE_TIME)).await;
                }
            };
            let _too_slow = Box::pin(timeout(FIRST_TIME, settle)).await;
        }
        let answer = self.attend(answer).await;
        self.is_answered = true;
        answer
    }

    async fn attend<T>(&mut self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                Some(said) = self.said.recv() => self.hear(said),
                response = answered(&mut self.open) => Box::pin(self.transport.answer(response)).await,
            }
        }
    }

    /// Goes on until nothing is asked.
    async fn attend_all(&mut self) {
        while let Ok(said) = self.said.try_recv() {
            self.hear(said);
        }
        while !self.open.is_empty() {
            tokio::select! {
                Some(said) = self.said.recv() => self.hear(said),
                response = answered(&mut self.open) => Box::pin(self.transport.answer(response)).await,
            }
        }
    }

    fn hear(&mut self, said: Said) {
        match said {
            Said::Asks(question) if self.open.len() < MOST_OPEN => self.ask(question),
            Said::Asks(question) => self.transport.post(refusal(question)),
            Said::Withdraws(id) => self.open.retain(|open| open.question.id != id),
        }
    }

    fn ask(&mut self, question: Question) {
        let client = self.client.clone();
        let Question { id, ask } = question.clone();
        self.callers.visits.asked(&ask, &client);
        let answering = async move {
            let answer = client.ask(ask).await.map_err(error_of);
            message::response(Some(&id), answer.map(|answer| vec![answer.bytes()]))
        };
        self.open.push(Open { question, answering: answering.boxed() });
    }
}

/// The questions of a call that ends may have been another one's of the same client, which is asked then. Where there is
/// none, the next one is, but for what a call may have asked that was withdrawn.
impl Drop for Attended<'_> {
    fn drop(&mut self) {
        self.callers.state().running.remove(&self.id);
        self.said.close();
        let unheard = std::iter::from_fn(|| self.said.try_recv().ok()).collect::<Vec<_>>();
        let mut questions: Vec<_> =
            std::mem::take(&mut self.open).into_iter().map(|open| open.question).collect();
        for said in unheard {
            match said {
                Said::Asks(question) => questions.push(question),
                Said::Withdraws(id) => questions.retain(|question| question.id != id),
            }
        }
        for question in questions {
            let may_stay = self.is_answered || question.ask.kind == AskKind::Roots;
            if let Err(question) = self.callers.put_or_keep(None, question, may_stay) {
                self.transport.post(refusal(question));
            }
        }
    }
}

/// Goes on with all that is asked until one of it is answered; gives the response.
async fn answered(open: &mut Vec<Open>) -> Vec<Bytes> {
    poll_fn(|cx| {
        for at in 0..open.len() {
            if let Poll::Ready(response) = open[at].answering.poll_unpin(cx) {
                open.remove(at);
                return Poll::Ready(response);
            }
        }
        Poll::Pending
    })
    .await
}

/// The response to a question that no call takes.
fn refusal(question: Question) -> Vec<Bytes> {
    message::response(Some(&question.id), Err(error_of(AskError::Gone)))
}

/// What a server is told where its question was not answered.
fn error_of(error: AskError) -> RpcError {
    match error {
        AskError::Refused(error) => RpcError::from_peer(error),
        AskError::BadQuestion(problem) => RpcError::invalid_params(problem),
        // The method is known, so it is the mode that is not (2025-11-25, client/elicitation, error handling).
        AskError::Unsupported(_) => RpcError::invalid_params(error.to_string()),
        AskError::BadAnswer(_) | AskError::TooLate | AskError::Gone => {
            RpcError::new(error::INTERNAL_ERROR, error.to_string())
        }
    }
}
