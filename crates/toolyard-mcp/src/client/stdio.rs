//! A server that is a child process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use toolyard_core::{Client, Notice, Object};
use toolyard_process::{Child, Ending, Processes, Program, SpawnError};

use super::transport::{Answer, Outgoing, Signals, TransportError, cancelled, parse, response_to};
use crate::lines::{self, Lines};
use crate::wire::{Id, Message, message, meta, method};

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

/// The requests that the server has not answered, by their ids; `None` once nothing will be.
#[derive(Default)]
struct Waiting {
    requests: Mutex<Option<HashMap<u64, Request>>>,
}

struct Request {
    answer: oneshot::Sender<Result<Answer, TransportError>>,
    client: Arc<dyn Client>,
}

impl Stdio {
    pub(super) async fn start(
        name: &Arc<str>,
        processes: &Processes,
        program: &Program,
        line_bytes: usize,
        signals: Arc<Signals>,
    ) -> Result<Self, SpawnError> {
        let (child, pipes) = processes.start(name, program).await?;
        let (outbox, messages) = mpsc::channel(OUTBOX);
        let waiting = Arc::new(Waiting { requests: Mutex::new(Some(HashMap::new())) });
        let reader = Reader {
            name: name.clone(),
            lines: Lines::new(pipes.stdout, line_bytes),
            ending: child.ending(),
            waiting: waiting.clone(),
            outbox: outbox.clone(),
            signals: signals.clone(),
        };
        let mut tasks = JoinSet::new();
        let (logging, logged) = oneshot::channel();
        tasks.spawn(reader.read(logged));
        let writer = tasks.spawn(write(messages, pipes.stdin, signals));
        tasks.spawn(log(name.clone(), pipes.stderr, logging));
        Ok(Self { outbox, waiting, writer, child: Mutex::new(Some(child)), _tasks: tasks })
    }

    pub(super) async fn request(
        &self,
        request: Outgoing,
        client: &Arc<dyn Client>,
    ) -> Result<Answer, TransportError> {
        let (sender, answer) = oneshot::channel();
        let mut withdrawal = Withdrawal { stdio: self, id: Some(request.id) };
        if !self.waiting.add(request.id, Request { answer: sender, client: client.clone() }) {
            withdrawal.id = None;
            return Err(ended());
        }
        self.tell(vec![request.message]).await?;
        let answer = answer.await;
        withdrawal.id = None;
        answer.unwrap_or_else(|_| Err(ended()))
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

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Option<HashMap<u64, Request>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, id: u64, request: Request) -> bool {
        self.lock().as_mut().is_some_and(|requests| requests.insert(id, request).is_none())
    }

    fn take(&self, id: u64) -> Option<Request> {
        self.lock().as_mut()?.remove(&id)
    }

    fn client(&self, id: u64) -> Option<Arc<dyn Client>> {
        Some(self.lock().as_ref()?.get(&id)?.client.clone())
    }

    /// Every caller learns at once that no answer will come.
    fn close(&self) {
        drop(self.lock().take());
    }
}

/// Tells the server that a request is not wanted any more, when it is dropped unanswered.
struct Withdrawal<'a> {
    stdio: &'a Stdio,
    id: Option<u64>,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        if self.stdio.waiting.take(id).is_some() {
            self.stdio.post(vec![message::notification(method::CANCELLED, &cancelled(id))]);
        }
    }
}

