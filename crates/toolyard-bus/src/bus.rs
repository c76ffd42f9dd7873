//! The bus: publishing, subscriptions, and the acknowledgement of deliveries.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use toolyard_core::{ErrorCode, ToolError};

use crate::envelope::Envelope;
use crate::stored_results::StoredResults;
use crate::topic::{Topic, TopicPattern};

/// A message bus.
///
/// A message for a group waits in the group's queue until a member acknowledges it: at least once, after crashes of
/// members and of the broker too. A message for a subscription without a group reaches it if it is connected, at most
/// once.
pub trait MessageBus: Send + Sync + fmt::Debug {
    /// Publishes a message for a group, and returns once the broker has stored it.
    ///
    /// # Errors
    /// [`NoRoute`](BusErrorKind::NoRoute) if no group has ever subscribed to the topic, [`Full`](BusErrorKind::Full),
    /// [`TooLarge`](BusErrorKind::TooLarge), and [`Unavailable`](BusErrorKind::Unavailable) if the broker cannot be
    /// reached. After [`Unconfirmed`](BusErrorKind::Unconfirmed) the message may have been stored: the caller must not
    /// send it again unless it may arrive twice.
    fn publish<'a>(&'a self, topic: &'a Topic, envelope: Envelope) -> BoxFuture<'a, Result<(), BusError>>;

    /// Sends a message to all current subscriptions, of which there may be none. Groups get it as well. RabbitMQ has
    /// confirmed it on return; to NATS it has been sent.
    ///
    /// # Errors
    /// As for [`publish`](Self::publish), without [`NoRoute`](BusErrorKind::NoRoute).
    fn broadcast<'a>(&'a self, topic: &'a Topic, envelope: Envelope) -> BoxFuture<'a, Result<(), BusError>>;

    /// Subscribes to topics. The subscription continues after the connection was lost, until [`Deliveries`] is dropped.
    /// Returns once it is made, so that later messages reach it.
    ///
    /// # Errors
    /// [`Unavailable`](BusErrorKind::Unavailable) if the broker cannot be reached within the time limit, and
    /// [`Refused`](BusErrorKind::Refused) if it refuses the subscription.
    fn subscribe(&self, subscription: Subscription) -> BoxFuture<'_, Result<Deliveries, BusError>>;

    /// Returns the oldest dead letters of a group's subscription, without removing them.
    ///
    /// # Errors
    /// As for [`subscribe`](Self::subscribe). A group that never subscribed has no dead letters.
    fn dead_letters<'a>(
        &'a self,
        group: &'a str,
        pattern: &'a TopicPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, BusError>>;

    /// Returns the store of results above the limit of messages; `None` if they are errors.
    fn stored_results(&self) -> Option<&StoredResults> {
        None
    }
}

/// A subscription to topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The topics.
    pub pattern: TopicPattern,
    /// Name of the group, whose members share the messages. `None`: the subscription gets every message that arrives
    /// while it lasts.
    pub group: Option<String>,
    /// Maximum number of deliveries that are not acknowledged. `None`: that of the settings.
    pub prefetch: Option<usize>,
}

impl Subscription {
    /// Returns a subscription of a group.
    #[must_use]
    pub fn of_group(group: &str, pattern: impl Into<TopicPattern>) -> Self {
        Self { pattern: pattern.into(), group: Some(group.to_owned()), prefetch: None }
    }

    /// Returns a subscription to every message.
    #[must_use]
    pub fn alone(pattern: impl Into<TopicPattern>) -> Self {
        Self { pattern: pattern.into(), group: None, prefetch: None }
    }

    /// Sets the maximum number of deliveries that are not acknowledged.
    #[must_use]
    pub fn prefetching(self, deliveries: usize) -> Self {
        Self { prefetch: Some(deliveries), ..self }
    }

    /// Returns the name of the queue's subscription.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.group.as_deref().map(|group| self.pattern.subscription_of(group))
    }
}

