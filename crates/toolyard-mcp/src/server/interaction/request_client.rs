//! The client of one request, as the running call sees it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use toolyard_core::{
    Client, ClientNotification, ClientSession, InputRequest, InputRequestError, Json, LogLevel,
};

use super::session_client::LegacySessionClient;
use crate::server::notify::notification_sink::{NotificationSink, is_severe_enough};
use crate::server::notify::progress::ProgressReporter;
use crate::server::session::legacy_client::LegacyClient;
use crate::server::tasks;
use crate::wire::{ProtocolRevision, message, method};

/// The client of a request: receives notifications of the call, and answers its questions.
#[derive(Debug)]
pub(in crate::server) struct RequestClient {
    /// The capabilities of its first request.
    capabilities: Option<Json>,
    /// The capabilities of its latest request: each counts for itself (2026-07-28, basic, capabilities).
    latest_capabilities: Mutex<Option<Json>>,
    /// The receiver of notifications. A suspended call gets another one with each round trip.
    sink: Mutex<NotificationSink>,
    channel: AskChannel,
    /// The legacy client, if it has a session.
    peer: Option<Arc<LegacyClient>>,
    /// True for a client of a revision in which structured results are objects.
    expects_objects: bool,
    /// Maximum time of an unanswered question.
    ask_timeout: Duration,
    clock: Mutex<AskClock>,
}

/// The way to ask a client.
#[derive(Debug)]
enum AskChannel {
    Never,
    /// Requests to a legacy client.
    OutboundRequests(Arc<LegacyClient>),
    /// Multi round trips: the call waits until the client repeats its request with the responses.
    MultiRoundTrip(mpsc::Sender<AskQuestion>),
}

impl AskChannel {
    /// True if the client expects completion notifications of URL elicitations, which exist in one revision only
    /// (2025-11-25, client/elicitation).
    fn supports_url_completion(&self) -> bool {
        matches!(self, Self::OutboundRequests(peer) if peer.revision() == ProtocolRevision::V2025_11_25)
    }
}

/// A question of a call to its modern client.
#[derive(Debug)]
pub(in crate::server) struct AskQuestion {
    pub(super) ask: InputRequest,
    pub(super) answer: oneshot::Sender<Result<Json, InputRequestError>>,
}

/// Measures the time that the client needs for answers.
#[derive(Debug, Default)]
struct AskClock {
    open: usize,
    since: Option<Instant>,
    total: Duration,
}

/// Maximum number of queued questions of one call.
const QUESTION_CAPACITY: usize = 16;

impl RequestClient {
    /// Creates a modern client with the capabilities of the request, and the queue of the call's questions.
    pub(in crate::server) fn modern(
        capabilities: Json,
        sink: NotificationSink,
        ask_timeout: Duration,
    ) -> (Arc<Self>, Option<mpsc::Receiver<AskQuestion>>) {
        // Most clients have no capabilities, and need no queue.
        if capabilities.as_bytes() == b"{}" {
            return (Arc::new(Self::new(Some(capabilities), sink, AskChannel::Never, ask_timeout)), None);
        }
        let (sender, questions) = mpsc::channel(QUESTION_CAPACITY);
        let channel = AskChannel::MultiRoundTrip(sender);
        (Arc::new(Self::new(Some(capabilities), sink, channel, ask_timeout)), Some(questions))
    }

    /// Creates a legacy client. It can be asked if it has a session and accepts a stream.
    pub(in crate::server) fn legacy(
        peer: Option<&Arc<LegacyClient>>,
        mut sink: NotificationSink,
        ask_timeout: Duration,
    ) -> Arc<Self> {
        sink.set_min_log_level(peer.map(|peer| peer.log_level()));
        let (capabilities, channel) = match peer.filter(|_| sink.messages().is_some()) {
            Some(peer) => (Some(peer.capabilities().clone()), AskChannel::OutboundRequests(peer.clone())),
            None => (None, AskChannel::Never),
        };
        let peer = peer.cloned();
        Arc::new(Self { expects_objects: true, peer, ..Self::new(capabilities, sink, channel, ask_timeout) })
    }

    fn new(
        capabilities: Option<Json>,
        sink: NotificationSink,
        channel: AskChannel,
        ask_timeout: Duration,
    ) -> Self {
        let (latest_capabilities, sink) = (Mutex::new(capabilities.clone()), Mutex::new(sink));
        Self {
            capabilities,
            latest_capabilities,
            sink,
            channel,
            peer: None,
            expects_objects: false,
            ask_timeout,
            clock: Mutex::default(),
        }
    }

    /// Continues with another request of the same client: its capabilities count from now on, and it receives the
    /// notifications that were kept.
    pub(super) fn continue_with(&self, other: &Self) {
        let sink = std::mem::take(&mut *other.lock_sink());
        self.lock_sink().resume_as(sink);
        let latest_capabilities = other.lock_latest().clone();
        *self.lock_latest() = latest_capabilities;
    }

