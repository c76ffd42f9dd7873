//! The bus in the process: queues in memory, with the semantics of a broker.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::future::{BoxFuture, FutureExt, ready};
use tokio::sync::Notify;
use toolyard_manifest::BusSettings;

use crate::bus::{BusError, DeadLetter, Deliveries, MessageBus, Settlement, Subscription};
use crate::envelope::Envelope;
use crate::pump::{Incoming, MessageSource, Pump, Received, SubscriptionTasks};
use crate::topic::{Topic, TopicPattern};

/// A bus in memory. Its messages end with it.
pub struct InProcessBus {
    settings: BusSettings,
    queues: Mutex<Queues>,
    tasks: SubscriptionTasks,
}

#[derive(Default)]
struct Queues {
    /// By the name of the subscription.
    of_groups: BTreeMap<String, Arc<Queue>>,
    of_others: Vec<Weak<Queue>>,
}

/// The messages of a group, or of a subscription alone.
struct Queue {
    pattern: TopicPattern,
    is_of_group: bool,
    redeliveries: u32,
    dead_limit: usize,
    content: Mutex<QueueContent>,
    arrived: Notify,
}

#[derive(Default)]
struct QueueContent {
    waiting: VecDeque<WaitingMessage>,
    dead: VecDeque<DeadLetter>,
}

#[derive(Clone)]
struct WaitingMessage {
    topic: Topic,
    envelope: Envelope,
    attempt: u32,
}

// === impl InProcessBus ===

impl InProcessBus {
    /// Returns an empty bus with the limits of these settings.
    #[must_use]
    pub fn new(settings: &BusSettings) -> Arc<Self> {
        let (queues, tasks) = (Mutex::default(), SubscriptionTasks::default());
        Arc::new(Self { settings: settings.clone(), queues, tasks })
    }

    fn send(&self, topic: &Topic, envelope: &Envelope, needs_group: bool) -> Result<(), BusError> {
        envelope.check(self.settings.max_message_bytes)?;
        let mut queues = self.queues();
        let of_groups: Vec<_> =
            queues.of_groups.values().filter(|queue| queue.pattern.matches(topic)).cloned().collect();
        queues.of_others.retain(|queue| queue.strong_count() > 0);
        let of_others: Vec<_> = queues.of_others.iter().filter_map(Weak::upgrade).collect();
        if needs_group && of_groups.is_empty() {
            return Err(BusError::no_route(topic));
        }
        // A message that does not fit into one of the queues is in none. The lock is held until it is in all of them.
        if of_groups.iter().any(|queue| queue.content().waiting.len() >= self.settings.queued_messages) {
            return Err(BusError::full("messages in the queue"));
        }
        let of_others = of_others.into_iter().filter(|queue| queue.pattern.matches(topic));
        for queue in of_groups.into_iter().chain(of_others) {
            queue.push(topic, envelope, self.settings.queued_messages);
        }
        drop(queues);
        Ok(())
    }

