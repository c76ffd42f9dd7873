use std::future::pending;

use futures_util::FutureExt;
use futures_util::stream;
use tokio::sync::mpsc;
use tokio::time::advance;
use toolyard_core::Object;

use super::*;
use crate::server::SessionLimits;
use crate::server::session::Sessions;
use crate::wire::Revision;

const GRACE: Duration = Duration::from_secs(30);

/// A session of a client of the latest revision, and what tells it that the gateway stops.
fn session(limits: SessionLimits) -> (Sessions, Arc<Session>, watch::Sender<bool>) {
    let (stopping, stopping_now) = watch::channel(false);
    let sessions = Sessions::new(SessionLimits { resume: GRACE, ..limits }, stopping_now);
    let version = toolyard_core::Json::string(Revision::LATEST_LEGACY.as_str());
    let session = sessions.open(&Object::new().with("protocolVersion", version), None).unwrap();
    (sessions, session, stopping)
}

/// Messages that a test sends. What begins with `=` is the answer.
fn source() -> (mpsc::UnboundedSender<&'static str>, Source) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let next = async |mut receiver: mpsc::UnboundedReceiver<&'static str>| {
        let word = receiver.recv().await?;
        let pieces = vec![Bytes::from(word)];
        let said = if word.starts_with('=') { Said::Answer(pieces) } else { Said::Message(pieces) };
        Some((said, receiver))
    };
    (sender, stream::unfold(receiver, next).boxed())
}

/// A stream that ends when nobody comes back; what it does meanwhile is alive as long as the receiver is.
fn begin(session: &Arc<Session>, purpose: Purpose, source: Source) -> (Reader, mpsc::Receiver<()>) {
    let (alive, ended) = mpsc::channel(1);
    let reader = Streams::begin(session, purpose, source, |mut kept| async move {
        let _alive = alive;
        kept.abandoned().await;
    });
    (reader, ended)
}

/// The id and the data of the next event.
async fn event(reader: &mut Reader) -> (String, String) {
    let text = String::from_utf8(reader.next().await.expect("an event").concat()).unwrap();
    let line =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
    (line("id: "), line("data: "))
}

fn again(session: &Arc<Session>, id: &str) -> Option<Reader> {
    match Streams::resume(session, id) {
        Resumed::Stream(reader) => Some(reader),
        Resumed::OldNews | Resumed::Unknown => None,
    }
}

#[tokio::test]
async fn a_stream_goes_on_behind_the_event_that_came_last() {
    let (_sessions, session, _stopping) = session(SessionLimits::default());
    let (say, source) = source();
    let (mut reader, _ended) = begin(&session, Purpose::Call, source);
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
    // What was sent can still be had, as long as it is kept.
    let mut third = again(&session, &primed).unwrap();
    assert_eq!(
        [event(&mut third).await.1, event(&mut third).await.1, event(&mut third).await.1],
        ["1", "2", "3"]
    );
    assert!(third.next().await.is_none());
}

