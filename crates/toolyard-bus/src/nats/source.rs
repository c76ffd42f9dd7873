//! Consumers of JetStream and subscriptions of core NATS as sources.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::message::{AckKind, Acker};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, HeaderMap, Message, Subject, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt, join_all, ready};
use futures_util::stream::{SelectAll, select_all};
use toolyard_manifest::BusSettings;

use super::{message, streams};
use crate::bus::{BusError, Settlement, Subscription};
use crate::headers::wire;
use crate::pump::{Incoming, MessageSource, Received};

/// Time after which a request for messages is sent again.
const PULL_TIME: Duration = Duration::from_secs(30);

/// The consumer of a group.
pub(super) struct JetStreamSource {
    jetstream: Context,
    consumer: Consumer<pull::Config>,
    /// The current request for messages. It is kept until it is answered: the server delivers to a request that is dropped
    /// once it was sent.
    request: Option<BoxFuture<'static, Result<pull::Batch, pull::BatchError>>>,
    /// Messages of the last request, for as many as the receiver could take then.
    batch: Option<pull::Batch>,
    /// Ends with the connection: the server forgets requests, and the client does not notice.
    lost: BoxFuture<'static, ()>,
    dead_subject: String,
    redeliveries: u32,
    max_bytes: usize,
}

/// A delivery that can be acknowledged, or published as a dead letter.
pub(super) struct JetStreamDelivery {
    acker: Acker,
    /// Subject of acknowledgements.
    reply: Option<Subject>,
    topic: String,
    headers: Option<HeaderMap>,
    body: Bytes,
    attempt: u32,
}

impl JetStreamSource {
    /// Creates the streams and the consumer. `lost` ends when the connection does.
    pub(super) async fn open(
        jetstream: Context,
        subscription: &Subscription,
        settings: &BusSettings,
        lost: BoxFuture<'static, ()>,
    ) -> Result<Self, BusError> {
        let group = subscription.group.as_deref().unwrap_or_default();
        let consumer = streams::open_group(&jetstream, subscription, group, settings).await?;
        let name = subscription.name().unwrap_or_default();
        Ok(Self {
            jetstream,
            consumer,
            request: None,
            batch: None,
            lost,
            dead_subject: streams::dead_subject(&name, settings),
            redeliveries: settings.redeliveries,
            max_bytes: settings.max_message_bytes,
        })
    }

    fn received(&self, message: jetstream::Message) -> Incoming<Arc<JetStreamDelivery>> {
        let delivered = message.info().map_or(1, |info| info.delivered);
        let attempt = u32::try_from(delivered).unwrap_or(u32::MAX).max(1);
        let reply = message.reply.clone();
        let (message, acker) = message.split();
        let topic = message.subject.to_string();
        let envelope = message::read(message.headers.as_ref(), message.payload.clone());
        let Message { headers, payload: body, .. } = message;
        let token = Arc::new(JetStreamDelivery { acker, reply, topic, headers, body, attempt });
        let size = envelope.size();
        match token.topic.parse() {
            Err(_) => Incoming::Dead(token, "the subject is no topic".to_owned()),
            Ok(_) if size > self.max_bytes => {
                Incoming::Dead(token, format!("{size} bytes, more than the limit of {}", self.max_bytes))
            }
            // A consumer that dies acknowledges nothing, so that its deliveries are counted here.
            Ok(_) if attempt > self.redeliveries.saturating_add(1) => {
                Incoming::Dead(token, format!("redelivered {} times", self.redeliveries))
            }
            Ok(topic) => Incoming::Message(Box::new(Received { topic, envelope, attempt, token })),
        }
    }
}

impl MessageSource for JetStreamSource {
    type Token = Arc<JetStreamDelivery>;

    async fn next(&mut self, free: usize) -> Option<Incoming<Self::Token>> {
        loop {
            let Some(batch) = &mut self.batch else {
                let consumer = &self.consumer;
                // As many as the receiver can take: others would wait here, and not at an idle member of the group.
                let request = self.request.get_or_insert_with(|| requested(consumer.clone(), free));
                let requested = tokio::select! {
                    requested = request => requested,
                    () = &mut self.lost => return None,
                };
                self.request = None;
                match requested {
                    Ok(batch) => self.batch = Some(batch),
                    Err(error) => {
                        tracing::debug!(error = &error as &dyn std::error::Error, "cannot request messages");
                        return None;
                    }
                }
                continue;
            };
            let message = tokio::select! {
                message = batch.next() => message,
                () = &mut self.lost => return None,
            };
            match message {
                Some(Ok(message)) => return Some(self.received(message)),
                Some(Err(error)) => {
                    tracing::debug!(error, "a request for messages has failed");
                    return None;
                }
                None => self.batch = None,
            }
        }
    }

