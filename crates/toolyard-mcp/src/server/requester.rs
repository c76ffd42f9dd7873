//! The client of one request, as its call sees it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use toolyard_core::{Ask, AskError, Client, Json, LogLevel, Notice};

use super::outlet::{Outlet, is_wanted};
use super::peer::Peer;
use super::progress::Progress;
use crate::wire::{Revision, message, method};

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
        outlet.set_log(peer.map(|peer| peer.log_level()));
        match peer.filter(|_| outlet.messages().is_some()) {
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

    /// Messages go where those of another request of the same client go, which can be asked what that one declares, and
    /// hears what was said since the last one.
    pub(super) fn continue_with(&self, other: &Self) {
        let outlet = std::mem::take(&mut *other.outlet());
        self.outlet().go_on_as(outlet);
        let latest = other.latest().clone();
        *self.latest() = latest;
    }

    /// What the client is told of progress.
    pub(super) fn progress(&self) -> Option<Arc<Progress>> {
        self.outlet().progress().cloned()
    }

    /// Messages go nowhere any more.
    pub(super) fn say_nothing(&self) {
        *self.outlet() = Outlet::default();
    }

    /// Messages wait for the next request of the client, which goes on with this one.
    pub(super) fn wait_for_next(&self) {
        self.outlet().pause();
    }

    /// No log reaches the client.
    pub(super) fn mute(&self) {
        self.outlet().set_log(None);
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
                    let messages = self.outlet().messages().cloned().ok_or(AskError::Gone)?;
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
        self.outlet().progress().is_some()
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.outlet().log_level()
    }

    fn calls_tools(&self) -> bool {
        true
    }

    fn notify(&self, notice: Notice) {
        let mut outlet = self.outlet();
        let is_visit =
            matches!(&notice, Notice::Other { method, .. } if **method == *method::ELICIT_COMPLETE);
        match (&notice, &self.way) {
            // Its request is over, and the server goes on telling the same client.
            (Notice::Log(params), Way::Requests(peer)) if outlet.messages().is_none() => {
                if is_wanted(params, Some(peer.log_level())) {
                    peer.tell(message::notification(method::LOG, params));
                }
            }
            (_, way) if is_visit && !way.knows_visits() => {}
            // The user may take longer than the request that has led there.
            (Notice::Other { method, params }, Way::Requests(peer))
                if is_visit && outlet.messages().is_none() =>
            {
                peer.tell(message::notification(method, params));
            }
            _ => outlet.tell(notice),
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

/// While this lives the client is told of its request. A backend may hold on to the client for longer, and the call may
/// wait for another request.
pub(super) struct Audience(pub(super) Arc<Requester>);

impl Drop for Audience {
    fn drop(&mut self) {
        if !self.0.outlet().is_paused() {
            self.0.say_nothing();
        }
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
