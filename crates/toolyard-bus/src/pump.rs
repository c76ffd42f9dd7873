//! The task of a subscription: takes messages of a broker while few enough are unacknowledged, and passes settlements
//! back. It is the same for all brokers.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};
use toolyard_manifest::BusSettings;

use crate::bus::{
    BusError, BusErrorKind, Deliveries, Delivery, MessageBus, SettleRequest, Settlement, Settler,
    Subscription,
};
use crate::envelope::Envelope;
use crate::topic::Topic;

/// A message of a broker, or one that no receiver can be given.
pub(crate) enum Incoming<Token> {
    Message(Box<Received<Token>>),
    /// Becomes a dead letter, for this reason.
    Dead(Token, String),
}

/// A message of a broker.
pub(crate) struct Received<Token> {
    pub(crate) topic: Topic,
    pub(crate) envelope: Envelope,
    pub(crate) attempt: u32,
    /// Names the delivery for the broker.
    pub(crate) token: Token,
}

/// A broker's side of a subscription, while its connection lasts.
pub(crate) trait MessageSource: Send {
    /// Names a delivery for the broker.
    type Token: Clone + Send + Sync + 'static;

    /// Returns the next message, of at most `free` that the receiver can take; `None` once the connection is lost.
    /// Dropping the future loses no message.
    fn next(&mut self, free: usize) -> impl Future<Output = Option<Incoming<Self::Token>>> + Send;

    /// Settles a delivery.
    fn settle(&self, token: Self::Token, settlement: Settlement) -> BoxFuture<'static, Result<(), BusError>>;

    /// Tells the broker that these deliveries are being worked on.
    fn keep_alive(&self, tokens: Vec<Self::Token>) -> BoxFuture<'static, ()> {
        drop(tokens);
        Box::pin(async {})
    }

    /// Asks the broker for no further messages.
    fn stop(&mut self) -> impl Future<Output = ()> + Send;
}

/// The subscription's side towards its receiver, which survives connections.
pub(crate) struct Pump {
    deliveries: mpsc::Sender<Delivery>,
    requests: (mpsc::UnboundedSender<SettleRequest>, mpsc::UnboundedReceiver<SettleRequest>),
    next_id: u64,
    prefetch: usize,
    keep_alive: Option<Duration>,
    /// Number of the connection, an odd one while there is one.
    connections: watch::Sender<u64>,
}

/// The reason why a pump has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PumpEnd {
    /// The connection was lost.
    Lost,
    /// The receiver has dropped its end, and its deliveries are settled.
    Closed,
}

impl Pump {
    /// Returns a pump and its deliveries. `keep_alive` is the interval of [`MessageSource::keep_alive`].
    pub(crate) fn new(prefetch: usize, keep_alive: Option<Duration>) -> (Self, Deliveries) {
        // As many deliveries are in the channel as are unacknowledged, so that sending never waits.
        let (deliveries, receiver) = mpsc::channel(prefetch);
        let (requests, connections) = (mpsc::unbounded_channel(), watch::Sender::new(1));
        let received = Deliveries { deliveries: receiver, connections: connections.subscribe() };
        (Self { deliveries, requests, next_id: 0, prefetch, keep_alive, connections }, received)
    }

