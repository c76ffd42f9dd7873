//! Clients that are sent to a URL, and hear when they are done there: one backend, and `scripts/asking.py`.

use std::sync::Arc;

use toolyard_core::Caller;

use super::yard::{Person, Yard};

const ABLE: &str = r#"{"elicitation":{"url":{}}}"#;

/// Two clients that show one key share a connection, one after the other. Who was sent there is told, once, whether by a
/// question or by an error; nobody is told of anything else.
#[tokio::test]
async fn the_end_of_a_visit_is_for_who_was_sent_there() {
    let yard = Yard::new(|_| {}).await;
    let [alice, bob] = ["Alice", "Bob"].map(|name| Arc::new(Person::new(name, ABLE)));
    let caller = Caller { principal: Some("p".into()), ..Caller::default() };
    let url = |id: &str| {
        format!(r#"{{"mode":"url","elicitationId":"{id}","url":"https://a.example","message":"m"}}"#)
    };
    let ask = format!(r#"{{"method":"elicitation/create","params":{}}}"#, url("asked"));
    yard.text(&alice, &caller, "ask", &ask).await;
    let error =
        format!(r#"{{"code":-32042,"message":"go","data":{{"elicitations":[{},7]}}}}"#, url("refused"));
    let refusal = yard.call(&alice, &caller, "refuse", &format!(r#"{{"error":{error}}}"#)).await.unwrap_err();
    assert_eq!(refusal.peer().unwrap().to_value()["code"], -32042);
    for id in ["unknown", "asked", "asked", "refused", "refused"] {
        let params = format!(r#"{{"elicitationId":"{id}","vendor":1.10}}"#);
        let over = format!(r#"{{"method":"notifications/elicitation/complete","params":{params}}}"#);
        yard.text(&bob, &caller, "say", &over).await;
    }
    let told = ["asked", "refused"].map(|id| format!(r#"{{"elicitationId":"{id}","vendor":1.1}}"#));
    assert_eq!((alice.notices(), bob.notices()), (told.to_vec(), vec![]));
    // It is one connection indeed.
    assert_eq!(yard.text(&alice, &caller, "pid", "{}").await, yard.text(&bob, &caller, "pid", "{}").await);
}
