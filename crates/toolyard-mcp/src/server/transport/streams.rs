//! Resumable streams of a session (2025-11-25, basic/transports, resumability and redelivery).
//!
//! The source of a stream goes on without a reader: that of a call runs the call, that of notifications collects
//! changes when it is polled. So only notifications of a call accumulate, in its limited queue. Sent events are stored
//! in [`ReplayBuffer`], and answers in [`AnswerStore`]. A stream without a reader ends after `resume_timeout`, which
//! cancels its call.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream as EventStream, StreamExt};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use toolyard_net::budget::ByteBudget;
use toolyard_net::sse;

use super::answer_store::AnswerStore;
use super::client_events::ClientEvents;
use super::replay::{EventId, ReplayBuffer, StreamPurpose};
use crate::server::session::LegacySession;

/// Time that a client waits before it resumes an interrupted stream.
const RETRY: Duration = Duration::from_secs(1);

/// An item of a stream.
#[derive(Debug)]
pub(super) enum StreamItem {
    /// A message before the answer.
    Message(Vec<Bytes>),
    /// The answer to the request, or to one of a batch; answers come last.
    Answer(Vec<Bytes>),
}

impl StreamItem {
    /// Returns the item within the limit of the client, if it can be.
    pub(super) fn fit(self, events: ClientEvents) -> Option<Self> {
        match self {
            Self::Message(pieces) => events.fit(pieces).map(Self::Message),
            Self::Answer(pieces) => events.fit(pieces).map(Self::Answer),
        }
    }

    pub(super) fn into_pieces(self) -> Vec<Bytes> {
        match self {
            Self::Message(pieces) | Self::Answer(pieces) => pieces,
        }
    }
}

/// The source of the items of a stream.
pub(super) type ItemSource = BoxStream<'static, StreamItem>;

/// The streams of one session.
#[derive(Debug)]
pub(in crate::server) struct SessionStreams {
    table: Mutex<StreamTable>,
    /// Prefix of event ids: ids of other sessions are invalid here.
    tag: Box<str>,
    /// True if each stream starts with an event that only has an id, to resume from.
    is_primed: bool,
    /// Time that a stream survives without a reader.
    resume_timeout: Duration,
    /// True once streams cannot be resumed any more.
    stopping: watch::Receiver<bool>,
}

#[derive(Debug)]
struct StreamTable {
    /// `None` once the session is closed.
    streams: Option<HashMap<u64, StreamState>>,
    /// Number of the latest stream.
    last_number: u64,
    /// The only stream of messages that belong to no request.
    notifications: Option<u64>,
    replay: ReplayBuffer,
    answers: AnswerStore,
}

/// The state of a stream, with or without a reader.
struct StreamState {
    purpose: StreamPurpose,
    /// `None` once everything was sent.
    source: Option<ItemSource>,
    /// Position of the latest event.
    position: u64,
    /// Number of the current reader; older ones end.
    reader: u64,
    waker: Option<Waker>,
    /// True while there is a reader.
    is_read: watch::Sender<bool>,
    /// Runs the call, and ends the stream when it is abandoned.
    _keeper: JoinSet<()>,
}

/// Ends the work of a stream that is abandoned.
pub(super) struct StreamLifetime {
    is_read: watch::Receiver<bool>,
    resume_timeout: Duration,
    stopping: watch::Receiver<bool>,
}

/// The result of resuming a stream from an event.
pub(super) enum ResumeOutcome {
    Stream(StreamReader),
    /// A stream of notifications that is gone: some were missed.
    MissedNotifications,
    /// There is nothing to resume.
    Unknown,
}

impl SessionStreams {
    pub(in crate::server) fn new(
        id: &str,
        is_primed: bool,
        max_bytes: usize,
        resume: Duration,
        (answers, budget): (Arc<Semaphore>, &ByteBudget),
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let replay = ReplayBuffer::new(max_bytes, budget.clone());
        let answers = AnswerStore::new(max_bytes, answers, budget.clone());
        let table = StreamTable {
            streams: Some(HashMap::new()),
            last_number: 0,
            notifications: None,
            replay,
            answers,
        };
        // Only a part of the session id, which is a secret towards others.
        let tag = id.get(..8).unwrap_or(id).into();
        Self { table: Mutex::new(table), tag, is_primed, resume_timeout: resume, stopping }
    }

    /// True if streams start with an event to resume from (2025-11-25, basic/transports, sending messages).
    pub(super) const fn is_primed(&self) -> bool {
        self.is_primed
    }

    /// True if a call runs whose stream may be resumed.
    pub(in crate::server) fn is_in_use(&self) -> bool {
        let table = self.table();
        let mut streams = table.streams.iter().flat_map(HashMap::values);
        streams.any(|stream| stream.purpose == StreamPurpose::Call && stream.source.is_some())
    }

