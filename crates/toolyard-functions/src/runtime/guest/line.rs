//! The worker's side of the line to its host.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, StdinLock, StdoutLock, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Call;
use crate::runtime::wire::{CallHead, Failure, FetchRequest, FetchResponse, Fetched, LONGEST_LINE, Reply};

/// The line. Clones are one and the same: the functions that a handler is given have one.
#[derive(Clone)]
pub(super) struct Line(Rc<RefCell<Ends>>);

struct Ends {
    stdin: BufReader<StdinLock<'static>>,
    stdout: StdoutLock<'static>,
    call: u64,
    log: Log,
    /// How long the text of an error may be, in bytes.
    error_bytes: usize,
}

/// What a handler has printed.
#[derive(Default)]
struct Log {
    text: String,
    limit: usize,
    is_cut: bool,
}

impl Line {
    pub(super) fn new() -> Self {
        let stdin = BufReader::new(io::stdin().lock());
        let ends = Ends { stdin, stdout: io::stdout().lock(), call: 0, log: Log::default(), error_bytes: 0 };
        Self(Rc::new(RefCell::new(ends)))
    }

    /// How much of what a handler prints is kept, and how much is told of an error.
    pub(super) fn bound(&self, log_bytes: usize, error_bytes: usize) {
        let mut ends = self.0.borrow_mut();
        ends.log.limit = log_bytes;
        ends.error_bytes = error_bytes;
    }

    /// The next message; none when the host is done with us.
    pub(super) fn read<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        let line = self.0.borrow_mut().line()?;
        line.map(|line| serde_json::from_slice(&line).map_err(io::Error::from)).transpose()
    }

    pub(super) fn say(&self, reply: &Reply) -> io::Result<()> {
        self.0.borrow_mut().send(reply, None)
    }

    /// Says that whatever the last call needed is cleared away.
    pub(super) fn ready(&self) -> io::Result<()> {
        let mut ends = self.0.borrow_mut();
        let call = ends.call;
        ends.send(&Reply::Ready { call }, None)
    }

    pub(super) fn next_call(&self) -> io::Result<Option<Call>> {
        let Some(head) = self.read::<CallHead>()? else { return Ok(None) };
        let mut ends = self.0.borrow_mut();
        let Some(event) = ends.line()? else { return Ok(None) };
        ends.call = head.call;
        let deadline = Instant::now() + Duration::from_millis(head.left_ms);
        Ok(Some(Call { event, context: head.context, deadline }))
    }

    /// Says what became of the call. Whether it was the last one of this worker: who ran out of something had the
    /// process grow.
    pub(super) fn answer(&self, result: Result<Vec<u8>, Failure>) -> io::Result<bool> {
        let mut ends = self.0.borrow_mut();
        let (call, log) = (ends.call, ends.log.take());
        match result {
            Ok(answer) => {
                ends.send(&Reply::Returned { call, log, last: false }, Some(&answer))?;
                Ok(false)
            }
            Err(failure) => {
                let last = matches!(failure, Failure::TimedOut | Failure::OutOfMemory);
                let failure = failure.within(ends.error_bytes);
                ends.send(&Reply::Failed { call, log, last, failure }, None)?;
                Ok(last)
            }
        }
    }

    pub(super) fn log(&self, text: &str) {
        self.0.borrow_mut().log.line(text);
    }

    /// Has the host make a request, and waits.
    pub(super) fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, String> {
        let mut ends = self.0.borrow_mut();
        let call = ends.call;
        let broken = |error: io::Error| match error.kind() {
            io::ErrorKind::FileTooLarge => "the request is too long".to_owned(),
            _ => "the host does not answer".to_owned(),
        };
        ends.send(&Reply::Fetch { call, request }, None).map_err(broken)?;
        let line = ends.line().map_err(broken)?.ok_or("the host is gone")?;
        match serde_json::from_slice(&line).map_err(|_| "the host's answer makes no sense")? {
            Fetched::Response(response) => Ok(response),
            Fetched::Refused(message) => Err(message),
        }
    }
}

impl Ends {
    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        self.stdin.read_until(b'\n', &mut line)?;
        Ok((line.pop() == Some(b'\n')).then_some(line))
    }

    fn send(&mut self, message: &impl Serialize, body: Option<&[u8]>) -> io::Result<()> {
        let mut text = serde_json::to_vec(message)?;
        if text.len() > LONGEST_LINE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        text.push(b'\n');
        if let Some(body) = body {
            text.extend_from_slice(body);
            text.push(b'\n');
        }
        self.stdout.write_all(&text)?;
        self.stdout.flush()
    }
}

impl Log {
    fn line(&mut self, text: &str) {
        if self.is_cut {
            return;
        }
        let room = self.limit.saturating_sub(self.text.len());
        if text.len() < room {
            self.text.push_str(text);
            self.text.push('\n');
            return;
        }
        let fits = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        self.text.push_str(&text[..fits.unwrap_or_default()]);
        self.text.push_str("\n(cut here)\n");
        self.is_cut = true;
    }

    fn take(&mut self) -> String {
        self.is_cut = false;
        std::mem::take(&mut self.text)
    }
}
