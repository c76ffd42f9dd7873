//! Envelopes as properties and headers of AMQP.

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable, ShortString};

use crate::bus::DeadLetter;
use crate::envelope::Envelope;
use crate::headers::wire;
use crate::wire::{WireHeaders, empty_envelope, headers_of};

/// Delivery mode of messages that are on disk.
const PERSISTENT: u8 = 2;

/// Header in which a quorum queue counts the deliveries of one publication that failed.
const DELIVERY_COUNT: &str = "x-delivery-count";

/// Returns the properties of an envelope.
pub(super) fn written(envelope: &Envelope) -> BasicProperties {
    let mut headers = FieldTable::default();
    for (name, value) in headers_of(envelope) {
        headers.insert(short(&name.to_string()), AMQPValue::LongString(value.into()));
    }
    let mut properties = BasicProperties::default()
        .with_message_id(short(&envelope.message_id))
        .with_type(short(&envelope.message_type))
        .with_timestamp(envelope.timestamp / 1000)
        .with_content_type("application/json".into())
        .with_delivery_mode(PERSISTENT)
        .with_headers(headers);
    if let Some(id) = &envelope.correlation_id {
        properties = properties.with_correlation_id(short(id));
    }
    if let Some(topic) = &envelope.reply_to {
        properties = properties.with_reply_to(short(topic));
    }
    properties
}

/// Returns the envelope of a message. Absent properties and those of other types are empty.
pub(super) fn read(properties: &BasicProperties, body: Bytes) -> Envelope {
    let text = |property: &Option<ShortString>| {
        property.as_ref().map(ToString::to_string).filter(|text| !text.is_empty())
    };
    let mut headers = WireHeaders::default();
    for (name, value) in properties.headers().iter().flat_map(|table| table.inner()) {
        if let Some(value) = text_of(value) {
            headers.add(name.as_str(), &value);
        }
    }
    headers.fill(Envelope {
        message_id: text(properties.message_id()).unwrap_or_default(),
        message_type: text(properties.kind()).unwrap_or_default(),
        correlation_id: text(properties.correlation_id()),
        reply_to: text(properties.reply_to()),
        timestamp: properties.timestamp().unwrap_or_default().saturating_mul(1000),
        body,
        ..empty_envelope()
    })
}

/// The number of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt {
    /// 1 for the first.
    pub(super) number: u32,
    /// `false` if the message was delivered before, and no header counts that.
    pub(super) is_counted: bool,
}

impl Attempt {
    /// Reads the number from the properties: failed deliveries that were counted by this crate, and by the queue since.
    pub(super) fn of(properties: &BasicProperties, is_redelivered: bool) -> Self {
        let count = |name: &str| {
            let value = properties.headers().as_ref()?.inner().get(name).and_then(text_of)?;
            value.parse::<u32>().ok()
        };
        let returned = count(wire::RETRY_COUNT).unwrap_or(0);
        let queued = count(DELIVERY_COUNT).unwrap_or(0);
        let is_counted = !is_redelivered || queued > 0;
        let failed = returned.saturating_add(queued).saturating_add(u32::from(!is_counted));
        Self { number: failed.saturating_add(1), is_counted }
    }
}

/// Returns the topic of a message that was returned to its queue.
pub(super) fn retry_topic(properties: &BasicProperties) -> Option<String> {
    properties.headers().as_ref()?.inner().get(wire::RETRY_TOPIC).and_then(text_of)
}

/// Returns the properties of a message that returns to its queue after so many failed deliveries.
pub(super) fn returned(properties: &BasicProperties, topic: &str, failed: u32) -> BasicProperties {
    let failed = failed.to_string();
    with_headers(properties, [(wire::RETRY_TOPIC, topic), (wire::RETRY_COUNT, &failed)])
}

/// Returns the properties of a dead letter.
pub(super) fn dead(properties: &BasicProperties, topic: &str, reason: &str, attempt: u32) -> BasicProperties {
    let attempts = attempt.to_string();
    let headers = [(wire::DEAD_TOPIC, topic), (wire::DEAD_REASON, reason), (wire::DEAD_ATTEMPTS, &*attempts)];
    with_headers(properties, headers)
}

/// Returns the properties with headers for another publication, whose deliveries the queue counts anew.
fn with_headers<const N: usize>(properties: &BasicProperties, added: [(&str, &str); N]) -> BasicProperties {
    let mut headers = FieldTable::default();
    for (name, value) in properties.headers().iter().flat_map(|table| table.inner()) {
        if name.as_str() != DELIVERY_COUNT {
            headers.insert(name.clone(), value.clone());
        }
    }
    for (name, value) in added {
        headers.insert(name.into(), AMQPValue::LongString(value.into()));
    }
    properties.clone().with_headers(headers).with_delivery_mode(PERSISTENT)
}

/// Reads a dead letter: of this crate, or of the broker, whose reason is in the header `x-death`.
pub(super) fn dead_letter(delivery: Delivery) -> DeadLetter {
    let properties = &delivery.properties;
    let header = |name: &str| properties.headers().as_ref()?.inner().get(name).cloned();
    let own = |name: &str| header(name).as_ref().and_then(text_of);
    let death = match header("x-death") {
        Some(AMQPValue::FieldArray(deaths)) => deaths.as_slice().first().cloned(),
        _ => None,
    };
    let of_death = |name: &str| match &death {
        Some(AMQPValue::FieldTable(death)) => death.inner().get(name).cloned(),
        _ => None,
    };
    let reason = of_death("reason").as_ref().and_then(text_of).map(|reason| match &*reason {
        "delivery_limit" => "redelivered too often".to_owned(),
        _ => reason,
    });
    let key = match of_death("routing-keys") {
        Some(AMQPValue::FieldArray(keys)) => keys.as_slice().first().and_then(text_of),
        _ => None,
    };
    DeadLetter {
        topic: own(wire::DEAD_TOPIC)
            .or_else(|| own(wire::RETRY_TOPIC))
            .or(key)
            .unwrap_or_else(|| delivery.routing_key.to_string()),
        envelope: read(properties, Bytes::from(delivery.data)),
        reason: own(wire::DEAD_REASON).or(reason).unwrap_or_else(|| "unknown".to_owned()),
        attempts: own(wire::DEAD_ATTEMPTS).and_then(|attempts| attempts.parse().ok()),
    }
}

/// Returns a value as text, if it is a text, a number or a boolean.
fn text_of(value: &AMQPValue) -> Option<String> {
    match value {
        AMQPValue::LongString(text) => std::str::from_utf8(text.as_bytes()).ok().map(str::to_owned),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        AMQPValue::Boolean(flag) => Some(flag.to_string()),
        AMQPValue::ShortShortInt(number) => Some(number.to_string()),
        AMQPValue::ShortShortUInt(number) => Some(number.to_string()),
        AMQPValue::ShortInt(number) => Some(number.to_string()),
        AMQPValue::ShortUInt(number) => Some(number.to_string()),
        AMQPValue::LongInt(number) => Some(number.to_string()),
        AMQPValue::LongUInt(number) => Some(number.to_string()),
        AMQPValue::LongLongInt(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns a text of at most 255 bytes, which [`Envelope::check`] has checked.
fn short(text: &str) -> ShortString {
    ShortString::try_new(text).unwrap_or_else(|_| "".into())
}