    /// Returns the progress notifications of the request.
    pub(in crate::server) fn progress(&self) -> Option<Arc<ProgressReporter>> {
        self.lock_sink().progress().cloned()
    }

    /// Drops all notifications from now on.
    pub(in crate::server) fn detach(&self) {
        *self.lock_sink() = NotificationSink::default();
    }

    /// Keeps the notifications for the next request of the client.
    pub(super) fn pause(&self) {
        self.lock_sink().pause();
    }

    /// Drops log messages from now on.
    pub(in crate::server) fn mute_log(&self) {
        self.lock_sink().set_min_log_level(None);
    }

    fn lock_sink(&self) -> MutexGuard<'_, NotificationSink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_latest(&self) -> MutexGuard<'_, Option<Json>> {
        self.latest_capabilities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_clock(&self) -> MutexGuard<'_, AskClock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask_in_time(&self, ask: InputRequest) -> Result<Json, InputRequestError> {
        if !self.accepts(&ask) {
            return Err(InputRequestError::Unsupported(ask.required()));
        }
        let _open = AskGuard::begin(self);
        let answer = async {
            match &self.channel {
                AskChannel::Never => Err(InputRequestError::Unsupported(ask.required())),
                AskChannel::OutboundRequests(peer) => {
                    let messages = self.lock_sink().messages().cloned().ok_or(InputRequestError::Gone)?;
                    peer.outbound_requests.request(ask, &messages).await
                }
                AskChannel::MultiRoundTrip(questions) => {
                    let (sender, answer) = oneshot::channel();
                    let question = AskQuestion { ask, answer: sender };
                    questions.send(question).await.map_err(|_| InputRequestError::Gone)?;
                    answer.await.unwrap_or(Err(InputRequestError::Gone))
                }
            }
        };
        timeout(self.ask_timeout, answer).await.unwrap_or(Err(InputRequestError::TooLate))
    }

    /// True if the client declares the capability that the question needs.
    pub(super) fn accepts(&self, ask: &InputRequest) -> bool {
        ask.is_for(self.lock_latest().as_ref())
    }
}

impl Client for RequestClient {
    fn capabilities(&self) -> Option<&Json> {
        self.capabilities.as_ref()
    }

    fn listens(&self) -> bool {
        self.lock_sink().progress().is_some()
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.lock_sink().log_level()
    }

    fn calls_tools(&self) -> bool {
        true
    }

    fn expects_objects(&self) -> bool {
        self.expects_objects
    }

    fn takes_tasks(&self) -> bool {
        // Legacy clients do not know these tasks.
        !self.expects_objects && tasks::has_opted_in(self.capabilities())
    }

    fn notify(&self, notice: ClientNotification) {
        let mut sink = self.lock_sink();
        let is_url_completion = matches!(&notice, ClientNotification::Other { method, .. } if **method == *method::ELICIT_COMPLETE);
        match (&notice, &self.channel) {
            // The request is done, and the server continues to log for the same client.
            (ClientNotification::Log(body), AskChannel::OutboundRequests(peer))
                if sink.messages().is_none() =>
            {
                if is_severe_enough(&body.params, Some(peer.log_level())) {
                    peer.notify(message::notification_with(method::LOG, body));
                }
            }
            (_, channel) if is_url_completion && !channel.supports_url_completion() => {}
            // The user may take longer than the request that required the elicitation.
            (ClientNotification::Other { method, body }, AskChannel::OutboundRequests(peer))
                if is_url_completion && sink.messages().is_none() =>
            {
                peer.notify(message::notification_with(method, body));
            }
            _ => sink.notify(notice),
        }
    }

    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
        self.ask_in_time(ask).boxed()
    }

    fn asked_for(&self) -> Duration {
        let clock = self.lock_clock();
        clock.total + clock.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn session(&self) -> Option<Arc<dyn ClientSession>> {
        let peer = self.peer.clone()?;
        Some(Arc::new(LegacySessionClient::new(peer, self.ask_timeout)))
    }
}

/// Drops the notifications of a request at its end, unless the call is suspended: a backend may hold the client for
/// longer.
pub(in crate::server) struct ClientGuard(pub(in crate::server) Arc<RequestClient>);

impl Drop for ClientGuard {
    fn drop(&mut self) {
        if !self.0.lock_sink().is_paused() {
            self.0.detach();
        }
    }
}

/// Runs the clock while the client is asked.
struct AskGuard<'a>(&'a RequestClient);

impl<'a> AskGuard<'a> {
    fn begin(requester: &'a RequestClient) -> Self {
        let mut clock = requester.lock_clock();
        clock.open += 1;
        clock.since.get_or_insert_with(Instant::now);
        Self(requester)
    }
}

impl Drop for AskGuard<'_> {
    fn drop(&mut self) {
        let mut clock = self.0.lock_clock();
        clock.open = clock.open.saturating_sub(1);
        if clock.open == 0 {
            let since = clock.since.take();
            clock.total += since.map_or(Duration::ZERO, |since| since.elapsed());
        }
    }
}

#[cfg(test)]
mod tests;
