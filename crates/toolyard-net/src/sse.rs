//! Server-sent events, read and written (WHATWG HTML, 9.2).

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Type of the event; empty means `message`.
    pub kind: String,
    /// Data, lines joined by `\n`.
    pub data: Bytes,
    /// ID, if the event set one.
    pub id: Option<String>,
}

/// An event is larger than the limit of the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {0} bytes")]
pub struct EventTooLarge(pub usize);

/// Parses events from a stream of arbitrary chunks.
#[derive(Debug)]
pub struct SseDecoder {
    buffer: BytesMut,
    /// Length of the beginning of the buffer without line breaks.
    searched: usize,
    /// `true` if the last line ended in CR at the end of the buffer: a following LF belongs to it.
    after_cr: bool,
    at_start: bool,
    event: SseEvent,
    has_data: bool,
    last_id: Option<String>,
    retry: Option<Duration>,
    limit: usize,
}

impl SseDecoder {
    /// A decoder for events of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            after_cr: false,
            at_start: true,
            event: SseEvent::default(),
            has_data: false,
            last_id: None,
            retry: None,
            limit,
        }
    }

    /// ID of the latest event that set one, with or without data. An empty ID resets it.
    #[must_use]
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Reconnection time that the stream has set.
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Number of buffered bytes that are not part of a returned event.
    #[must_use]
    pub fn buffered_len(&self) -> usize {
        self.buffer.len() + self.event.data.len()
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete event with data; `None` if more bytes are needed.
    ///
    /// # Errors
    /// Errors if an event exceeds the limit. The stream cannot be read any further.
    pub fn next_event(&mut self) -> Result<Option<SseEvent>, EventTooLarge> {
        while let Some(line) = self.next_line() {
            if self.event.data.len() + line.len() > self.limit {
                return Err(EventTooLarge(self.limit));
            }
            if !line.is_empty() {
                self.field(&line);
                continue;
            }
            let event = std::mem::take(&mut self.event);
            if event.id.is_some() {
                self.last_id.clone_from(&event.id);
            }
            if std::mem::take(&mut self.has_data) {
                return Ok(Some(event));
            }
        }
        if self.buffer.len() > self.limit { Err(EventTooLarge(self.limit)) } else { Ok(None) }
    }

    fn next_line(&mut self) -> Option<Bytes> {
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer[0] == b'\n' {
                self.buffer.advance(1);
            }
        }
        let Some(line_end) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + line_end).freeze();
        self.searched = 0;
        self.after_cr = self.buffer[0] == b'\r';
        self.buffer.advance(1);
        let bom = std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf");
        Some(if bom { line.slice(3..) } else { line })
    }

    fn field(&mut self, line: &Bytes) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.slice((colon + 1).min(line.len())..);
        let value = if value.starts_with(b" ") { value.slice(1..) } else { value };
        match &line[..colon] {
            b"data" => self.data(value),
            b"event" => self.event.kind = String::from_utf8_lossy(&value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.event.id = Some(String::from_utf8_lossy(&value).into_owned())
            }
            b"retry" => self.retry = milliseconds(&value).or(self.retry),
            // Comments (an empty name), and fields of later standards.
            _ => {}
        }
    }

    /// Adds a line of data. A single line, as JSON-RPC messages have, is not copied.
    fn data(&mut self, line: Bytes) {
        if !std::mem::replace(&mut self.has_data, true) {
            self.event.data = line;
            return;
        }
        let mut joined = BytesMut::from(std::mem::take(&mut self.event.data));
        joined.extend_from_slice(b"\n");
        joined.extend_from_slice(&line);
        self.event.data = joined.freeze();
    }
}

/// Parses a number that consists of digits only.
fn milliseconds(text: &[u8]) -> Option<Duration> {
    let digits = text.iter().all(u8::is_ascii_digit).then_some(text)?;
    std::str::from_utf8(digits).ok()?.parse().ok().map(Duration::from_millis)
}

/// The pieces of an event of type `kind`. Neither text may contain a line break.
#[must_use]
pub fn named_event(kind: &str, data: &str) -> Vec<Bytes> {
    vec![format!("event: {kind}\ndata: {data}\n\n").into()]
}

/// The pieces of an event of type `message`. `data` must not contain a line break.
#[must_use]
pub fn message_event(data: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    let head = std::iter::once(Bytes::from_static(b"event: message\ndata: "));
    head.chain(data).chain(std::iter::once(Bytes::from_static(b"\n\n"))).collect()
}

