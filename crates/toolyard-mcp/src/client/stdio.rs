//! A server that is a child process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use toolyard_core::Client;
use toolyard_process::{Child, Ending, Processes, Program, SpawnError};

use super::asked::Callers;
use super::inbox::{Inbox, Waiting};
use super::transport::{Answer, Outgoing, Signals, TransportError};
use super::{ClientOptions, said};
use crate::lines::{self, Line, Lines};

/// Messages that wait to be read by the server. A request beyond waits with its caller.
const OUTBOX: usize = 64;

/// How long a server may take to end once its input is closed, and again once it is told to.
const GRACE: Duration = Duration::from_secs(1);

/// How long the log of a server that has ended is read on: it says why.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The pipes of a server. Dropping it ends the server.
pub(super) struct Stdio {
    outbox: mpsc::Sender<Vec<Bytes>>,
    waiting: Arc<Waiting>,
    /// The task that holds the server's standard input: when it ends, the input is closed.
    writer: AbortHandle,
    child: Mutex<Option<Child>>,
    _tasks: JoinSet<()>,
}

impl Stdio {
    pub(super) async fn start(
        name: &Arc<str>,
        processes: &Processes,
        program: &Program,
        options: &ClientOptions,
        signals: Arc<Signals>,
        callers: Arc<Callers>,
    ) -> Result<Self, SpawnError> {
        let (child, pipes) = processes.start(name, program).await?;
        let (outbox, messages) = mpsc::channel(OUTBOX);
        let waiting = Arc::<Waiting>::default();
        let inbox = Inbox {
            name: name.clone(),
            waiting: waiting.clone(),
            outbox: outbox.clone(),
            signals: signals.clone(),
            callers,
        };
        let reader =
            Reader { inbox, lines: Lines::new(pipes.stdout, options.message_bytes), ending: child.ending() };
        let mut tasks = JoinSet::new();
        let (logging, logged) = oneshot::channel();
        tasks.spawn(reader.read(logged));
        let writer = tasks.spawn(write(messages, pipes.stdin, signals));
        tasks.spawn(said::log(name.clone(), options.secrets.clone(), pipes.stderr, logging));
        Ok(Self { outbox, waiting, writer, child: Mutex::new(Some(child)), _tasks: tasks })
    }

    pub(super) async fn request(
        &self,
        request: Outgoing,
        client: &Arc<dyn Client>,
    ) -> Result<Answer, TransportError> {
        let mut answer = self.waiting.enter(request.id, client, &self.outbox).ok_or_else(ended)?;
        self.tell(vec![request.message]).await?;
        answer.wait().await.unwrap_or_else(|| Err(ended()))
    }

    /// Whether the server's output has ended, so that nothing will be answered any more.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_closed()
    }

    /// Closes the server's input and gives it time to end by itself.
    pub(super) async fn close(&self) {
        self.writer.abort();
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(child) = child {
            child.end(GRACE).await;
        }
    }

    /// Sends what wants no answer.
    pub(super) async fn tell(&self, message: Vec<Bytes>) -> Result<(), TransportError> {
        self.outbox.send(message).await.map_err(|_| ended())
    }

    /// Sends what wants no answer if there is room for it.
    pub(super) fn post(&self, message: Vec<Bytes>) {
        if self.outbox.try_send(message).is_err() {
            tracing::debug!("a message is dropped: the server does not read");
        }
    }
}

fn ended() -> TransportError {
    TransportError::Broken("the server's process has ended, or closed its output".into())
}

/// The task that reads what the server writes.
struct Reader<R> {
    inbox: Inbox,
    lines: Lines<R>,
    ending: Ending,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Until the server closes its output, or ends: somebody else may hold the output open. `logged` is closed
    /// with the end of its log.
    async fn read(mut self, logged: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                // What it wrote before it ended is read first.
                biased;
                line = self.lines.next() => match line {
                    Ok(Some(Line::Whole(line))) => self.inbox.take(line),
                    Ok(Some(Line::Cut(ends))) => self.inbox.take_cut(&ends, self.lines.limit()),
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(handler = %self.inbox.name, %error, "the server's output cannot be read on");
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
        if let Ok(status) = timeout(LAST_WORDS, end).await {
            let status = status.map(tracing::field::display);
            tracing::info!(handler = %self.inbox.name, status, "the server's process has ended");
        }
        self.inbox.close();
    }
}

/// The task that writes what the server reads.
async fn write(
    mut messages: mpsc::Receiver<Vec<Bytes>>,
    mut stdin: tokio::process::ChildStdin,
    signals: Arc<Signals>,
) {
    while let Some(message) = messages.recv().await {
        if lines::write(&mut stdin, &message).await.is_err() {
            // It still runs, maybe, but nothing reaches it any more.
            signals.lost.notify_one();
            return;
        }
    }
}
