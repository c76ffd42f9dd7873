use std::sync::atomic::{AtomicUsize, Ordering};

use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream};

use super::*;

/// Starts a receiver of notifications, which answers the first requests with these statuses, and others with success.
fn receiver(statuses: &'static [u16]) -> TestUpstream {
    let count = AtomicUsize::new(0);
    TestUpstream::start(move |_: &ReceivedRequest| {
        let status = statuses.get(count.fetch_add(1, Ordering::Relaxed)).copied();
        ScriptedReply::http(status.unwrap_or(200), "", "")
    })
}

/// Returns the event of a notification as `kind state`.
fn kind(request: &ReceivedRequest) -> String {
    let event: Value = serde_json::from_str(&request.body).expect("JSON");
    let (kind, event) = event.as_object().and_then(|event| event.iter().next()).expect("an event");
    let state = event["status"]["state"].as_str().unwrap_or_default();
    format!("{kind} {}", state.trim_start_matches("TASK_STATE_")).trim_end().to_owned()
}

/// Waits until a receiver has been told of the end of a task, and returns the kinds of all notifications.
async fn told_until_the_end(receiver: &TestUpstream) -> Vec<String> {
    let is_end = |request: &ReceivedRequest| kind(request) == "statusUpdate COMPLETED";
    receiver
        .saw(
            |log| log.requests.last().is_some_and(is_end),
            |log| log.requests.iter().map(kind).collect::<Vec<_>>(),
        )
        .await
}

fn held() -> Value {
    json!({"messageId": "m", "parts": [{"data": {"skill": "hold"}}]})
}

#[tokio::test]
async fn urls_are_notified_of_the_changes_of_a_task() {
    let harness = Harness::new(10);
    let receiver = receiver(&[503]);
    let url = format!("http://{}/hook?key=1", receiver.address);
    let authentication = json!({"scheme": "Bearer", "credentials": "secret"});
    let config = json!({"url": url, "token": "t0ken", "authentication": authentication});
    let configuration = json!({"returnImmediately": true, "taskPushNotificationConfig": config});
    let params = json!({"message": held(), "configuration": configuration});
    let started = harness.call("k", "SendMessage", params).await;
    receiver.saw(|log| log.requests.len() > 1, |_| ()).await;
    harness.release.notify_one();
    let kinds = told_until_the_end(&receiver).await;
    assert!(kinds.iter().any(|kind| kind == "artifactUpdate"), "{kinds:?}");
    assert!(
        kinds[..2].iter().all(|kind| kind.starts_with("task ")),
        "the first one is sent again: {kinds:?}"
    );
    let request = receiver.now(|log| log.requests[0].clone());
    let header = |name: &str| request.head.header(name).unwrap_or_default().to_owned();
    assert_eq!(header("authorization"), "Bearer secret");
    assert_eq!(header("x-a2a-notification-token"), "t0ken");
    assert_eq!(header("content-type"), "application/a2a+json");
    assert!(request.head.text().starts_with("POST /hook?key=1 "), "{}", request.head.text());
    let event: Value = serde_json::from_str(&request.body).expect("JSON");
    assert_eq!(event["task"]["id"], started["task"]["id"]);
}

#[tokio::test]
async fn url_that_fails_too_often_is_given_up() {
    for (statuses, expected) in [(&[500, 500, 500][..], 2), (&[404][..], 1), (&[302][..], 1)] {
        let harness = Harness::new(10);
        let (failing, working) = (receiver(statuses), receiver(&[]));
        let started = harness.call(
            "k",
            "SendMessage",
            json!({"message": held(), "configuration": {"returnImmediately": true}}),
        );
        let id = started.await["task"]["id"].clone();
        for receiver in [&failing, &working] {
            let config = json!({"taskId": id, "url": format!("http://{}/", receiver.address)});
            harness.call("k", "CreateTaskPushNotificationConfig", config).await;
        }
        failing.saw(|log| log.requests.len() == expected, |_| ()).await;
        working.saw(|log| !log.requests.is_empty(), |_| ()).await;
        harness.release.notify_one();
        told_until_the_end(&working).await;
        assert_eq!(failing.now(|log| log.requests.len()), expected, "{statuses:?}");
    }
}

#[tokio::test]
async fn configurations_belong_to_the_key_of_the_task() {
    let harness = Harness::new(10);
    let params = json!({"message": held(), "configuration": {"returnImmediately": true}});
    let task = harness.call("k", "SendMessage", params).await["task"]["id"].clone();
    let receiver = receiver(&[]);
    let url = format!("http://{}/", receiver.address);
    let authentication = json!({"scheme": "Bearer", "credentials": "secret"});
    let config = json!({"taskId": task, "id": "c1", "url": url, "authentication": authentication});
    let about = |id: &str| json!({"taskId": task, "id": id});
    let [create, get, list, delete] = ["Create", "Get", "List", "Delete"].map(|verb| match verb {
        "List" => "ListTaskPushNotificationConfigs".to_owned(),
        verb => format!("{verb}TaskPushNotificationConfig"),
    });
    let shown = json!({"taskId": task, "id": "c1", "url": url, "authentication": {"scheme": "Bearer"}});
    assert_eq!(harness.call("k", &create, config.clone()).await, shown);
    assert_eq!(harness.call("k", &get, about("c1")).await, shown);
    let all = json!({"configs": [shown], "nextPageToken": ""});
    assert_eq!(harness.call("k", &list, about("")).await, all);
    assert_eq!(harness.call("k", &create, config.clone()).await, shown, "it replaces the one of its id");
    assert_eq!(harness.call("k", &list, about("")).await, all);
    let unknown = json!({"code": -32001, "message": "there is no such task"});
    for method in [&create, &get, &list, &delete] {
        let params = if *method == create { config.clone() } else { about("c1") };
        assert_eq!(harness.call("other", method, params).await, unknown, "{method}");
    }
    let second = harness.call("k", &create, json!({"taskId": task, "url": url})).await;
    assert_eq!(second["id"].as_str().map(str::len), Some(32));
    let third = harness.call("k", &create, json!({"taskId": task, "url": url})).await;
    assert_eq!(third["message"], "the task has 2 URLs, and may have no more: delete one");
    assert_eq!(harness.call("k", &delete, about("c1")).await, json!({}));
    let none = "the task has no such push notification configuration";
    for method in [&get, &delete] {
        assert_eq!(harness.call("k", method, about("c1")).await["message"], none);
    }
}
