//! The queue of messages that precede the response to a request. Most requests have none, so that an empty queue
//! costs one allocation.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

/// Returns both ends of a queue of at most `capacity` messages, and at least one.
pub(in crate::server) fn notice_queue(capacity: usize) -> (NoticeSender, NoticeReceiver) {
    let state = QueueState { senders: 1, has_receiver: true, ..QueueState::default() };
    let queue = Arc::new(NoticeQueue { capacity: capacity.max(1), state: Mutex::new(state) });
    (NoticeSender(queue.clone()), NoticeReceiver(queue))
}

/// Adds messages to a queue.
#[derive(Debug)]
pub(in crate::server) struct NoticeSender(Arc<NoticeQueue>);

/// Takes messages from a queue. `recv` is cancel safe.
#[derive(Debug)]
pub(in crate::server) struct NoticeReceiver(Arc<NoticeQueue>);

/// The receiver of a queue is gone.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::server) struct ReceiverGone;

#[derive(Debug)]
struct NoticeQueue {
    capacity: usize,
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    messages: VecDeque<Bytes>,
    senders: usize,
    has_receiver: bool,
    /// The task that waits for a message.
    reader: Option<Waker>,
    /// The tasks that wait for room.
    writers: Vec<Waker>,
}

impl NoticeQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NoticeSender {
    /// Returns the maximum number of messages.
    pub(in crate::server) fn capacity(&self) -> usize {
        self.0.capacity
    }

    /// Adds the message that `make` returns; `false` if the queue is full or closed, or if there is none.
    pub(in crate::server) fn try_send_with(&self, make: impl FnOnce() -> Option<Bytes>) -> bool {
        let mut state = self.0.lock();
        if !state.has_receiver || state.messages.len() >= self.0.capacity {
            return false;
        }
        let Some(message) = make() else { return false };
        state.messages.push_back(message);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        true
    }

    /// Adds a message once there is room.
    ///
    /// # Errors
    /// If the receiver is gone.
    pub(in crate::server) async fn send(&self, message: Bytes) -> Result<(), ReceiverGone> {
        let mut message = Some(message);
        poll_fn(|context| self.poll_send(context, &mut message)).await
    }

    fn poll_send(
        &self,
        context: &Context<'_>,
        message: &mut Option<Bytes>,
    ) -> Poll<Result<(), ReceiverGone>> {
        if self.try_send_with(|| message.take()) {
            return Poll::Ready(Ok(()));
        }
        let mut state = self.0.lock();
        if !state.has_receiver {
            return Poll::Ready(Err(ReceiverGone));
        }
        // Room that has come since is used at the next poll.
        if state.messages.len() < self.0.capacity {
            context.waker().wake_by_ref();
        } else if !state.writers.iter().any(|waker| waker.will_wake(context.waker())) {
            state.writers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Clone for NoticeSender {
    fn clone(&self) -> Self {
        self.0.lock().senders += 1;
        Self(self.0.clone())
    }
}

impl Drop for NoticeSender {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.senders -= 1;
        let reader = if state.senders == 0 { state.reader.take() } else { None };
        drop(state);
        reader.into_iter().for_each(Waker::wake);
    }
}

impl NoticeReceiver {
    /// Returns the number of queued messages.
    pub(in crate::server) fn len(&self) -> usize {
        self.0.lock().messages.len()
    }

    /// Takes the next message, if there is one.
    pub(in crate::server) fn try_recv(&mut self) -> Option<Bytes> {
        let mut state = self.0.lock();
        let message = state.messages.pop_front()?;
        let writers = std::mem::take(&mut state.writers);
        drop(state);
        writers.into_iter().for_each(Waker::wake);
        Some(message)
    }

    /// Waits for the next message; `None` once all senders are gone and the queue is empty.
    pub(in crate::server) async fn recv(&mut self) -> Option<Bytes> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    fn poll_recv(&mut self, context: &Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(message) = self.try_recv() {
            return Poll::Ready(Some(message));
        }
        let mut state = self.0.lock();
        // A message may have come since.
        if !state.messages.is_empty() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if state.senders == 0 {
            return Poll::Ready(None);
        }
        if !state.reader.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            state.reader = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for NoticeReceiver {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_receiver = false;
        state.messages.clear();
        let writers = std::mem::take(&mut state.writers);
        drop(state);
        writers.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn is_sent(sender: &NoticeSender, text: &'static str) -> bool {
        sender.try_send_with(|| Some(bytes(text)))
    }

    #[test]
    fn messages_come_in_their_order_and_no_more_than_fit() {
        let (sender, mut messages) = notice_queue(2);
        assert_eq!(["a", "b", "c"].map(|text| is_sent(&sender, text)), [true, true, false]);
        assert_eq!((messages.len(), messages.try_recv()), (2, Some(bytes("a"))));
        assert!(is_sent(&sender, "d"));
        assert!(!sender.try_send_with(|| panic!("the queue is full")));
        assert_eq!(
            [messages.try_recv(), messages.try_recv(), messages.try_recv()],
            [Some(bytes("b")), Some(bytes("d")), None]
        );
        assert!(!sender.try_send_with(|| None));
    }

    #[tokio::test]
    async fn reader_waits_for_a_message_and_for_the_end() {
        let (sender, mut messages) = notice_queue(0);
        let other = sender.clone();
        let reading = tokio::spawn(async move { [messages.recv().await, messages.recv().await] });
        tokio::task::yield_now().await;
        drop(sender);
        tokio::task::yield_now().await;
        assert!(is_sent(&other, "a"));
        drop(other);
        assert_eq!(reading.await.unwrap(), [Some(bytes("a")), None]);
    }

    #[tokio::test]
    async fn writer_waits_for_room_or_the_end_of_the_reader() {
        let (sender, mut messages) = notice_queue(1);
        sender.send(bytes("a")).await.unwrap();
        let other = sender.clone();
        let writing =
            tokio::spawn(async move { [other.send(bytes("b")).await, other.send(bytes("c")).await] });
        tokio::task::yield_now().await;
        assert_eq!(sender.send(bytes("x")).now_or_never(), None);
        assert_eq!(messages.recv().await, Some(bytes("a")));
        assert_eq!(messages.recv().await, Some(bytes("b")));
        assert_eq!(messages.recv().await, Some(bytes("c")));
        assert_eq!(writing.await.unwrap(), [Ok(()), Ok(())]);
        drop(messages);
        assert_eq!(sender.send(bytes("d")).await, Err(ReceiverGone));
        assert!(!is_sent(&sender, "d"));
    }
}
