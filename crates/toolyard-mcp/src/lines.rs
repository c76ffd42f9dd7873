//! Newline-delimited messages on a byte stream (basic/transports/stdio).

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use toolyard_net::budget::{BudgetExhausted, ByteBudget, ByteReservation, SMALL_MESSAGE};

/// Reads lines of limited length. Cancel safe: dropping a read loses nothing.
pub(crate) struct LineReader<R> {
    reader: R,
    buffer: BytesMut,
    /// Length of the part of the buffer that contains no line break.
    searched: usize,
    limit: usize,
    /// Beginning of an overlong line whose end has not been read yet.
    beginning: Option<Bytes>,
    budget: ByteBudget,
    /// True if a line waits for its part of the budget, and with it all that come after it.
    can_wait: bool,
    /// Reserved bytes for the buffered part of a large line.
    reserved: ByteReservation,
    /// True while skipping a line that did not fit the memory budget.
    has_no_memory: bool,
}

/// A line without its line break.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputLine {
    /// A complete line.
    Whole(Bytes),
    /// The first and the last [`END_BYTES`] bytes of a line over the limit.
    TooLong(Bytes),
    /// The first and the last [`END_BYTES`] bytes of a line that did not fit the memory budget.
    NoMemory(Bytes),
}

/// Bytes per read.
const CHUNK: usize = 16 * 1024;

/// Bytes kept of each end of an overlong line.
pub(crate) const END_BYTES: usize = 64;

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Creates a reader of lines of at most `limit` bytes.
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        let (budget, reserved) = (ByteBudget::default(), ByteReservation::default());
        let (buffer, searched, beginning) = (BytesMut::new(), 0, None);
        Self {
            reader,
            buffer,
            searched,
            limit,
            beginning,
            budget,
            can_wait: true,
            reserved,
            has_no_memory: false,
        }
    }

    /// Reserves the bytes of large lines from `budget`.
    pub(crate) fn with_budget(self, budget: ByteBudget) -> Self {
        Self { budget, ..self }
    }

    /// Skips a line at once for which there is no memory: other lines wait behind it.
    pub(crate) fn without_waiting(self) -> Self {
        Self { can_wait: false, ..self }
    }

    /// Returns the maximum length of a line in bytes.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// Reads the next line that is not blank; `None` at the end. The last line may lack a line break. Of an overlong
    /// line only the ends are returned.
    ///
    /// # Errors
    /// When the stream fails.
    pub(crate) async fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            // A writer that never pauses would otherwise occupy the thread.
            tokio::task::consume_budget().await;
            match (self.take_line(), self.beginning.take()) {
                (Some(line), Some(beginning)) => return Ok(Some(self.skipped(&beginning, &line))),
                (Some(line), None) if line.len() > self.limit => {
                    return Ok(Some(self.skipped(&line, &line)));
                }
                (Some(line), None) if is_blank(&line) => {}
                (Some(line), None) => return Ok(Some(InputLine::Whole(self.hold(line)))),
                (None, beginning) => {
                    self.beginning = beginning;
                    self.reserve_room().await;
                    self.discard_middle();
                    if !self.read().await? {
                        let beginning = self.beginning.take();
                        return Ok(self.take_rest().map(|line| match beginning {
                            Some(beginning) => self.skipped(&beginning, &line),
                            None => InputLine::Whole(line),
                        }));
                    }
                }
            }
        }
    }

    /// Reserves bytes for the next read. If the budget is exhausted, the line is skipped.
    async fn reserve_room(&mut self) {
        let needed = self.buffer.len() + CHUNK;
        if needed <= 2 * SMALL_MESSAGE || needed <= self.reserved.bytes() {
            return;
        }
        let missing = needed - self.reserved.bytes();
        let reserved = match self.can_wait {
            true => self.budget.reserve(missing).await,
            false => self.budget.try_reserve(missing),
        };
        match reserved {
            Ok(more) => self.reserved.add(more),
            Err(BudgetExhausted) => self.has_no_memory = true,
        }
    }

    /// Attaches the reservation of a line to its bytes. The share of the writer is only for the line that is being read.
    fn hold(&mut self, line: Bytes) -> Bytes {
        let line = self.reserved.split(line.len()).disowned().hold(line);
        self.reserved.shrink(self.buffer.len());
        line
    }

    fn skipped(&mut self, beginning: &[u8], end: &[u8]) -> InputLine {
        self.reserved.shrink(self.buffer.len());
        let ends = ends(beginning, end);
        if std::mem::take(&mut self.has_no_memory) {
            InputLine::NoMemory(ends)
        } else {
            InputLine::TooLong(ends)
        }
    }

    /// Discards the middle of an overlong line.
    fn discard_middle(&mut self) {
        let limit =
            if self.beginning.is_some() || self.has_no_memory { CHUNK.min(self.limit) } else { self.limit };
        if self.buffer.len() > limit {
            let beginning = || Bytes::copy_from_slice(&self.buffer[..END_BYTES.min(self.buffer.len())]);
            self.beginning = self.beginning.take().or_else(|| Some(beginning()));
            self.buffer.advance(self.buffer.len().saturating_sub(END_BYTES));
            self.searched = self.buffer.len();
            self.reserved = ByteReservation::default();
        }
    }

    /// Reads more bytes; `false` at the end of the stream.
    async fn read(&mut self) -> io::Result<bool> {
        self.buffer.reserve(CHUNK);
        // Read no more than was reserved, even if the buffer has more capacity.
        let mut room = (&mut self.buffer).limit(CHUNK);
        Ok(self.reader.read_buf(&mut room).await? > 0)
    }

    /// Takes the rest of the buffer at the end of the stream.
    fn take_rest(&mut self) -> Option<Bytes> {
        self.searched = 0;
        let rest = self.buffer.split().freeze();
        (!rest.is_empty()).then_some(rest)
    }

    /// Takes a complete line from the buffer, if there is one.
    fn take_line(&mut self) -> Option<Bytes> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + at + 1);
        line.truncate(line.len() - 1);
        self.searched = 0;
        Some(line.freeze())
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

