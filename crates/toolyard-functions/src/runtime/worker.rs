//! Host side of a worker: a process that has the code of one version and handles one call at a time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::FutureExt;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout, timeout_at};
use toolyard_core::Json;
use toolyard_core::timestamp::iso_8601;
use toolyard_process::ExitHandle;
use toolyard_sandbox::{SandboxOutcome, SandboxedProcess};

use super::fetch::{self, HttpFetcher};
use super::launch::WorkerLauncher;
use super::raw_output::RawOutput;
use super::tools::{ToolHost, WorkerPipes};
use super::wire::{
    CallFailure, CallHeader, HandlerContext, LoadRequest, MAX_LINE_BYTES, WorkerMessage, error_bytes,
    truncate_text,
};
use crate::code::{CallContext, FunctionCode, HANDLER};
use crate::run::{RunError, RunOutput};

/// Maximum size of a handler's printed output that is kept, in bytes.
const LOG_BYTES: usize = 64 << 10;

/// Time that a call waits for the clean-up after the previous call: about the start time of a new worker.
const CLEANUP_WAIT: Duration = Duration::from_millis(100);

/// Time limit of the clean-up while no call waits.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(1);

/// Longer than any interpreter takes to start, also on a busy machine.
const SLOW_START: Duration = Duration::from_secs(1);

/// Maximum size of a message that fits into the pipe, in bytes, even if the worker does not read.
const PIPE_MESSAGE_BYTES: usize = 32 << 10;

/// A worker. Dropping it kills its process.
pub(super) struct FunctionWorker {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    raw: RawOutput,
    fetch: Option<Arc<dyn HttpFetcher>>,
    output_bytes: usize,
    /// Number of bytes written to the worker.
    written: u64,
    /// True if the worker has reported the end of the clean-up.
    is_ready: bool,
    /// Id of the last call; zero before the first one.
    call: u64,
    process: SandboxedProcess,
    /// Number of calls.
    pub(super) calls: u64,
    /// True if it accepts no further call.
    pub(super) is_finished: bool,
    /// Start of the idle time.
    pub(super) idle_since: Instant,
}

/// Failure of a call on a worker.
pub(super) enum CallError {
    /// The worker ended before it read any part of the call. Another worker can handle it.
    NotStarted,
    /// The call failed.
    Failed(RunError),
}

impl From<RunError> for CallError {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

impl FunctionWorker {
    /// Starts a process and loads the code until the deadline. A process that has not even read its program by then is
    /// reported as such: the start of the interpreter has taken the time, and not the code. With less time than
    /// [`SLOW_START`], the limit is the reason.
    pub(super) async fn start(
        launcher: &WorkerLauncher,
        code: &FunctionCode,
        fetch: Option<Arc<dyn HttpFetcher>>,
        deadline: Instant,
    ) -> Result<Self, RunError> {
        launcher.check(code)?;
        let began = Instant::now();
        let started = timeout_at(deadline, launcher.launch(code)).await;
        let late = |launcher: &WorkerLauncher| {
            let why = launcher.slow_start(code, began.elapsed());
            if deadline.saturating_duration_since(began) >= SLOW_START {
                RunError::Unavailable(why)
            } else {
                RunError::TimedOut
            }
        };
        let started = started.map_err(|_| late(launcher))?;
        let (process, pipes) = started.map_err(|error| RunError::Unavailable(with_causes(&error)))?;
        let mut worker = Self {
            stdin: pipes.stdin,
            stdout: BufReader::new(pipes.stdout),
            raw: RawOutput::new(pipes.stderr, LOG_BYTES),
            fetch: fetch.filter(|_| code.network),
            output_bytes: code.limits.output_bytes,
            written: 0,
            is_ready: false,
            call: 0,
            process,
            calls: 0,
            is_finished: false,
            idle_since: Instant::now(),
        };
        let request = load_request(code)?;
        let loaded = worker.load(WorkerLauncher::preface(code.language), &request);
        match timeout_at(deadline, loaded).await {
            Ok(loaded) => loaded.map(|()| worker),
            Err(_) if worker.has_read_nothing(worker.written) => Err(late(launcher)),
            Err(_) => Err(RunError::TimedOut),
        }
    }

