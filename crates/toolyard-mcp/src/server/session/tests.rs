use std::future::pending;

use futures_util::{FutureExt, StreamExt};
use tokio::time::advance;
use toolyard_core::Object;

use super::*;
use crate::server::replay::Purpose;
use crate::wire::Id;

const MINUTE: Duration = Duration::from_secs(60);

fn sessions(sessions: usize) -> Sessions {
    let limits = SessionLimits { sessions, idle: MINUTE, ..SessionLimits::default() };
    Sessions::new(limits, watch::channel(false).1)
}

fn open(sessions: &Sessions) -> Option<Arc<Session>> {
    sessions.open(&Object::new(), None)
}

#[test]
fn ids_cannot_be_guessed() {
    let sessions = sessions(100);
    let ids: std::collections::HashSet<_> = (0..100).map(|_| open(&sessions).unwrap().id.clone()).collect();
    assert_eq!(ids.len(), 100);
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_not_used_ends() {
    let sessions = sessions(2);
    let [used, idle] = [(); 2].map(|()| open(&sessions).unwrap().id.clone());
    advance(MINUTE).await;
    assert!(sessions.get(&used).is_some());
    advance(MINUTE).await;
    assert!(sessions.get(&used).is_some());
    assert!(sessions.get(&idle).is_none());
    assert!(!sessions.close(&idle), "it is gone");
}

#[tokio::test(start_paused = true)]
async fn a_session_in_which_something_runs_is_used() {
    let sessions = sessions(1);
    let running = open(&sessions).unwrap();
    advance(MINUTE * 2).await;
    assert!(sessions.get(&running.id).is_some());
    assert!(open(&sessions).is_none(), "it makes no room for another");
    drop(running);
    assert!(open(&sessions).is_some());
}

#[tokio::test(start_paused = true)]
async fn the_one_that_was_silent_for_longest_makes_room() {
    let sessions = sessions(2);
    let first = open(&sessions).unwrap().id.clone();
    advance(MINUTE / 10).await;
    let second = open(&sessions).unwrap().id.clone();
    advance(MINUTE / 10).await;
    assert!(sessions.get(&first).is_some());
    let third = open(&sessions).unwrap().id.clone();
    assert!(sessions.get(&second).is_none());
    assert!(sessions.get(&first).is_some() && sessions.get(&third).is_some());
}

#[tokio::test]
async fn the_end_of_a_session_is_the_end_of_all_in_it() {
    let sessions = sessions(1);
    let session = open(&sessions).unwrap();
    let news =
        Streams::begin(&session, Purpose::News, futures_util::stream::pending().boxed(), |_| pending());
    let mut news = news.skip(1);
    assert!(news.next().now_or_never().is_none());
    let id = Id::number(1);
    let mut request = Box::pin(session.peer.running.run(&id, pending::<()>()));
    assert!(request.as_mut().now_or_never().is_none());
    assert!(sessions.close(&session.id));
    assert_eq!(request.now_or_never(), Some(None));
    assert_eq!(news.next().now_or_never(), Some(None));
}
