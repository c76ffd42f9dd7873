//! Raw output of a process on standard output and standard error, outside its messages to the host.
//!
//! It belongs to the call during which it is written. A process writes it before it sends the result of that call, so it is
//! in the pipe by then: the host reads the content of the pipe at that moment, which a handler cannot forge.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::ChildStderr;

/// Maximum length of the kept end of the output, in bytes.
const LAST_WORDS: usize = 2 << 10;

/// Size of one read, in bytes.
const CHUNK: usize = 8 << 10;

/// Raw output of a process since the start of a call.
pub(super) struct RawOutput {
    pipe: ChildStderr,
    beginning: Vec<u8>,
    limit: usize,
    is_cut: bool,
    end: Vec<u8>,
}

impl RawOutput {
    /// Creates a collector that keeps the first `limit` bytes of each call's output.
    pub(super) fn new(pipe: ChildStderr, limit: usize) -> Self {
        Self { pipe, beginning: Vec::new(), limit, is_cut: false, end: Vec::new() }
    }

    /// Reads while it is polled, so that the process never blocks.
    pub(super) async fn read_on(&mut self) -> Infallible {
        poll_fn(|context| {
            loop {
                let mut space = [0; CHUNK];
                let mut read = ReadBuf::new(&mut space);
                let is_read = ready!(Pin::new(&mut self.pipe).poll_read(context, &mut read));
                if is_read.is_err() || read.filled().is_empty() {
                    // The end of the process is handled elsewhere.
                    return Poll::Pending;
                }
                self.keep(read.filled());
            }
        })
        .await
    }

    /// Reads the current content of the pipe.
    pub(super) fn read_now(&mut self) {
        let unread = rustix::io::ioctl_fionread(&self.pipe).unwrap_or_default();
        let mut unread = usize::try_from(unread).unwrap_or(usize::MAX);
        let mut space = [0; CHUNK];
        while unread > 0 {
            let most = unread.min(CHUNK);
            // A direct read, because the runtime may not know yet that data is available. The pipe is non-blocking.
            let Ok(length @ 1..) = rustix::io::read(&self.pipe, &mut space[..most]) else { return };
            self.keep(&space[..length]);
            unread -= length;
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = (self.limit - self.beginning.len()).min(bytes.len());
        self.beginning.extend_from_slice(&bytes[..room]);
        self.is_cut |= room < bytes.len();
        self.end.extend_from_slice(&bytes[bytes.len().saturating_sub(LAST_WORDS)..]);
        let surplus = self.end.len().saturating_sub(LAST_WORDS);
        self.end.drain(..surplus);
    }

    /// Drops the output so far, because it belongs to no call.
    pub(super) fn discard(&mut self) {
        self.read_now();
        self.clear();
    }

    fn clear(&mut self) {
        self.beginning.clear();
        self.end.clear();
        self.is_cut = false;
    }

    /// Appends the output of a finished call to its log.
    pub(super) fn take_into(&mut self, log: &mut String) {
        self.read_now();
        if !self.beginning.is_empty() {
            log.push_str(&String::from_utf8_lossy(&self.beginning));
            log.push_str(if self.is_cut { "\n(cut here)\n" } else { "" });
        }
        self.clear();
    }

    /// Returns the end of the output of a finished process.
    pub(super) fn last_words(&mut self) -> String {
        self.read_now();
        String::from_utf8_lossy(&self.end).trim().to_owned()
    }
}