    async fn load(&mut self, mut preface: Vec<u8>, load: &LoadRequest) -> Result<(), RunError> {
        // Serialization of texts, numbers and lists cannot fail.
        preface.extend(serde_json::to_vec(load).unwrap_or_default());
        preface.push(b'\n');
        let broken = self.write(&preface).await.1.map_or(Ok(()), Err);
        match self.reply(None).await {
            Ok(WorkerMessage::Ready { call: 0 }) if broken.is_ok() => {
                self.is_ready = true;
                Ok(())
            }
            Ok(WorkerMessage::NotLoaded { message }) => {
                Err(RunError::NotLoaded { message: truncate_text(message, error_bytes(self.output_bytes)) })
            }
            Ok(_) => Err(self.protocol_error()),
            Err(error) => Err(self.death_error(&error).await),
        }
    }

    /// True if the worker can take a call, as far as is known.
    pub(super) fn is_alive(&self) -> bool {
        !self.is_finished && self.process.ending().wait().now_or_never().is_none()
    }

    /// Returns a handle that waits for the end of the process.
    pub(super) fn ending(&self) -> ExitHandle {
        self.process.ending()
    }

    /// True if the clean-up after the last call exceeds its time limit.
    pub(super) fn is_stuck(&self) -> bool {
        !self.is_ready && !self.has_unread_output() && self.idle_since.elapsed() > CLEANUP_TIMEOUT
    }

    /// True if there is unread output.
    fn has_unread_output(&self) -> bool {
        let unread = || rustix::io::ioctl_fionread(self.stdout.get_ref()).is_ok_and(|length| length > 0);
        !self.stdout.buffer().is_empty() || unread()
    }