fn ends(beginning: &[u8], end: &[u8]) -> Bytes {
    let (first, last) = (END_BYTES.min(beginning.len()), end.len().saturating_sub(END_BYTES));
    [&beginning[..first], &end[last..]].concat().into()
}

/// Writes the pieces of a message and a line break.
pub(crate) async fn write<W: AsyncWrite + Unpin>(writer: &mut W, message: &[Bytes]) -> io::Result<()> {
    // A single write: each write wakes the reader of a pipe.
    let mut line = BytesMut::with_capacity(message.iter().map(Bytes::len).sum::<usize>() + 1);
    message.iter().for_each(|piece| line.extend_from_slice(piece));
    line.extend_from_slice(b"\n");
    writer.write_all(&line).await?;
    writer.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_up_to_the_limit() {
        let mut lines = LineReader::new(&b"one\r\n\n  \ntwo\nlast"[..], 5);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(line);
        }
        assert_eq!(read, ["one\r", "two", "last"].map(|line| InputLine::Whole(line.into())));
    }

    #[tokio::test]
    async fn overlong_line_is_skipped_except_its_ends() {
        let limit = 3 * CHUNK;
        let ends = |length: usize| -> Bytes {
            let line = [vec![b'a'; length / 2], vec![b'z'; length - length / 2]].concat();
            [&line[..END_BYTES], &line[length - END_BYTES..]].concat().into()
        };
        for length in [limit + 1, limit + CHUNK, 20 * CHUNK] {
            let line = "a".repeat(length / 2) + &"z".repeat(length - length / 2);
            for (rest, after) in [("\n\nnext\n", Some("next")), ("", None)] {
                let text = line.clone() + rest;
                let mut lines = LineReader::new(text.as_bytes(), limit);
                assert_eq!(lines.next().await.unwrap(), Some(InputLine::TooLong(ends(length))), "{length}");
                let next = lines.next().await.unwrap();
                assert_eq!(next, after.map(|line| InputLine::Whole(line.into())), "{length}");
            }
        }
        let mut lines = LineReader::new(&b"123456\n12345"[..], 5);
        assert_eq!(lines.next().await.unwrap(), Some(InputLine::TooLong("123456123456".into())));
        assert_eq!(lines.next().await.unwrap(), Some(InputLine::Whole("12345".into())));
    }

    #[tokio::test(start_paused = true)]
    async fn line_over_the_budget_is_skipped() {
        const KIB: usize = 1 << 10;
        let budget = ByteBudget::new(256 * KIB);
        let long = |size: usize| "x".repeat(size);
        let text = format!("{}\n{}\nshort\n{}\n", long(100 * KIB), long(100 * KIB), long(100 * KIB));
        let mut lines = LineReader::new(text.as_bytes(), 1 << 20).with_budget(budget.clone());
        let Some(InputLine::Whole(first)) = lines.next().await.unwrap() else { panic!("no line") };
        assert!((100 * KIB..=116 * KIB).contains(&budget.used()), "{}", budget.used());
        let _others = budget.try_reserve(120 * KIB).unwrap();
        assert!(
            matches!(lines.next().await.unwrap(), Some(InputLine::NoMemory(ends)) if ends.len() == 2 * END_BYTES)
        );
        assert_eq!(lines.next().await.unwrap(), Some(InputLine::Whole("short".into())));
        drop(first);
        let Some(InputLine::Whole(last)) = lines.next().await.unwrap() else { panic!("no line") };
        assert_eq!(last.len(), 100 * KIB);
        drop((last, lines));
        assert_eq!(budget.used(), 120 * KIB);
    }

    #[tokio::test]
    async fn complete_line_is_not_charged_to_its_writer() {
        const KIB: usize = 1 << 10;
        let budget = ByteBudget::new(512 * KIB).owned_by(&"server".into());
        let text = ("x".repeat(100 * KIB) + "\n").repeat(4);
        let mut lines =
            LineReader::new(text.as_bytes(), 1 << 20).with_budget(budget.clone()).without_waiting();
        let mut held = Vec::new();
        for _ in 0..4 {
            let Some(InputLine::Whole(line)) = lines.next().await.unwrap() else { panic!("no line") };
            held.push(line);
        }
        assert!(budget.used() >= 400 * KIB, "{}", budget.used());
    }

    /// Without a yield, all readable lines would be read in one poll.
    #[tokio::test]
    async fn flood_of_lines_yields() {
        let mut lines = LineReader::new(std::io::Cursor::new("nobody asked\n".repeat(10_000)), 100);
        let reading = tokio::spawn(async move { while let Ok(Some(_)) = lines.next().await {} });
        tokio::task::yield_now().await;
        assert!(!reading.is_finished());
        reading.await.unwrap();
    }
}
