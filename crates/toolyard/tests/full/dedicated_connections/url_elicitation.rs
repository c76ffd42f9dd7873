//! URL elicitation: the completion notification reaches the client that was sent to the URL. One backend and
//! `scripts/asking.py`.

use std::sync::Arc;

use toolyard_core::Caller;

use super::asking_backend::{AnsweringClient, AskingBackend};

const URL_CAPABILITY: &str = r#"{"elicitation":{"url":{}}}"#;

/// Two clients with one key share a connection. Only the client that was sent to the URL, by a request or an error, is
/// notified, once.
#[tokio::test]
async fn elicitation_completion_reaches_only_its_client() {
    let setup = AskingBackend::new(|_| {}).await;
    let [alice, bob] = ["Alice", "Bob"].map(|name| Arc::new(AnsweringClient::new(name, URL_CAPABILITY)));
    let caller = Caller { principal: Some("p".into()), ..Caller::default() };
    let url = |id: &str| {
        format!(r#"{{"mode":"url","elicitationId":"{id}","url":"https://a.example","message":"m"}}"#)
    };
    let ask = format!(r#"{{"method":"elicitation/create","params":{}}}"#, url("asked"));
    setup.text(&alice, &caller, "ask", &ask).await;
    let error =
        format!(r#"{{"code":-32042,"message":"go","data":{{"elicitations":[{},7]}}}}"#, url("refused"));
    let refusal =
        setup.call(&alice, &caller, "refuse", &format!(r#"{{"error":{error}}}"#)).await.unwrap_err();
    assert_eq!(refusal.peer().unwrap().to_value()["code"], -32042);
    for id in ["unknown", "asked", "asked", "refused", "refused"] {
        let params = format!(r#"{{"elicitationId":"{id}","vendor":1.10}}"#);
        let over = format!(r#"{{"method":"notifications/elicitation/complete","params":{params}}}"#);
        setup.text(&bob, &caller, "say", &over).await;
    }
    let notices = ["asked", "refused"].map(|id| format!(r#"{{"elicitationId":"{id}","vendor":1.1}}"#));
    assert_eq!((alice.notices(), bob.notices()), (notices.to_vec(), vec![]));
    // Both clients use the same connection.
    assert_eq!(setup.text(&alice, &caller, "pid", "{}").await, setup.text(&bob, &caller, "pid", "{}").await);
}
