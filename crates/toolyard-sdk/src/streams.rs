//! Streams of one client: standard input and output, and a stream that ends on an event.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{mpsc, oneshot};

/// Size of the read buffer, in bytes.
const CHUNK_BYTES: usize = 16 * 1024;

/// Number of chunks that wait to be read. While it is reached, nothing more is read from the stream.
const QUEUED_CHUNKS: usize = 4;

/// Standard input, read by a detached thread: a read cannot be cancelled, and tokio's own would keep the process alive
/// until its client sends something.
pub(crate) struct StdinReader {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    chunk: Bytes,
}

impl StdinReader {
    /// Starts to read a stream.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn new(mut stream: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(QUEUED_CHUNKS);
        let read = move || {
            let mut buffer = vec![0; CHUNK_BYTES];
            loop {
                let chunk = match stream.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(length) => Ok(Bytes::copy_from_slice(&buffer[..length])),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let broken = chunk.is_err();
                if sender.blocking_send(chunk).is_err() || broken {
                    return;
                }
            }
        };
        thread::Builder::new().name("stdin".to_owned()).spawn(read)?;
        Ok(Self { chunks, chunk: Bytes::new() })
    }
}

impl AsyncRead for StdinReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.chunk.is_empty() {
            match ready!(self.chunks.poll_recv(context)) {
                Some(chunk) => self.chunk = chunk?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.chunk.len().min(buffer.remaining());
        buffer.put_slice(&self.chunk[..length]);
        self.chunk.advance(length);
        Poll::Ready(Ok(()))
    }
}

/// Bytes to write, and the sender of the result.
type WriteRequest = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// Standard output, written by a detached thread: the client may have stopped reading.
pub(crate) struct StdoutWriter {
    requests: mpsc::Sender<WriteRequest>,
    /// The result of the current write.
    pending: Option<oneshot::Receiver<io::Result<()>>>,
}

impl StdoutWriter {
    /// Starts to write to a stream.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn new(mut stream: impl Write + Send + 'static) -> io::Result<Self> {
        let (requests, mut receiver) = mpsc::channel::<WriteRequest>(1);
        let write = move || {
            while let Some((bytes, outcome)) = receiver.blocking_recv() {
                let result = stream.write_all(&bytes).and_then(|()| stream.flush());
                // A dropped receiver does not write any more, either.
                let _gone = outcome.send(result);
            }
        };
        thread::Builder::new().name("stdout".to_owned()).spawn(write)?;
        Ok(Self { requests, pending: None })
    }

    /// Waits for the current write.
    fn poll_pending(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(pending) = &mut self.pending else { return Poll::Ready(Ok(())) };
        let outcome = ready!(pending.poll_unpin(context));
        self.pending = None;
        Poll::Ready(outcome.unwrap_or_else(|_| Err(broken())))
    }
}

fn broken() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl AsyncWrite for StdoutWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_pending(context))?;
        let (outcome, pending) = oneshot::channel();
        // There is room: the previous write has completed.
        self.requests.try_send((bytes.to_vec(), outcome)).map_err(|_| broken())?;
        self.pending = Some(pending);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_pending(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

/// A stream that is read until an event or to its end, whichever comes first.
pub(crate) struct ReadUntil<R> {
    stream: R,
    /// `None` after the event.
    event: Option<BoxFuture<'static, ()>>,
}

impl<R> ReadUntil<R> {
    pub(crate) fn new(stream: R, event: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { stream, event: Some(event.boxed()) }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ReadUntil<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(event) = &mut self.event else { return Poll::Ready(Ok(())) };
        if event.poll_unpin(context).is_ready() {
            self.event = None;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn stdin_is_read_in_order() {
        let text: Vec<u8> = (0..10 * CHUNK_BYTES).map(|place| (place % 251) as u8).collect();
        let mut read = Vec::new();
        StdinReader::new(io::Cursor::new(text.clone())).unwrap().read_to_end(&mut read).await.unwrap();
        assert_eq!(read, text);
    }

    #[tokio::test]
    async fn stdout_is_written_in_order() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut output = StdoutWriter::new(ours).unwrap();
        let mut input = StdinReader::new(theirs).unwrap();
        for chunk in ["a", "b", "c"] {
            output.write_all(chunk.as_bytes()).await.unwrap();
        }
        output.flush().await.unwrap();
        drop(output);
        let mut read = String::new();
        input.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "abc");
    }

    #[tokio::test]
    async fn write_fails_when_the_reader_is_gone() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut output = StdoutWriter::new(ours).unwrap();
        drop(theirs);
        output.write_all(b"a").await.unwrap();
        assert_eq!(output.flush().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn event_ends_the_stream() {
        let (stop, stopped) = oneshot::channel::<()>();
        let (_open, theirs) = tokio::io::duplex(16);
        let mut stream = ReadUntil::new(theirs, stopped.map(|_| ()));
        let mut read = Vec::new();
        let (length, ()) = tokio::join!(stream.read_to_end(&mut read), async { drop(stop) });
        assert_eq!(length.unwrap(), 0);
        assert_eq!(stream.read_to_end(&mut read).await.unwrap(), 0);
    }
}