    fn queue_of(&self, subscription: &Subscription) -> Arc<Queue> {
        let mut queues = self.queues();
        let new = |is_of_group| {
            Arc::new(Queue {
                pattern: subscription.pattern.clone(),
                is_of_group,
                redeliveries: self.settings.redeliveries,
                dead_limit: self.settings.dead_letters,
                content: Mutex::default(),
                arrived: Notify::new(),
            })
        };
        match subscription.name() {
            Some(name) => queues.of_groups.entry(name).or_insert_with(|| new(true)).clone(),
            None => {
                let queue = new(false);
                queues.of_others.push(Arc::downgrade(&queue));
                queue
            }
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MessageBus for InProcessBus {
    fn publish<'a>(&'a self, topic: &'a Topic, envelope: Envelope) -> BoxFuture<'a, Result<(), BusError>> {
        ready(self.send(topic, &envelope, true)).boxed()
    }

    fn broadcast<'a>(&'a self, topic: &'a Topic, envelope: Envelope) -> BoxFuture<'a, Result<(), BusError>> {
        ready(self.send(topic, &envelope, false)).boxed()
    }

    fn subscribe(&self, subscription: Subscription) -> BoxFuture<'_, Result<Deliveries, BusError>> {
        let queue = self.queue_of(&subscription);
        let prefetch = subscription.prefetch.unwrap_or(self.settings.prefetch);
        let (mut pump, deliveries) = Pump::new(prefetch, None);
        self.tasks.spawn(async move {
            pump.run(QueueSource(queue)).await;
        });
        ready(Ok(deliveries)).boxed()
    }

    fn dead_letters<'a>(
        &'a self,
        group: &'a str,
        pattern: &'a TopicPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, BusError>> {
        let queue = self.queues().of_groups.get(&pattern.subscription_of(group)).cloned();
        let dead = queue.map(|queue| queue.content().dead.iter().take(limit).cloned().collect());
        ready(Ok(dead.unwrap_or_default())).boxed()
    }
}

impl fmt::Debug for InProcessBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessBus").finish_non_exhaustive()
    }
}

// === impl Queue ===

impl Queue {
    /// Adds a message. A subscription alone that is too slow loses its oldest message.
    fn push(&self, topic: &Topic, envelope: &Envelope, limit: usize) {
        let mut content = self.content();
        if content.waiting.len() >= limit && !self.is_of_group {
            content.waiting.pop_front();
            tracing::debug!(pattern = %self.pattern, "a slow subscription lost a message");
        }
        let (topic, envelope) = (topic.clone(), envelope.clone());
        content.waiting.push_back(WaitingMessage { topic, envelope, attempt: 1 });
        drop(content);
        self.arrived.notify_one();
    }

    fn settle(&self, message: WaitingMessage, settlement: Settlement) {
        match settlement {
            Settlement::Ack | Settlement::AckUnconfirmed => {}
            // A subscription alone gets each message at most once.
            Settlement::Retry if self.is_of_group && message.attempt <= self.redeliveries => {
                let attempt = message.attempt + 1;
                // It has left the queue a moment ago, so that this exceeds the limit by the prefetched messages at most.
                self.content().waiting.push_front(WaitingMessage { attempt, ..message });
                self.arrived.notify_one();
            }
            Settlement::Retry => self.bury(message, format!("redelivered {} times", self.redeliveries)),
            Settlement::DeadLetter(reason) => self.bury(message, reason),
        }
    }

    fn bury(&self, message: WaitingMessage, reason: String) {
        let WaitingMessage { topic, envelope, attempt } = message;
        tracing::warn!(%topic, message_id = %envelope.message_id, reason, "a message is a dead letter");
        if !self.is_of_group {
            return;
        }
        let mut content = self.content();
        if content.dead.len() >= self.dead_limit {
            content.dead.pop_front();
        }
        let (topic, attempts) = (topic.to_string(), Some(attempt));
        content.dead.push_back(DeadLetter { topic, envelope, reason, attempts });
    }

    fn content(&self) -> MutexGuard<'_, QueueContent> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A queue as the source of a subscription.
struct QueueSource(Arc<Queue>);

impl MessageSource for QueueSource {
    type Token = Arc<WaitingMessage>;

    async fn next(&mut self, _free: usize) -> Option<Incoming<Self::Token>> {
        loop {
            let arrived = self.0.arrived.notified();
            let waiting = self.0.content().waiting.pop_front();
            if let Some(message) = waiting {
                let WaitingMessage { topic, envelope, attempt } = message.clone();
                let token = Arc::new(message);
                return Some(Incoming::Message(Box::new(Received { topic, envelope, attempt, token })));
            }
            arrived.await;
        }
    }

    fn settle(&self, token: Self::Token, settlement: Settlement) -> BoxFuture<'static, Result<(), BusError>> {
        self.0.settle(WaitingMessage::clone(&token), settlement);
        ready(Ok(())).boxed()
    }

    async fn stop(&mut self) {}
}