/// As [`message_event`], with an ID for resumption. The ID must not contain a line break.
#[must_use]
pub fn numbered_message(id: &str, data: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    let head = std::iter::once(Bytes::from(format!("id: {id}\nevent: message\ndata: ")));
    head.chain(data).chain(std::iter::once(Bytes::from_static(b"\n\n"))).collect()
}

/// An event without data, which sets an ID for resumption and the reconnection time.
#[must_use]
pub fn priming_event(id: &str, retry: Duration) -> Bytes {
    format!("id: {id}\nretry: {}\ndata: \n\n", retry.as_millis()).into()
}

/// A comment that keeps an idle stream from being considered dead.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `stream` at once, and again byte by byte.
    #[track_caller]
    fn check(stream: &str, expect: &[(&str, &str)]) {
        for step in [stream.len().max(1), 1] {
            let mut decoder = SseDecoder::new(1000);
            let mut events = Vec::new();
            for piece in stream.as_bytes().chunks(step) {
                decoder.push(piece);
                while let Some(event) = decoder.next_event().unwrap() {
                    events.push((event.kind, String::from_utf8(event.data.to_vec()).unwrap()));
                }
            }
            let events: Vec<_> = events.iter().map(|(kind, data)| (&**kind, &**data)).collect();
            assert_eq!(events, expect, "in steps of {step}");
        }
    }

    #[test]
    fn events_do_not_depend_on_chunks() {
        check("", &[]);
        check("data: 1\n\n", &[("", "1")]);
        check("data:1\r\n\r\ndata: 2\r\rdata:  3\n\n", &[("", "1"), ("", "2"), ("", " 3")]);
        check("\u{feff}event: x\ndata: a\ndata: b\ndata\n\n", &[("x", "a\nb\n")]);
        check(": comment\n\nevent: lost\n\nid: 7\nretry: 5\ndata: {}\n\n", &[("", "{}")]);
        check("data: unfinished\n", &[]);
        check("data\n\n", &[("", "")]);
    }

    #[test]
    fn too_large_event_is_an_error() {
        for stream in ["data: 0123456789", "data: 01234\ndata: 56789\n\n"] {
            let mut decoder = SseDecoder::new(10);
            decoder.push(stream.as_bytes());
            assert_eq!(decoder.next_event(), Err(EventTooLarge(10)), "{stream}");
        }
    }

    /// Checks ID and reconnection time in milliseconds, for any chunks.
    #[track_caller]
    fn check_return(stream: &str, last_id: Option<&str>, retry: Option<u64>) {
        for step in [stream.len(), 1] {
            let mut decoder = SseDecoder::new(1000);
            for piece in stream.as_bytes().chunks(step) {
                decoder.push(piece);
                while decoder.next_event().unwrap().is_some() {}
            }
            let expect = (last_id, retry.map(Duration::from_millis));
            assert_eq!((decoder.last_id(), decoder.retry()), expect, "in steps of {step}");
        }
    }

    #[test]
    fn resumption_id_and_retry_time() {
        check_return("data: 1\n\n", None, None);
        check_return("id: 1\nretry: 500\ndata: \n\n", Some("1"), Some(500));
        check_return("id: 1\n\n", Some("1"), None);
        check_return("id: 1\ndata: a\n\nid: 2\ndata: unfinished\n", Some("1"), None);
        check_return("id: 1\ndata: a\n\ndata: b\n\n", Some("1"), None);
        check_return("id: 1\ndata: a\n\nid\ndata: b\n\n", Some(""), None);
        check_return("id: 1\0\ndata: a\n\n", None, None);
        check_return("retry: 7\nretry: 1e3\nretry: -1\nretry\n", None, Some(7));
        check_return("retry: 99999999999999999999\n", None, None);
    }

    proptest::proptest! {
        #[test]
        fn written_events_are_parsed(data in proptest::collection::vec("[^\r\n]{0,40}", 0..10)) {
            let mut decoder = SseDecoder::new(1000);
            for text in &data {
                message_event([Bytes::from(text.clone())]).iter().for_each(|piece| decoder.push(piece));
                decoder.push(&KEEP_ALIVE);
            }
            for text in &data {
                let event = decoder.next_event().unwrap().unwrap();
                proptest::prop_assert_eq!((&*event.kind, &event.data[..]), ("message", text.as_bytes()));
            }
        }

        #[test]
        fn decoder_never_panics(stream: Vec<u8>) {
            let mut decoder = SseDecoder::new(100);
            decoder.push(&stream);
            while let Ok(Some(_)) = decoder.next_event() {}
        }
    }
}
