//! A consumer as the source of a subscription.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicPublishOptions,
    BasicQosOptions, BasicRejectOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{Acker, BasicProperties, Channel, Confirmation, Consumer};
use tokio::time::sleep;
use toolyard_manifest::BusSettings;

use super::link::Link;
use super::properties::Attempt;
use super::{classified, properties, topology};
use crate::bus::{BusError, Settlement, Subscription};
use crate::pump::{Incoming, MessageSource, Received};
use crate::topic::{Topic, TopicPattern};

/// Time after which a message that its queue has no room for is delivered again.
const FULL_QUEUE_DELAY: Duration = Duration::from_millis(100);

/// A consumer on its own channel.
pub(super) struct RabbitSource {
    link: Arc<Link>,
    channel: Channel,
    consumer: Consumer,
    /// A message that is counted before it is delivered: its consumer may have died of it.
    uncounted: Option<Uncounted>,
    queue: ShortString,
    pattern: TopicPattern,
    is_of_group: bool,
    redeliveries: u32,
    dead_exchange: String,
    max_bytes: usize,
}

/// A message that was delivered before, and the operation that counts this.
struct Uncounted {
    received: Box<Received<Arc<RabbitDelivery>>>,
    /// Ends with `true` if a message with the count has taken its place in the queue.
    counting: BoxFuture<'static, bool>,
}

/// A delivery that can be acknowledged, or published as a dead letter.
pub(super) struct RabbitDelivery {
    acker: Acker,
    topic: String,
    properties: BasicProperties,
    body: Bytes,
    attempt: u32,
}

impl RabbitSource {
    /// Declares the queue and starts to consume it.
    pub(super) async fn open(
        link: Arc<Link>,
        subscription: &Subscription,
        settings: &BusSettings,
    ) -> Result<Self, BusError> {
        let channel = link.connection.create_channel().await.map_err(classified)?;
        let prefetch = subscription.prefetch.unwrap_or(settings.prefetch);
        let prefetch = u16::try_from(prefetch).unwrap_or(u16::MAX);
        channel.basic_qos(prefetch, BasicQosOptions::default()).await.map_err(classified)?;
        let queue = topology::declare_queue(&channel, subscription, settings).await?;
        let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
        let consumer = channel.basic_consume(queue.clone(), "".into(), options, arguments);
        let consumer = consumer.await.map_err(classified)?;
        Ok(Self {
            link,
            channel,
            consumer,
            uncounted: None,
            queue,
            pattern: subscription.pattern.clone(),
            is_of_group: subscription.group.is_some(),
            redeliveries: settings.redeliveries,
            dead_exchange: topology::dead_exchange(settings),
            max_bytes: settings.max_message_bytes,
        })
    }

    /// Returns a delivery for the pump. `None` if it is counted first.
    fn received(&mut self, delivery: Delivery) -> Option<Incoming<Arc<RabbitDelivery>>> {
        let Delivery { routing_key, redelivered, properties, data, acker, .. } = delivery;
        let (topic, body) = (self.topic(&properties, &routing_key), Bytes::from(data));
        let Attempt { number: attempt, is_counted } = Attempt::of(&properties, redelivered);
        let envelope = properties::read(&properties, body.clone());
        let size = envelope.size();
        let token = Arc::new(RabbitDelivery { acker, topic, properties, body, attempt });
        let Ok(topic) = token.topic.parse() else {
            return Some(Incoming::Dead(token, "the routing key is no topic".to_owned()));
        };
        if size > self.max_bytes {
            let reason = format!("{size} bytes, more than the limit of {}", self.max_bytes);
            return Some(Incoming::Dead(token, reason));
        }
        if self.is_of_group && attempt.saturating_sub(1) > self.redeliveries {
            return Some(Incoming::Dead(token, self.redelivered_too_often()));
        }
        let received = Box::new(Received { topic, envelope, attempt, token });
        if self.is_of_group && !is_counted {
            let counting = self.count(received.token.clone());
            self.uncounted = Some(Uncounted { received, counting });
            return None;
        }
        Some(Incoming::Message(received))
    }