/// The messages of a subscription. Dropping it ends the subscription; deliveries that were received can still be
/// acknowledged.
#[derive(Debug)]
pub struct Deliveries {
    pub(crate) deliveries: mpsc::Receiver<Delivery>,
    /// Number of the connection, an odd one while there is one: messages between two may be lost.
    pub(crate) connections: watch::Receiver<u64>,
}

impl Deliveries {
    /// Returns the next message; `None` if the bus has ended.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.deliveries.recv().await
    }

    /// Polls for the next message.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.deliveries.poll_recv(context)
    }
}

/// A delivered message. One that is dropped without an acknowledgement is returned to its queue, as by
/// [`retry`](Self::retry). Only groups have queues: without a group, every settlement ends the message.
#[derive(Debug)]
pub struct Delivery {
    /// Topic of the message.
    pub topic: Topic,
    /// The message.
    pub envelope: Arc<Envelope>,
    /// Number of this delivery: 1 for the first. Above 1 an earlier delivery may have been worked on.
    pub attempt: u32,
    settler: Option<Settler>,
}

/// Connects a delivery with its subscription.
#[derive(Debug)]
pub(crate) struct Settler {
    pub(crate) id: u64,
    /// Unbounded, because each delivery sends once, and their number is bounded.
    pub(crate) requests: mpsc::UnboundedSender<SettleRequest>,
}

/// The end of a delivery.
#[derive(Debug)]
pub(crate) struct SettleRequest {
    pub(crate) id: u64,
    pub(crate) settlement: Settlement,
    /// Waits for the broker, unless the delivery was dropped.
    pub(crate) done: Option<oneshot::Sender<Result<(), BusError>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// The message is done, and the broker confirms it where it can.
    Ack,
    /// The message is done. If the broker does not hear of it, the message is delivered again.
    AckUnconfirmed,
    /// The message is delivered again, or is a dead letter after the last time.
    Retry,
    /// The message is a dead letter, for this reason.
    DeadLetter(String),
}

impl Delivery {
    pub(crate) fn new(topic: Topic, envelope: Envelope, attempt: u32, settler: Settler) -> Self {
        Self { topic, envelope: Arc::new(envelope), attempt, settler: Some(settler) }
    }

    /// Acknowledges the message. On success the broker does not deliver it again, as far as the broker confirms that.
    ///
    /// # Errors
    /// [`Unavailable`](BusErrorKind::Unavailable) if the connection was lost: the message may be delivered again.
    pub async fn ack(self) -> Result<(), BusError> {
        self.settle(Settlement::Ack).await
    }

    /// Acknowledges the message without a confirmation of the broker, for work that may be repeated: after a loss of the
    /// connection the message may be delivered again.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    pub async fn ack_unconfirmed(self) -> Result<(), BusError> {
        self.settle(Settlement::AckUnconfirmed).await
    }

    /// Returns the message to its queue, for any member of the group. After the last redelivery it is a dead letter.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    pub async fn retry(self) -> Result<(), BusError> {
        self.settle(Settlement::Retry).await
    }

    /// Makes the message a dead letter. The reason is kept with it, and must not contain its content.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    pub async fn dead_letter(self, reason: impl Into<String>) -> Result<(), BusError> {
        self.settle(Settlement::DeadLetter(reason.into())).await
    }

    /// Acknowledges the message without waiting for the broker: for a subscription without a group, whose messages end in
    /// any case.
    pub(crate) fn finish(mut self) {
        if let Some(Settler { id, requests }) = self.settler.take() {
            drop(requests.send(SettleRequest { id, settlement: Settlement::AckUnconfirmed, done: None }));
        }
    }

    async fn settle(mut self, settlement: Settlement) -> Result<(), BusError> {
        let Some(Settler { id, requests }) = self.settler.take() else { return Ok(()) };
        let (done, settled) = oneshot::channel();
        requests.send(SettleRequest { id, settlement, done: Some(done) }).map_err(|_| BusError::closed())?;
        settled.await.unwrap_or_else(|_| Err(BusError::closed()))
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(Settler { id, requests }) = self.settler.take() {
            let request = SettleRequest { id, settlement: Settlement::Retry, done: None };
            // Without its subscription the broker delivers the message again by itself.
            drop(requests.send(request));
        }
    }
}