    /// Returns `true` if the receiver is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.deliveries.is_closed()
    }

    /// Waits until the receiver is gone.
    pub(crate) async fn closed(&self) {
        self.deliveries.closed().await;
    }

    /// Runs until the connection is lost or the receiver is gone.
    pub(crate) async fn run<S: MessageSource>(&mut self, mut source: S) -> PumpEnd {
        let mut open = HashMap::<u64, S::Token>::new();
        let mut settling = FuturesUnordered::new();
        let mut keep_alive = self.keep_alive.map(|period| {
            let mut ticks = interval(period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        let mut is_stopped = false;
        loop {
            if self.is_closed() {
                if !is_stopped {
                    source.stop().await;
                    is_stopped = true;
                }
                if open.is_empty() && settling.is_empty() {
                    return PumpEnd::Closed;
                }
            }
            let free = self.prefetch.saturating_sub(open.len());
            tokio::select! {
                // Settlements first: they make room, and a stream of messages must not keep them waiting.
                biased;
                Some((done, settled)) = settling.next() => tell(done, settled),
                Some(request) = self.requests.1.recv() => {
                    let SettleRequest { id, settlement, done } = request;
                    match open.remove(&id) {
                        Some(token) => {
                            let settled = source.settle(token, settlement);
                            settling.push(async move { (done, settled.await) }.boxed());
                        }
                        // A delivery of an earlier connection, which the broker delivers again.
                        None => tell(done, Err(BusError::lost())),
                    }
                }
                () = tick(&mut keep_alive) => {
                    let tokens: Vec<_> = open.values().cloned().collect();
                    if !tokens.is_empty() {
                        source.keep_alive(tokens).await;
                    }
                }
                () = self.deliveries.closed(), if !is_stopped => {}
                incoming = source.next(free), if !is_stopped && free > 0 => match incoming {
                    Some(Incoming::Message(received)) => self.deliver(*received, &mut open),
                    Some(Incoming::Dead(token, reason)) => {
                        let settled = source.settle(token, Settlement::DeadLetter(reason));
                        settling.push(async move { (None, settled.await) }.boxed());
                    }
                    None => return PumpEnd::Lost,
                },
            }
        }
    }

    fn deliver<Token>(&mut self, received: Received<Token>, open: &mut HashMap<u64, Token>) {
        let Received { topic, envelope, attempt, token } = received;
        self.next_id += 1;
        let settler = Settler { id: self.next_id, requests: self.requests.0.clone() };
        open.insert(self.next_id, token);
        // On failure the delivery is dropped, and thereby returned to its queue.
        drop(self.deliveries.try_send(Delivery::new(topic, envelope, attempt, settler)));
    }
}

async fn tick(ticks: &mut Option<tokio::time::Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => pending().await,
    }
}

/// Tells the delivery how its settlement ended.
fn tell(done: Option<oneshot::Sender<Result<(), BusError>>>, settled: Result<(), BusError>) {
    match done {
        // The delivery's future may have been dropped.
        Some(done) => drop(done.send(settled)),
        None => {
            if let Err(error) = settled {
                tracing::debug!(error = &error as &dyn std::error::Error, "cannot settle a message");
            }
        }
    }
}

// === connections ===

/// Time between attempts to connect, which doubles with each.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(settings: &BusSettings) -> Self {
        let (first, most) = (settings.reconnect_delay, settings.max_reconnect_delay);
        Self { first, most, next: first }
    }

    /// Returns the time until the next attempt.
    pub(crate) fn next(&mut self) -> Duration {
        let next = self.next.min(self.most);
        self.next = next.saturating_mul(2);
        next
    }

    /// Begins again after a success.
    pub(crate) const fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Subscribes, and tries again while the broker cannot be reached.
///
/// # Errors
/// If the broker refuses the subscription.
pub(crate) async fn subscribe_when_reachable(
    bus: &dyn MessageBus,
    subscription: &Subscription,
    backoff: &mut Backoff,
) -> Result<Deliveries, BusError> {
    loop {
        match bus.subscribe(subscription.clone()).await {
            Err(error) if error.kind() == BusErrorKind::Unavailable => sleep(backoff.next()).await,
            subscribed => {
                backoff.reset();
                return subscribed;
            }
        }
    }
}

/// The tasks of a bus, one for each subscription. Dropping them ends the subscriptions.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionTasks(Mutex<JoinSet<()>>);

impl SubscriptionTasks {
    /// Starts a task.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

/// Waits until [`supervise`] has opened a subscription for the first time.
///
/// # Errors
/// [`Unavailable`](BusErrorKind::Unavailable) after the deadline, or the reason of the broker to refuse it.
pub(crate) async fn opened(
    deliveries: Deliveries,
    is_ready: oneshot::Receiver<Result<(), BusError>>,
    deadline: Instant,
) -> Result<Deliveries, BusError> {
    match timeout_at(deadline, is_ready).await {
        Ok(Ok(opened)) => opened.map(|()| deliveries),
        Ok(Err(_)) | Err(_) => Err(BusError::unreachable()),
    }
}

/// Opens a source for the pump after each loss of the connection, until the receiver is gone. `ready` receives the first
/// success, or a refusal that no further attempt would change.
pub(crate) async fn supervise<S, Opening>(
    mut pump: Pump,
    mut open: impl FnMut() -> Opening,
    mut backoff: Backoff,
    ready: oneshot::Sender<Result<(), BusError>>,
) where
    S: MessageSource,
    Opening: Future<Output = Result<S, BusError>>,
{
    let mut ready = Some(ready);
    loop {
        let opened = tokio::select! {
            opened = open() => opened,
            () = pump.closed() => return,
        };
        match opened {
            Ok(source) => {
                backoff.reset();
                // The subscriber may have stopped waiting.
                match ready.take() {
                    Some(ready) => drop(ready.send(Ok(()))),
                    None => pump.connections.send_modify(|number| *number += 2),
                }
                if pump.run(source).await == PumpEnd::Closed {
                    return;
                }
                tracing::info!("a subscription lost its connection and will be made again");
            }
            Err(error) if matches!(error.kind(), BusErrorKind::Refused | BusErrorKind::Invalid) => {
                match ready.take() {
                    Some(ready) => return drop(ready.send(Err(error))),
                    None => tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the broker refuses a subscription that it had"
                    ),
                }
            }
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "cannot subscribe; trying again");
            }
        }
        let delay = backoff.next();
        tokio::select! {
            () = sleep(delay) => {}
            () = pump.closed() => return,
        }
    }
}
