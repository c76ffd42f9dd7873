//! A request that waits for its reply.

use std::fmt;
use std::future;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout_at};

use super::{PendingReplies, Requester, is_notice};
use crate::bus::{BusError, BusErrorKind, MessageBus};
use crate::envelope::{Envelope, new_id};
use crate::topic::Topic;

/// A request that was sent, or is being sent. Dropping it forgets the request; its receiver is not notified.
pub struct PendingRequest {
    id: String,
    replies: mpsc::Receiver<Envelope>,
    pending: Arc<PendingReplies>,
    /// Sends the request, until the broker has confirmed it.
    sending: Option<Sending>,
    /// Takes over confirmations that come after the reply. There are as many as messages without a confirmation.
    unconfirmed: mpsc::UnboundedSender<Sending>,
    /// The request, if it is sent again after a loss of the connection.
    repeated: Option<OutgoingRequest>,
    connections: watch::Receiver<u64>,
    /// Number of the connection that it was sent on.
    connection: u64,
}

/// The consequence of a loss of the connection for a request that waits for its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repetition {
    /// The request waits on: its receiver must not get it twice.
    Never,
    /// The request is sent again, because the loss may have taken it, or its reply, along.
    AfterLoss,
}

/// A request with its topic.
#[derive(Clone)]
pub(super) struct OutgoingRequest {
    pub(super) bus: Arc<dyn MessageBus>,
    pub(super) topic: Topic,
    pub(super) envelope: Envelope,
}

/// The sending of a request, up to its confirmation.
pub(super) type Sending = BoxFuture<'static, Result<(), BusError>>;

impl PendingRequest {
    pub(super) fn new(
        requester: &Requester,
        id: String,
        replies: mpsc::Receiver<Envelope>,
        outgoing: OutgoingRequest,
        repetition: Repetition,
    ) -> Self {
        let repeated = (repetition == Repetition::AfterLoss).then(|| outgoing.clone());
        let Requester { pending, unconfirmed, connections, .. } = requester;
        Self {
            id,
            replies,
            pending: pending.clone(),
            sending: Some(outgoing.send()),
            unconfirmed: unconfirmed.clone(),
            repeated,
            // Without a connection it is sent on the next one.
            connection: *connections.borrow() | 1,
            connections: connections.clone(),
        }
    }

    /// Returns the request once the broker has confirmed it.
    ///
    /// # Errors
    /// As for [`MessageBus::publish`], but for a missing confirmation.
    pub(super) async fn confirmed(mut self) -> Result<Self, BusError> {
        if let Some(sending) = self.sending.take() {
            sent(sending.await)?;
        }
        Ok(self)
    }

    /// Returns the correlation id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the next message with the correlation id of the request.
    ///
    /// # Errors
    /// As for [`MessageBus::publish`] if the request was not sent, or if the bus has ended.
    pub async fn next(&mut self) -> Result<Envelope, BusError> {
        loop {
            let is_repeated = self.sending.is_none() && self.repeated.is_some();
            tokio::select! {
                biased;
                reply = self.replies.recv() => {
                    // The request has arrived. Its place among the unconfirmed messages is free with the confirmation.
                    if let Some(sending) = self.sending.take() {
                        drop(self.unconfirmed.send(sending));
                    }
                    return reply.ok_or_else(BusError::closed);
                }
                ended = ended(&mut self.sending) => {
                    self.sending = None;
                    sent(ended)?;
                }
                number = other_connection(&mut self.connections, self.connection), if is_repeated => {
                    self.connection = number;
                    self.sending = self.repeated.as_ref().map(OutgoingRequest::send_again);
                }
            }
        }
    }

    /// Returns the reply, and drops notices before it.
    ///
    /// # Errors
    /// [`Timeout`](BusErrorKind::Timeout) if there is none in time, and as for [`next`](Self::next).
    pub async fn reply_before(&mut self, deadline: Instant) -> Result<Envelope, BusError> {
        loop {
            let reply = timeout_at(deadline, self.next()).await.map_err(|_| late())??;
            if !is_notice(&reply) {
                return Ok(reply);
            }
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.pending.lock().remove(&self.id);
    }
}

/// Waits for the end of the sending, if there is one.
async fn ended(sending: &mut Option<Sending>) -> Result<(), BusError> {
    match sending {
        Some(sending) => sending.await,
        None => future::pending().await,
    }
}

/// Waits for another connection than this one, and returns its number.
async fn other_connection(connections: &mut watch::Receiver<u64>, current: u64) -> u64 {
    let other = connections.wait_for(|number| number & 1 == 1 && *number != current).await.map(|it| *it);
    match other {
        Ok(number) => number,
        Err(_) => future::pending().await,
    }
}

impl OutgoingRequest {
    fn send(self) -> Sending {
        let Self { bus, topic, envelope } = self;
        async move { bus.publish(&topic, envelope).await }.boxed()
    }

    /// Sends the request as another message: the first one may have been stored, and its reply lost.
    fn send_again(&self) -> Sending {
        let mut again = self.clone();
        if let Ok(id) = new_id() {
            again.envelope.message_id = id;
        }
        again.send()
    }
}

/// Returns the error of a request that was not sent. One without a confirmation may have been.
fn sent(ended: Result<(), BusError>) -> Result<(), BusError> {
    match ended {
        Err(error) if error.kind() == BusErrorKind::Unconfirmed => Ok(()),
        ended => ended,
    }
}

fn late() -> BusError {
    BusError::new(BusErrorKind::Timeout, "no reply in time")
}

impl fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequest").field("id", &self.id).finish_non_exhaustive()
    }
}
