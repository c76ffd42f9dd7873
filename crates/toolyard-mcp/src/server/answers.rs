//! Answers of calls of one session, kept for a client that did not get them: whatever their size, apart from what else was
//! sent.
//!
//! One that its client may still be reading, or come back for, has a place among those of all sessions. Once it was read to
//! its end it is kept because some of it may be lost on the way all the same: the latest, within the bound of what else is
//! kept of the session, and at least one.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The answers of one session.
#[derive(Debug)]
pub(super) struct Answers {
    kept: VecDeque<Kept>,
    /// How many bytes those may have that were read to their end, where there are several.
    most_bytes: usize,
    /// The places of all sessions.
    places: Arc<Semaphore>,
}

#[derive(Debug)]
struct Kept {
    stream: u64,
    place: u64,
    event: Vec<Bytes>,
    /// `None` once it was read to its end.
    unread: Option<OwnedSemaphorePermit>,
}

impl Answers {
    pub(super) const fn new(most_bytes: usize, places: Arc<Semaphore>) -> Self {
        Self { kept: VecDeque::new(), most_bytes, places }
    }

    /// Keeps an answer that a stream ends with; whether there was a place for it.
    pub(super) fn keep(&mut self, stream: u64, place: u64, event: &[Bytes]) -> bool {
        let Ok(unread) = self.places.clone().try_acquire_owned() else { return false };
        self.kept.push_back(Kept { stream, place, event: event.to_vec(), unread: Some(unread) });
        true
    }

    /// A stream was read to its end. Its place is for another one.
    pub(super) fn read(&mut self, stream: u64) {
        self.kept.iter_mut().filter(|kept| kept.stream == stream).for_each(|kept| kept.unread = None);
        let mut bytes = 0;
        let mut is_latest = true;
        for at in (0..self.kept.len()).rev().filter(|at| self.kept[*at].unread.is_none()).collect::<Vec<_>>()
        {
            bytes += self.kept[at].event.iter().map(Bytes::len).sum::<usize>();
            if !std::mem::take(&mut is_latest) && bytes > self.most_bytes {
                self.kept.remove(at);
            }
        }
    }

    /// The answers of a stream behind a place: those to a batch are several.
    pub(super) fn after(&self, stream: u64, place: u64) -> impl Iterator<Item = Vec<Bytes>> {
        let missed = self.kept.iter().filter(move |kept| kept.stream == stream && kept.place > place);
        missed.map(|kept| kept.event.clone())
    }

    /// Nobody comes back to a stream.
    pub(super) fn forget(&mut self, stream: u64) {
        self.kept.retain(|kept| kept.stream != stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(answers: &Answers) -> Vec<u64> {
        (0..10).filter(|stream| answers.after(*stream, 0).count() == 1).collect()
    }

    #[test]
    fn unread_answers_have_places_and_read_ones_a_bound() {
        let places = Arc::new(Semaphore::new(2));
        let [mut answers, mut others] = [10, 10].map(|bytes| Answers::new(bytes, places.clone()));
        let event = |bytes: usize| [Bytes::from(vec![b'x'; bytes])];
        assert!(answers.keep(1, 1, &event(100)) && others.keep(2, 1, &event(100)));
        assert!(!answers.keep(3, 1, &event(1)), "all places are taken");
        assert_eq!(answers.after(1, 1).count(), 0, "it was got");
        answers.read(1);
        assert_eq!(kept(&answers), [1], "the latest is kept");
        assert!(answers.keep(3, 1, &event(6)));
        answers.read(3);
        assert_eq!(kept(&answers), [3]);
        for stream in [4, 5] {
            assert!(answers.keep(stream, 1, &event(4)));
            answers.read(stream);
        }
        assert!(answers.keep(6, 1, &event(100)));
        assert_eq!((kept(&answers), kept(&others)), (vec![4, 5, 6], vec![2]));
        answers.forget(6);
        others.forget(2);
        assert_eq!(places.available_permits(), 2);
    }
}
