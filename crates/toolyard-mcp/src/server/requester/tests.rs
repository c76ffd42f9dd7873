use bytes::Bytes;
use toolyard_core::Object;

use super::*;

fn progress(number: i64) -> Notice {
    Notice::Progress(Object::new().with("progress", Json::integer(number)))
}

fn modern(meta: &Object, messages: mpsc::Sender<Bytes>) -> Arc<Requester> {
    let outlet = Outlet::new(meta, Some(messages));
    Requester::modern(Object::new().to_json(), outlet, Duration::from_secs(1)).0
}

#[test]
fn a_client_is_told_under_its_own_token_as_far_as_it_keeps_up() {
    let (sender, mut messages) = mpsc::channel(2);
    let meta = Object::new().with("progressToken", Json::integer(1));
    let client = modern(&meta, sender);
    assert!(client.listens());
    (1..=3).for_each(|number| client.notify(progress(number)));
    let mut told = Vec::new();
    while let Ok(message) = messages.try_recv() {
        told.push(String::from_utf8(message.to_vec()).unwrap());
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":1}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":1}}
    "#);
}

#[test]
fn who_gave_no_token_is_told_nothing() {
    let (sender, mut messages) = mpsc::channel(1);
    let client = modern(&Object::new(), sender);
    assert!(!client.listens() && client.capabilities().is_some());
    client.notify(progress(1));
    assert!(messages.try_recv().is_err());
}
