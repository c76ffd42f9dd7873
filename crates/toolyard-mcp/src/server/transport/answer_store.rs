//! The answers to calls of one session, stored for a client that lost them: of any size, and apart from other messages.
//!
//! An answer whose stream was not read to its end holds a permit, of which all sessions share a number. Once the stream
//! was read, the answer is still stored, since its bytes may be lost on the way: at least the latest one, and as many
//! as fit the byte limit.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolyard_net::budget::{ByteBudget, ByteReservation};

use super::replay::reserve_event;

/// The answers of one session.
#[derive(Debug)]
pub(super) struct AnswerStore {
    stored: VecDeque<StoredAnswer>,
    /// Maximum size in bytes of the answers whose streams were read, if there are several.
    max_read_bytes: usize,
    /// The permits of all sessions.
    permits: Arc<Semaphore>,
    budget: ByteBudget,
}

#[derive(Debug)]
struct StoredAnswer {
    stream: u64,
    position: u64,
    event: Vec<Bytes>,
    /// `None` once the stream was read to its end.
    permit: Option<OwnedSemaphorePermit>,
    _reserved: ByteReservation,
}

impl AnswerStore {
    pub(super) const fn new(max_read_bytes: usize, permits: Arc<Semaphore>, budget: ByteBudget) -> Self {
        Self { stored: VecDeque::new(), max_read_bytes, permits, budget }
    }

    /// Stores an answer at the end of a stream; `false` if there is no permit or no memory for it.
    pub(super) fn store(&mut self, stream: u64, position: u64, event: &[Bytes]) -> bool {
        let Ok(permit) = self.permits.clone().try_acquire_owned() else { return false };
        let Ok(reserved) = reserve_event(&self.budget, event) else { return false };
        let (event, permit) = (event.to_vec(), Some(permit));
        self.stored.push_back(StoredAnswer { stream, position, event, permit, _reserved: reserved });
        true
    }

    /// Marks a stream as read to its end, which releases its permit.
    pub(super) fn mark_read(&mut self, stream: u64) {
        self.stored
            .iter_mut()
            .filter(|answer| answer.stream == stream)
            .for_each(|answer| answer.permit = None);
        let mut bytes = 0;
        let mut is_latest = true;
        for at in
            (0..self.stored.len()).rev().filter(|at| self.stored[*at].permit.is_none()).collect::<Vec<_>>()
        {
            bytes += self.stored[at].event.iter().map(Bytes::len).sum::<usize>();
            if !std::mem::take(&mut is_latest) && bytes > self.max_read_bytes {
                self.stored.remove(at);
            }
        }
    }

    /// Returns the answers of a stream after a position: a batch has several.
    pub(super) fn after(&self, stream: u64, position: u64) -> impl Iterator<Item = Vec<Bytes>> {
        let later =
            self.stored.iter().filter(move |answer| answer.stream == stream && answer.position > position);
        later.map(|answer| answer.event.clone())
    }

    /// Drops the answers whose streams were read to the end.
    pub(super) fn shrink(&mut self) {
        self.stored.retain(|answer| answer.permit.is_some());
    }

    /// Drops the answers of a stream.
    pub(super) fn forget(&mut self, stream: u64) {
        self.stored.retain(|answer| answer.stream != stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams_in(answers: &AnswerStore) -> Vec<u64> {
        (0..10).filter(|stream| answers.after(*stream, 0).count() == 1).collect()
    }

    #[test]
    fn unread_answers_hold_permits_and_read_ones_are_limited() {
        let permits = Arc::new(Semaphore::new(2));
        let [mut answers, mut others] =
            [10, 10].map(|bytes| AnswerStore::new(bytes, permits.clone(), ByteBudget::default()));
        let event = |bytes: usize| [Bytes::from(vec![b'x'; bytes])];
        assert!(answers.store(1, 1, &event(100)) && others.store(2, 1, &event(100)));
        assert!(!answers.store(3, 1, &event(1)), "all places are taken");
        assert_eq!(answers.after(1, 1).count(), 0, "it was got");
        answers.mark_read(1);
        assert_eq!(streams_in(&answers), [1], "the latest is kept");
        assert!(answers.store(3, 1, &event(6)));
        answers.mark_read(3);
        assert_eq!(streams_in(&answers), [3]);
        for stream in [4, 5] {
            assert!(answers.store(stream, 1, &event(4)));
            answers.mark_read(stream);
        }
        assert!(answers.store(6, 1, &event(100)));
        assert_eq!((streams_in(&answers), streams_in(&others)), (vec![4, 5, 6], vec![2]));
        answers.shrink();
        assert_eq!(streams_in(&answers), [6], "those that were read are dropped where memory is short");
        answers.forget(6);
        others.forget(2);
        assert_eq!(permits.available_permits(), 2);
    }
}
