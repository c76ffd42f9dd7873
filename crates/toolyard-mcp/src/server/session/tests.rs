use std::future::{pending, ready};

use futures_util::FutureExt;
use tokio::time::advance;
use toolyard_core::Json;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn sessions(sessions: usize) -> Sessions {
    Sessions::new(SessionLimits { sessions, idle: MINUTE })
}

fn id(number: u64) -> Id {
    Id::number(number)
}

#[test]
fn ids_cannot_be_guessed() {
    let sessions = sessions(100);
    let ids: std::collections::HashSet<_> = (0..100).map(|_| sessions.open().unwrap().id.clone()).collect();
    assert_eq!(ids.len(), 100);
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_not_used_ends() {
    let sessions = sessions(2);
    let [used, idle] = [(); 2].map(|()| sessions.open().unwrap().id.clone());
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
    let running = sessions.open().unwrap();
    advance(MINUTE * 2).await;
    assert!(sessions.get(&running.id).is_some());
    assert!(sessions.open().is_none(), "it makes no room for another");
    drop(running);
    assert!(sessions.open().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_one_that_was_silent_for_longest_makes_room() {
    let sessions = sessions(2);
    let first = sessions.open().unwrap().id.clone();
    advance(MINUTE / 10).await;
    let second = sessions.open().unwrap().id.clone();
    advance(MINUTE / 10).await;
    assert!(sessions.get(&first).is_some());
    let third = sessions.open().unwrap().id.clone();
    assert!(sessions.get(&second).is_none());
    assert!(sessions.get(&first).is_some() && sessions.get(&third).is_some());
}

#[test]
fn the_end_of_a_session_is_the_end_of_all_in_it() {
    let sessions = sessions(1);
    let session = sessions.open().unwrap();
    let stream = Abortable::new(pending::<()>(), session.open_stream());
    let id = id(1);
    let mut request = Box::pin(session.running().run(&id, pending::<()>()));
    assert!(request.as_mut().now_or_never().is_none());
    assert!(sessions.close(&session.id));
    assert_eq!(request.now_or_never(), Some(None));
    assert!(stream.now_or_never().unwrap().is_err());
}

#[test]
fn requests_are_withdrawn_by_their_ids() {
    let running = Running::default();
    let ids = [id(1), Id::parse(&Json::string("1")).unwrap()];
    let [mut one, mut two] = ids.each_ref().map(|id| Box::pin(running.run(id, pending::<()>())));
    assert!(one.as_mut().now_or_never().is_none() && two.as_mut().now_or_never().is_none());
    running.cancel(&id(2));
    running.cancel(&id(1));
    assert_eq!(one.now_or_never(), Some(None));
    assert!(two.as_mut().now_or_never().is_none());
    drop(two);
    assert!(running.lock().is_empty(), "who is not waited for is forgotten");
    assert_eq!(running.run(&id(1), ready(7)).now_or_never(), Some(Some(7)));
    assert!(running.lock().is_empty());
}

#[test]
fn a_second_request_of_the_same_id_is_not_what_is_withdrawn() {
    let running = Running::default();
    let same = id(1);
    let mut first = Box::pin(running.run(&same, pending::<()>()));
    assert!(first.as_mut().now_or_never().is_none());
    let mut second = Box::pin(running.run(&same, pending::<()>()));
    assert!(second.as_mut().now_or_never().is_none());
    drop(second);
    running.cancel(&same);
    assert_eq!(first.now_or_never(), Some(None));
}