    /// Waits for the end of the clean-up after the last call.
    async fn wait_until_ready(&mut self) -> io::Result<()> {
        if !self.is_ready {
            let with_causes = self.reply(None).await?;
            self.is_ready = matches!(with_causes, WorkerMessage::Ready { call } if call == self.call);
        }
        if self.is_ready { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Sends a call and waits for the answer. If the future is dropped, the worker must be dropped, too: it is still
    /// busy.
    pub(super) async fn call(
        &mut self,
        event: &Json,
        context: &CallContext,
        tools: Option<&dyn ToolHost>,
        left: Duration,
    ) -> Result<RunOutput, CallError> {
        self.calls += 1;
        self.is_finished = true;
        let call = random_call_id();
        let call_message = message(call, event, context, left);
        // A short message is in the pipe when the worker becomes ready.
        if call_message.len() > PIPE_MESSAGE_BYTES
            && !matches!(timeout(CLEANUP_WAIT, self.wait_until_ready()).await, Ok(Ok(())))
        {
            return Err(CallError::NotStarted);
        }
        if self.is_ready && self.has_unread_output() {
            // The worker has sent an unexpected message.
            return Err(CallError::NotStarted);
        }
        self.raw.discard();
        let (sent, broken) = self.write(&call_message).await;
        let read_message = match broken {
            None => self.read_answer(call, sent, tools).await,
            Some(error) => Err(error),
        };
        match read_message {
            Ok(reply) => Ok(self.interpret(reply, tools).await?),
            Err(_) if self.has_read_nothing(sent) => Err(CallError::NotStarted),
            Err(error) => Err(self.death_error(&error).await.into()),
        }
    }

    /// Reads the message that answers a call.
    async fn read_answer(
        &mut self,
        call: u64,
        sent: u64,
        tools: Option<&dyn ToolHost>,
    ) -> io::Result<WorkerMessage> {
        match timeout(CLEANUP_WAIT, self.wait_until_ready()).await {
            Ok(cleared) => cleared?,
            Err(_) if self.has_read_nothing(sent) => return Err(io::ErrorKind::TimedOut.into()),
            // It reports the end of the clean-up before it reads the call.
            Err(_) => self.wait_until_ready().await?,
        }
        self.call = call;
        self.reply(tools).await
    }

    /// True if the worker has read nothing: all sent bytes are still in the pipe.
    fn has_read_nothing(&self, sent: u64) -> bool {
        rustix::io::ioctl_fionread(&self.stdin).is_ok_and(|unread| unread == sent)
    }

    async fn interpret(
        &mut self,
        reply: WorkerMessage,
        tools: Option<&dyn ToolHost>,
    ) -> Result<RunOutput, RunError> {
        self.is_ready = false;
        let printed = |log: &str| tools.into_iter().for_each(|tools| tools.printed(log));
        match reply {
            WorkerMessage::Returned { call, mut log, last } if call == self.call => {
                let answer = match self.read_line(self.output_bytes).await {
                    Ok(answer) => answer,
                    Err(error) => return Err(self.death_error(&error).await),
                };
                self.raw.take_into(&mut log);
                printed(&log);
                let answer = Json::parse(Bytes::from(answer)).map_err(|error| RunError::Thrown {
                    kind: "TypeError".to_owned(),
                    message: format!("the returned value is not JSON: {error}"),
                    details: String::new(),
                    log: log.clone(),
                })?;
                self.is_finished = last;
                Ok(RunOutput { answer, log })
            }
            WorkerMessage::Failed { call, mut log, last, failure } if call == self.call => {
                self.raw.take_into(&mut log);
                printed(&log);
                self.is_finished = last;
                Err(self.run_error(failure, log))
            }
            _ => Err(self.protocol_error()),
        }
    }

    fn run_error(&self, failure: CallFailure, log: String) -> RunError {
        // Code of the function may run in the worker, so messages can be forged and exceed limits.
        match failure.truncated(error_bytes(self.output_bytes)) {
            CallFailure::Thrown { kind, message, details } => {
                RunError::Thrown { kind, message, details, log }
            }
            CallFailure::NotLoaded { message } => RunError::NotLoaded { message },
            CallFailure::TimedOut => RunError::TimedOut,
            CallFailure::OutOfMemory => RunError::OutOfMemory,
            CallFailure::OutputTooLarge => RunError::OutputTooLarge { limit: self.output_bytes },
        }
    }

    /// Reads the message that answers a call or the code, and handles requests of the handler before it.
    async fn reply(&mut self, tools: Option<&dyn ToolHost>) -> io::Result<WorkerMessage> {
        if let Some(tools) = tools {
            let Self { stdin, stdout, raw, call, .. } = self;
            return WorkerPipes { stdin, stdout, raw, call: *call }.serve(tools).await;
        }
        loop {
            let text = self.read_line(MAX_LINE_BYTES).await?;
            let reply = serde_json::from_slice(&text)?;
            let WorkerMessage::Fetch { call, request } = reply else { return Ok(reply) };
            if call != self.call {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let fetched = fetch::fetch_for_worker(self.fetch.as_deref(), request).await;
            self.send(&fetched).await?;
        }
    }

    /// Reads one line. Other output of the process is read meanwhile.
    async fn read_line(&mut self, limit: usize) -> io::Result<Vec<u8>> {
        tokio::select! {
            biased;
            line = read_limited_line(&mut self.stdout, limit) => line,
            never = self.raw.read_on() => match never {},
        }
    }

    async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(message)?;
        text.push(b'\n');
        self.write(&text).await.1.map_or(Ok(()), Err)
    }

    /// Writes a text; returns the number of written bytes and the error, if any.
    async fn write(&mut self, text: &[u8]) -> (u64, Option<io::Error>) {
        let mut sent = 0;
        while sent < text.len() {
            match self.stdin.write(&text[sent..]).await {
                Ok(more) => {
                    sent += more;
                    self.written += more as u64;
                }
                Err(error) => return (sent as u64, Some(error)),
            }
        }
        (sent as u64, None)
    }

    fn protocol_error(&self) -> RunError {
        RunError::Died("invalid message from the worker".to_owned())
    }

    /// Determines why the worker does not answer. A process that has closed its pipe is about to end.
    async fn death_error(&mut self, error: &io::Error) -> RunError {
        match error.kind() {
            io::ErrorKind::InvalidData => return self.protocol_error(),
            io::ErrorKind::FileTooLarge => return RunError::OutputTooLarge { limit: self.output_bytes },
            _ => {}
        }
        let verdict = async {
            tokio::select! {
                verdict = self.process.outcome() => verdict,
                never = self.raw.read_on() => match never {},
            }
        };
        let how = match timeout(Duration::from_secs(1), verdict).await {
            Ok(SandboxOutcome::OutOfMemory) => return RunError::OutOfMemory,
            Ok(SandboxOutcome::Refused) => {
                let why = self.process.refusal_reason().map(str::to_owned);
                return RunError::Unavailable(why.unwrap_or_else(|| self.raw.last_words()));
            }
            Ok(SandboxOutcome::Exited(status)) => format!("it exited with status {status}"),
            Ok(SandboxOutcome::Signalled(signal)) => format!("it was killed by signal {signal}"),
            Ok(SandboxOutcome::TooManyProcesses) => "it exceeded its limit of processes".to_owned(),
            Ok(_) => "it is gone".to_owned(),
            Err(_) => "it does not respond".to_owned(),
        };
        match &*self.raw.last_words() {
            "" => RunError::Died(how),
            words => RunError::Died(format!("{how}: {words}")),
        }
    }
}

/// Formats an error with its causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Returns a random id of a call.
fn random_call_id() -> u64 {
    let mut nonce = [0; 8];
    // Without entropy the id is zero, which is still unique within one call of this worker.
    let _zeroes = getrandom::fill(&mut nonce);
    u64::from_le_bytes(nonce)
}

/// Creates the load request for the code.
fn load_request(code: &FunctionCode) -> Result<LoadRequest, RunError> {
    let is_inside = |name: &str| {
        let mut parts = std::path::Path::new(name).components();
        parts.all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    if let Some((name, _)) = code.files.iter().find(|(name, _)| !is_inside(name)) {
        return Err(RunError::NotLoaded { message: format!("invalid file name {name}") });
    }
    let files = code.files.iter().map(|(name, content)| (name.clone(), BASE64_STANDARD.encode(content)));
    Ok(LoadRequest {
        files: files.collect(),
        entry: code.language.entry_file().to_owned(),
        handler: HANDLER.to_owned(),
        environment: code.environment.clone(),
        packages: code.packages.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
        network: code.network,
        tools: code.tools,
        memory_bytes: code.limits.memory_bytes,
        output_bytes: code.limits.output_bytes,
        log_bytes: LOG_BYTES,
    })
}

/// Returns the two lines of a call.
fn message(call: u64, event: &Json, context: &CallContext, left: Duration) -> Vec<u8> {
    let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    let handler_context = HandlerContext {
        function_id: context.function_id.to_string(),
        version: context.version.to_string(),
        request_id: context.request_id.to_string(),
        deadline: iso_8601(context.deadline),
        remaining_ms: left_ms,
    };
    let head = CallHeader { call, remaining_ms: left_ms, context: handler_context };
    // Serialization of texts and numbers cannot fail.
    let mut message = serde_json::to_vec(&head).unwrap_or_default();
    message.push(b'\n');
    message.extend_from_slice(event.as_bytes());
    message.push(b'\n');
    message
}

/// Reads one line of at most `limit` bytes, without the line end.
async fn read_limited_line(from: &mut BufReader<ChildStdout>, limit: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.take(limit as u64 + 1).read_until(b'\n', &mut line).await?;
    match line.pop() {
        Some(b'\n') => Ok(line),
        Some(_) if line.len() >= limit => Err(io::ErrorKind::FileTooLarge.into()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
