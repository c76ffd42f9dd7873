//! Order between the stream of server notifications and the answers to calls, which come on other streams.
//!
//! A server that logs and then answers may send the two on different connections. The reader of the stream handles what
//! has arrived before the answer is passed on, so that the client of the call receives it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::timeout;

/// Maximum time that an answer waits for the reader of the stream.
const FLUSH_TIME: Duration = Duration::from_millis(100);

/// Number of times that the runtime looks for received bytes: once for the connection, and once for the reader.
const ROUNDS: u8 = 2;

/// Lets answers wait for the reader of the stream.
#[derive(Debug, Default)]
pub(super) struct StreamFlush {
    /// Number of the latest flush that an answer waits for.
    wanted: watch::Sender<u64>,
    /// Number of the latest flush that is done.
    done: watch::Sender<u64>,
    /// True while there is a reader.
    is_reading: AtomicBool,
}

/// The part of the reader; dropping it ends all waits.
pub(super) struct FlushReader<'f> {
    flush: &'f StreamFlush,
    wanted: watch::Receiver<u64>,
    rounds_left: u8,
}

impl StreamFlush {
    /// Waits until the reader has handled the messages that have arrived, if there is a reader.
    pub(super) async fn wait(&self) {
        let (mut done, mut number) = (self.done.subscribe(), 0);
        self.wanted.send_modify(|wanted| {
            *wanted += 1;
            number = *wanted;
        });
        if self.is_reading.load(Ordering::SeqCst) {
            let _late = timeout(FLUSH_TIME, done.wait_for(|done| *done >= number)).await;
        }
    }

    /// Registers the reader.
    pub(super) fn reader(&self) -> FlushReader<'_> {
        let requests = self.wanted.subscribe();
        self.is_reading.store(true, Ordering::SeqCst);
        FlushReader { flush: self, wanted: requests, rounds_left: 0 }
    }
}

impl FlushReader<'_> {
    /// Works on flushes while the reader has no message. Never returns; cancel safe.
    pub(super) async fn serve(&mut self) -> std::convert::Infallible {
        loop {
            if self.rounds_left == 0 {
                // The sender is part of the flush, which outlives this.
                let _open = self.wanted.changed().await;
                self.rounds_left = ROUNDS;
            }
            yield_now().await;
            self.rounds_left -= 1;
            if self.rounds_left == 0 {
                self.flush.done.send_replace(*self.wanted.borrow());
            }
        }
    }
}

impl Drop for FlushReader<'_> {
    fn drop(&mut self) {
        self.flush.is_reading.store(false, Ordering::SeqCst);
        self.flush.done.send_replace(*self.flush.wanted.borrow());
    }
}
