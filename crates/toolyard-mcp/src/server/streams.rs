//! Streams that the client of a session can come back to (2025-11-25, basic/transports, resumability and redelivery).
//!
//! A stream has a source, which goes on while nobody reads: of a call that is the work itself, of news it is what
//! has changed by the time that somebody asks. So nothing gathers but what a call says, which its own queue bounds; what was
//! sent is kept in [`Replay`], but answers are in [`Answers`]. A stream that nobody reads for as long as `resume` ends, and its call with it.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream as EventStream, StreamExt};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use toolyard_net::sse;

use super::answers::Answers;
use super::replay::{EventId, Purpose, Replay};
use super::session::Session;

/// How long a client waits before it comes back to a stream that broke.
const RETRY: Duration = Duration::from_secs(1);

/// What a stream says next.
#[derive(Debug)]
pub(super) enum Said {
    /// Something before its end.
    Message(Vec<Bytes>),
    /// The answer to its request, or to one of a batch, which come last.
    Answer(Vec<Bytes>),
}

impl Said {
    pub(super) fn into_pieces(self) -> Vec<Bytes> {
        match self {
            Self::Message(pieces) | Self::Answer(pieces) => pieces,
        }
    }
}

/// Where a stream has what it says from.
pub(super) type Source = BoxStream<'static, Said>;

/// The streams of one session.
#[derive(Debug)]
pub(super) struct Streams {
    table: Mutex<Table>,
    /// Begins the ids of events: those of another session are none of this one.
    tag: Box<str>,
    /// Whether each begins with an event that only has an id, to come back with.
    primed: bool,
    /// How long a stream outlives its reader.
    resume: Duration,
    /// Turns true when nobody can come back any more.
    stopping: watch::Receiver<bool>,
}

#[derive(Debug)]
struct Table {
    /// `None` once the session is over.
    streams: Option<HashMap<u64, Stream>>,
    /// The number of the latest stream.
    latest: u64,
    /// The stream of what belongs to no request: there is one.
    news: Option<u64>,
    replay: Replay,
    answers: Answers,
}

/// What is known of a stream, read or not.
struct Stream {
    purpose: Purpose,
    /// `None` once everything was sent.
    source: Option<Source>,
    /// Of the latest event.
    place: u64,
    /// The number of the reader that goes on; an older one ends.
    reader: u64,
    waker: Option<Waker>,
    /// Whether somebody reads.
    read: watch::Sender<bool>,
    /// Ends the stream when nobody comes back. It does the work of a call, too.
    _keeper: JoinSet<()>,
}

/// What is to happen to a stream while it is there.
pub(super) struct Kept {
    read: watch::Receiver<bool>,
    resume: Duration,
    stopping: watch::Receiver<bool>,
}

/// A stream that was asked for by the id of an event.
pub(super) enum Resumed {
    Stream(Reader),
    /// It told of what belongs to no request, and is not kept any more: some of that was missed.
    OldNews,
    /// There is nothing to go on with.
    Unknown,
}

impl Streams {
    pub(super) fn new(
        id: &str,
        primed: bool,
        most_bytes: usize,
        resume: Duration,
        answers: Arc<Semaphore>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let (replay, answers) = (Replay::new(most_bytes), Answers::new(most_bytes, answers));
        let table = Table { streams: Some(HashMap::new()), latest: 0, news: None, replay, answers };
        // A part of the session's own id is no secret to its client, and tells nobody else the rest.
        let tag = id.get(..8).unwrap_or(id).into();
        Self { table: Mutex::new(table), tag, primed, resume, stopping }
    }

    /// Whether streams begin with an event to come back with (2025-11-25, basic/transports, sending messages).
    pub(super) const fn primed(&self) -> bool {
        self.primed
    }

    /// Whether a call runs whose stream its client may come back to.
    pub(super) fn in_use(&self) -> bool {
        let table = self.table();
        let mut streams = table.streams.iter().flat_map(HashMap::values);
        streams.any(|stream| stream.purpose == Purpose::Call && stream.source.is_some())
    }

    /// Ends all streams, for good.
    pub(super) fn close(&self) {
        let mut table = self.table();
        for number in table.streams.take().iter().flat_map(HashMap::keys) {
            table.forget(*number);
        }
    }

