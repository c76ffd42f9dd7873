//! NATS with JetStream.
//!
//! Topics are subjects. The topics of a group are a stream, `{prefix}-` and the pattern's name, in which each group has a
//! durable consumer; a message leaves the stream once all groups have acknowledged it. A subscription alone is one of
//! core NATS. Dead letters are in the stream `{prefix}-dlq`. Envelopes are headers and a body: `wire` has the rules.
//!
//! The server needs JetStream 2.9.

mod message;
mod source;
mod streams;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::{ContextBuilder, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{Client, ConnectOptions, Event};
use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{Instant, timeout_at};
use toolyard_manifest::{BrokerUrl, BusSettings};

use self::source::{CoreSource, JetStreamSource};
use crate::bus::{BusError, BusErrorKind, DeadLetter, Deliveries, MessageBus, Subscription};
use crate::envelope::Envelope;
use crate::pump::{Backoff, Pump, SubscriptionTasks, opened, supervise};
use crate::topic::{Topic, TopicPattern};

/// Number of messages that the client keeps for a subscription alone, beside those that are delivered.
const BUFFERED_MESSAGES: usize = 4096;

/// A bus on NATS.
pub struct NatsBus {
    shared: Arc<NatsShared>,
    /// The connection at its beginning, and the pumps of subscriptions.
    tasks: SubscriptionTasks,
}

/// The parts of the bus that its tasks use.
struct NatsShared {
    settings: BusSettings,
    links: watch::Receiver<Option<NatsLink>>,
    /// Number of connections so far, odd while there is one.
    state: watch::Receiver<u64>,
    /// Places for messages without a confirmation.
    unconfirmed: Semaphore,
}

/// The client, which connects again by itself.
#[derive(Clone)]
struct NatsLink {
    client: Client,
    jetstream: jetstream::Context,
}

impl NatsBus {
    /// Connects in the background.
    ///
    /// # Errors
    /// [`Invalid`](BusErrorKind::Invalid) if the URL is no URL of NATS.
    pub fn connect(url: &BrokerUrl, settings: &BusSettings) -> Result<Arc<Self>, BusError> {
        let addresses = url.expose().split(',').map(|url| url.trim().parse::<async_nats::ServerAddr>());
        // The error may quote the URL.
        let addresses = addresses
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| BusError::invalid("the URL of the bus is no URL of NATS"))?;
        let (links, current) = watch::channel(None);
        let (changes, state) = watch::channel(0);
        let options = options(settings, url.to_string(), Arc::new(changes));
        let publish_timeout = settings.publish_timeout;
        let tasks = SubscriptionTasks::default();
        tasks.spawn(async move {
            // It returns before the server is reached, which the client tries until it is dropped.
            match options.connect(addresses).await {
                Ok(client) => {
                    let jetstream = ContextBuilder::new().timeout(publish_timeout).build(client.clone());
                    links.send_replace(Some(NatsLink { client, jetstream }));
                    // The sender is kept: a receiver may still wait.
                    links.closed().await;
                }
                Err(error) => tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the client of NATS cannot be started"
                ),
            }
        });
        let unconfirmed = Semaphore::new(settings.unconfirmed_messages);
        let shared = NatsShared { settings: settings.clone(), links: current, state, unconfirmed };
        Ok(Arc::new(Self { shared: Arc::new(shared), tasks }))
    }
}

