//! A limited buffer of the events of a session, for clients that lost some, and the ids of events.

use std::collections::VecDeque;

use bytes::Bytes;
use toolyard_net::budget::{BudgetExhausted, ByteBudget, ByteReservation, SMALL_MESSAGE};

/// The purpose of a stream: messages that belong to no request, or those of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamPurpose {
    Notifications,
    Call,
}

/// The id of an event: the tag of the session, the purpose and number of the stream, and the position in it, as in
/// `1f0c-call-3-17`. Position 0 is the beginning, before any message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) purpose: StreamPurpose,
    pub(super) stream: u64,
    pub(super) position: u64,
}

impl EventId {
    pub(super) fn format(self, tag: &str) -> String {
        let purpose = match self.purpose {
            StreamPurpose::Notifications => "news",
            StreamPurpose::Call => "call",
        };
        format!("{tag}-{purpose}-{}-{}", self.stream, self.position)
    }

    /// Parses an id that was issued in the session with this tag.
    pub(super) fn parse(text: &str, tag: &str) -> Option<Self> {
        let mut parts = text.strip_prefix(tag)?.strip_prefix('-')?.split('-');
        let purpose = match parts.next()? {
            "news" => StreamPurpose::Notifications,
            "call" => StreamPurpose::Call,
            _ => return None,
        };
        let mut number = || parts.next()?.parse().ok();
        let id = Self { purpose, stream: number()?, position: number()? };
        parts.next().is_none().then_some(id)
    }
}

/// The latest events of all streams of a session.
#[derive(Debug)]
pub(super) struct ReplayBuffer {
    events: VecDeque<ReplayEvent>,
    bytes: usize,
    max_bytes: usize,
    budget: ByteBudget,
}

#[derive(Debug)]
struct ReplayEvent {
    stream: u64,
    position: u64,
    event: Vec<Bytes>,
    _reserved: ByteReservation,
}

/// Reserves memory for a stored event. Its large pieces have reservations of their own.
pub(super) fn reserve_event(
    budget: &ByteBudget,
    event: &[Bytes],
) -> Result<ByteReservation, BudgetExhausted> {
    let small = event.iter().map(Bytes::len).filter(|length| *length <= SMALL_MESSAGE);
    budget.try_reserve(EVENT_OVERHEAD + small.sum::<usize>())
}

/// Overhead of an event in bytes, which limits the number of small ones.
const EVENT_OVERHEAD: usize = 128;

impl ReplayEvent {
    fn size(&self) -> usize {
        EVENT_OVERHEAD + self.event.iter().map(Bytes::len).sum::<usize>()
    }
}

impl ReplayBuffer {
    pub(super) const fn new(max_bytes: usize, budget: ByteBudget) -> Self {
        Self { events: VecDeque::new(), bytes: 0, max_bytes, budget }
    }

    /// Stores an event, and drops the oldest ones if necessary. An event over the total limit, or without memory for
    /// it, is not stored.
    pub(super) fn store(&mut self, stream: u64, position: u64, event: &[Bytes]) {
        let Ok(reserved) = reserve_event(&self.budget, event) else { return };
        let stored = ReplayEvent { stream, position, event: event.to_vec(), _reserved: reserved };
        if stored.size() > self.max_bytes {
            return;
        }
        self.bytes += stored.size();
        self.events.push_back(stored);
        while self.bytes > self.max_bytes
            && let Some(oldest) = self.events.pop_front()
        {
            self.bytes -= oldest.size();
        }
    }

    /// Returns the stored events of a stream after a position.
    pub(super) fn after(&self, stream: u64, position: u64) -> VecDeque<Vec<Bytes>> {
        let later = self.events.iter().filter(|stored| stored.stream == stream && stored.position > position);
        later.map(|stored| stored.event.clone()).collect()
    }

    /// Drops the older half.
    pub(super) fn shrink(&mut self) {
        let half = self.events.len().div_ceil(2);
        self.bytes -= self.events.drain(..half).map(|stored| stored.size()).sum::<usize>();
    }

    /// Drops the events of a stream.
    pub(super) fn forget(&mut self, stream: u64) {
        self.events.retain(|stored| stored.stream != stream);
        self.bytes = self.events.iter().map(ReplayEvent::size).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_ids_round_trip() {
        for purpose in [StreamPurpose::Notifications, StreamPurpose::Call] {
            let id = EventId { purpose, stream: 3, position: u64::MAX };
            assert_eq!(EventId::parse(&id.format("1f"), "1f"), Some(id));
            assert_eq!(EventId::parse(&id.format("1f"), "1e"), None);
        }
        for text in [
            "",
            "1f",
            "1f-",
            "1f-call",
            "1f-call-1",
            "1f-call-1-",
            "1f-call-1-2-3",
            "1f-x-1-2",
            "1f-call--1-2",
        ] {
            assert_eq!(EventId::parse(text, "1f"), None, "{text}");
        }
    }

    fn texts_after(replay: &ReplayBuffer, stream: u64, position: u64) -> Vec<String> {
        replay
            .after(stream, position)
            .into_iter()
            .map(|event| String::from_utf8(event.concat()).unwrap())
            .collect()
    }

    #[test]
    fn latest_events_are_kept() {
        let mut replay = ReplayBuffer::new(3 * (EVENT_OVERHEAD + 1), ByteBudget::default());
        for (stream, position, text) in [(1, 1, "a"), (2, 1, "b"), (1, 2, "c"), (1, 3, "d")] {
            replay.store(stream, position, &[text.into()]);
        }
        assert_eq!(texts_after(&replay, 1, 0), ["c", "d"]);
        assert_eq!(texts_after(&replay, 1, 2), ["d"]);
        assert_eq!(texts_after(&replay, 2, 0), ["b"]);
        replay.store(2, 2, &[vec![b'x'; 4 * EVENT_OVERHEAD].into()]);
        assert_eq!(texts_after(&replay, 2, 0), ["b"], "what is larger than the bound drives nothing out");
        replay.forget(1);
        assert_eq!((texts_after(&replay, 1, 0).len(), replay.bytes), (0, EVENT_OVERHEAD + 1));
    }

    #[test]
    fn oldest_events_are_dropped_when_memory_is_short() {
        let budget = ByteBudget::new(4 << 10);
        let mut replay = ReplayBuffer::new(1 << 20, budget.clone());
        for position in 1..=5 {
            replay.store(1, position, &[position.to_string().into()]);
        }
        assert_eq!(texts_after(&replay, 1, 0), ["1", "2", "3", "4"], "there is no memory for another one");
        replay.shrink();
        assert_eq!(
            (texts_after(&replay, 1, 0), budget.used()),
            (vec!["3".to_owned(), "4".to_owned()], 2 << 10)
        );
        replay.shrink();
        replay.shrink();
        replay.shrink();
        assert_eq!((replay.bytes, budget.used()), (0, 0));
    }
}
