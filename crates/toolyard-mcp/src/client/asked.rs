//! What a legacy server asks while calls run, and who answers.
//!
//! Its questions do not say which call they belong to. So they are answered only on a connection that is one client's
//! (or, where it is nobody's in particular, one call's at a time): there the newest call that runs is asked, which is
//! of the right client in any case. Over streamable HTTP a question on the stream of a request is put to that call.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use toolyard_core::{Ask, AskError, AskKind, Client, Notice, Object};

use super::declared::Declared;
use super::transport::Transport;
use crate::wire::{Id, RpcError, error, kind_of, message, method, method_of};

/// Questions of one call that may be open. A server that asks more at once is told so.
const MOST_OPEN: usize = 16;

/// The calls of one connection whose clients can be asked.
pub(super) struct Callers {
    declared: Declared,
    running: Mutex<BTreeMap<u64, Caller>>,
    has_asked: AtomicBool,
    /// Whether the connection is one client's alone.
    is_one_clients: AtomicBool,
    /// Then, who called last: what the server logs between calls is for the same client.
    last: Mutex<Option<Arc<dyn Client>>>,
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
        let (running, last) = (Mutex::default(), Mutex::default());
        let (has_asked, is_one_clients) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { declared, running, has_asked, is_one_clients, last }
    }

    /// What the server was told that it may ask.
    pub(super) const fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Whether the server has ever asked for anything that it may keep, or may ask again.
    pub(super) fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Acquire)
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
        let question = Question { id, ask: Ask { kind, params } };
        self.put(of, Said::Asks(question)).err().and_then(refusal)
    }

    /// Takes `notifications/cancelled` of the server.
    pub(super) fn withdrawn(&self, params: &Object) {
        let Some(id) = params.get("requestId").and_then(Id::parse) else { return };
        for call in self.running().values() {
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
        let newest = self.running().values().next_back().map(|caller| caller.client.clone());
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

    /// Says something to a call, or else to the newest one; gives it back where none takes it.
    fn put(&self, of: Option<u64>, said: Said) -> Result<(), Said> {
        let running = self.running();
        let named = of.and_then(|id| running.get(&id));
        let Some(call) = named.or_else(|| running.values().next_back()) else { return Err(said) };
        call.said.try_send(said).map_err(|error| match error {
            mpsc::error::TrySendError::Full(said) | mpsc::error::TrySendError::Closed(said) => said,
        })
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
        self.running().insert(id, Caller { client: client.clone(), said: sender });
        Some(Attended { callers: self, transport, id, client: client.clone(), said, open: Vec::new() })
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, Caller>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
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
}

struct Open {
    question: Question,
    /// Asks the client; gives the response to the server.
    answering: BoxFuture<'static, Vec<Bytes>>,
}

impl Attended<'_> {
    /// Waits for the answer to the call; meanwhile its client is asked what the server asks.
    pub(super) async fn until<T>(mut self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                Some(said) = self.said.recv() => self.hear(said),
                response = answered(&mut self.open) => self.transport.answer(response).await,
            }
        }
    }

    fn hear(&mut self, said: Said) {
        match said {
            Said::Asks(question) if self.open.len() < MOST_OPEN => self.ask(question),
            Said::Asks(question) => self.refuse(Said::Asks(question)),
            Said::Withdraws(id) => self.open.retain(|open| open.question.id != id),
        }
    }

    fn ask(&mut self, question: Question) {
        let client = self.client.clone();
        let Question { id, ask } = question.clone();
        let answering = async move {
            let answer = client.ask(ask).await.map_err(error_of);
            message::response(Some(&id), answer.map(|answer| vec![answer.bytes()]))
        };
        self.open.push(Open { question, answering: answering.boxed() });
    }

    fn refuse(&self, said: Said) {
        if let Some(refusal) = refusal(said) {
            self.transport.post(refusal);
        }
    }
}

/// The questions of a call that ends may have been another one's of the same client, which is asked then.
impl Drop for Attended<'_> {
    fn drop(&mut self) {
        self.callers.running().remove(&self.id);
        self.said.close();
        let unheard = std::iter::from_fn(|| self.said.try_recv().ok()).collect::<Vec<_>>();
        let open = std::mem::take(&mut self.open).into_iter().map(|open| Said::Asks(open.question));
        for said in open.chain(unheard) {
            if let Err(said) = self.callers.put(None, said) {
                self.refuse(said);
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
fn refusal(said: Said) -> Option<Vec<Bytes>> {
    let Said::Asks(question) = said else { return None };
    Some(message::response(Some(&question.id), Err(error_of(AskError::Gone))))
}

/// What a server is told where its question was not answered.
fn error_of(error: AskError) -> RpcError {
    match error {
        AskError::Refused(error) => RpcError::from_peer(error),
        AskError::BadQuestion(problem) => RpcError::invalid_params(problem),
        // The capability is declared, so it is the mode that is not (2025-11-25, client/elicitation, error handling).
        AskError::Unsupported(AskKind::Elicit) => RpcError::invalid_params("the client has not this mode"),
        AskError::Unsupported(kind) => RpcError::method_not_found(method_of(kind)),
        AskError::BadAnswer(_) | AskError::TooLate | AskError::Gone => {
            RpcError::new(error::INTERNAL_ERROR, error.to_string())
        }
    }
}
