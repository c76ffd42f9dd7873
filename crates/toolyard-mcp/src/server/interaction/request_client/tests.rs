use toolyard_core::Object;

use super::*;
use crate::server::notify::notice_queue::{NoticeSender, notice_queue};

fn progress(number: i64) -> ClientNotification {
    ClientNotification::Progress(Object::new().with("progress", Json::integer(number)).into())
}

fn modern(meta: &Object, messages: NoticeSender) -> Arc<RequestClient> {
    let sink = NotificationSink::new(meta, Some(messages), &toolyard_net::budget::ByteBudget::default());
    RequestClient::modern(Object::new().to_json(), sink, Duration::from_secs(1)).0
}

#[test]
fn progress_uses_the_client_token_and_drops_overflow() {
    let (sender, mut messages) = notice_queue(2);
    let meta = Object::new().with("progressToken", Json::integer(1));
    let client = modern(&meta, sender);
    assert!(client.listens());
    (1..=3).for_each(|number| client.notify(progress(number)));
    let mut lines = Vec::new();
    while let Some(message) = messages.try_recv() {
        lines.push(String::from_utf8(message.to_vec()).unwrap());
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":1}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":1}}
    "#);
}

#[test]
fn client_without_token_gets_no_progress() {
    let (sender, mut messages) = notice_queue(1);
    let client = modern(&Object::new(), sender);
    assert!(!client.listens() && client.capabilities().is_some());
    client.notify(progress(1));
    assert_eq!(messages.try_recv(), None);
}