#[tokio::test]
async fn nobody_hears_of_another_stream() {
    let (_sessions, session, _stopping) = session(SessionLimits::default());
    let (_sessions_of_another, another, _stopping) = self::session(SessionLimits::default());
    let (say, first) = source();
    let (say_else, second) = source();
    let (mut first, _ended) = begin(&session, Purpose::Call, first);
    let (mut second, _ended_too) = begin(&session, Purpose::Call, second);
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
async fn what_is_not_kept_any_more_is_missed() {
    let (_sessions, session, _stopping) =
        session(SessionLimits { replay_bytes: 500, ..SessionLimits::default() });
    let (say, source) = source();
    let (mut reader, _ended) = begin(&session, Purpose::Call, source);
    let (primed, _) = event(&mut reader).await;
    for word in ["1", "2", "3", "4"] {
        say.send(word).unwrap();
        event(&mut reader).await;
    }
    let mut late = again(&session, &primed).unwrap();
    say.send("5").unwrap();
    let heard = [event(&mut late).await.1, event(&mut late).await.1, event(&mut late).await.1];
    assert_eq!(heard, ["3", "4", "5"], "the latest two, and what comes");
    // Nothing is left of a stream that is over, but for what is kept.
    drop(say);
    assert!(late.next().await.is_none());
    let huge = Box::leak("x".repeat(1000).into_boxed_str());
    let (say, source) = self::source();
    let (mut reader, _ended) = begin(&session, Purpose::Call, source);
    let (primed, _) = event(&mut reader).await;
    say.send(huge).unwrap();
    drop(say);
    event(&mut reader).await;
    assert!(reader.next().await.is_none());
    assert!(matches!(Streams::resume(&session, &primed), Resumed::Unknown));
}

/// Neither their size nor what other streams say takes answers from who comes back for them.
#[tokio::test]
async fn answers_are_kept_apart() {
    let limits = SessionLimits { replay_bytes: 500, answers: 2, ..SessionLimits::default() };
    let (_sessions, session, _stopping) = session(limits);
    let huge = |byte: &str| -> &'static str { Box::leak(format!("={}", byte.repeat(1000)).into_boxed_str()) };
    let mut ids = Vec::new();
    let mut open = Vec::new();
    for byte in ["a", "b", "c"] {
        let (say, source) = source();
        let (mut reader, alive) = begin(&session, Purpose::Call, source);
        ids.push(event(&mut reader).await.0);
        say.send(huge(byte)).unwrap();
        event(&mut reader).await;
        // The connection breaks before the end.
        drop(reader);
        open.push((say, alive));
    }
    let (say, source) = source();
    let (mut others, _ended) = begin(&session, Purpose::Call, source);
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
async fn who_does_not_come_back_in_time_has_left() {
    let (_sessions, session, _stopping) = session(SessionLimits::default());
    for (purpose, in_use) in [(Purpose::Call, true), (Purpose::News, false)] {
        let (_say, source) = source();
        let (mut reader, mut ended) = begin(&session, purpose, source);
        let (id, _) = event(&mut reader).await;
        advance(GRACE * 2).await;
        drop(reader);
        advance(GRACE / 2).await;
        assert_eq!(session.streams.in_use(), in_use);
        let reader = again(&session, &id).unwrap();
        advance(GRACE * 2).await;
        assert!(ended.recv().now_or_never().is_none(), "somebody reads");
        drop(reader);
        let left = tokio::time::Instant::now();
        assert_eq!(ended.recv().await, None);
        assert_eq!(left.elapsed(), GRACE);
        // The keeper's last step takes the stream off the table.
        tokio::task::yield_now().await;
        assert!(!session.streams.in_use());
        let gone = Streams::resume(&session, &id);
        assert!(matches!(
            (gone, purpose),
            (Resumed::Unknown, Purpose::Call) | (Resumed::OldNews, Purpose::News)
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_comes_back_to_a_gateway_that_stops() {
    let (_sessions, session, stopping) = session(SessionLimits::default());
    let (_say, source) = source();
    let (reader, mut ended) = begin(&session, Purpose::Call, source);
    stopping.send_replace(true);
    tokio::task::yield_now().await;
    assert!(ended.recv().now_or_never().is_none(), "who reads is let read");
    drop(reader);
    let left = tokio::time::Instant::now();
    assert_eq!(ended.recv().await, None);
    assert_eq!(left.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn the_news_have_one_stream() {
    let (_sessions, session, _stopping) = session(SessionLimits::default());
    let news = || Streams::begin(&session, Purpose::News, stream::pending().boxed(), |_| pending());
    let mut first = news();
    let (id, _) = event(&mut first).await;
    let mut second = news();
    assert!(first.next().await.is_none());
    assert!(matches!(Streams::resume(&session, &id), Resumed::OldNews));
    event(&mut second).await;
    assert!(second.next().now_or_never().is_none());
    session.streams.close();
    assert!(second.next().await.is_none());
    assert!(matches!(Streams::resume(&session, &id), Resumed::OldNews));
}
