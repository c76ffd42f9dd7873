//! The streams of one client: those of the process, and what ends one from our side.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{mpsc, oneshot};

/// How much is read at once, in bytes.
const CHUNK: usize = 16 * 1024;

/// Pieces that were read and wait to be taken. While there are as many, no more is read.
const PIECES: usize = 4;

/// Standard input, read by a thread that nobody waits for: a read cannot be withdrawn, and tokio's own would keep the
/// process from ending for as long as its client says nothing.
pub(crate) struct Input {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
}

impl Input {
    /// Reads a stream from now on.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn new(mut stream: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, pieces) = mpsc::channel(PIECES);
        let read = move || {
            let mut buffer = vec![0; CHUNK];
            loop {
                let piece = match stream.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(length) => Ok(Bytes::copy_from_slice(&buffer[..length])),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let broken = piece.is_err();
                if sender.blocking_send(piece).is_err() || broken {
                    return;
                }
            }
        };
        thread::Builder::new().name("stdin".to_owned()).spawn(read)?;
        Ok(Self { pieces, piece: Bytes::new() })
    }
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.piece.is_empty() {
            match ready!(self.pieces.poll_recv(context)) {
                Some(piece) => self.piece = piece?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.piece.len().min(buffer.remaining());
        buffer.put_slice(&self.piece[..length]);
        self.piece.advance(length);
        Poll::Ready(Ok(()))
    }
}

/// What is to be written, and where the outcome goes.
type Order = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// Standard output, written by a thread that nobody waits for: a client may have stopped reading.
pub(crate) struct Output {
    orders: mpsc::Sender<Order>,
    /// What is being written.
    written: Option<oneshot::Receiver<io::Result<()>>>,
}

impl Output {
    /// Writes to a stream from now on.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn new(mut stream: impl Write + Send + 'static) -> io::Result<Self> {
        let (orders, mut receiver) = mpsc::channel::<Order>(1);
        let write = move || {
            while let Some((bytes, outcome)) = receiver.blocking_recv() {
                let written = stream.write_all(&bytes).and_then(|()| stream.flush());
                // Who does not want to know any more does not write any more, either.
                let _gone = outcome.send(written);
            }
        };
        thread::Builder::new().name("stdout".to_owned()).spawn(write)?;
        Ok(Self { orders, written: None })
    }

    /// Waits for what is being written.
    fn poll_written(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(written) = &mut self.written else { return Poll::Ready(Ok(())) };
        let outcome = ready!(written.poll_unpin(context));
        self.written = None;
        Poll::Ready(outcome.unwrap_or_else(|_| Err(broken())))
    }
}

fn broken() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl AsyncWrite for Output {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_written(context))?;
        let (outcome, written) = oneshot::channel();
        // There is room: what was ordered before has been written.
        self.orders.try_send((bytes.to_vec(), outcome)).map_err(|_| broken())?;
        self.written = Some(written);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_written(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

/// A stream that is read until something happens, or to its end if that comes first.
pub(crate) struct Until<R> {
    stream: R,
    /// `None` once it has happened.
    event: Option<BoxFuture<'static, ()>>,
}

impl<R> Until<R> {
    pub(crate) fn new(stream: R, event: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { stream, event: Some(event.boxed()) }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Until<R> {
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
    async fn everything_is_read_in_order() {
        let text: Vec<u8> = (0..10 * CHUNK).map(|place| (place % 251) as u8).collect();
        let mut read = Vec::new();
        Input::new(io::Cursor::new(text.clone())).unwrap().read_to_end(&mut read).await.unwrap();
        assert_eq!(read, text);
    }

    #[tokio::test]
    async fn everything_is_written_in_order() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut output = Output::new(ours).unwrap();
        let mut input = Input::new(theirs).unwrap();
        for piece in ["a", "b", "c"] {
            output.write_all(piece.as_bytes()).await.unwrap();
        }
        output.flush().await.unwrap();
        drop(output);
        let mut read = String::new();
        input.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "abc");
    }

    #[tokio::test]
    async fn who_writes_learns_that_nobody_reads() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut output = Output::new(ours).unwrap();
        drop(theirs);
        output.write_all(b"a").await.unwrap();
        assert_eq!(output.flush().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn an_event_ends_a_stream() {
        let (stop, stopped) = oneshot::channel::<()>();
        let (_open, theirs) = tokio::io::duplex(16);
        let mut stream = Until::new(theirs, stopped.map(|_| ()));
        let mut read = Vec::new();
        let (length, ()) = tokio::join!(stream.read_to_end(&mut read), async { drop(stop) });
        assert_eq!(length.unwrap(), 0);
        assert_eq!(stream.read_to_end(&mut read).await.unwrap(), 0);
    }
}
