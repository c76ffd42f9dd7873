use std::future::{pending, ready};

use futures_util::FutureExt;

use super::*;

fn id(number: u64) -> Id {
    Id::number(number)
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

#[test]
fn a_client_follows_a_bounded_number_of_resources() {
    let peer = Peer::new(&Object::new());
    assert!((0..MOST_FOLLOWED).all(|number| peer.subscribe(&format!("x:{number}"))));
    assert!(!peer.subscribe("x:more"));
    assert!(peer.subscribe("x:0"), "it does already");
    peer.unsubscribe("x:0");
    assert!(peer.subscribe("x:more"));
    assert_eq!(peer.followed().borrow().len(), MOST_FOLLOWED);
}