    /// Drops the older part of the stored events. A locked table stays unchanged: the owner of the lock may be waiting
    /// for the memory.
    pub(in crate::server) fn shrink(&self) {
        let table = match self.table.try_lock() {
            Ok(table) => Some(table),
            Err(TryLockError::Poisoned(table)) => Some(table.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut table) = table {
            table.replay.shrink();
            table.answers.shrink();
        }
    }

    /// Ends all streams for good.
    pub(in crate::server) fn close(&self) {
        let mut table = self.table();
        for number in table.streams.take().iter().flat_map(HashMap::keys) {
            table.forget(*number);
        }
    }

    /// Resumes a stream behind an event.
    pub(super) fn resume(session: &Arc<LegacySession>, id: &str) -> ResumeOutcome {
        let this = &session.streams;
        let Some(id) = EventId::parse(id, &this.tag) else { return ResumeOutcome::Unknown };
        let mut table = this.table();
        let mut replay = table.replay.after(id.stream, id.position);
        replay.extend(table.answers.after(id.stream, id.position));
        let stream = table.streams.as_mut().and_then(|streams| streams.get_mut(&id.stream));
        match stream.filter(|stream| stream.source.is_some() || !replay.is_empty()) {
            Some(stream) => {
                stream.reader += 1;
                // The old reader does not know yet that its client is gone.
                stream.waker.take().into_iter().for_each(Waker::wake);
                stream.is_read.send_replace(true);
                let reader = stream.reader;
                drop(table);
                ResumeOutcome::Stream(StreamReader {
                    session: session.clone(),
                    stream: id.stream,
                    reader,
                    ready: replay,
                })
            }
            None if id.purpose == StreamPurpose::Notifications => ResumeOutcome::MissedNotifications,
            None => ResumeOutcome::Unknown,
        }
    }

    /// Starts a stream and returns its first reader. `work` runs as long as the stream exists.
    pub(super) fn start<F: Future<Output = ()> + Send + 'static>(
        session: &Arc<LegacySession>,
        purpose: StreamPurpose,
        source: ItemSource,
        work: impl FnOnce(StreamLifetime) -> F,
    ) -> StreamReader {
        let this = &session.streams;
        let is_read = watch::Sender::new(true);
        let lifetime = StreamLifetime {
            is_read: is_read.subscribe(),
            resume_timeout: this.resume_timeout,
            stopping: this.stopping.clone(),
        };
        let work = work(lifetime);
        let mut table = this.table();
        table.last_number += 1;
        let number = table.last_number;
        if purpose == StreamPurpose::Notifications
            && let Some(older) = table.notifications.replace(number)
        {
            table.forget(older);
        }
        if let Some(streams) = &mut table.streams {
            let (owner, mut keeper) = (Arc::downgrade(session), JoinSet::new());
            keeper.spawn(async move {
                work.await;
                if let Some(session) = owner.upgrade() {
                    session.streams.table().forget(number);
                }
            });
            let source = Some(source);
            let (position, reader, waker) = (0, 0, None);
            streams.insert(
                number,
                StreamState { purpose, source, position, reader, waker, is_read, _keeper: keeper },
            );
        }
        drop(table);
        let first = this.is_primed.then(|| {
            let id = EventId { purpose, stream: number, position: 0 };
            vec![sse::priming_event(&id.format(&this.tag), RETRY)]
        });
        StreamReader {
            session: session.clone(),
            stream: number,
            reader: 0,
            ready: first.into_iter().collect(),
        }
    }

    /// Polls the next event of a stream for one of its readers.
    fn poll_event(&self, number: u64, reader: u64, cx: &mut Context<'_>) -> Poll<Option<Vec<Bytes>>> {
        let mut table = self.table();
        let StreamTable { streams, replay, answers, .. } = &mut *table;
        let stream = streams.as_mut().and_then(|streams| streams.get_mut(&number));
        let Some(stream) = stream.filter(|stream| stream.reader == reader) else { return Poll::Ready(None) };
        stream.waker = Some(cx.waker().clone());
        let Some(source) = &mut stream.source else { return Poll::Ready(None) };
        let Some(item) = std::task::ready!(source.poll_next_unpin(cx)) else {
            stream.source = None;
            answers.mark_read(number);
            return Poll::Ready(None);
        };
        stream.position += 1;
        let id = EventId { purpose: stream.purpose, stream: number, position: stream.position };
        let is_answer = matches!(item, StreamItem::Answer(_));
        let event = sse::numbered_message(&id.format(&self.tag), item.into_pieces());
        // Without a permit, an answer is stored like any other event.
        if !is_answer || !answers.store(number, stream.position, &event) {
            replay.store(number, stream.position, &event);
        }
        Poll::Ready(Some(event))
    }

    /// Marks the stream as unread, unless it has another reader already.
    fn reader_left(&self, number: u64, reader: u64) {
        let table = self.table();
        let stream = table.streams.as_ref().and_then(|streams| streams.get(&number));
        if let Some(stream) = stream.filter(|stream| stream.reader == reader) {
            stream.is_read.send_replace(false);
        }
    }

    fn table(&self) -> MutexGuard<'_, StreamTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamTable {
    fn forget(&mut self, number: u64) {
        self.replay.forget(number);
        self.answers.forget(number);
        if let Some(streams) = &mut self.streams {
            streams.remove(&number);
        }
    }
}

/// Wakes the reader, which has to notice the end of the stream.
impl Drop for StreamState {
    fn drop(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl std::fmt::Debug for StreamState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamState")
            .field("purpose", &self.purpose)
            .field("place", &self.position)
            .finish_non_exhaustive()
    }
}

impl StreamLifetime {
    /// Waits until the stream had no reader for long enough.
    pub(super) async fn wait_until_abandoned(&mut self) {
        while self.is_read.wait_for(|is_read| !is_read).await.is_ok() {
            tokio::select! {
                back = self.is_read.wait_for(|is_read| *is_read) => if back.is_err() { return },
                () = sleep(self.resume_timeout) => return,
                _ = self.stopping.wait_for(|stopping| *stopping) => return,
            }
        }
    }
}

/// The reader of a stream. It keeps the session in use.
pub(super) struct StreamReader {
    session: Arc<LegacySession>,
    stream: u64,
    reader: u64,
    /// Events that precede those of the source.
    ready: VecDeque<Vec<Bytes>>,
}

impl EventStream for StreamReader {
    type Item = Vec<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<Bytes>>> {
        match self.ready.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None => self.session.streams.poll_event(self.stream, self.reader, cx),
        }
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.session.streams.reader_left(self.stream, self.reader);
    }
}

#[cfg(test)]
mod tests;
