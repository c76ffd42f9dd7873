//! Exchanges and queues.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, ExchangeKind};
use toolyard_manifest::BusSettings;

use super::classified;
use crate::bus::{BusError, Subscription};

/// Names of a group's queues.
pub(super) struct QueueNames {
    /// Queue of the messages.
    pub(super) queue: String,
    /// Queue of the dead letters.
    pub(super) dead: String,
}

impl QueueNames {
    /// Returns the names for a subscription: `{prefix}.{subscription}`, and the same with `.dlq`.
    pub(super) fn of(subscription: &str, settings: &BusSettings) -> Self {
        let queue = format!("{}.{subscription}", settings.prefix);
        Self { dead: format!("{queue}.dlq"), queue }
    }
}

/// Returns the routing key by which the exchange of dead letters returns a message to its queue.
pub(super) fn retry_key(queue: &str) -> String {
    format!("{queue}.retry")
}

/// Returns the name of the exchange of dead letters and of messages that return to their queues.
pub(super) fn dead_exchange(settings: &BusSettings) -> String {
    format!("{}.dlx", settings.exchange)
}

/// Declares both exchanges.
///
/// # Errors
/// If the broker refuses, such as for an exchange of another kind.
pub(super) async fn declare_exchanges(channel: &Channel, settings: &BusSettings) -> Result<(), BusError> {
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let kinds =
        [(settings.exchange.clone(), ExchangeKind::Topic), (dead_exchange(settings), ExchangeKind::Topic)];
    for (exchange, kind) in kinds {
        let declared = channel.exchange_declare(exchange.into(), kind, durable, FieldTable::default());
        declared.await.map_err(classified)?;
    }
    Ok(())
}

/// Declares the queue of a subscription, with the queue of its dead letters, and binds it to the topics. Returns the name
/// of the queue.
///
/// # Errors
/// If the broker refuses, such as for a queue with other limits.
pub(super) async fn declare_queue(
    channel: &Channel,
    subscription: &Subscription,
    settings: &BusSettings,
) -> Result<ShortString, BusError> {
    let queue = match subscription.name() {
        Some(name) => declare_group(channel, &name, settings).await?,
        None => {
            let options =
                QueueDeclareOptions { exclusive: true, auto_delete: true, ..QueueDeclareOptions::default() };
            // A subscription that is too slow loses its oldest messages. Only classic queues are exclusive, whatever the
            // default of the virtual host.
            let limits = arguments([
                ("x-queue-type", text("classic")),
                ("x-max-length", number(settings.queued_messages)),
            ]);
            let declared = channel.queue_declare("".into(), options, limits).await.map_err(classified)?;
            declared.name().clone()
        }
    };
    let (exchange, key) = (settings.exchange.as_str().into(), subscription.pattern.as_str().into());
    let bound =
        channel.queue_bind(queue.clone(), exchange, key, QueueBindOptions::default(), FieldTable::default());
    bound.await.map_err(classified)?;
    Ok(queue)
}

async fn declare_group(
    channel: &Channel,
    name: &str,
    settings: &BusSettings,
) -> Result<ShortString, BusError> {
    let QueueNames { queue, dead } = QueueNames::of(name, settings);
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    // A quorum queue counts each reading of a dead letter as a failed delivery, and would drop it after some.
    let limits =
        arguments([("x-queue-type", text("classic")), ("x-max-length", number(settings.dead_letters))]);
    channel.queue_declare(dead.as_str().into(), durable, limits).await.map_err(classified)?;
    // The type is the default of the virtual host, so that it can be one with replicas.
    let limits = arguments([
        ("x-max-length", number(settings.queued_messages)),
        ("x-overflow", text("reject-publish")),
        ("x-dead-letter-exchange", text(&dead_exchange(settings))),
        ("x-dead-letter-routing-key", text(&queue)),
    ]);
    channel.queue_declare(queue.as_str().into(), durable, limits).await.map_err(classified)?;
    for (bound, key) in [(&dead, queue.clone()), (&queue, retry_key(&queue))] {
        let (exchange, options) = (dead_exchange(settings).into(), QueueBindOptions::default());
        let bound =
            channel.queue_bind(bound.as_str().into(), exchange, key.into(), options, FieldTable::default());
        bound.await.map_err(classified)?;
    }
    Ok(queue.into())
}

fn arguments<const N: usize>(arguments: [(&str, AMQPValue); N]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in arguments {
        table.insert(name.into(), value);
    }
    table
}

fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}

fn number(number: usize) -> AMQPValue {
    AMQPValue::LongLongInt(i64::try_from(number).unwrap_or(i64::MAX))
}
