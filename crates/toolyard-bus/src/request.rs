//! Requests with a reply on a private topic.

mod pending;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::pending::{OutgoingRequest, Sending};
pub use self::pending::{PendingRequest, Repetition};
use crate::agents::record::AgentTaskStatusUpdate;
use crate::bus::{BusError, Deliveries, Delivery, MessageBus, Subscription};
use crate::envelope::{Envelope, new_id};
use crate::message::{ToolLog, ToolProgress};
use crate::topic::Topic;

/// Maximum number of replies and notices of a request that its sender has not read. Further notices are dropped.
const UNREAD: usize = 64;

/// Sends requests, and receives their replies on a topic of its own. A reply is found by its `correlationId`.
#[derive(Debug)]
pub struct Requester {
    bus: Arc<dyn MessageBus>,
    topic: Topic,
    pending: Arc<PendingReplies>,
    unconfirmed: mpsc::UnboundedSender<Sending>,
    connections: watch::Receiver<u64>,
    _router: JoinSet<()>,
}

/// Senders of replies by correlation id.
#[derive(Debug)]
struct PendingReplies {
    senders: Mutex<HashMap<String, mpsc::Sender<Envelope>>>,
    limit: usize,
}

impl Requester {
    /// Subscribes to a new private topic. At most `limit` requests wait at a time.
    ///
    /// # Errors
    /// As for [`MessageBus::subscribe`].
    pub async fn start(bus: Arc<dyn MessageBus>, limit: usize) -> Result<Self, BusError> {
        let topic: Topic =
            format!("reply.{}", new_id()?).parse().map_err(|_| BusError::invalid("no topic for replies"))?;
        Self::on(bus, topic, limit).await
    }

    /// Subscribes to this topic. Others may receive the replies too, and drop them.
    ///
    /// # Errors
    /// As for [`MessageBus::subscribe`].
    pub async fn on(bus: Arc<dyn MessageBus>, topic: Topic, limit: usize) -> Result<Self, BusError> {
        Self::subscribed(bus, topic, None, limit).await
    }

    /// Subscribes to this topic of replies, and to one of notices about running requests.
    ///
    /// # Errors
    /// As for [`MessageBus::subscribe`].
    pub async fn with_notices(
        bus: Arc<dyn MessageBus>,
        topic: Topic,
        notices: Topic,
        limit: usize,
    ) -> Result<Self, BusError> {
        let notices = bus.subscribe(Subscription::alone(notices).prefetching(1000)).await?;
        Self::subscribed(bus, topic, Some(notices), limit).await
    }

    async fn subscribed(
        bus: Arc<dyn MessageBus>,
        topic: Topic,
        notices: Option<Deliveries>,
        limit: usize,
    ) -> Result<Self, BusError> {
        // Replies are acknowledged as they arrive, so that the limit is one of bursts.
        let subscription = Subscription::alone(topic.clone()).prefetching(1000);
        let deliveries = bus.subscribe(subscription).await?;
        let pending = Arc::new(PendingReplies { senders: Mutex::default(), limit });
        let connections = deliveries.connections.clone();
        let (unconfirmed, taken_over) = mpsc::unbounded_channel();
        let mut router = JoinSet::new();
        router.spawn(route(deliveries, pending.clone(), taken_over));
        if let Some(notices) = notices {
            router.spawn(route_notices(notices, pending.clone()));
        }
        Ok(Self { bus, topic, pending, unconfirmed, connections, _router: router })
    }

