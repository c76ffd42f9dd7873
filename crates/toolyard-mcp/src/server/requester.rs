//! The client of one request, as its call sees it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use toolyard_core::{Ask, AskError, Client, Json, LogLevel, Notice, Object};

use super::peer::Peer;
use super::progress::Progress;
use crate::wire::{Id, Revision, message, meta, method};

/// Who sent a request: what it can be asked, and where it is told of progress and log.
#[derive(Debug)]
pub(super) struct Requester {
    /// As its first request declares them.
    capabilities: Option<Json>,
    /// As its latest request does: each counts for itself (2026-07-28, basic, capabilities).
    latest: Mutex<Option<Json>>,
    /// Where messages go. A parked call gets another place with each round.
    outlet: Mutex<Outlet>,
    way: Way,
    /// How long a question may stay open.
    ask_time: Duration,
    clock: Mutex<Clock>,
}

/// Where messages of one request go.
#[derive(Debug, Default)]
pub(super) struct Outlet {
    messages: Option<mpsc::Sender<Bytes>>,
    /// What it is told of progress, if it wants to be.
    progress: Option<Arc<Progress>>,
    /// The least severe log that it wants.
    log: Option<LogLevel>,
}

/// How the client is asked.
#[derive(Debug)]
enum Way {
    Never,
    /// By requests of ours.
    Requests(Arc<Peer>),
    /// By rounds: the call waits while the client comes with the answers.
    Rounds(mpsc::Sender<Question>),
}

impl Way {
    /// Whether the client is told that its user is done at a URL: one revision has that (2025-11-25, client/elicitation).
    fn knows_visits(&self) -> bool {
        matches!(self, Self::Requests(peer) if peer.revision() == Revision::V2025_11_25)
    }
}

/// Something that a call asks its modern client.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) ask: Ask,
    pub(super) answer: oneshot::Sender<Result<Json, AskError>>,
}

/// How long the client has been asked.
#[derive(Debug, Default)]
struct Clock {
    open: usize,
    since: Option<Instant>,
    before: Duration,
}

/// Questions of one call that may wait to be put to its client.
const QUESTIONS: usize = 16;

impl Outlet {
    /// Where `messages` go of a request that said `meta` of itself. A modern request says how much log it wants.
    pub(super) fn new(meta: &Object, messages: Option<mpsc::Sender<Bytes>>) -> Self {
        let log = meta.get_str(meta::LOG_LEVEL).and_then(|level| LogLevel::parse(&level));
        // A token is a string or a number, as an id is.
        let token = meta.get(meta::PROGRESS_TOKEN).filter(|token| Id::parse(token).is_some());
        let token = token.zip(messages.as_ref());
        let progress =
            token.map(|(token, messages)| Arc::new(Progress::new(token.clone(), messages.clone())));
        Self { messages, progress, log }
    }
}

impl Requester {
    /// A modern client, which declares its capabilities with each request, and where its call puts questions.
    pub(super) fn modern(
        capabilities: Json,
        outlet: Outlet,
        ask_time: Duration,
    ) -> (Arc<Self>, Option<mpsc::Receiver<Question>>) {
        // Most clients can be asked nothing, and are spared the channel.
        if capabilities.as_bytes() == b"{}" {
            return (Self::new(Some(capabilities), outlet, Way::Never, ask_time), None);
        }
        let (sender, questions) = mpsc::channel(QUESTIONS);
        (Self::new(Some(capabilities), outlet, Way::Rounds(sender), ask_time), Some(questions))
    }

    /// A legacy client: it can be asked where it has a session, and takes a stream.
    pub(super) fn legacy(peer: Option<&Arc<Peer>>, mut outlet: Outlet, ask_time: Duration) -> Arc<Self> {
        outlet.log = peer.map(|peer| peer.log_level());
        match peer.filter(|_| outlet.messages.is_some()) {
            Some(peer) => {
                let capabilities = Some(peer.capabilities().clone());
                Self::new(capabilities, outlet, Way::Requests(peer.clone()), ask_time)
            }
            None => Self::new(None, outlet, Way::Never, ask_time),
        }
    }

    fn new(capabilities: Option<Json>, outlet: Outlet, way: Way, ask_time: Duration) -> Arc<Self> {
        let (latest, outlet) = (Mutex::new(capabilities.clone()), Mutex::new(outlet));
        Arc::new(Self { capabilities, latest, outlet, way, ask_time, clock: Mutex::default() })
    }

    /// Messages go where those of another request of the same client go, which can be asked what that one declares.
    pub(super) fn continue_with(&self, other: &Self) {
        let outlet = std::mem::take(&mut *other.outlet());
        *self.outlet() = outlet;
        let latest = other.latest().clone();
        *self.latest() = latest;
    }

