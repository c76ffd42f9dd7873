//! Requests and replies by the clients of the brokers, without a bus: a durable queue or stream with the limits of the
//! bus, confirmed requests, acknowledged after the reply was sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy};
use futures_util::StreamExt;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
    QueueDeclareOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use toolyard_manifest::BusSettings;

use super::{CONCURRENT, Result};

const REQUESTS: &str = "bench-bare";
const REPLIES: &str = "bench-replies";
const REPLY_TO: &str = "bench-reply-to";
const ID: &str = "bench-id";

/// Sends requests, which a task of this program answers.
pub(crate) struct BareRequests {
    broker: BareClient,
    pending: Arc<PendingReplies>,
    /// The tasks that answer requests and receive replies.
    _tasks: JoinSet<()>,
}

enum BareClient {
    RabbitMq { publisher: Channel, reply_to: ShortString, _connections: Box<[Connection; 2]> },
    Nats(async_nats::jetstream::Context),
}

/// Receivers of replies by the ids of their requests.
struct PendingReplies {
    /// Distinguishes the requests of this program from those of earlier ones.
    run: u64,
    next: Mutex<(u64, HashMap<String, oneshot::Sender<String>>)>,
}

impl Default for PendingReplies {
    fn default() -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { run: u64::try_from(started.as_nanos()).unwrap_or_default(), next: Mutex::default() }
    }
}

impl PendingReplies {
    fn register(&self) -> (String, oneshot::Receiver<String>) {
        let (sender, reply) = oneshot::channel();
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        next.0 += 1;
        let id = next.0.to_string();
        next.1.insert(id.clone(), sender);
        (id, reply)
    }

    fn answer(&self, id: &str, body: &[u8]) {
        let sender = self.next.lock().unwrap_or_else(PoisonError::into_inner).1.remove(id);
        if let Some(sender) = sender {
            drop(sender.send(String::from_utf8_lossy(body).into_owned()));
        }
    }
}

impl BareRequests {
    /// Sends a request, and returns its reply: the same text.
    pub(crate) async fn request(&self, body: String) -> Result<String> {
        let (id, reply) = self.pending.register();
        match &self.broker {
            BareClient::RabbitMq { publisher, reply_to, .. } => {
                let properties = persistent().with_correlation_id(id.into()).with_reply_to(reply_to.clone());
                publish(publisher, REQUESTS.into(), body.as_bytes(), properties).await?;
            }
            BareClient::Nats(jetstream) => {
                let mut headers = HeaderMap::new();
                // A request that is sent twice is stored once, as on the bus.
                headers.insert(NATS_MESSAGE_ID, format!("{}-{id}", self.pending.run));
                headers.insert(ID, id);
                headers.insert(REPLY_TO, REPLIES);
                jetstream.publish_with_headers(REQUESTS, headers, body.into()).await?.await?;
            }
        }
        Ok(reply.await?)
    }

    pub(crate) async fn on_rabbitmq(url: &str) -> Result<Self> {
        let client = Connection::connect(url, ConnectionProperties::default()).await?;
        let server = Connection::connect(url, ConnectionProperties::default()).await?;
        let (publisher, answers) = (client.create_channel().await?, client.create_channel().await?);
        let (requests, replier) = (server.create_channel().await?, server.create_channel().await?);
        for channel in [&publisher, &replier] {
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
        }
        let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        requests.queue_declare(REQUESTS.into(), durable, FieldTable::default()).await?;
        let exclusive = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
        let replies = answers.queue_declare("".into(), exclusive, FieldTable::default()).await?;
        requests.basic_qos(u16::try_from(CONCURRENT)?, BasicQosOptions::default()).await?;
        let consume = async |channel: &Channel, queue: ShortString, no_ack: bool| {
            let options = BasicConsumeOptions { no_ack, ..BasicConsumeOptions::default() };
            channel.basic_consume(queue, "".into(), options, FieldTable::default()).await
        };
        let mut received = consume(&answers, replies.name().clone(), true).await?;
        let served = consume(&requests, REQUESTS.into(), false).await?;
        let (pending, mut tasks) = (Arc::<PendingReplies>::default(), JoinSet::new());
        let waiting = pending.clone();
        tasks.spawn(async move {
            while let Some(Ok(delivery)) = received.next().await {
                let id = delivery.properties.correlation_id().clone().unwrap_or_else(|| "".into());
                waiting.answer(id.as_str(), &delivery.data);
            }
        });
        tasks.spawn(served.for_each_concurrent(CONCURRENT, move |delivery| {
            let replier = replier.clone();
            async move {
                let Ok(delivery) = delivery else { return };
                let id = delivery.properties.correlation_id().clone().unwrap_or_else(|| "".into());
                let reply_to = delivery.properties.reply_to().clone().unwrap_or_else(|| "".into());
                let properties = persistent().with_correlation_id(id);
                drop(publish(&replier, reply_to, &delivery.data, properties).await);
                drop(delivery.ack(BasicAckOptions::default()).await);
            }
        }));
        let reply_to = replies.name().clone();
        let broker = BareClient::RabbitMq { publisher, reply_to, _connections: Box::new([client, server]) };
        Ok(Self { broker, pending, _tasks: tasks })
    }

    pub(crate) async fn on_nats(url: &str) -> Result<Self> {
        let (client, server) = (async_nats::connect(url).await?, async_nats::connect(url).await?);
        let jetstream = async_nats::jetstream::new(server.clone());
        let config = Config {
            name: REQUESTS.to_owned(),
            subjects: vec![REQUESTS.to_owned()],
            retention: RetentionPolicy::Interest,
            max_messages: i64::try_from(BusSettings::default().queued_messages)?,
            discard: DiscardPolicy::New,
            ..Config::default()
        };
        let stream = jetstream.create_stream(config).await?;
        let config = pull::Config { durable_name: Some(REQUESTS.to_owned()), ..pull::Config::default() };
        let served = stream.create_consumer(config).await?.messages().await?;
        let mut received = client.subscribe(REPLIES).await?;
        client.flush().await?;
        let (pending, mut tasks) = (Arc::<PendingReplies>::default(), JoinSet::new());
        let waiting = pending.clone();
        tasks.spawn(async move {
            while let Some(message) = received.next().await {
                waiting.answer(&header(message.headers.as_ref(), ID), &message.payload);
            }
        });
        tasks.spawn(served.for_each_concurrent(CONCURRENT, move |message| {
            let server = server.clone();
            async move {
                let Ok(message) = message else { return };
                let mut headers = HeaderMap::new();
                headers.insert(ID, header(message.headers.as_ref(), ID));
                let reply_to = header(message.headers.as_ref(), REPLY_TO);
                drop(server.publish_with_headers(reply_to, headers, message.payload.clone()).await);
                drop(message.ack().await);
            }
        }));
        let broker = BareClient::Nats(async_nats::jetstream::new(client));
        Ok(Self { broker, pending, _tasks: tasks })
    }
}

/// Returns the properties of a message that is stored on disk.
fn persistent() -> BasicProperties {
    BasicProperties::default().with_delivery_mode(2)
}

/// Publishes a message to a queue, and waits for the confirmation.
async fn publish(
    channel: &Channel,
    queue: ShortString,
    body: &[u8],
    properties: BasicProperties,
) -> lapin::Result<()> {
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    channel.basic_publish("".into(), queue, options, body, properties).await?.await?;
    Ok(())
}

fn header(headers: Option<&HeaderMap>, name: &str) -> String {
    headers.and_then(|headers| headers.get(name)).map(|value| value.as_str().to_owned()).unwrap_or_default()
}