    /// Returns the topic of the replies.
    #[must_use]
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Returns a request that is sent once [`PendingRequest::next`] is polled, so that its reply need not wait for its
    /// confirmation. Its reply goes to the private topic; its correlation id is the one that it has, or a new one.
    ///
    /// # Errors
    /// [`Full`](crate::BusErrorKind::Full) if too many requests wait, and [`Invalid`](crate::BusErrorKind::Invalid) if one of
    /// this correlation id waits.
    pub fn begin(
        &self,
        topic: &Topic,
        envelope: Envelope,
        repetition: Repetition,
    ) -> Result<PendingRequest, BusError> {
        let id = match envelope.correlation_id.clone() {
            Some(id) => id,
            None => new_id()?,
        };
        let replies = self.pending.register(id.clone())?;
        let envelope = envelope.correlated(id.as_str()).replying_to(&self.topic);
        let outgoing = OutgoingRequest { bus: self.bus.clone(), topic: topic.clone(), envelope };
        Ok(PendingRequest::new(self, id, replies, outgoing, repetition))
    }

    /// Sends a request, and returns once the broker has confirmed it. A request without a confirmation counts as sent,
    /// because its reply may come.
    ///
    /// # Errors
    /// As for [`begin`](Self::begin) and [`MessageBus::publish`].
    pub async fn send(&self, topic: &Topic, envelope: Envelope) -> Result<PendingRequest, BusError> {
        self.begin(topic, envelope, Repetition::Never)?.confirmed().await
    }

    /// Sends a request and returns its reply.
    ///
    /// # Errors
    /// As for [`send`](Self::send), or [`Timeout`](crate::BusErrorKind::Timeout) after this time.
    pub async fn request(
        &self,
        topic: &Topic,
        envelope: Envelope,
        timeout: Duration,
    ) -> Result<Envelope, BusError> {
        self.begin(topic, envelope, Repetition::Never)?.reply_before(Instant::now() + timeout).await
    }
}

impl PendingReplies {
    fn register(&self, id: String) -> Result<mpsc::Receiver<Envelope>, BusError> {
        let mut senders = self.lock();
        if senders.len() >= self.limit {
            return Err(BusError::full("requests that wait for a reply"));
        }
        if senders.contains_key(&id) {
            return Err(BusError::invalid("a request with this correlation id waits for its reply"));
        }
        let (sender, replies) = mpsc::channel(UNREAD);
        senders.insert(id, sender);
        Ok(replies)
    }

    /// Passes a reply to the request that waits for it. A reply without one is dropped: its request has ended, or it is a
    /// second reply.
    fn pass(&self, delivery: Delivery) {
        let envelope = delivery.envelope.clone();
        delivery.finish();
        let id = envelope.correlation_id.as_deref().unwrap_or_default();
        let sender = if is_notice(&envelope) {
            self.lock().get(id).filter(|sender| sender.capacity() > 1).cloned()
        } else {
            self.lock().remove(id)
        };
        match sender {
            // The last place is kept for the reply.
            Some(sender) => drop(sender.try_send(Arc::unwrap_or_clone(envelope))),
            None => tracing::debug!(message_id = %envelope.message_id, "dropped a message without a request"),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, mpsc::Sender<Envelope>>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes replies to the requests that wait for them, and waits for confirmations that come after their replies.
async fn route(
    mut deliveries: Deliveries,
    pending: Arc<PendingReplies>,
    mut unconfirmed: mpsc::UnboundedReceiver<Sending>,
) {
    let mut confirming = FuturesUnordered::new();
    loop {
        tokio::select! {
            delivery = deliveries.next() => match delivery {
                Some(delivery) => pending.pass(delivery),
                None => return,
            },
            Some(sending) = unconfirmed.recv() => confirming.push(sending),
            // The reply has shown that the request was sent, whatever the broker says now.
            Some(_) = confirming.next() => {}
        }
    }
}

/// Passes notices to the requests that they are about.
async fn route_notices(mut deliveries: Deliveries, pending: Arc<PendingReplies>) {
    while let Some(delivery) = deliveries.next().await {
        match is_notice(&delivery.envelope) {
            true => pending.pass(delivery),
            // A reply is on the topic of replies.
            false => delivery.finish(),
        }
    }
}

/// Returns `true` for a message about a running call or task.
pub(crate) fn is_notice(envelope: &Envelope) -> bool {
    envelope.is::<ToolProgress>() || envelope.is::<ToolLog>() || envelope.is::<AgentTaskStatusUpdate>()
}