    /// What the client is told of progress.
    pub(super) fn progress(&self) -> Option<Arc<Progress>> {
        self.outlet().progress.clone()
    }

    /// Messages go nowhere any more.
    pub(super) fn say_nothing(&self) {
        *self.outlet() = Outlet::default();
    }

    /// No log reaches the client.
    pub(super) fn mute(&self) {
        self.outlet().log = None;
    }

    fn outlet(&self) -> MutexGuard<'_, Outlet> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn latest(&self) -> MutexGuard<'_, Option<Json>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn asked(&self, ask: Ask) -> Result<Json, AskError> {
        if !self.takes(&ask) {
            return Err(AskError::Unsupported(ask.required()));
        }
        let _open = Open::begin(self);
        let answer = async {
            match &self.way {
                Way::Never => Err(AskError::Unsupported(ask.required())),
                Way::Requests(peer) => {
                    let messages = self.outlet().messages.clone().ok_or(AskError::Gone)?;
                    peer.asks.ask(ask, &messages).await
                }
                Way::Rounds(questions) => {
                    let (sender, answer) = oneshot::channel();
                    let question = Question { ask, answer: sender };
                    questions.send(question).await.map_err(|_| AskError::Gone)?;
                    answer.await.unwrap_or(Err(AskError::Gone))
                }
            }
        };
        timeout(self.ask_time, answer).await.unwrap_or(Err(AskError::TooLate))
    }

    /// Whether the client has declared that it takes such a question.
    pub(super) fn takes(&self, ask: &Ask) -> bool {
        ask.is_for(self.latest().as_ref())
    }
}

impl Client for Requester {
    fn capabilities(&self) -> Option<&Json> {
        self.capabilities.as_ref()
    }

    fn listens(&self) -> bool {
        let outlet = self.outlet();
        outlet.progress.is_some()
    }

    fn log_level(&self) -> Option<LogLevel> {
        let outlet = self.outlet();
        outlet.log.filter(|_| outlet.messages.is_some())
    }

    fn notify(&self, notice: Notice) {
        let outlet = self.outlet();
        match notice {
            Notice::Progress(params) => {
                if let Some(progress) = &outlet.progress {
                    progress.tell(params);
                }
            }
            Notice::Log(params) => {
                let level = params.get_str("level").and_then(|level| LogLevel::parse(&level));
                let is_wanted =
                    |least: Option<LogLevel>| level.zip(least).is_some_and(|(level, least)| level >= least);
                match (&outlet.messages, &self.way) {
                    // A full queue drops the notice.
                    (Some(messages), _) if is_wanted(outlet.log) => {
                        let _full = messages.try_send(message::notification(method::LOG, &params));
                    }
                    // Its request is over, and the server goes on telling the same client.
                    (None, Way::Requests(peer)) if is_wanted(Some(peer.log_level())) => {
                        peer.tell(message::notification(method::LOG, &params));
                    }
                    _ => {}
                }
            }
            Notice::Other { method, params } => {
                let is_visit = &*method == method::ELICIT_COMPLETE;
                match (&outlet.messages, &self.way) {
                    (_, way) if is_visit && !way.knows_visits() => {}
                    (Some(messages), _) => {
                        let _full = messages.try_send(message::notification(&method, &params));
                    }
                    // The user may take longer than the request that has led there.
                    (None, Way::Requests(peer)) if is_visit => {
                        peer.tell(message::notification(&method, &params));
                    }
                    _ => {}
                }
            }
        }
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, AskError>> {
        self.asked(ask).boxed()
    }

    fn asked_for(&self) -> Duration {
        let clock = self.clock();
        clock.before + clock.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// While this lives the client is told of its request. A backend may hold on to the client for longer.
pub(super) struct Audience(pub(super) Arc<Requester>);

impl Drop for Audience {
    fn drop(&mut self) {
        self.0.say_nothing();
    }
}

/// While this lives the client is being asked.
struct Open<'a>(&'a Requester);

impl<'a> Open<'a> {
    fn begin(requester: &'a Requester) -> Self {
        let mut clock = requester.clock();
        clock.open += 1;
        clock.since.get_or_insert_with(Instant::now);
        Self(requester)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut clock = self.0.clock();
        clock.open = clock.open.saturating_sub(1);
        if clock.open == 0 {
            let since = clock.since.take();
            clock.before += since.map_or(Duration::ZERO, |since| since.elapsed());
        }
    }
}

#[cfg(test)]
mod tests;
