//! Worker side of the channel to the host.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, StdinLock, StdoutLock, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::GuestCall;
use crate::runtime::wire::{
    CallFailure, CallHeader, FetchRequest, FetchResponse, FetchResult, MAX_LINE_BYTES, ProgressReport,
    ToolRequest, ToolResultHeader, WorkerMessage,
};

/// The channel. Clones share it: the functions of a handler have one.
#[derive(Clone)]
pub(super) struct HostChannel(Rc<RefCell<ChannelState>>);

struct ChannelState {
    stdin: BufReader<StdinLock<'static>>,
    stdout: StdoutLock<'static>,
    call: u64,
    log: PrintLog,
    /// Maximum length of an error text, in bytes.
    error_bytes: usize,
}

/// Printed output of a handler.
#[derive(Default)]
struct PrintLog {
    text: String,
    limit: usize,
    is_cut: bool,
}

/// Error of a request after the host has closed the channel.
const CHANNEL_CLOSED: &str = "the host has closed the channel";

/// Returns the error of a request that cannot be sent or answered.
fn channel_failure(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::FileTooLarge => "the request is too long".to_owned(),
        _ => "the host does not respond".to_owned(),
    }
}

impl HostChannel {
    pub(super) fn new() -> Self {
        let stdin = BufReader::new(io::stdin().lock());
        let ends = ChannelState {
            stdin,
            stdout: io::stdout().lock(),
            call: 0,
            log: PrintLog::default(),
            error_bytes: 0,
        };
        Self(Rc::new(RefCell::new(ends)))
    }

    /// Sets the maximum length of the printed output and of error texts.
    pub(super) fn set_limits(&self, log_bytes: usize, error_bytes: usize) {
        let mut ends = self.0.borrow_mut();
        ends.log.limit = log_bytes;
        ends.error_bytes = error_bytes;
    }

    /// Reads the next message; `None` if the host has closed the channel.
    pub(super) fn read<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        let line = self.0.borrow_mut().line()?;
        line.map(|line| serde_json::from_slice(&line).map_err(io::Error::from)).transpose()
    }

    pub(super) fn send_message(&self, reply: &WorkerMessage) -> io::Result<()> {
        self.0.borrow_mut().send(reply, None)
    }

    /// Reports the end of the clean-up after the last call.
    pub(super) fn send_ready(&self) -> io::Result<()> {
        let mut ends = self.0.borrow_mut();
        let call = ends.call;
        ends.send(&WorkerMessage::Ready { call }, None)
    }

    pub(super) fn next_call(&self) -> io::Result<Option<GuestCall>> {
        let Some(head) = self.read::<CallHeader>()? else { return Ok(None) };
        let mut ends = self.0.borrow_mut();
        let Some(event) = ends.line()? else { return Ok(None) };
        ends.call = head.call;
        let deadline = Instant::now() + Duration::from_millis(head.remaining_ms);
        Ok(Some(GuestCall { event, context: head.context, deadline }))
    }

    /// Sends the result of a call. Returns true if the worker must end, because the process has grown by reaching a
    /// limit.
    pub(super) fn send_result(&self, result: Result<Vec<u8>, CallFailure>) -> io::Result<bool> {
        let mut ends = self.0.borrow_mut();
        let (call, log) = (ends.call, ends.log.take());
        match result {
            Ok(answer) => {
                ends.send(&WorkerMessage::Returned { call, log, last: false }, Some(&answer))?;
                Ok(false)
            }
            Err(failure) => {
                let last = matches!(failure, CallFailure::TimedOut | CallFailure::OutOfMemory);
                let failure = failure.truncated(ends.error_bytes);
                ends.send(&WorkerMessage::Failed { call, log, last, failure }, None)?;
                Ok(last)
            }
        }
    }

    pub(super) fn print_line(&self, text: &str) {
        self.0.borrow_mut().log.line(text);
    }

    /// Sends a request to the host, which answers with [`Self::tool_result`].
    pub(super) fn request_tool(&self, id: u64, request: ToolRequest) -> Result<(), String> {
        let mut ends = self.0.borrow_mut();
        let call = ends.call;
        ends.send(&WorkerMessage::Tool { call, id, request }, None).map_err(|error| channel_failure(&error))
    }

    /// Waits for the result of any request. It is a JSON text.
    pub(super) fn tool_result(&self) -> Result<(ToolResultHeader, Vec<u8>), String> {
        let mut ends = self.0.borrow_mut();
        let mut line = || {
            let line = ends.line().map_err(|error| channel_failure(&error))?;
            line.ok_or_else(|| CHANNEL_CLOSED.to_owned())
        };
        let header = serde_json::from_slice(&line()?).map_err(|_| "invalid response of the host")?;
        Ok((header, line()?))
    }

    pub(super) fn report_progress(&self, report: ProgressReport) -> Result<(), String> {
        // JSON has no such numbers.
        if !report.done.is_finite() {
            return Err("progress: expected a number for what is done".to_owned());
        }
        let report = ProgressReport { total: report.total.filter(|total| total.is_finite()), ..report };
        let mut ends = self.0.borrow_mut();
        let call = ends.call;
        ends.send(&WorkerMessage::Progress { call, report }, None).map_err(|error| channel_failure(&error))
    }

    /// Sends a request by the host, and waits for the response.
    pub(super) fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, String> {
        let mut ends = self.0.borrow_mut();
        let call = ends.call;
        let broken = |error: io::Error| channel_failure(&error);
        ends.send(&WorkerMessage::Fetch { call, request }, None).map_err(broken)?;
        let line = ends.line().map_err(broken)?.ok_or(CHANNEL_CLOSED)?;
        match serde_json::from_slice(&line).map_err(|_| "invalid response of the host")? {
            FetchResult::Response(response) => Ok(response),
            FetchResult::Refused(message) => Err(message),
        }
    }
}

impl ChannelState {
    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        self.stdin.read_until(b'\n', &mut line)?;
        Ok((line.pop() == Some(b'\n')).then_some(line))
    }

    fn send(&mut self, message: &impl Serialize, body: Option<&[u8]>) -> io::Result<()> {
        let mut text = serde_json::to_vec(message)?;
        if text.len() > MAX_LINE_BYTES {
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

impl PrintLog {
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
