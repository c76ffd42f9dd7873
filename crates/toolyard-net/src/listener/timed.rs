//! A stream with a time limit for unread data.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::connection::OpenConnection;

/// Minimum rate at which a client has to read, in bytes per second. Slower reading consumes its time.
const MIN_READ_RATE: u64 = 4 * 1024;

/// A stream that fails once its peer has blocked writes for longer than `time`. Bytes that the peer reads give back
/// their time at [`MIN_READ_RATE`], and so does time without a blocked write.
pub(super) struct TimedWrites<S> {
    stream: S,
    time: Duration,
    connection: Arc<OpenConnection>,
    /// Runs while a write is blocked.
    timer: Option<Pin<Box<Sleep>>>,
    /// Time left at the beginning or end of the last wait.
    time_left: Duration,
    /// Beginning of the current wait, or end of the last one; `None` before the first one.
    changed_at: Option<Instant>,
    /// Number of bytes written since.
    bytes_since: u64,
}

impl<S> TimedWrites<S> {
    pub(super) const fn new(stream: S, time: Duration, connection: Arc<OpenConnection>) -> Self {
        Self { stream, time, connection, timer: None, time_left: time, changed_at: None, bytes_since: 0 }
    }

    /// Counts the bytes of a write.
    fn count(
        &mut self,
        outcome: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &outcome {
            self.bytes_since += *bytes as u64;
        }
        self.watch(outcome, context)
    }

    /// Starts or stops the timer by the result of a write.
    fn watch<T>(&mut self, outcome: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            if self.timer.take().is_some() {
                self.connection.set_blocked(false);
                self.time_left = self.time_left.saturating_sub(self.elapsed());
                self.changed_at = Some(Instant::now());
            }
            return outcome;
        }
        if self.timer.is_none() {
            self.connection.set_blocked(true);
            let earned = Duration::from_millis(
                std::mem::take(&mut self.bytes_since).saturating_mul(1000) / MIN_READ_RATE,
            );
            self.time_left =
                self.time_left.saturating_add(earned).saturating_add(self.elapsed()).min(self.time);
            self.changed_at = Some(Instant::now());
        }
        let left = self.time_left;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(left)));
        ready!(timer.as_mut().poll(context));
        let problem = "the client does not read its response fast enough";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, problem)))
    }

    fn elapsed(&self) -> Duration {
        self.changed_at.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedWrites<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.count(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The TLS layer may still buffer data.
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut_down = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(shut_down, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::advance;

    use super::*;

    const TIME: Duration = Duration::from_secs(60);

    /// Sends `bytes` bytes to a client that reads `step` bytes after each `pause`. Returns the time that the response
    /// was open, and `true` if it was sent completely.
    async fn send_to_slow_client(bytes: usize, step: usize, pause: Duration) -> (Duration, bool) {
        let (ours, mut theirs) = duplex(step);
        let mut stream = TimedWrites::new(ours, TIME, Arc::default());
        let begin = Instant::now();
        let writing = tokio::spawn(async move { stream.write_all(&vec![b'x'; bytes]).await });
        let mut buffer = vec![0; step];
        while !writing.is_finished() && begin.elapsed() < Duration::from_secs(24 * 60 * 60) {
            tokio::task::yield_now().await;
            advance(pause).await;
            tokio::task::yield_now().await;
            drop(theirs.read(&mut buffer).await);
        }
        let is_whole = writing.is_finished() && writing.await.is_ok_and(|written| written.is_ok());
        (begin.elapsed(), is_whole)
    }

    #[tokio::test(start_paused = true)]
    async fn client_below_the_minimum_rate_is_disconnected() {
        for pause in [1, 10, 50] {
            let (time, is_whole) = send_to_slow_client(1 << 20, 1, Duration::from_secs(pause)).await;
            assert!(!is_whole && time <= 2 * TIME, "{pause} s: {time:?}");
        }
        // So is a client that reads at a quarter of the minimum rate, in large steps.
        let (time, is_whole) = send_to_slow_client(10 << 20, 40 << 10, Duration::from_secs(40)).await;
        assert!(!is_whole && time <= 3 * TIME, "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_client_gets_its_complete_response() {
        let (time, is_whole) = send_to_slow_client(4 << 20, 50 << 10, Duration::from_secs(10)).await;
        assert!(is_whole && time > 10 * TIME, "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn time_without_blocked_writes_is_given_back() {
        let (ours, mut theirs) = duplex(1);
        let mut stream = TimedWrites::new(ours, TIME, Arc::default());
        for _ in 0..10 {
            let reading = async {
                advance(Duration::from_secs(50)).await;
                theirs.read_u8().await.map(|_| ())
            };
            stream.write_all(b"x").await.unwrap();
            let (written, read) = tokio::join!(stream.write_all(b"x"), reading);
            written.unwrap();
            read.unwrap();
            theirs.read_u8().await.unwrap();
            advance(Duration::from_secs(60)).await;
        }
    }
}
