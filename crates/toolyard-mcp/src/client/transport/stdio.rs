//! A server that runs as a child process.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use toolyard_core::{Client, SecretRedactor};
use toolyard_process::{ChildProcess, ExitHandle, ProcessTable, ProgramSpec, SpawnError};

use super::inbox::{MessageInbox, PendingRequests};
use super::non_messages::SkippedMessages;
use super::{ConnectionSignals, OutgoingRequest, ProcessEnded, TransportError, UpstreamResult, stderr_log};
use crate::client::ClientOptions;
use crate::client::server_requests::ServerRequestRouter;
use crate::lines::{self, InputLine, LineReader};

/// Capacity of the queue of messages to the server. Further requests wait.
const OUTBOX_CAPACITY: usize = 64;

/// Time for the process to end after its input is closed, and again after it was signalled.
const GRACE: Duration = Duration::from_secs(1);

/// Time for the last log lines of a process that has ended: they tell the reason.
const STDERR_DRAIN_TIME: Duration = Duration::from_millis(100);

/// The pipes of a server process. Dropping it stops the process.
pub(in crate::client) struct StdioTransport {
    outbox: mpsc::Sender<Vec<Bytes>>,
    pending: Arc<PendingRequests>,
    /// The end of the process, once it has ended.
    ended: Arc<OnceLock<ProcessEnded>>,
    /// The task that owns the standard input of the process: its end closes the input.
    writer: AbortHandle,
    child: Mutex<Option<ChildProcess>>,
    _tasks: JoinSet<()>,
}

impl StdioTransport {
    pub(in crate::client) async fn start(
        name: &Arc<str>,
        processes: &ProcessTable,
        program: &ProgramSpec,
        options: &ClientOptions,
        signals: Arc<ConnectionSignals>,
        server_requests: Arc<ServerRequestRouter>,
    ) -> Result<Self, SpawnError> {
        let (child, pipes) = processes.start(name, program).await?;
        let (outbox, messages) = mpsc::channel(OUTBOX_CAPACITY);
        let pending = Arc::<PendingRequests>::default();
        let inbox = MessageInbox {
            name: name.clone(),
            pending: pending.clone(),
            outbox: outbox.clone(),
            signals: signals.clone(),
            server_requests,
            skipped: SkippedMessages::new(name, options),
            budget: options.budget.clone(),
        };
        let lines =
            LineReader::new(pipes.stdout, options.max_message_bytes).with_budget(options.budget.clone());
        // All callers share the pipe.
        let lines = lines.without_waiting();
        let ended = Arc::<OnceLock<ProcessEnded>>::default();
        let own = stderr_log::ErrorLines::default();
        let secrets = options.secrets.clone();
        let output = ProcessOutput { last: options.error_lines.clone(), own: own.clone(), secrets };
        let reader = StdioReader { inbox, lines, ending: child.exit_handle(), ended: ended.clone(), output };
        let mut tasks = JoinSet::new();
        let (logging, logged) = oneshot::channel();
        tasks.spawn(reader.read_lines(logged));
        let writer = tasks.spawn(write_messages(messages, pipes.stdin, signals));
        let output = stderr_log::ErrorOutput {
            name: name.clone(),
            secrets: options.secrets.clone(),
            last: options.error_lines.clone(),
            own,
        };
        tasks.spawn(stderr_log::forward_stderr(output, pipes.stderr, logging));
        Ok(Self { outbox, pending, ended, writer, child: Mutex::new(Some(child)), _tasks: tasks })
    }

    pub(in crate::client) async fn request(
        &self,
        request: OutgoingRequest,
        client: &Arc<dyn Client>,
    ) -> Result<UpstreamResult, TransportError> {
        let mut answer =
            self.pending.register(&request, client, &self.outbox).ok_or_else(|| self.process_ended())?;
        self.notify(vec![request.message]).await?;
        answer.wait().await.unwrap_or_else(|| Err(self.process_ended()))
    }