/// A message that was not worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Topic of the message.
    pub topic: String,
    /// The message.
    pub envelope: Envelope,
    /// Reason, such as `redelivered 3 times`.
    pub reason: String,
    /// Number of deliveries, if it is known.
    pub attempts: Option<u32>,
}

/// The kind of an error of the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusErrorKind {
    /// The broker cannot be reached, or the connection was lost. The message was not stored.
    Unavailable,
    /// The connection was lost, or the time ended, before the broker confirmed the message. It may have been stored.
    Unconfirmed,
    /// No group has subscribed to the topic.
    NoRoute,
    /// A queue or a buffer is full.
    Full,
    /// The message exceeds the limit of its size.
    TooLarge,
    /// No reply within the time limit.
    Timeout,
    /// The settings or the message are invalid.
    Invalid,
    /// The broker refuses the operation, such as for lack of permission.
    Refused,
}

/// An error of the bus. Its message never contains the content of a message or a credential.
#[derive(Debug)]
pub struct BusError {
    kind: BusErrorKind,
    message: Cow<'static, str>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

// === impl BusError ===

impl BusError {
    /// Creates an error.
    pub fn new(kind: BusErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Creates an error of the kind [`Invalid`](BusErrorKind::Invalid).
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(BusErrorKind::Invalid, message)
    }

    pub(crate) fn unavailable(
        message: impl Into<Cow<'static, str>>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::new(BusErrorKind::Unavailable, message).caused_by(source)
    }

    pub(crate) fn too_large(bytes: usize, limit: usize) -> Self {
        Self::new(
            BusErrorKind::TooLarge,
            format!("the message has {bytes} bytes, more than the limit of {limit}"),
        )
    }

    pub(crate) fn full(what: &'static str) -> Self {
        Self::new(BusErrorKind::Full, format!("{what}: the limit is reached"))
    }

    pub(crate) fn no_route(topic: &Topic) -> Self {
        Self::new(BusErrorKind::NoRoute, format!("no group has subscribed to {topic}"))
    }

    pub(crate) fn closed() -> Self {
        Self::new(BusErrorKind::Unavailable, "the subscription has ended")
    }

    pub(crate) fn lost() -> Self {
        Self::new(BusErrorKind::Unavailable, "the connection to the broker was lost")
    }

    /// The broker cannot be reached.
    pub(crate) fn unreachable() -> Self {
        Self::new(BusErrorKind::Unavailable, "the broker cannot be reached")
    }

    /// The message may have been stored.
    pub(crate) fn unconfirmed() -> Self {
        Self::new(BusErrorKind::Unconfirmed, "the broker has not confirmed the message")
    }

    pub(crate) fn caused_by(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> BusErrorKind {
        self.kind
    }
}

impl fmt::Display for BusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for BusError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

/// The error of a call that the bus did not carry. Only an error that excludes an execution is retryable.
impl From<BusError> for ToolError {
    fn from(error: BusError) -> Self {
        let code = match error.kind {
            BusErrorKind::Unavailable | BusErrorKind::NoRoute => ErrorCode::Unavailable,
            BusErrorKind::Full => ErrorCode::Overloaded,
            BusErrorKind::Timeout => ErrorCode::Timeout,
            BusErrorKind::TooLarge | BusErrorKind::Invalid => ErrorCode::InvalidArguments,
            BusErrorKind::Unconfirmed | BusErrorKind::Refused => ErrorCode::ExecutionFailed,
        };
        let message = error.message.clone();
        Self::new(code, message).caused_by(error)
    }
}