    fn settle(&self, token: Self::Token, settlement: Settlement) -> BoxFuture<'static, Result<(), BusError>> {
        let reason = match settlement {
            Settlement::Ack => {
                let client = self.jetstream.client();
                return async move { token.ack(&client).await }.boxed();
            }
            Settlement::AckUnconfirmed => return token.send(AckKind::Ack),
            Settlement::Retry if token.attempt <= self.redeliveries => {
                return token.send(AckKind::Nak(None));
            }
            Settlement::Retry => format!("redelivered {} times", self.redeliveries),
            Settlement::DeadLetter(reason) => reason,
        };
        tracing::warn!(topic = token.topic, reason, "a message is a dead letter");
        let (jetstream, subject) = (self.jetstream.clone(), self.dead_subject.clone());
        async move { token.bury(&jetstream, subject, &reason).await }.boxed()
    }

    fn keep_alive(&self, tokens: Vec<Self::Token>) -> BoxFuture<'static, ()> {
        async move {
            // Without a sign of life the message is delivered again, as after a crash.
            join_all(tokens.iter().map(|token| token.acker.ack_with(AckKind::Progress))).await;
        }
        .boxed()
    }

    async fn stop(&mut self) {
        // The request ends with its subscription.
        (self.request, self.batch) = (None, None);
    }
}

fn requested(
    consumer: Consumer<pull::Config>,
    messages: usize,
) -> BoxFuture<'static, Result<pull::Batch, pull::BatchError>> {
    async move { consumer.batch().max_messages(messages).expires(PULL_TIME).messages().await }.boxed()
}

impl JetStreamDelivery {
    /// Sends the end of the delivery without a confirmation.
    fn send(self: Arc<Self>, kind: AckKind) -> BoxFuture<'static, Result<(), BusError>> {
        async move { self.acker.ack_with(kind).await.map_err(lost) }.boxed()
    }

    /// Acknowledges the message and waits for the server.
    async fn ack(&self, client: &Client) -> Result<(), BusError> {
        let reply =
            self.reply.clone().ok_or_else(|| BusError::invalid("the message is not from JetStream"))?;
        // Unlike `double_ack` of the client, which subscribes for each message.
        let confirmed = client.request(reply, AckKind::Ack.into()).await;
        confirmed.map(drop).map_err(|error| BusError::lost().caused_by(error))
    }

    /// Publishes the message as a dead letter, and acknowledges it then: after a crash in between it is there twice, and
    /// never lost.
    async fn bury(&self, jetstream: &Context, subject: String, reason: &str) -> Result<(), BusError> {
        let mut headers = HeaderMap::new();
        for (name, values) in self.headers.iter().flat_map(HeaderMap::iter) {
            // The server's own headers would apply to the dead letter, such as the one against duplicates.
            let is_own = AsRef::<str>::as_ref(name).to_ascii_lowercase().starts_with("nats-");
            for value in values.iter().filter(|_| !is_own) {
                headers.append(name.clone(), value.clone());
            }
        }
        let attempts = self.attempt.to_string();
        for (name, value) in
            [(wire::DEAD_TOPIC, &*self.topic), (wire::DEAD_REASON, reason), (wire::DEAD_ATTEMPTS, &attempts)]
        {
            message::insert(&mut headers, name, value)?;
        }
        let published = jetstream.publish_with_headers(subject, headers, self.body.clone()).await;
        let confirmed = match published {
            Ok(confirmed) => confirmed.await,
            Err(error) => Err(error),
        };
        confirmed.map_err(|error| BusError::lost().caused_by(error))?;
        self.ack(&jetstream.client()).await
    }
}

fn lost(error: async_nats::Error) -> BusError {
    BusError::lost().caused_by(error)
}

/// A subscription alone. The client subscribes again after each loss of the connection.
pub(super) struct CoreSource {
    messages: SelectAll<Subscriber>,
    max_bytes: usize,
}

impl CoreSource {
    pub(super) async fn open(
        client: &Client,
        subscription: &Subscription,
        settings: &BusSettings,
    ) -> Result<Self, BusError> {
        let mut subscribers = Vec::new();
        for subject in streams::subjects(&subscription.pattern)? {
            let subscribed = client.subscribe(subject).await;
            subscribers.push(subscribed.map_err(|error| BusError::lost().caused_by(error))?);
        }
        // The subscription has been sent when the buffer is empty. The server reads it before any later message of this
        // client; for those of others it has to answer.
        client.flush().await.map_err(|error| BusError::lost().caused_by(error))?;
        Ok(Self { messages: select_all(subscribers), max_bytes: settings.max_message_bytes })
    }
}

impl MessageSource for CoreSource {
    type Token = ();

    async fn next(&mut self, _free: usize) -> Option<Incoming<()>> {
        loop {
            let message = self.messages.next().await?;
            // Subjects of the server itself are no topics.
            let Ok(topic) = message.subject.parse() else { continue };
            let envelope = message::read(message.headers.as_ref(), message.payload);
            if envelope.size() > self.max_bytes {
                return Some(Incoming::Dead((), "more bytes than the limit".to_owned()));
            }
            return Some(Incoming::Message(Box::new(Received { topic, envelope, attempt: 1, token: () })));
        }
    }

    fn settle(&self, (): (), settlement: Settlement) -> BoxFuture<'static, Result<(), BusError>> {
        if let Settlement::DeadLetter(reason) = settlement {
            tracing::warn!(reason, "dropped a message of a subscription without a group");
        }
        ready(Ok(())).boxed()
    }

    async fn stop(&mut self) {
        self.messages.clear();
    }
}
