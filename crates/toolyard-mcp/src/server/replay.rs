//! What was sent on the streams of a session, kept within a bound for a client that did not get it, and the ids by which
//! it says what it got.

use std::collections::VecDeque;

use bytes::Bytes;

/// What belongs to no request, or to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    News,
    Call,
}

/// The id of an event: it names the session's tag, the stream, what that is for, and the event's place in it, as
/// `1f0c-call-3-17`. Place 0 is the beginning, before any message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) purpose: Purpose,
    pub(super) stream: u64,
    pub(super) place: u64,
}

impl EventId {
    pub(super) fn write(self, tag: &str) -> String {
        let purpose = match self.purpose {
            Purpose::News => "news",
            Purpose::Call => "call",
        };
        format!("{tag}-{purpose}-{}-{}", self.stream, self.place)
    }

    /// Reads an id that was given out in the session with this tag.
    pub(super) fn read(text: &str, tag: &str) -> Option<Self> {
        let mut parts = text.strip_prefix(tag)?.strip_prefix('-')?.split('-');
        let purpose = match parts.next()? {
            "news" => Purpose::News,
            "call" => Purpose::Call,
            _ => return None,
        };
        let mut number = || parts.next()?.parse().ok();
        let id = Self { purpose, stream: number()?, place: number()? };
        parts.next().is_none().then_some(id)
    }
}

/// The latest events of all streams of a session.
#[derive(Debug)]
pub(super) struct Replay {
    sent: VecDeque<Sent>,
    bytes: usize,
    most_bytes: usize,
}

#[derive(Debug)]
struct Sent {
    stream: u64,
    place: u64,
    event: Vec<Bytes>,
}

/// What an event takes beside its text, in bytes, so that many small ones are bounded too.
const OVERHEAD: usize = 128;

impl Sent {
    fn size(&self) -> usize {
        OVERHEAD + self.event.iter().map(Bytes::len).sum::<usize>()
    }
}

impl Replay {
    pub(super) const fn new(most_bytes: usize) -> Self {
        Self { sent: VecDeque::new(), bytes: 0, most_bytes }
    }

    /// Keeps an event, in the place of the oldest ones. One that is larger than all that may be kept is not.
    pub(super) fn keep(&mut self, stream: u64, place: u64, event: &[Bytes]) {
        let sent = Sent { stream, place, event: event.to_vec() };
        if sent.size() > self.most_bytes {
            return;
        }
        self.bytes += sent.size();
        self.sent.push_back(sent);
        while self.bytes > self.most_bytes
            && let Some(oldest) = self.sent.pop_front()
        {
            self.bytes -= oldest.size();
        }
    }

    /// What was sent on a stream behind a place, as far as it is kept.
    pub(super) fn after(&self, stream: u64, place: u64) -> VecDeque<Vec<Bytes>> {
        let missed = self.sent.iter().filter(|sent| sent.stream == stream && sent.place > place);
        missed.map(|sent| sent.event.clone()).collect()
    }

    /// Nobody comes back to a stream.
    pub(super) fn forget(&mut self, stream: u64) {
        self.sent.retain(|sent| sent.stream != stream);
        self.bytes = self.sent.iter().map(Sent::size).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_were_written() {
        for purpose in [Purpose::News, Purpose::Call] {
            let id = EventId { purpose, stream: 3, place: u64::MAX };
            assert_eq!(EventId::read(&id.write("1f"), "1f"), Some(id));
            assert_eq!(EventId::read(&id.write("1f"), "1e"), None);
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
            assert_eq!(EventId::read(text, "1f"), None, "{text}");
        }
    }

    fn kept(replay: &Replay, stream: u64, place: u64) -> Vec<String> {
        replay
            .after(stream, place)
            .into_iter()
            .map(|event| String::from_utf8(event.concat()).unwrap())
            .collect()
    }

    #[test]
    fn the_latest_are_kept() {
        let mut replay = Replay::new(3 * (OVERHEAD + 1));
        for (stream, place, text) in [(1, 1, "a"), (2, 1, "b"), (1, 2, "c"), (1, 3, "d")] {
            replay.keep(stream, place, &[text.into()]);
        }
        assert_eq!(kept(&replay, 1, 0), ["c", "d"]);
        assert_eq!(kept(&replay, 1, 2), ["d"]);
        assert_eq!(kept(&replay, 2, 0), ["b"]);
        replay.keep(2, 2, &[vec![b'x'; 4 * OVERHEAD].into()]);
        assert_eq!(kept(&replay, 2, 0), ["b"], "what is larger than the bound drives nothing out");
        replay.forget(1);
        assert_eq!((kept(&replay, 1, 0).len(), replay.bytes), (0, OVERHEAD + 1));
    }
}
