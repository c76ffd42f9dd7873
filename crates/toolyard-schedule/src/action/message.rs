//! The message of a task on a bus.

use serde_json::{Value, json};
use toolyard_manifest::ScheduledMessage;

use super::template::filled_object;
use super::{TaskFiring, TaskMessage};

/// Returns the message of a task that fires.
pub(super) fn of_task(message: &ScheduledMessage, firing: &TaskFiring, time: &str) -> TaskMessage {
    let body = match &message.body {
        Some(members) => Value::Object(filled_object(members, firing, time)),
        None => json!({
            "runId": firing.run_id,
            "name": firing.name,
            "description": firing.description,
            "time": time,
            "key": firing.owner.key_id(),
        }),
    };
    TaskMessage {
        topic: message.topic.clone(),
        message_type: message.message_type.clone(),
        run_id: firing.run_id.clone(),
        body: body.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use toolyard_core::Caller;

    use super::*;
    use crate::task::ScheduleOwner;

    #[test]
    fn body_is_that_of_the_manifest_or_describes_the_run() {
        let firing = TaskFiring {
            owner: ScheduleOwner::of(&Caller::default()),
            task_id: "t".to_owned(),
            name: "report".to_owned(),
            description: "Say \"hi\" {name}".to_owned(),
            run_id: "r1".to_owned(),
            due: Timestamp::UNIX_EPOCH,
        };
        let check = |body: Option<Value>, expected: &str| {
            let body = body.and_then(|body| body.as_object().cloned());
            let (topic, message_type) = ("a.b".to_owned(), "Example.Task".to_owned());
            let message = of_task(&ScheduledMessage { topic, message_type, body }, &firing, "T");
            assert_eq!(
                (&*message.topic, &*message.message_type, &*message.run_id),
                ("a.b", "Example.Task", "r1")
            );
            assert_eq!(message.body, expected);
        };
        check(
            None,
            r#"{"runId":"r1","name":"report","description":"Say \"hi\" {name}","time":"T","key":null}"#,
        );
        check(Some(json!({"goal": "{description}"})), r#"{"goal":"Say \"hi\" {name}"}"#);
    }
}
