//! RabbitMQ, by AMQP 0-9-1.
//!
//! Topics are routing keys of one topic exchange. A group has a durable queue, whose dead letters go through the
//! dead-letter exchange to a queue with the suffix `.dlq`; a subscription alone has an exclusive queue. Envelopes are
//! properties and headers: `wire` and `properties` have the rules.
//!
//! Deliveries that failed are counted in a header. A classic queue counts none, and a quorum queue of one node with
//! RabbitMQ 3 may have no leader, and thereby no service, after the broker was killed.

mod link;
mod properties;
mod source;
mod topology;
mod transport;

use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use lapin::options::{BasicGetOptions, BasicPublishOptions};
use lapin::{Confirmation, ErrorKind};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};
use toolyard_manifest::{BrokerUrl, BusSettings};

use self::link::LinkKeeper;
use self::source::RabbitSource;
use self::topology::QueueNames;
use crate::bus::{BusError, BusErrorKind, DeadLetter, Deliveries, MessageBus, Subscription};
use crate::envelope::Envelope;
use crate::pump::{Backoff, Pump, SubscriptionTasks, opened, supervise};
use crate::topic::{Topic, TopicPattern};

/// A bus on RabbitMQ.
pub struct RabbitBus {
    shared: Arc<RabbitShared>,
    /// The keeper of the connection and the pumps of subscriptions.
    tasks: SubscriptionTasks,
}

/// The parts of the bus that its tasks use.
struct RabbitShared {
    settings: BusSettings,
    links: LinkKeeper,
    /// Places for messages without a confirmation.
    unconfirmed: Semaphore,
}

impl RabbitBus {
    /// Connects in the background.
    ///
    /// # Errors
    /// [`Invalid`](BusErrorKind::Invalid) if the URL is no AMQP URL.
    pub fn connect(url: &BrokerUrl, settings: &BusSettings) -> Result<Arc<Self>, BusError> {
        let (links, keeping) = LinkKeeper::new(url, settings)?;
        let tasks = SubscriptionTasks::default();
        tasks.spawn(keeping);
        let unconfirmed = Semaphore::new(settings.unconfirmed_messages);
        let shared = Arc::new(RabbitShared { settings: settings.clone(), links, unconfirmed });
        Ok(Arc::new(Self { shared, tasks }))
    }
}

impl RabbitShared {
    async fn send(&self, topic: &Topic, envelope: Envelope, needs_route: bool) -> Result<(), BusError> {
        envelope.check(self.settings.max_message_bytes)?;
        let deadline = Instant::now() + self.settings.publish_timeout;
        let _place = timeout_at(deadline, self.unconfirmed.acquire())
            .await
            .map_err(|_| BusError::full("messages without a confirmation"))?;
        let link = self.links.current_before(deadline).await?;
        let options = BasicPublishOptions { mandatory: needs_route, ..BasicPublishOptions::default() };
        let exchange = self.settings.exchange.as_str().into();
        let written = properties::written(&envelope);
        let key = topic.as_str().into();
        let confirmed = async {
            link.publisher.basic_publish(exchange, key, options, &envelope.body, written).await?.await
        };
        match timeout_at(deadline, confirmed).await {
            Ok(Ok(Confirmation::Ack(None))) => Ok(()),
            // The broker returns a message that no queue is bound for, and confirms it.
            Ok(Ok(Confirmation::Ack(Some(_)))) => Err(BusError::no_route(topic)),
            Ok(Ok(Confirmation::Nack(_))) => Err(BusError::full("messages in the queue")),
            Ok(Ok(Confirmation::NotRequested)) => Err(BusError::unconfirmed()),
            Ok(Err(error)) => {
                link.report_loss();
                Err(BusError::unconfirmed().caused_by(error))
            }
            Err(_late) => {
                link.report_loss();
                Err(BusError::unconfirmed())
            }
        }
    }

    async fn open(self: Arc<Self>, subscription: Subscription) -> Result<RabbitSource, BusError> {
        let deadline = Instant::now() + self.settings.publish_timeout;
        let link = self.links.current_before(deadline).await?;
        let opened = timeout_at(deadline, RabbitSource::open(link, &subscription, &self.settings)).await;
        opened.map_err(|_| BusError::unreachable())?
    }

    async fn dead_letters(&self, names: QueueNames, limit: usize) -> Result<Vec<DeadLetter>, BusError> {
        let deadline = Instant::now() + self.settings.publish_timeout;
        let link = self.links.current_before(deadline).await?;
        let reading = async {
            let channel = link.connection.create_channel().await?;
            let mut letters = Vec::new();
            while letters.len() < limit {
                let options = BasicGetOptions::default();
                match channel.basic_get(names.dead.as_str().into(), options).await? {
                    Some(message) => letters.push(properties::dead_letter(message.delivery)),
                    None => break,
                }
            }
            // Without an acknowledgement the messages return to the queue.
            channel.close(200, "read".into()).await?;
            Ok(letters)
        };
        match timeout_at(deadline, reading).await {
            Ok(Ok(letters)) => Ok(letters),
            Ok(Err(error)) if is_not_found(&error) => Ok(Vec::new()),
            Ok(Err(error)) => Err(classified(error)),
            Err(_late) => Err(BusError::unreachable()),
        }
    }
}

impl MessageBus for RabbitBus {
    fn publish<'a>(&'a self, topic: &'a Topic, envelope: Envelope) -> BoxFuture<'a, Result<(), BusError>> {
        self.shared.send(topic, envelope, true).boxed()
    }

    fn broadcast<'a>(&'a self, topic: &'a Topic, envelope: Envelope) -> BoxFuture<'a, Result<(), BusError>> {
        self.shared.send(topic, envelope, false).boxed()
    }

    fn subscribe(&self, subscription: Subscription) -> BoxFuture<'_, Result<Deliveries, BusError>> {
        let settings = &self.shared.settings;
        let (pump, deliveries) = Pump::new(subscription.prefetch.unwrap_or(settings.prefetch), None);
        let (ready, is_ready) = oneshot::channel();
        let shared = self.shared.clone();
        let open = move || shared.clone().open(subscription.clone());
        self.tasks.spawn(supervise(pump, open, Backoff::new(settings), ready));
        opened(deliveries, is_ready, Instant::now() + settings.publish_timeout).boxed()
    }

    fn dead_letters<'a>(
        &'a self,
        group: &'a str,
        pattern: &'a TopicPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, BusError>> {
        let names = QueueNames::of(&pattern.subscription_of(group), &self.shared.settings);
        self.shared.dead_letters(names, limit).boxed()
    }
}

impl fmt::Debug for RabbitBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitBus").finish_non_exhaustive()
    }
}

fn is_not_found(error: &lapin::Error) -> bool {
    matches!(error.kind(), ErrorKind::ProtocolError(error) if error.get_id() == 404)
}

/// Returns the error of an operation on a channel. An error of the protocol is a refusal: no permission, or a queue with
/// other settings. Its text names the object.
fn classified(error: lapin::Error) -> BusError {
    match error.kind() {
        ErrorKind::ProtocolError(amqp) if error.is_amqp_soft_error() => {
            let text = amqp.get_message().to_string();
            BusError::new(BusErrorKind::Refused, format!("RabbitMQ refuses: {text}")).caused_by(error)
        }
        _ => BusError::lost().caused_by(error),
    }
}
