//! Arguments of a call as the manifest states them, with placeholders for the values of a task.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::TaskFiring;

/// Returns the members with their placeholders filled.
pub(super) fn filled_object(
    members: &Map<String, Value>,
    firing: &TaskFiring,
    time: &str,
) -> Map<String, Value> {
    members.iter().map(|(name, value)| (name.clone(), filled(value, firing, time))).collect()
}

/// Replaces the placeholders in the strings of a value, each once: values of a task are not read for placeholders.
fn filled(value: &Value, firing: &TaskFiring, time: &str) -> Value {
    match value {
        Value::String(text) => Value::String(filled_text(text, firing, time).into_owned()),
        Value::Array(items) => items.iter().map(|item| filled(item, firing, time)).collect(),
        Value::Object(members) => Value::Object(filled_object(members, firing, time)),
        other => other.clone(),
    }
}

fn filled_text<'a>(template: &'a str, firing: &TaskFiring, time: &str) -> Cow<'a, str> {
    if !template.contains('{') {
        return Cow::Borrowed(template);
    }
    let placeholders =
        [("{name}", firing.name.as_str()), ("{description}", &firing.description), ("{time}", time)];
    let (mut text, mut rest) = (String::new(), template);
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        match placeholders.iter().find(|(placeholder, _)| rest.starts_with(placeholder)) {
            Some((placeholder, value)) => {
                text.push_str(value);
                rest = &rest[placeholder.len()..];
            }
            None => {
                text.push('{');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use toolyard_core::Caller;

    use super::*;
    use crate::task::ScheduleOwner;

    #[test]
    fn placeholders_are_filled_once() {
        let firing = TaskFiring {
            owner: ScheduleOwner::of(&Caller::default()),
            task_id: String::new(),
            name: "a {time}".to_owned(),
            description: "say \"hi\"".to_owned(),
            run_id: String::new(),
            due: Timestamp::UNIX_EPOCH,
        };
        let check = |template: Value, expected: Value| {
            assert_eq!(filled(&template, &firing, "T"), expected, "{template}");
        };
        check(json!("{name}: {description} at {time}"), json!("a {time}: say \"hi\" at T"));
        check(
            json!({"a": ["{time}", 1, null], "{name}": {"b": true}}),
            json!({"a": ["T", 1, null], "{name}": {"b": true}}),
        );
        check(json!("{other} {{time} { é} {tim"), json!("{other} {T { é} {tim"));
    }
}
