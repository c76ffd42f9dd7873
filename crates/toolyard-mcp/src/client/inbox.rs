//! What a server says on the one stream that all its answers share: which request an answer is for, and who hears
//! of the rest.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use toolyard_core::{Client, Notice, Object};

use super::asked::Callers;
use super::transport::{Answer, Signals, TransportError, cancelled, parse, request_of};
use crate::wire::{Message, message, method};

/// The requests that the server has not answered, by their ids; `None` once nothing will be.
pub(super) struct Waiting {
    requests: Mutex<Option<HashMap<u64, Request>>>,
}

struct Request {
    answer: oneshot::Sender<Result<Answer, TransportError>>,
    client: Arc<dyn Client>,
}

/// One request that waits. Dropping it unanswered tells the server that it is not wanted any more.
pub(super) struct Awaited<'a> {
    waiting: &'a Waiting,
    outbox: &'a mpsc::Sender<Vec<Bytes>>,
    id: u64,
    answer: oneshot::Receiver<Result<Answer, TransportError>>,
}

/// Where the messages of a server arrive.
pub(super) struct Inbox {
    /// For the log.
    pub(super) name: Arc<str>,
    pub(super) waiting: Arc<Waiting>,
    /// Takes the answers to what the server asks.
    pub(super) outbox: mpsc::Sender<Vec<Bytes>>,
    pub(super) signals: Arc<Signals>,
    /// Whom the server may ask.
    pub(super) callers: Arc<Callers>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { requests: Mutex::new(Some(HashMap::new())) }
    }
}

impl Waiting {
    /// Begins to wait for the answer to a request that is about to be sent; `None` where none will come.
    pub(super) fn enter<'a>(
        &'a self,
        id: u64,
        client: &Arc<dyn Client>,
        outbox: &'a mpsc::Sender<Vec<Bytes>>,
    ) -> Option<Awaited<'a>> {
        let (sender, answer) = oneshot::channel();
        self.lock().as_mut()?.insert(id, Request { answer: sender, client: client.clone() });
        Some(Awaited { waiting: self, outbox, id, answer })
    }

    /// Whether nothing will be answered any more.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<u64, Request>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, id: u64) -> Option<Request> {
        self.lock().as_mut()?.remove(&id)
    }

    /// Whose a line of log is that comes now on a connection that clients share: who alone waits has caused it, and, of a
    /// modern server, which logs for who wants that only, who alone wants it.
    fn listener(&self, signals: &Signals) -> Option<Arc<dyn Client>> {
        let requests = self.lock();
        let wants_log = |request: &&Request| request.client.log_level().is_some();
        let is_modern = signals.is_modern.load(Ordering::Relaxed);
        let mut candidates = requests.as_ref()?.values().filter(|request| !is_modern || wants_log(request));
        let first = candidates.next().filter(wants_log)?;
        candidates.next().is_none().then(|| first.client.clone())
    }

    fn client(&self, id: u64) -> Option<Arc<dyn Client>> {
        Some(self.lock().as_ref()?.get(&id)?.client.clone())
    }
}

impl Awaited<'_> {
    /// The answer; `None` where none will come.
    pub(super) async fn wait(&mut self) -> Option<Result<Answer, TransportError>> {
        (&mut self.answer).await.ok()
    }

    /// The server has not taken the request: there is nothing to withdraw.
    pub(super) fn forget(self) {
        self.waiting.take(self.id);
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if self.waiting.take(self.id).is_none() {
            return;
        }
        let withdrawal = vec![message::notification(method::CANCELLED, &cancelled(self.id))];
        if self.outbox.try_send(withdrawal).is_err() {
            tracing::debug!("a withdrawal is dropped: the server does not read");
        }
    }
}

impl Inbox {
    /// Takes one message.
    pub(super) fn take(&self, line: Bytes) {
        self.signals.heard.fetch_add(1, Ordering::Relaxed);
        match parse(line.clone()) {
            Ok(Message::Response { id, answer }) => {
                self.answered(id.and_then(|id| id.to_number_or_text()), Ok(answer));
            }
            Ok(Message::Notification { method, params }) => {
                self.signals.spoken.fetch_add(1, Ordering::Relaxed);
                self.noticed(&method, params);
            }
            Ok(Message::Request { id, method, params, .. }) => {
                self.signals.spoken.fetch_add(1, Ordering::Relaxed);
                if let Some(response) = self.callers.asked(None, id, &method, params) {
                    // Not awaited: a server that does not read while it writes would stop both of us.
                    let _full = self.outbox.try_send(response);
                }
            }
            Err(error) => {
                tracing::warn!(handler = %self.name, %error, "a line is no message");
                // Programs print where they should not, which is passed over. But a caller may be waiting
                // for just this line.
                self.answered(id_in(&line), Err(error));
            }
        }
    }

    /// Takes the ends of a message that is too large: whoever waits for it is told.
    pub(super) fn take_cut(&self, ends: &[u8], limit: usize) {
        tracing::warn!(handler = %self.name, limit, "a message is too large, and passed over");
        self.answered(id_in(ends), Err(TransportError::TooLarge(limit)));
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
                if let Some(client) = request_of(&params).and_then(|id| self.waiting.client(id)) {
                    client.notify(Notice::Progress(params));
                }
            }
            method::CANCELLED => self.callers.withdrawn(&params),
            method::LOG => self.logged(params),
            method::ELICIT_COMPLETE => self.callers.visits.over(params),
            method => self.signals.noticed(method, &params),
        }
    }

    /// Takes a line of the server's log, which does not say what it belongs to: it is for a call that can be told, and
    /// nobody hears what another client's call says.
    fn logged(&self, params: Object) {
        if self.callers.is_one_clients() {
            self.callers.logged(params);
        } else if let Some(client) = self.waiting.listener(&self.signals) {
            client.notify(Notice::Log(params));
        }
    }

    /// Nothing will come any more: every caller learns of it at once.
    pub(super) fn close(&self) {
        drop(self.waiting.lock().take());
        self.signals.lost.notify_one();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_servers_have_made_texts_of() {
        for (id, number) in [("3", Some(3)), (r#""3""#, Some(3)), (r#""x""#, None), ("3.5", None)] {
            let line = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
            let Ok(Message::Response { id, .. }) = parse(line) else { panic!("{number:?}") };
            assert_eq!(id.and_then(|id| id.to_number_or_text()), number);
        }
    }

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
