//! One worker: a process that has the code of one version, and takes one call at a time.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::FutureExt;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use toolyard_core::Json;
use toolyard_core::timestamp::iso_8601;
use toolyard_sandbox::{Confined, Verdict};

use super::fetch::{self, Fetch};
use super::launch::Launcher;
use super::wire::{CallHead, Failure, LONGEST_LINE, Load, Reply, Told, beginning, error_bytes};
use crate::code::{Code, Context, HANDLER};
use crate::run::{Ran, RunError};

/// How much of what a handler prints is kept, in bytes.
const LOG_BYTES: usize = 64 << 10;

/// How much is kept of what a process says on its standard error, in bytes: its last words.
const LAST_WORDS: usize = 2 << 10;

/// How long a call waits for a worker that clears away what another one left: not longer than a new one takes.
const CLEARING: Duration = Duration::from_millis(100);

/// How long one may take for that while nobody waits for it.
const LONG_CLEARING: Duration = Duration::from_secs(1);

/// What is not longer than this is in the pipe at once, in bytes, whether or not anybody reads.
const SHORT_MESSAGE: usize = 32 << 10;

/// A worker. Dropping it ends its process at once.
pub(super) struct Worker {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    last_words: Arc<Mutex<Vec<u8>>>,
    fetch: Option<Arc<dyn Fetch>>,
    output_bytes: usize,
    /// Whether it has said that nothing is left of the last call.
    is_ready: bool,
    /// What the last call is known by; zero before there is one.
    call: u64,
    process: Confined,
    /// The task that listens for the last words.
    _listener: JoinSet<()>,
    /// How many calls it was given.
    pub(super) calls: u64,
    /// Whether it takes no further call.
    pub(super) is_spent: bool,
    /// Since when it has waited for a call.
    pub(super) idle_since: Instant,
}

/// Why a worker has no answer.
pub(super) enum CallError {
    /// It had ended before it read anything of the call, which can be given to another one.
    Untouched,
    /// The call has failed.
    Failed(RunError),
}

impl From<RunError> for CallError {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

impl Worker {
    /// Starts a process and has it load the code.
    pub(super) async fn start(
        launcher: &Launcher,
        code: &Code,
        fetch: Option<Arc<dyn Fetch>>,
    ) -> Result<Self, RunError> {
        launcher.check(code)?;
        let started = launcher.launch(code).await;
        let (process, pipes) = started.map_err(|error| RunError::Unavailable(said(&error)))?;
        let last_words = Arc::default();
        let mut listener = JoinSet::new();
        listener.spawn(listen(pipes.stderr, Arc::clone(&last_words)));
        let mut worker = Self {
            stdin: pipes.stdin,
            stdout: BufReader::new(pipes.stdout),
            last_words,
            fetch: fetch.filter(|_| code.network),
            output_bytes: code.limits.output_bytes,
            is_ready: false,
            call: 0,
            process,
            _listener: listener,
            calls: 0,
            is_spent: false,
            idle_since: Instant::now(),
        };
        worker.load(&load(code)?).await?;
        Ok(worker)
    }

    async fn load(&mut self, load: &Load) -> Result<(), RunError> {
        let broken = self.send(load).await;
        match self.reply().await {
            Ok(Reply::Ready { call: 0 }) if broken.is_ok() => {
                self.is_ready = true;
                Ok(())
            }
            Ok(Reply::NotLoaded { message }) => {
                Err(RunError::NotLoaded { message: beginning(message, error_bytes(self.output_bytes)) })
            }
            Ok(_) => Err(self.nonsense()),
            Err(error) => Err(self.died(&error).await),
        }
    }

    /// Whether it can take a call, as far as is known.
    pub(super) fn is_alive(&self) -> bool {
        !self.is_spent && self.process.ending().wait().now_or_never().is_none()
    }

    /// Whether it has taken longer than it may to clear away what its last call left.
    pub(super) fn is_stuck(&self) -> bool {
        !self.is_ready && !self.has_spoken() && self.idle_since.elapsed() > LONG_CLEARING
    }

    /// Whether there is something to be read.
    fn has_spoken(&self) -> bool {
        let unread = || rustix::io::ioctl_fionread(self.stdout.get_ref()).is_ok_and(|length| length > 0);
        !self.stdout.buffer().is_empty() || unread()
    }

