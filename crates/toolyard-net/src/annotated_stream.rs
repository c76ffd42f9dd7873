//! A connection with a note about it, which lives as long as the connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

/// A note about a connection.
pub(crate) trait ConnectionNote {
    /// Adds the note to what the HTTP client knows about the connection.
    fn describe(&self, connected: Connected) -> Connected {
        connected
    }
}

/// A connection with a note.
#[derive(Debug)]
pub(crate) struct AnnotatedStream<S, N> {
    pub(crate) stream: S,
    pub(crate) note: N,
}

impl<S: Connection, N: ConnectionNote> Connection for AnnotatedStream<S, N> {
    fn connected(&self) -> Connected {
        self.note.describe(self.stream.connected())
    }
}

impl<S: Read + Unpin, N: Unpin> Read for AnnotatedStream<S, N> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin, N: Unpin> Write for AnnotatedStream<S, N> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }
}
