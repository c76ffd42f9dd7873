//! Replies to requests: their topic, the time that their senders wait, and the attempts to send them.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use toolyard_core::store::{StoreError, StoreErrorKind};

use crate::bus::{BusError, BusErrorKind, MessageBus};
use crate::envelope::Envelope;
use crate::headers;
use crate::message::BusMessage;
use crate::stored_results::{self, ResultReference, StoredResultError};
use crate::topic::Topic;

/// Tolerated error of a message's age. AMQP transports whole seconds.
pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);

/// Time between two attempts to send a reply.
const REPLY_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum time that a sender of a request waits. Instants far in the future cannot be represented.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the topic of the reply to a request, which is no topic of requests: the reply would be a request of this
/// process or of another one. `default` is the topic if the request names none.
///
/// # Errors
/// The reason why the message cannot be answered.
pub(crate) fn reply_topic(request: &Envelope, default: &'static str) -> Result<Topic, String> {
    match request.reply_topic() {
        Ok(Some(topic)) if topic.is_of_requests() => Err("`replyTo` is a topic of requests".to_owned()),
        Ok(Some(topic)) => Ok(topic),
        Ok(None) => Ok(Topic::of(default)),
        Err(invalid) => Err(format!("`replyTo` is no topic: {invalid}")),
    }
}

/// Returns the time for which the sender of a request waits, by the header `rb-timeout-ms`; `None` without the header.
pub(crate) fn time_limit(request: &Envelope) -> Option<Duration> {
    let millis = request.headers.get(headers::TIMEOUT_MS)?.trim().parse().ok()?;
    Some(Duration::from_millis(millis).min(MAX_WAIT))
}

/// Returns the rest of a time limit that began when the request was sent.
pub(crate) fn time_left(request: &Envelope, limit: Duration) -> Duration {
    limit.saturating_sub(request.age().saturating_sub(CLOCK_TOLERANCE))
}

/// The way of a reply to its sender.
#[derive(Clone, Copy)]
pub(crate) struct ReplyRoute<'a> {
    pub(crate) bus: &'a dyn MessageBus,
    pub(crate) request: &'a Envelope,
    pub(crate) topic: &'a Topic,
    /// End of the attempts to send the reply.
    pub(crate) until: Instant,
}

impl ReplyRoute<'_> {
    /// Sends a reply, and tries again until the end, because a receiver drops a second copy. A reply that exceeds the limit
    /// of the bus is stored for a sender that reads it there; `too_large` returns the error, with this reason, that other
    /// receivers see.
    ///
    /// # Errors
    /// As for [`MessageBus::broadcast`].
    pub(crate) async fn send<R>(
        self,
        mut reply: R,
        envelope: impl Fn(&R) -> Result<Envelope, BusError>,
        too_large: impl Fn(String) -> R,
    ) -> Result<(), BusError> {
        let (mut is_reduced, mut reference) = (false, None);
        loop {
            let mut message = envelope(&reply)?;
            if let Some(reference) = &reference {
                message = ResultReference::attach(reference, message)?;
            }
            match self.bus.broadcast(self.topic, message).await {
                Err(error) if error.kind() == BusErrorKind::TooLarge && !is_reduced => {
                    let stored = self.store(&envelope(&reply)?).await;
                    let reason = match &stored {
                        Ok(_) => format!("{error}. It is in the store of the process that ran it."),
                        Err(problem) => format!("{error}. {problem}"),
                    };
                    (reply, reference, is_reduced) = (too_large(reason), stored.ok(), true);
                }
                Err(error) if error.kind() == BusErrorKind::TooLarge || Instant::now() >= self.until => {
                    return Err(error);
                }
                Err(_) => sleep(REPLY_INTERVAL).await,
                Ok(()) => return Ok(()),
            }
        }
    }

    async fn store(self, message: &Envelope) -> Result<ResultReference, StoredResultError> {
        let stored = timeout_at(self.until, stored_results::store(self.bus, self.request, message)).await;
        let late = || StoreError::new(StoreErrorKind::Unavailable, "it does not answer");
        stored.unwrap_or_else(|_| Err(StoredResultError::Store(late())))
    }
}

/// Returns a reply to a message: with its correlation id, or else its message id, and its trace.
///
/// # Errors
/// As for [`Envelope::of`].
pub fn reply_to<M: BusMessage>(request: &Envelope, message: &M, source: &str) -> Result<Envelope, BusError> {
    let id = request.correlation_id.as_ref().unwrap_or(&request.message_id);
    let mut reply = Envelope::of(message, source)?.correlated(id).traced(request.trace.clone());
    reply.destination = Some(request.source.clone()).filter(|source| !source.is_empty());
    Ok(reply)
}