fn options(settings: &BusSettings, shown: String, changes: Arc<watch::Sender<u64>>) -> ConnectOptions {
    let (first, most) = (settings.reconnect_delay, settings.max_reconnect_delay);
    ConnectOptions::new()
        .name(&settings.source)
        .retry_on_initial_connect()
        .connection_timeout(Duration::from_secs(10))
        .ping_interval(Duration::from_secs(10))
        .request_timeout(Some(settings.publish_timeout))
        .client_capacity(settings.unconfirmed_messages.max(16))
        .subscription_capacity(BUFFERED_MESSAGES)
        .reconnect_delay_callback(move |attempts| {
            let doubled = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
            first.saturating_mul(1 << doubled).min(most)
        })
        .event_callback(move |event| {
            match &event {
                // An odd number is a connection, and each connection has another one.
                Event::Connected => changes.send_modify(|state| *state = (*state + 1) | 1),
                Event::Disconnected | Event::Closed => changes.send_modify(|state| *state += *state & 1),
                _ => {}
            }
            match event {
                Event::Connected => tracing::info!(broker = shown, "connected to the message bus"),
                Event::Disconnected => {
                    tracing::warn!(broker = shown, "lost the connection to the message bus")
                }
                Event::SlowConsumer(_) => tracing::debug!("a slow subscription lost a message"),
                other => tracing::debug!(event = %other, "an event of NATS"),
            }
            std::future::ready(())
        })
}

// === impl NatsShared ===

impl NatsShared {
    /// Returns the client once it is connected, with the number of its connection.
    async fn connected_before(&self, deadline: Instant) -> Result<(NatsLink, u64), BusError> {
        let (mut links, mut state) = (self.links.clone(), self.state.clone());
        let connected = async {
            let number =
                *state.wait_for(|state| state & 1 == 1).await.map_err(|_| BusError::unreachable())?;
            let link = links.wait_for(Option::is_some).await.map_err(|_| BusError::unreachable())?;
            link.clone().map(|link| (link, number)).ok_or_else(BusError::unreachable)
        };
        timeout_at(deadline, connected).await.unwrap_or_else(|_| Err(BusError::unreachable()))
    }

    /// Waits until the connection of this number is lost.
    async fn lost(mut state: watch::Receiver<u64>, number: u64) {
        drop(state.wait_for(|state| *state != number).await);
    }

    async fn publish(&self, topic: &Topic, envelope: Envelope) -> Result<(), BusError> {
        let deadline = Instant::now() + self.settings.publish_timeout;
        let (mut headers, body) = self.checked(&envelope)?;
        message::store_once(&mut headers, &envelope);
        let _place = timeout_at(deadline, self.unconfirmed.acquire())
            .await
            .map_err(|_| BusError::full("messages without a confirmation"))?;
        let (link, number) = self.connected_before(deadline).await?;
        let message = PublishMessage::build().payload(body).headers(headers);
        let confirmed =
            async { link.jetstream.send_publish(topic.as_str().to_owned(), message).await?.await };
        tokio::select! {
            confirmed = timeout_at(deadline, confirmed) => match confirmed {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(publish_error(error, topic)),
                Err(_late) => Err(BusError::unconfirmed()),
            },
            () = Self::lost(self.state.clone(), number) => Err(BusError::unconfirmed()),
        }
    }

    async fn broadcast(&self, topic: &Topic, envelope: Envelope) -> Result<(), BusError> {
        let deadline = Instant::now() + self.settings.publish_timeout;
        let (headers, body) = self.checked(&envelope)?;
        let (link, _) = self.connected_before(deadline).await?;
        let sent = async {
            let published = link.client.publish_with_headers(topic.as_str().to_owned(), headers, body);
            published.await.map_err(|error| match error.kind() {
                async_nats::client::PublishErrorKind::MaxPayloadExceeded => {
                    BusError::too_large(envelope.size(), link.client.max_payload())
                }
                _ => BusError::lost().caused_by(error),
            })?;
            link.client.flush().await.map_err(|error| BusError::unconfirmed().caused_by(error))
        };
        timeout_at(deadline, sent).await.unwrap_or_else(|_| Err(BusError::unconfirmed()))
    }

    fn checked(&self, envelope: &Envelope) -> Result<(async_nats::HeaderMap, bytes::Bytes), BusError> {
        envelope.check(self.settings.max_message_bytes)?;
        Ok((message::headers(envelope)?, envelope.body.clone()))
    }