    /// Begins to read the stream of the latest event that a client got.
    pub(super) fn resume(session: &Arc<Session>, id: &str) -> Resumed {
        let this = &session.streams;
        let Some(id) = EventId::read(id, &this.tag) else { return Resumed::Unknown };
        let mut table = this.table();
        let mut replay = table.replay.after(id.stream, id.place);
        replay.extend(table.answers.after(id.stream, id.place));
        let stream = table.streams.as_mut().and_then(|streams| streams.get_mut(&id.stream));
        match stream.filter(|stream| stream.source.is_some() || !replay.is_empty()) {
            Some(stream) => {
                stream.reader += 1;
                // Whoever reads still does not know that the client is gone.
                stream.waker.take().into_iter().for_each(Waker::wake);
                stream.read.send_replace(true);
                let reader = stream.reader;
                drop(table);
                Resumed::Stream(Reader { session: session.clone(), stream: id.stream, reader, ready: replay })
            }
            None if id.purpose == Purpose::News => Resumed::OldNews,
            None => Resumed::Unknown,
        }
    }

    /// Adds a stream; gives its first reader. `work` is run as long as the stream is there.
    pub(super) fn begin<F: Future<Output = ()> + Send + 'static>(
        session: &Arc<Session>,
        purpose: Purpose,
        source: Source,
        work: impl FnOnce(Kept) -> F,
    ) -> Reader {
        let this = &session.streams;
        let read = watch::Sender::new(true);
        let kept = Kept { read: read.subscribe(), resume: this.resume, stopping: this.stopping.clone() };
        let work = work(kept);
        let mut table = this.table();
        table.latest += 1;
        let number = table.latest;
        if purpose == Purpose::News
            && let Some(older) = table.news.replace(number)
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
            let (place, reader, waker) = (0, 0, None);
            streams.insert(number, Stream { purpose, source, place, reader, waker, read, _keeper: keeper });
        }
        drop(table);
        let first = this.primed.then(|| {
            let id = EventId { purpose, stream: number, place: 0 };
            vec![sse::priming(&id.write(&this.tag), RETRY)]
        });
        Reader { session: session.clone(), stream: number, reader: 0, ready: first.into_iter().collect() }
    }

    /// The next event of a stream for one of its readers.
    fn poll(&self, number: u64, reader: u64, cx: &mut Context<'_>) -> Poll<Option<Vec<Bytes>>> {
        let mut table = self.table();
        let Table { streams, replay, answers, .. } = &mut *table;
        let stream = streams.as_mut().and_then(|streams| streams.get_mut(&number));
        let Some(stream) = stream.filter(|stream| stream.reader == reader) else { return Poll::Ready(None) };
        stream.waker = Some(cx.waker().clone());
        let Some(source) = &mut stream.source else { return Poll::Ready(None) };
        let Some(said) = std::task::ready!(source.poll_next_unpin(cx)) else {
            stream.source = None;
            answers.read(number);
            return Poll::Ready(None);
        };
        stream.place += 1;
        let id = EventId { purpose: stream.purpose, stream: number, place: stream.place };
        let is_answer = matches!(said, Said::Answer(_));
        let event = sse::numbered(&id.write(&self.tag), said.into_pieces());
        // Where too many clients are away, an answer is kept as far as anything is.
        if !is_answer || !answers.keep(number, stream.place, &event) {
            replay.keep(number, stream.place, &event);
        }
        Poll::Ready(Some(event))
    }

    /// A reader is gone. The stream waits for another, unless there is one already.
    fn left(&self, number: u64, reader: u64) {
        let table = self.table();
        let stream = table.streams.as_ref().and_then(|streams| streams.get(&number));
        if let Some(stream) = stream.filter(|stream| stream.reader == reader) {
            stream.read.send_replace(false);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn forget(&mut self, number: u64) {
        self.replay.forget(number);
        self.answers.forget(number);
        if let Some(streams) = &mut self.streams {
            streams.remove(&number);
        }
    }
}

/// Whoever reads a stream that is gone has to hear of it.
impl Drop for Stream {
    fn drop(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("purpose", &self.purpose)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Kept {
    /// Waits until nobody has read the stream for long enough.
    pub(super) async fn abandoned(&mut self) {
        while self.read.wait_for(|read| !read).await.is_ok() {
            tokio::select! {
                back = self.read.wait_for(|read| *read) => if back.is_err() { return },
                () = sleep(self.resume) => return,
                _ = self.stopping.wait_for(|stopping| *stopping) => return,
            }
        }
    }
}

/// Reads a stream. The session is in use as long as this lives.
pub(super) struct Reader {
    session: Arc<Session>,
    stream: u64,
    reader: u64,
    /// What goes before what the source gives.
    ready: VecDeque<Vec<Bytes>>,
}

impl EventStream for Reader {
    type Item = Vec<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<Bytes>>> {
        match self.ready.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None => self.session.streams.poll(self.stream, self.reader, cx),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.session.streams.left(self.stream, self.reader);
    }
}

#[cfg(test)]
mod tests;
