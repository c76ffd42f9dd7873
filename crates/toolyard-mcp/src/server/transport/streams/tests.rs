use std::future::pending;

use futures_util::FutureExt;
use futures_util::stream;
use tokio::sync::mpsc;
use tokio::time::advance;
use toolyard_core::Object;

use super::*;
use crate::server::SessionLimits;
use crate::server::session::SessionTable;
use crate::server::session::owner::SessionOwner;
use crate::wire::{ProtocolRevision, RequestId};

const GRACE: Duration = Duration::from_secs(30);

/// A session of a client of the latest revision, and the sender that stops the gateway.
fn session(limits: SessionLimits) -> (SessionTable, Arc<LegacySession>, watch::Sender<bool>) {
    let (stopping, stopping_now) = watch::channel(false);
    let sessions = SessionTable::new(
        SessionLimits { resume_timeout: GRACE, ..limits },
        ByteBudget::default(),
        stopping_now,
    );
    let version = toolyard_core::Json::string(ProtocolRevision::LATEST_LEGACY.as_str());
    let session =
        sessions.open(&Object::new().with("protocolVersion", version), SessionOwner::Local, None).unwrap();
    (sessions, session, stopping)
}

/// Items that a test sends. Those that start with `=` are answers.
fn source() -> (mpsc::UnboundedSender<&'static str>, ItemSource) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let next = async |mut receiver: mpsc::UnboundedReceiver<&'static str>| {
        let word = receiver.recv().await?;
        let pieces = vec![Bytes::from(word)];
        let item =
            if word.starts_with('=') { StreamItem::Answer(pieces) } else { StreamItem::Message(pieces) };
        Some((item, receiver))
    };
    (sender, stream::unfold(receiver, next).boxed())
}

/// A stream that ends when it is abandoned; the receiver closes with its work.
fn begin(
    session: &Arc<LegacySession>,
    purpose: StreamPurpose,
    source: ItemSource,
) -> (StreamReader, mpsc::Receiver<()>) {
    let (alive, ended) = mpsc::channel(1);
    let reader = SessionStreams::start(session, purpose, source, |mut lifetime| async move {
        let _alive = alive;
        lifetime.wait_until_abandoned().await;
    });
    (reader, ended)
}

/// Returns the id and the data of the next event.
async fn event(reader: &mut StreamReader) -> (String, String) {
    let text = String::from_utf8(reader.next().await.expect("an event").concat()).unwrap();
    let line =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
    (line("id: "), line("data: "))
}

fn again(session: &Arc<LegacySession>, id: &str) -> Option<StreamReader> {
    match SessionStreams::resume(session, id) {
        ResumeOutcome::Stream(reader) => Some(reader),
        ResumeOutcome::MissedNotifications | ResumeOutcome::Unknown => None,
    }
}

#[tokio::test]
async fn stream_resumes_after_the_last_event() {
    let (_sessions, session, _stopping) = session(SessionLimits::default());
    let (say, source) = source();
    let (mut reader, _ended) = begin(&session, StreamPurpose::Call, source);
    let (primed, nothing) = event(&mut reader).await;
    assert_eq!(nothing, "");
    ["1", "2", "3"].iter().for_each(|word| say.send(word).unwrap());
    let (first, word) = event(&mut reader).await;
    assert_eq!(word, "1");
    event(&mut reader).await;
    let mut second = again(&session, &first).unwrap();
    assert!(reader.next().await.is_none(), "who came first is gone");
    drop(reader);
    assert_eq!([event(&mut second).await.1, event(&mut second).await.1], ["2", "3"]);
    drop(say);
    assert!(second.next().await.is_none());
    // Sent events can be replayed as long as they are stored.
    let mut third = again(&session, &primed).unwrap();
    assert_eq!(
        [event(&mut third).await.1, event(&mut third).await.1, event(&mut third).await.1],
        ["1", "2", "3"]
    );
    assert!(third.next().await.is_none());
}

#[tokio::test]
async fn streams_are_resumed_separately() {
    let (_sessions, session, _stopping) = session(SessionLimits::default());
    let (_sessions_of_another, another, _stopping) = self::session(SessionLimits::default());
    let (say, first) = source();
    let (say_else, second) = source();
    let (mut first, _ended) = begin(&session, StreamPurpose::Call, first);
    let (mut second, _ended_too) = begin(&session, StreamPurpose::Call, second);
    let ids = [event(&mut first).await.0, event(&mut second).await.0];
    say.send("first").unwrap();
    say_else.send("second").unwrap();
    event(&mut first).await;
    event(&mut second).await;
    for (id, word) in ids.iter().zip(["first", "second"]) {
        let mut reader = again(&session, id).unwrap();
        assert_eq!(event(&mut reader).await.1, word);
        assert!(reader.next().now_or_never().is_none());
        assert!(again(&another, id).is_none());
    }
}

