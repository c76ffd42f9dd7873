use std::future::{pending, ready};

use futures_util::FutureExt;

use super::*;

fn id(number: u64) -> RequestId {
    RequestId::number(number)
}

#[test]
fn requests_are_cancelled_by_id() {
    let running = CancellableRequests::default();
    let ids = [id(1), RequestId::parse(&Json::string("1")).unwrap()];
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
fn duplicate_id_cancels_the_first_request() {
    let running = CancellableRequests::default();
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
fn followed_resources_are_limited() {
    let peer = LegacyClient::new(&Object::new());
    assert!((0..MAX_FOLLOWED).all(|number| peer.subscribe(&format!("x:{number}"))));
    assert!(!peer.subscribe("x:more"));
    assert!(peer.subscribe("x:0"), "it does already");
    peer.unsubscribe("x:0");
    assert!(peer.subscribe("x:more"));
    assert_eq!(peer.followed().borrow().len(), MAX_FOLLOWED);
}