    /// Returns how the process has ended, if it has.
    pub(in crate::client) fn ended(&self) -> Option<&ProcessEnded> {
        self.ended.get()
    }

    fn process_ended(&self) -> TransportError {
        TransportError::Broken(self.ended().cloned().unwrap_or_else(|| ProcessEnded::new(None)).into())
    }

    /// True once the output has ended, so that no response can come any more.
    pub(in crate::client) fn is_closed(&self) -> bool {
        self.pending.is_closed()
    }

    /// Closes the input and waits until the process ends.
    pub(in crate::client) async fn close(&self) {
        self.writer.abort();
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(child) = child {
            child.shut_down(GRACE).await;
        }
    }

    /// Sends a notification or a response.
    pub(in crate::client) async fn notify(&self, message: Vec<Bytes>) -> Result<(), TransportError> {
        self.outbox.send(message).await.map_err(|_| self.process_ended())
    }

    /// Queues a message, if there is room.
    pub(in crate::client) fn enqueue(&self, message: Vec<Bytes>) {
        if self.outbox.try_send(message).is_err() {
            tracing::debug!("dropped a message: the queue is full");
        }
    }
}

/// The task that reads the output of the process.
struct StdioReader<R> {
    inbox: MessageInbox,
    lines: LineReader<R>,
    ending: ExitHandle,
    ended: Arc<OnceLock<ProcessEnded>>,
    output: ProcessOutput,
}

/// The last lines of a process that are no messages.
struct ProcessOutput {
    /// Those of all processes of the server.
    last: stderr_log::ErrorLines,
    /// Those of this process.
    own: stderr_log::ErrorLines,
    secrets: SecretRedactor,
}

impl ProcessOutput {
    /// Records a line of the standard output, unless it looks like a message: launchers write their progress there.
    fn record(&self, line: &Bytes) {
        if !line.trim_ascii_start().starts_with(b"{") {
            let line = InputLine::Whole(line.clone());
            self.last.push(&line, &self.secrets);
            self.own.push(&line, &self.secrets);
        }
    }
}

impl<R: AsyncRead + Unpin> StdioReader<R> {
    /// Reads until the output is closed or the process ends: another process may keep the output open. `logged` closes
    /// at the end of the log.
    async fn read_lines(mut self, logged: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                // Output written before the end is read first.
                biased;
                line = self.lines.next() => match line {
                    Ok(Some(InputLine::Whole(line))) => {
                        self.output.record(&line);
                        self.inbox.handle_message(line);
                    }
                    Ok(Some(InputLine::TooLong(ends))) => self.inbox.handle_oversized(&ends, self.lines.limit()),
                    Ok(Some(InputLine::NoMemory(ends))) => self.inbox.handle_unbuffered(&ends),
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(handler = %self.inbox.name, %error, "failed to read the server's output");
                        break;
                    }
                },
                _ = self.ending.wait() => break,
            }
        }
        let end = async {
            let _closed = logged.await;
            self.ending.wait().await
        };
        let status = timeout(STDERR_DRAIN_TIME, end).await.ok();
        let end = ProcessEnded::new(status.flatten()).with_output(self.output.own.text());
        let _known = self.ended.set(end);
        if let Some(status) = status.filter(|_| !self.output.last.is_quiet()) {
            let status = status.map(tracing::field::display);
            tracing::info!(handler = %self.inbox.name, status, "the server's process has ended");
        }
        self.inbox.close();
    }
}

/// The task that writes to the input of the process.
async fn write_messages(
    mut messages: mpsc::Receiver<Vec<Bytes>>,
    mut stdin: tokio::process::ChildStdin,
    signals: Arc<ConnectionSignals>,
) {
    while let Some(message) = messages.recv().await {
        if lines::write(&mut stdin, &message).await.is_err() {
            // The process may be alive, but cannot be reached.
            signals.connection_lost.notify_one();
            return;
        }
    }
}