#[tokio::test]
async fn dropped_events_are_not_replayed() {
    let (_sessions, session, _stopping) =
        session(SessionLimits { max_replay_bytes: 500, ..SessionLimits::default() });
    let (say, source) = source();
    let (mut reader, _ended) = begin(&session, StreamPurpose::Call, source);
    let (primed, _) = event(&mut reader).await;
    for word in ["1", "2", "3", "4"] {
        say.send(word).unwrap();
        event(&mut reader).await;
    }
    let mut late = again(&session, &primed).unwrap();
    say.send("5").unwrap();
    let received = [event(&mut late).await.1, event(&mut late).await.1, event(&mut late).await.1];
    assert_eq!(received, ["3", "4", "5"], "the latest two, and what comes");
    // Of a finished stream only the stored events are left.
    drop(say);
    assert!(late.next().await.is_none());
    let huge = Box::leak("x".repeat(1000).into_boxed_str());
    let (say, source) = self::source();
    let (mut reader, _ended) = begin(&session, StreamPurpose::Call, source);
    let (primed, _) = event(&mut reader).await;
    say.send(huge).unwrap();
    drop(say);
    event(&mut reader).await;
    assert!(reader.next().await.is_none());
    assert!(matches!(SessionStreams::resume(&session, &primed), ResumeOutcome::Unknown));
}

/// Answers are stored regardless of their size and of other streams.
#[tokio::test]
async fn answers_are_stored_apart() {
    let limits = SessionLimits { max_replay_bytes: 500, max_answers: 2, ..SessionLimits::default() };
    let (_sessions, session, _stopping) = session(limits);
    let huge = |byte: &str| -> &'static str { Box::leak(format!("={}", byte.repeat(1000)).into_boxed_str()) };
    let mut ids = Vec::new();
    let mut open = Vec::new();
    for byte in ["a", "b", "c"] {
        let (say, source) = source();
        let (mut reader, alive) = begin(&session, StreamPurpose::Call, source);
        ids.push(event(&mut reader).await.0);
        say.send(huge(byte)).unwrap();
        event(&mut reader).await;
        // The connection breaks before the end.
        drop(reader);
        open.push((say, alive));
    }
    let (say, source) = source();
    let (mut others, _ended) = begin(&session, StreamPurpose::Call, source);
    event(&mut others).await;
    for _ in 0..20 {
        say.send("1").unwrap();
        event(&mut others).await;
    }
    for (id, byte) in ids.iter().zip(["a", "b"]) {
        let mut reader = again(&session, id).unwrap();
        assert_eq!(event(&mut reader).await.1, huge(byte));
    }
    drop(open);
    let mut late = again(&session, &ids[2]).unwrap();
    assert!(late.next().await.is_none(), "there were places for two");
}

#[tokio::test(start_paused = true)]
async fn abandoned_stream_ends_after_timeout() {
    let (_sessions, session, _stopping) = session(SessionLimits::default());
    for (purpose, in_use) in [(StreamPurpose::Call, true), (StreamPurpose::Notifications, false)] {
        let (_say, source) = source();
        let (mut reader, mut ended) = begin(&session, purpose, source);
        let (id, _) = event(&mut reader).await;
        advance(GRACE * 2).await;
        drop(reader);
        advance(GRACE / 2).await;
        assert_eq!(session.streams.is_in_use(), in_use);
        let reader = again(&session, &id).unwrap();
        advance(GRACE * 2).await;
        assert!(ended.recv().now_or_never().is_none(), "somebody reads");
        drop(reader);
        let dropped_at = tokio::time::Instant::now();
        assert_eq!(ended.recv().await, None);
        assert_eq!(dropped_at.elapsed(), GRACE);
        // The last step of the task removes the stream.
        tokio::task::yield_now().await;
        assert!(!session.streams.is_in_use());
        let outcome = SessionStreams::resume(&session, &id);
        assert!(matches!(
            (outcome, purpose),
            (ResumeOutcome::Unknown, StreamPurpose::Call)
                | (ResumeOutcome::MissedNotifications, StreamPurpose::Notifications)
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_gateway_does_not_wait_for_readers() {
    let (_sessions, session, stopping) = session(SessionLimits::default());
    let (_say, source) = source();
    let (reader, mut ended) = begin(&session, StreamPurpose::Call, source);
    stopping.send_replace(true);
    tokio::task::yield_now().await;
    assert!(ended.recv().now_or_never().is_none(), "who reads is let read");
    drop(reader);
    let dropped_at = tokio::time::Instant::now();
    assert_eq!(ended.recv().await, None);
    assert_eq!(dropped_at.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn notification_stream_is_unique() {
    let (_sessions, session, _stopping) = session(SessionLimits::default());
    let start_stream = || {
        SessionStreams::start(&session, StreamPurpose::Notifications, stream::pending().boxed(), |_| {
            pending()
        })
    };
    let mut first = start_stream();
    let (id, _) = event(&mut first).await;
    let mut second = start_stream();
    assert!(first.next().await.is_none());
    assert!(matches!(SessionStreams::resume(&session, &id), ResumeOutcome::MissedNotifications));
    event(&mut second).await;
    assert!(second.next().now_or_never().is_none());
    session.streams.close();
    assert!(second.next().await.is_none());
    assert!(matches!(SessionStreams::resume(&session, &id), ResumeOutcome::MissedNotifications));
}

#[tokio::test]
async fn closing_a_session_ends_its_requests_and_streams() {
    let (sessions, session, _stopping) = session(SessionLimits::default());
    let stream =
        SessionStreams::start(&session, StreamPurpose::Notifications, stream::pending().boxed(), |_| {
            pending()
        });
    let mut stream = stream.skip(1);
    assert!(stream.next().now_or_never().is_none());
    let id = RequestId::number(1);
    let mut request = Box::pin(session.peer.requests.run(&id, pending::<()>()));
    assert!(request.as_mut().now_or_never().is_none());
    assert!(sessions.close(&session.id));
    assert_eq!(request.now_or_never(), Some(None));
    assert_eq!(stream.next().now_or_never(), Some(None));
}