/// The task that reads what the server writes.
struct Reader<R> {
    name: Arc<str>,
    lines: Lines<R>,
    ending: Ending,
    waiting: Arc<Waiting>,
    outbox: mpsc::Sender<Vec<Bytes>>,
    signals: Arc<Signals>,
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
                    Ok(Some(line)) => self.take(line),
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(handler = %self.name, %error, "the server's output cannot be read on");
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
            tracing::info!(handler = %self.name, status, "the server's process has ended");
        }
        self.waiting.close();
        self.signals.lost.notify_one();
    }

    fn take(&self, line: Bytes) {
        match parse(line.clone()) {
            Ok(Message::Response { id, answer }) => {
                self.answered(id.and_then(|id| id.to_number()), Ok(answer));
            }
            Ok(Message::Notification { method, params }) => self.noticed(&method, params),
            Ok(Message::Request { id, method, .. }) => {
                // Not awaited: a server that does not read while it writes would stop both of us.
                let _full = self.outbox.try_send(response_to(&id, &method));
            }
            Err(error) => {
                tracing::warn!(handler = %self.name, %error, "a line is no message");
                // Programs print where they should not, which is passed over. But a caller may be waiting
                // for just this line.
                self.answered(id_in(&line), Err(error));
            }
        }
    }

    fn answered(&self, id: Option<u64>, answer: Result<Answer, TransportError>) {
        if let Some(request) = id.and_then(|id| self.waiting.take(id)) {
            // The caller may have left at this very moment.
            let _left = request.answer.send(answer);
        }
    }

    fn noticed(&self, method: &str, params: Object) {
        match method {
            method::PROGRESS => {
                let token = params.get(meta::PROGRESS_TOKEN).and_then(Id::parse);
                let client = token.and_then(|token| token.to_number()).and_then(|id| self.waiting.client(id));
                if let Some(client) = client {
                    client.notify(Notice::Progress(params));
                }
            }
            method::TOOLS_CHANGED => self.signals.changed.notify_one(),
            _ => {}
        }
    }
}

/// The id of a response that could not be read, where the envelope's first or last members give it away.
/// What stands elsewhere may be part of a result, or of what a program prints beside its messages.
fn id_in(line: &[u8]) -> Option<u64> {
    const ENVELOPE: &[u8] = b"\"jsonrpc\":\"2.0\",\"id\":";
    const ENOUGH: usize = 64;
    let compact =
        |part: &[u8]| -> Vec<u8> { part.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect() };
    let (first, last) =
        (compact(&line[..line.len().min(ENOUGH)]), compact(&line[line.len().saturating_sub(ENOUGH)..]));
    let in_front = first.strip_prefix(b"{").and_then(|text| text.strip_prefix(ENVELOPE));
    let behind = memchr::memmem::rfind(&last, ENVELOPE).map(|at| &last[at + ENVELOPE.len()..]);
    let digits = |text: &[u8], end: &[u8]| {
        let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let id = std::str::from_utf8(&text[..length]).ok()?.parse().ok();
        id.filter(|_| text[length..].starts_with(end))
    };
    in_front
        .and_then(|text| digits(text, b",\"result\""))
        .or_else(|| behind.and_then(|text| digits(text, b"}")))
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

/// How much of a line of a server's log is kept, in bytes.
const LOG_LINE: usize = 4096;

/// The task that passes the server's log on to ours. `_logging` ends with it.
async fn log(name: Arc<str>, stderr: impl AsyncRead + Unpin, _logging: oneshot::Sender<()>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut chunk = (&mut reader).take(LOG_LINE as u64);
        match chunk.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => tracing::info!(handler = %name, "{}", String::from_utf8_lossy(line.trim_ascii_end())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_broken_response() {
        let cases = [
            (r#"{"jsonrpc": "2.0", "id": 3, "result": {"x": NaN}}"#, Some(3)),
            (r#"{"result":{"id":7,"x":NaN},"jsonrpc":"2.0","id":12}"#, Some(12)),
            (r#"{"id":3,"event":"received"}"#, None),
            (r#"{"result":{"id":7,"x":NaN},"id":12}"#, None),
            (r#"{"jsonrpc":"2.0","id":3,"method":"ping",}"#, None),
            ("", None),
        ];
        for (line, id) in cases {
            assert_eq!(id_in(line.as_bytes()), id, "{line}");
        }
    }
}
