//! Messages on a stream of bytes: one a line (basic/transports/stdio).

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Reads lines of a bounded length. Dropping a read loses nothing.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: BytesMut,
    /// How much of the buffer has no line break in it.
    searched: usize,
    limit: usize,
    /// The beginning of a line that is too long, while its end is looked for.
    beginning: Option<Bytes>,
}

/// A line without its break.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// As it came.
    Whole(Bytes),
    /// The beginning and the end of one that is too long, [`KEPT`] bytes of each.
    Cut(Bytes),
}

/// How much is read at once, in bytes.
const CHUNK: usize = 16 * 1024;

/// How much is kept of the beginning and of the end of a line that is too long, in bytes.
pub(crate) const KEPT: usize = 64;

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes.
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self { reader, buffer: BytesMut::new(), searched: 0, limit, beginning: None }
    }

    /// How many bytes a line may have.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// The next line that is not blank; `None` at the end. A last line without a break counts. One that is too long is
    /// passed over, but for its ends.
    ///
    /// # Errors
    /// When the stream breaks.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            // Who writes without end would otherwise keep the thread for itself.
            tokio::task::consume_budget().await;
            match (self.whole(), self.beginning.take()) {
                (Some(line), Some(beginning)) => return Ok(Some(cut(&beginning, &line))),
                (Some(line), None) if line.len() > self.limit => return Ok(Some(cut(&line, &line))),
                (Some(line), None) if is_blank(&line) => {}
                (Some(line), None) => return Ok(Some(Line::Whole(line))),
                (None, beginning) => {
                    self.beginning = beginning;
                    self.forget_middle();
                    if !self.read().await? {
                        let beginning = self.beginning.take();
                        return Ok(self.last().map(|line| match beginning {
                            Some(beginning) => cut(&beginning, &line),
                            None => Line::Whole(line),
                        }));
                    }
                }
            }
        }
    }

    /// Of a line that is too long, only what may be its end stays.
    fn forget_middle(&mut self) {
        let most = if self.beginning.is_some() { CHUNK } else { self.limit };
        if self.buffer.len() > most {
            let beginning = || Bytes::copy_from_slice(&self.buffer[..KEPT.min(self.buffer.len())]);
            self.beginning = self.beginning.take().or_else(|| Some(beginning()));
            self.buffer.advance(self.buffer.len().saturating_sub(KEPT));
            self.searched = self.buffer.len();
        }
    }

    /// Reads some more; whether there was any.
    async fn read(&mut self) -> io::Result<bool> {
        self.buffer.reserve(CHUNK);
        Ok(self.reader.read_buf(&mut self.buffer).await? > 0)
    }

    /// What is left at the end.
    fn last(&mut self) -> Option<Bytes> {
        self.searched = 0;
        let rest = self.buffer.split().freeze();
        (!rest.is_empty()).then_some(rest)
    }

    /// A whole line, if there is one.
    fn whole(&mut self) -> Option<Bytes> {
        let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + found + 1);
        line.truncate(line.len() - 1);
        self.searched = 0;
        Some(line.freeze())
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

fn cut(beginning: &[u8], end: &[u8]) -> Line {
    let (first, last) = (KEPT.min(beginning.len()), end.len().saturating_sub(KEPT));
    Line::Cut([&beginning[..first], &end[last..]].concat().into())
}

/// Writes the pieces of one message, and what ends it.
pub(crate) async fn write<W: AsyncWrite + Unpin>(writer: &mut W, message: &[Bytes]) -> io::Result<()> {
    // One write for what is small: a pipe wakes its reader at each.
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
        let mut lines = Lines::new(&b"one\r\n\n  \ntwo\nlast"[..], 5);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(line);
        }
        assert_eq!(read, ["one\r", "two", "last"].map(|line| Line::Whole(line.into())));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over_but_for_its_ends() {
        let limit = 3 * CHUNK;
        let ends = |length: usize| -> Bytes {
            let line = [vec![b'a'; length / 2], vec![b'z'; length - length / 2]].concat();
            [&line[..KEPT], &line[length - KEPT..]].concat().into()
        };
        for length in [limit + 1, limit + CHUNK, 20 * CHUNK] {
            let line = "a".repeat(length / 2) + &"z".repeat(length - length / 2);
            for (rest, after) in [("\n\nnext\n", Some("next")), ("", None)] {
                let text = line.clone() + rest;
                let mut lines = Lines::new(text.as_bytes(), limit);
                assert_eq!(lines.next().await.unwrap(), Some(Line::Cut(ends(length))), "{length}");
                let next = lines.next().await.unwrap();
                assert_eq!(next, after.map(|line| Line::Whole(line.into())), "{length}");
            }
        }
        let mut lines = Lines::new(&b"123456\n12345"[..], 5);
        assert_eq!(lines.next().await.unwrap(), Some(Line::Cut("123456123456".into())));
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole("12345".into())));
    }

    /// What can be read at once would otherwise be taken at once, however much it is.
    #[tokio::test]
    async fn a_flood_of_lines_lets_others_run() {
        let mut lines = Lines::new(std::io::Cursor::new("nobody asked\n".repeat(10_000)), 100);
        let reading = tokio::spawn(async move { while let Ok(Some(_)) = lines.next().await {} });
        tokio::task::yield_now().await;
        assert!(!reading.is_finished());
        reading.await.unwrap();
    }
}
