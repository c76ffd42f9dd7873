//! Streams of groups, and the stream of dead letters.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, pull};
use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind};
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, LastRawMessageErrorKind, RetentionPolicy, StorageType,
};
use async_nats::jetstream::{Context, ErrorCode};
use toolyard_manifest::BusSettings;

use super::{message, server_error};
use crate::bus::{BusError, BusErrorKind, DeadLetter, Subscription};
use crate::headers::wire;
use crate::topic::TopicPattern;

/// Time within which a message that is sent twice is stored once.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// Maximum number of messages of a consumer that are delivered and not acknowledged, of all members together.
const MAX_UNACKNOWLEDGED: i64 = 100_000;

/// Returns the subjects of a pattern. `#` stands for any number of segments, and `>` of NATS for one at least.
///
/// # Errors
/// If `#` is not the last segment, which no subject can express.
pub(super) fn subjects(pattern: &TopicPattern) -> Result<Vec<String>, BusError> {
    let pattern = pattern.as_str();
    let (start, is_open) = match pattern {
        "#" => return Ok(vec![">".to_owned()]),
        _ => pattern.strip_suffix(".#").map_or((pattern, false), |start| (start, true)),
    };
    if start.contains('#') {
        return Err(BusError::invalid("with NATS, `#` is the last segment of a pattern"));
    }
    let mut subjects = vec![start.to_owned()];
    if is_open {
        subjects.push(format!("{start}.>"));
    }
    Ok(subjects)
}

/// Returns the subject of the dead letters of a subscription.
pub(super) fn dead_subject(subscription: &str, settings: &BusSettings) -> String {
    format!("{}.dlq.{subscription}", settings.prefix)
}

fn dead_stream(settings: &BusSettings) -> String {
    format!("{}-dlq", settings.prefix)
}

/// Creates what a group needs: the stream of the topics, the stream of dead letters, and its consumer. Existing ones get
/// the current limits.
///
/// # Errors
/// If the server refuses, such as for topics that another stream has.
pub(super) async fn open_group(
    jetstream: &Context,
    subscription: &Subscription,
    group: &str,
    settings: &BusSettings,
) -> Result<Consumer<pull::Config>, BusError> {
    let limit = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let dead = Config {
        name: dead_stream(settings),
        subjects: vec![format!("{}.dlq.>", settings.prefix)],
        max_messages: -1,
        max_bytes: -1,
        max_messages_per_subject: limit(settings.dead_letters),
        discard: DiscardPolicy::Old,
        ..stream()
    };
    create(jetstream, dead).await?;
    let topics = Config {
        // `{prefix}-tool-invoke`
        name: subscription.pattern.subscription_of(&settings.prefix).replace('.', "-"),
        subjects: subjects(&subscription.pattern)?,
        // A message leaves the stream once all groups have acknowledged it.
        retention: RetentionPolicy::Interest,
        max_messages: limit(settings.queued_messages),
        max_bytes: -1,
        max_messages_per_subject: -1,
        discard: DiscardPolicy::New,
        duplicate_window: DUPLICATE_WINDOW,
        ..stream()
    };
    let name = topics.name.clone();
    create(jetstream, topics).await?;
    let consumer = pull::Config {
        durable_name: Some(group.to_owned()),
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::Explicit,
        ack_wait: settings.ack_wait,
        // The subscription counts: JetStream would keep a message forever that it does not deliver any more.
        max_deliver: -1,
        max_ack_pending: MAX_UNACKNOWLEDGED,
        ..pull::Config::default()
    };
    jetstream.create_consumer_on_stream(consumer, name).await.map_err(|error| match server_error(&error) {
        Some(_) => BusError::new(BusErrorKind::Refused, "JetStream refuses the consumer").caused_by(error),
        None => BusError::lost().caused_by(error),
    })
}

/// Returns the settings that both streams share.
fn stream() -> Config {
    Config {
        storage: StorageType::File,
        num_replicas: 1,
        max_consumers: -1,
        max_message_size: -1,
        ..Config::default()
    }
}

async fn create(jetstream: &Context, config: Config) -> Result<(), BusError> {
    let refused = |error: CreateStreamError| match error.kind() {
        CreateStreamErrorKind::TimedOut | CreateStreamErrorKind::Response => {
            BusError::lost().caused_by(error)
        }
        CreateStreamErrorKind::JetStreamUnavailable => BusError::unavailable(
            "the server has no JetStream: start it with `-js`, or wait until it is ready",
            error,
        ),
        CreateStreamErrorKind::JetStream(refusal) => {
            let text = refusal.to_string();
            BusError::new(BusErrorKind::Refused, format!("JetStream refuses a stream: {text}"))
                .caused_by(error)
        }
        _ => BusError::new(BusErrorKind::Refused, "JetStream refuses a stream").caused_by(error),
    };
    match jetstream.create_stream(config.clone()).await {
        Ok(_) => Ok(()),
        Err(error) if is_existing(&error) => jetstream.update_stream(config).await.map(drop).map_err(refused),
        Err(error) => Err(refused(error)),
    }
}

fn is_existing(error: &CreateStreamError) -> bool {
    matches!(error.kind(), CreateStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NAME_EXIST)
}

/// Returns the oldest dead letters of a subscription.
///
/// # Errors
/// If the server does not answer.
pub(super) async fn dead_letters(
    jetstream: &Context,
    subscription: &str,
    settings: &BusSettings,
    limit: usize,
) -> Result<Vec<DeadLetter>, BusError> {
    let stream = jetstream.get_stream_no_info(dead_stream(settings)).await;
    let stream = stream.map_err(|error| BusError::unavailable("cannot read dead letters", error))?;
    let subject = dead_subject(subscription, settings);
    let (mut letters, mut next) = (Vec::new(), 1);
    while letters.len() < limit {
        let read = stream.raw_message_builder().sequence(next).next_by_subject(subject.clone()).send().await;
        let letter = match read {
            Ok(letter) => letter,
            Err(error) => match error.kind() {
                LastRawMessageErrorKind::NoMessageFound => break,
                LastRawMessageErrorKind::JetStream(refusal)
                    if refusal.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                {
                    break;
                }
                _ => return Err(BusError::unavailable("cannot read dead letters", error)),
            },
        };
        next = letter.sequence + 1;
        let mut about = message::wire_headers(Some(&letter.headers));
        letters.push(DeadLetter {
            topic: about.take(wire::DEAD_TOPIC).unwrap_or_default(),
            reason: about.take(wire::DEAD_REASON).unwrap_or_default(),
            attempts: about.take(wire::DEAD_ATTEMPTS).and_then(|attempts| attempts.parse().ok()),
            envelope: message::read(Some(&letter.headers), letter.payload),
        });
    }
    Ok(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_subjects() {
        let check = |pattern: &str, expected: &[&str]| {
            let found = subjects(&pattern.parse().expect("a pattern"));
            assert_eq!(found.unwrap_or_default(), expected, "{pattern}");
        };
        check("tool.invoke", &["tool.invoke"]);
        check("agent.task.*", &["agent.task.*"]);
        check("tool.#", &["tool", "tool.>"]);
        check("#", &[">"]);
        check("#.mcp", &[]);
        check("tool.#.mcp.#", &[]);
    }
}