    async fn open_group(self: Arc<Self>, subscription: Subscription) -> Result<JetStreamSource, BusError> {
        let deadline = Instant::now() + self.settings.publish_timeout;
        let (link, number) = self.connected_before(deadline).await?;
        let lost = Self::lost(self.state.clone(), number).boxed();
        let opened = JetStreamSource::open(link.jetstream, &subscription, &self.settings, lost);
        timeout_at(deadline, opened).await.unwrap_or_else(|_| Err(BusError::unreachable()))
    }

    async fn open_alone(self: Arc<Self>, subscription: Subscription) -> Result<CoreSource, BusError> {
        let deadline = Instant::now() + self.settings.publish_timeout;
        let (link, _) = self.connected_before(deadline).await?;
        let opened = CoreSource::open(&link.client, &subscription, &self.settings);
        timeout_at(deadline, opened).await.unwrap_or_else(|_| Err(BusError::unreachable()))
    }
}

impl MessageBus for NatsBus {
    fn publish<'a>(&'a self, topic: &'a Topic, envelope: Envelope) -> BoxFuture<'a, Result<(), BusError>> {
        self.shared.publish(topic, envelope).boxed()
    }

    fn broadcast<'a>(&'a self, topic: &'a Topic, envelope: Envelope) -> BoxFuture<'a, Result<(), BusError>> {
        self.shared.broadcast(topic, envelope).boxed()
    }

    fn subscribe(&self, subscription: Subscription) -> BoxFuture<'_, Result<Deliveries, BusError>> {
        let settings = &self.shared.settings;
        // A third of the time, so that a late sign of life is still in time.
        let keep_alive = subscription.group.is_some().then_some(settings.ack_wait / 3);
        let (pump, mut deliveries) =
            Pump::new(subscription.prefetch.unwrap_or(settings.prefetch), keep_alive);
        let (ready, is_ready) = oneshot::channel();
        let (shared, backoff) = (self.shared.clone(), Backoff::new(settings));
        if subscription.group.is_some() {
            let open = move || shared.clone().open_group(subscription.clone());
            self.tasks.spawn(supervise(pump, open, backoff, ready));
        } else {
            // The client subscribes again by itself.
            deliveries.connections = self.shared.state.clone();
            let open = move || shared.clone().open_alone(subscription.clone());
            self.tasks.spawn(supervise(pump, open, backoff, ready));
        }
        opened(deliveries, is_ready, Instant::now() + settings.publish_timeout).boxed()
    }

    fn dead_letters<'a>(
        &'a self,
        group: &'a str,
        pattern: &'a TopicPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, BusError>> {
        async move {
            let deadline = Instant::now() + self.shared.settings.publish_timeout;
            let (link, _) = self.shared.connected_before(deadline).await?;
            let subscription = pattern.subscription_of(group);
            let read = streams::dead_letters(&link.jetstream, &subscription, &self.shared.settings, limit);
            timeout_at(deadline, read).await.unwrap_or_else(|_| Err(BusError::unreachable()))
        }
        .boxed()
    }
}

impl fmt::Debug for NatsBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsBus").finish_non_exhaustive()
    }
}

fn publish_error(error: jetstream::context::PublishError, topic: &Topic) -> BusError {
    match error.kind() {
        PublishErrorKind::StreamNotFound => BusError::no_route(topic),
        PublishErrorKind::MaxPayloadExceeded => {
            BusError::new(BusErrorKind::TooLarge, "the message exceeds the limit of the server")
        }
        PublishErrorKind::Other => match server_error(&error).map(jetstream::Error::error_code) {
            Some(ErrorCode::STREAM_STORE_FAILED) => BusError::full("messages in the stream"),
            Some(ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM) => {
                BusError::new(BusErrorKind::TooLarge, "the message exceeds the limit of the stream")
            }
            Some(_) => BusError::new(BusErrorKind::Refused, "JetStream refuses the message").caused_by(error),
            None => BusError::unconfirmed().caused_by(error),
        },
        _ => BusError::unconfirmed().caused_by(error),
    }
}

/// Returns the error of the server behind an error of the client.
fn server_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a jetstream::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<jetstream::Error>() {
            return Some(error);
        }
        cause = error.source();
    }
    None
}
