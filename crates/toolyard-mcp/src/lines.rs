//! Messages on a stream of bytes: one a line (basic/transports/stdio).

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Reads lines of a bounded length. Dropping [`Lines::next`] loses nothing.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: BytesMut,
    /// How much of the buffer has no line break in it.
    searched: usize,
    limit: usize,
}

/// How much is read at once, in bytes.
const CHUNK: usize = 16 * 1024;

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes.
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self { reader, buffer: BytesMut::new(), searched: 0, limit }
    }

    /// The next line that is not blank, without its break; `None` at the end. A last line without a
    /// break counts.
    ///
    /// # Errors
    /// When the stream breaks, or a line is too long: nothing behind that can be understood.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            // Who writes without end would otherwise keep the thread for itself.
            tokio::task::consume_budget().await;
            if let Some(line) = self.take_line() {
                self.check(line.len())?;
                if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
                    return Ok(Some(line));
                }
                continue;
            }
            self.check(self.buffer.len())?;
            self.buffer.reserve(CHUNK);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                self.searched = 0;
                let rest = self.buffer.split().freeze();
                return Ok((!rest.is_empty()).then_some(rest));
            }
        }
    }

    fn check(&self, length: usize) -> io::Result<()> {
        let problem = || io::Error::other(format!("a line is longer than {} bytes", self.limit));
        if length > self.limit { Err(problem()) } else { Ok(()) }
    }

    fn take_line(&mut self) -> Option<Bytes> {
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
        assert_eq!(read, ["one\r", "two", "last"]);
        for too_long in [&b"123456"[..], b"123456\n", b"123456\n1\n"] {
            assert!(Lines::new(too_long, 5).next().await.is_err());
        }
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