    /// Waits until nothing is left of the last call.
    async fn clear(&mut self) -> io::Result<()> {
        if !self.is_ready {
            let said = self.reply().await?;
            self.is_ready = matches!(said, Reply::Ready { call } if call == self.call);
        }
        if self.is_ready { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Has a call answered. Whoever drops the future drops the worker, too: it is still busy.
    pub(super) async fn call(
        &mut self,
        event: &Json,
        context: &Context,
        left: Duration,
    ) -> Result<Ran, CallError> {
        self.calls += 1;
        self.is_spent = true;
        let call = nonce();
        let message = message(call, event, context, left);
        // A short one is there already when the worker is ready.
        if message.len() > SHORT_MESSAGE && !matches!(timeout(CLEARING, self.clear()).await, Ok(Ok(()))) {
            return Err(CallError::Untouched);
        }
        if self.is_ready && self.has_spoken() {
            // Of what it was not asked.
            return Err(CallError::Untouched);
        }
        let (sent, broken) = self.write(&message).await;
        let reply = match broken {
            None => self.answer(call, sent).await,
            Some(error) => Err(error),
        };
        match reply {
            Ok(reply) => Ok(self.understand(reply).await?),
            Err(_) if self.has_read_nothing(sent) => Err(CallError::Untouched),
            Err(error) => Err(self.died(&error).await.into()),
        }
    }

    /// What it says to a call that it was sent.
    async fn answer(&mut self, call: u64, sent: u64) -> io::Result<Reply> {
        match timeout(CLEARING, self.clear()).await {
            Ok(cleared) => cleared?,
            Err(_) if self.has_read_nothing(sent) => return Err(io::ErrorKind::TimedOut.into()),
            // It says so before it reads.
            Err(_) => self.clear().await?,
        }
        self.call = call;
        self.reply().await
    }

    /// What it has not read is still in the pipe.
    fn has_read_nothing(&self, sent: u64) -> bool {
        rustix::io::ioctl_fionread(&self.stdin).is_ok_and(|unread| unread == sent)
    }

    async fn understand(&mut self, reply: Reply) -> Result<Ran, RunError> {
        self.is_ready = false;
        match reply {
            Reply::Returned { call, log, last } if call == self.call => {
                let answer = match line(&mut self.stdout, self.output_bytes).await {
                    Ok(answer) => answer,
                    Err(error) => return Err(self.died(&error).await),
                };
                let answer = Json::parse(Bytes::from(answer)).map_err(|error| RunError::Thrown {
                    kind: "TypeError".to_owned(),
                    message: format!("the handler's answer is no JSON: {error}"),
                    details: String::new(),
                    log: log.clone(),
                })?;
                self.is_spent = last;
                Ok(Ran { answer, log })
            }
            Reply::Failed { call, log, last, failure } if call == self.call => {
                self.is_spent = last;
                Err(self.failure(failure, log))
            }
            _ => Err(self.nonsense()),
        }
    }

    fn failure(&self, failure: Failure, log: String) -> RunError {
        // A worker in which others' code runs may not keep to what it is told.
        match failure.within(error_bytes(self.output_bytes)) {
            Failure::Thrown { kind, message, details } => RunError::Thrown { kind, message, details, log },
            Failure::NotLoaded { message } => RunError::NotLoaded { message },
            Failure::TimedOut => RunError::TimedOut,
            Failure::OutOfMemory => RunError::OutOfMemory,
            Failure::OutputTooLarge => RunError::OutputTooLarge { limit: self.output_bytes },
        }
    }

    /// What it says to a call, or to the code. What it wants fetched meanwhile is fetched.
    async fn reply(&mut self) -> io::Result<Reply> {
        loop {
            let text = line(&mut self.stdout, LONGEST_LINE).await?;
            let reply = serde_json::from_slice(&text)?;
            let Reply::Fetch { call, request } = reply else { return Ok(reply) };
            if call != self.call {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let fetched = fetch::on_behalf(self.fetch.as_deref(), request).await;
            self.send(&fetched).await?;
        }
    }

    async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(message)?;
        text.push(b'\n');
        self.write(&text).await.1.map_or(Ok(()), Err)
    }

    /// How much could be written, and what stood in the way of the rest.
    async fn write(&mut self, text: &[u8]) -> (u64, Option<io::Error>) {
        let mut sent = 0;
        while sent < text.len() {
            match self.stdin.write(&text[sent..]).await {
                Ok(more) => sent += more,
                Err(error) => return (sent as u64, Some(error)),
            }
        }
        (sent as u64, None)
    }

    fn nonsense(&self) -> RunError {
        RunError::Died("it said what makes no sense".to_owned())
    }

    /// Why it does not answer. A process that has closed its pipe is about to end.
    async fn died(&self, error: &io::Error) -> RunError {
        match error.kind() {
            io::ErrorKind::InvalidData => return self.nonsense(),
            io::ErrorKind::FileTooLarge => return RunError::OutputTooLarge { limit: self.output_bytes },
            _ => {}
        }
        let how = match timeout(Duration::from_secs(1), self.process.verdict()).await {
            Ok(Verdict::OutOfMemory) => return RunError::OutOfMemory,
            Ok(Verdict::Refused) => {
                let why = self.process.why_refused().map(str::to_owned);
                return RunError::Unavailable(why.unwrap_or_else(|| self.last_words()));
            }
            Ok(Verdict::Exited(status)) => format!("it has ended with status {status}"),
            Ok(Verdict::Signalled(signal)) => format!("it was ended by signal {signal}"),
            Ok(Verdict::TooManyProcesses) => "it started too many processes".to_owned(),
            Ok(_) => "it is gone".to_owned(),
            Err(_) => "it does not listen any more".to_owned(),
        };
        match &*self.last_words() {
            "" => RunError::Died(how),
            words => RunError::Died(format!("{how}: {words}")),
        }
    }

    fn last_words(&self) -> String {
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&words).trim().to_owned()
    }
}

/// An error with its causes.
fn said(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// What a call is known by.
fn nonce() -> u64 {
    let mut nonce = [0; 8];
    // Zeroes, where the system has no entropy, are still no other call's of this worker.
    let _zeroes = getrandom::fill(&mut nonce);
    u64::from_le_bytes(nonce)
}

/// What a worker is told of the code.
fn load(code: &Code) -> Result<Load, RunError> {
    let is_inside = |name: &str| {
        let mut parts = std::path::Path::new(name).components();
        parts.all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    if let Some((name, _)) = code.files.iter().find(|(name, _)| !is_inside(name)) {
        return Err(RunError::NotLoaded { message: format!("{name} is no name of a file in a folder") });
    }
    let files = code.files.iter().map(|(name, content)| (name.clone(), BASE64_STANDARD.encode(content)));
    Ok(Load {
        files: files.collect(),
        entry: code.language.entry_file().to_owned(),
        handler: HANDLER.to_owned(),
        environment: code.environment.clone(),
        packages: code.packages.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
        network: code.network,
        memory_bytes: code.limits.memory_bytes,
        output_bytes: code.limits.output_bytes,
        log_bytes: LOG_BYTES,
    })
}

/// The two lines of a call.
fn message(call: u64, event: &Json, context: &Context, left: Duration) -> Vec<u8> {
    let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    let told = Told {
        function_id: context.function_id.to_string(),
        version: context.version.to_string(),
        request_id: context.request_id.to_string(),
        deadline: iso_8601(context.deadline),
        remaining_ms: left_ms,
    };
    let head = CallHead { call, left_ms, context: told };
    // Texts and numbers can be written.
    let mut message = serde_json::to_vec(&head).unwrap_or_default();
    message.push(b'\n');
    message.extend_from_slice(event.as_bytes());
    message.push(b'\n');
    message
}

/// One line of `limit` bytes at most, without its end.
async fn line(from: &mut BufReader<ChildStdout>, limit: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.take(limit as u64 + 1).read_until(b'\n', &mut line).await?;
    match line.pop() {
        Some(b'\n') => Ok(line),
        Some(_) if line.len() >= limit => Err(io::ErrorKind::FileTooLarge.into()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads whatever a process says, so that it never waits for a reader, and keeps the end of it.
async fn listen(mut from: impl AsyncRead + Unpin, words: Arc<Mutex<Vec<u8>>>) {
    let mut some = [0; 4 << 10];
    while let Ok(length @ 1..) = from.read(&mut some).await {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend_from_slice(&some[..length]);
        let surplus = words.len().saturating_sub(LAST_WORDS);
        words.drain(..surplus);
    }
}
