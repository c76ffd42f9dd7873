use std::pin::pin;

use toolyard_core::{InputRequestKind, Object};

use super::*;
use crate::server::notify::notice_queue::NoticeReceiver;
use crate::wire::RequestId;

const CAPABLE: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"sampling":{"tools":{}}}}"#;

fn client(initialize: &str) -> (Arc<LegacyClient>, LegacySessionClient) {
    let peer = Arc::new(LegacyClient::new(&Object::parse(initialize.to_owned()).unwrap()));
    (peer.clone(), LegacySessionClient::new(peer, Duration::from_secs(60)))
}

fn question() -> InputRequest {
    let params = Object::new().with("tools", Json::array([]));
    InputRequest { kind: InputRequestKind::Sample, params }
}

fn sent(messages: &mut NoticeReceiver) -> String {
    let messages: Vec<_> = std::iter::from_fn(|| messages.try_recv()).collect();
    messages
        .iter()
        .map(|message| String::from_utf8_lossy(message).into_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn question_waits_for_the_stream_of_the_session() {
    let (peer, client) = client(CAPABLE);
    let mut asking = pin!(client.ask(question()));
    assert_eq!(asking.as_mut().now_or_never(), None);
    let mut messages = peer.open_notification_stream(4);
    assert_eq!(asking.as_mut().now_or_never(), None);
    assert_eq!(
        sent(&mut messages),
        r#"{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"tools":[]}}"#
    );
    peer.outbound_requests.complete(Some(&RequestId::number(0)), Ok(Json::string("yes")));
    assert_eq!(asking.await, Ok(Json::string("yes")));
}

#[tokio::test]
async fn question_goes_to_the_stream_that_replaces_a_closed_one() {
    let (peer, client) = client(CAPABLE);
    drop(peer.open_notification_stream(4));
    let mut asking = pin!(client.ask(question()));
    assert_eq!(asking.as_mut().now_or_never(), None);
    let mut messages = peer.open_notification_stream(4);
    assert_eq!(asking.as_mut().now_or_never(), None);
    assert!(sent(&mut messages).contains("sampling/createMessage"));
}

#[tokio::test]
async fn dropped_question_is_cancelled() {
    let (peer, client) = client(CAPABLE);
    let mut messages = peer.open_notification_stream(4);
    {
        let mut asking = pin!(client.ask(question()));
        assert_eq!(asking.as_mut().now_or_never(), None);
        sent(&mut messages);
    }
    assert_eq!(
        sent(&mut messages),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}"#
    );
}

#[tokio::test]
async fn session_ends_its_questions() {
    for has_stream in [true, false] {
        let (peer, client) = client(CAPABLE);
        let _messages = has_stream.then(|| peer.open_notification_stream(4));
        let mut asking = pin!(client.ask(question()));
        let mut ended = pin!(client.ended());
        assert_eq!((asking.as_mut().now_or_never(), ended.as_mut().now_or_never()), (None, None));
        peer.outbound_requests.close();
        assert_eq!((asking.await, ended.await), (Err(InputRequestError::Gone), ()), "{has_stream}");
        assert_eq!(client.ask(question()).await, Err(InputRequestError::Gone));
    }
}

#[tokio::test(start_paused = true)]
async fn question_is_open_for_a_limited_time() {
    let (_peer, client) = client(CAPABLE);
    assert_eq!(client.ask(question()).await, Err(InputRequestError::TooLate));
}

#[tokio::test]
async fn client_without_the_capability_is_not_asked() {
    let (_peer, client) = client(r#"{"capabilities":{"sampling":{}}}"#);
    assert_eq!(client.ask(question()).await, Err(InputRequestError::Unsupported(question().required())));
}