    /// Replaces a message in its queue by one with the number of its failed deliveries. Returns `false` if that failed.
    fn count(&self, token: Arc<RabbitDelivery>) -> BoxFuture<'static, bool> {
        let failed = token.attempt.saturating_sub(1);
        let publication = self.retry(&token, failed);
        async move { publication.publish(&token.body).await && token.ack().await.is_ok() }.boxed()
    }

    /// Returns the publication that returns a message to its queue.
    fn retry(&self, token: &RabbitDelivery, failed: u32) -> Publication {
        let properties = properties::returned(&token.properties, &token.topic, failed);
        self.publication(topology::retry_key(self.queue.as_str()), properties)
    }

    fn redelivered_too_often(&self) -> String {
        format!("redelivered {} times", self.redeliveries)
    }

    /// Returns the topic: the routing key, or a header of a message that was returned to this queue. The header of a
    /// stranger names no topic that the subscription does not have.
    fn topic(&self, properties: &BasicProperties, routing_key: &ShortString) -> String {
        let key = routing_key.to_string();
        if key != topology::retry_key(self.queue.as_str()) {
            return key;
        }
        let returned = properties::retry_topic(properties);
        let is_subscribed =
            |topic: &String| topic.parse().is_ok_and(|topic: Topic| self.pattern.matches(&topic));
        returned.filter(is_subscribed).unwrap_or(key)
    }

    /// Returns an operation that publishes the message of a delivery again.
    fn publication(&self, key: String, properties: BasicProperties) -> Publication {
        Publication { link: self.link.clone(), exchange: self.dead_exchange.clone(), key, properties }
    }
}

impl MessageSource for RabbitSource {
    type Token = Arc<RabbitDelivery>;

    async fn next(&mut self, _free: usize) -> Option<Incoming<Self::Token>> {
        loop {
            if let Some(Uncounted { counting, .. }) = &mut self.uncounted {
                let is_counted = counting.await;
                let Uncounted { received, .. } = self.uncounted.take()?;
                if !is_counted {
                    // The queue is full, and waits for its consumers, or the connection is lost.
                    return Some(Incoming::Message(received));
                }
            }
            match self.consumer.next().await? {
                Ok(delivery) => {
                    if let Some(incoming) = self.received(delivery) {
                        return Some(incoming);
                    }
                }
                Err(error) => {
                    tracing::debug!(error = &error as &dyn std::error::Error, "a consumer has ended");
                    return None;
                }
            }
        }
    }

    fn settle(&self, token: Self::Token, settlement: Settlement) -> BoxFuture<'static, Result<(), BusError>> {
        // Without a group every settlement ends the message.
        let settlement = if self.is_of_group { settlement } else { Settlement::Ack };
        let reason = match settlement {
            // RabbitMQ confirms no acknowledgement.
            Settlement::Ack | Settlement::AckUnconfirmed => return async move { token.ack().await }.boxed(),
            Settlement::Retry if token.attempt <= self.redeliveries => {
                let publication = self.retry(&token, token.attempt);
                return async move { token.put_back(publication).await }.boxed();
            }
            Settlement::Retry => self.redelivered_too_often(),
            Settlement::DeadLetter(reason) => reason,
        };
        let message_id = token.properties.message_id().clone().unwrap_or_default();
        tracing::warn!(topic = token.topic, %message_id, reason, "a message is a dead letter");
        let properties = properties::dead(&token.properties, &token.topic, &reason, token.attempt);
        let publication = self.publication(self.queue.to_string(), properties);
        async move { token.bury(publication).await }.boxed()
    }

    async fn stop(&mut self) {
        let cancelled = self.channel.basic_cancel(self.consumer.tag(), BasicCancelOptions::default());
        // A connection that is lost has no consumer.
        drop(cancelled.await);
    }
}

impl RabbitDelivery {
    async fn ack(&self) -> Result<(), BusError> {
        settled(self.acker.ack(BasicAckOptions::default()).await)
    }

    /// Publishes the message to the end of its queue, with the number of failed deliveries, and acknowledges it then: after
    /// a crash in between it is there twice, and never lost.
    async fn put_back(&self, publication: Publication) -> Result<(), BusError> {
        if publication.publish(&self.body).await {
            return self.ack().await;
        }
        sleep(FULL_QUEUE_DELAY).await;
        settled(self.acker.nack(BasicNackOptions { requeue: true, ..BasicNackOptions::default() }).await)
    }

    /// Publishes the message as a dead letter, and acknowledges it then, likewise.
    async fn bury(&self, publication: Publication) -> Result<(), BusError> {
        if publication.publish(&self.body).await {
            return self.ack().await;
        }
        // The broker moves it by itself, without the reason.
        settled(self.acker.reject(BasicRejectOptions { requeue: false }).await)
    }
}

/// A message that is published again.
struct Publication {
    link: Arc<Link>,
    exchange: String,
    key: String,
    properties: BasicProperties,
}

impl Publication {
    /// Publishes the message. Returns `true` if a queue has it.
    async fn publish(self, body: &[u8]) -> bool {
        let Self { link, exchange, key, properties } = self;
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let published = async {
            link.publisher.basic_publish(exchange.into(), key.into(), options, body, properties).await?.await
        };
        // The broker returns a message that no queue is bound for, and confirms it.
        matches!(published.await, Ok(Confirmation::Ack(None)))
    }
}

/// `false` means that the channel is gone, and with it the delivery.
fn settled(settled: lapin::Result<bool>) -> Result<(), BusError> {
    match settled {
        Ok(true) => Ok(()),
        Ok(false) => Err(BusError::lost()),
        Err(error) => Err(classified(error)),
    }
}
