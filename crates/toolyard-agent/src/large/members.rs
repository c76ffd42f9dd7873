//! The members of a result that are neither its content nor its structured content.

use toolyard_core::output_schema::STRUCTURED;
use toolyard_core::{Json, Object};

use super::peer_error;
use crate::memory::SESSION_META;

/// Members of a result that have their own limit, or are short by definition.
const CONTENT: [&str; 4] = ["content", STRUCTURED, "isError", "resultType"];

/// Members of a task that a client needs, apart from its result.
const TASK: [&str; 8] =
    ["taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval", "ttlMs", "pollIntervalMs"];

/// Returns a result without `_meta` and unknown members, if these have more than `max` bytes together. A handle of
/// working memory stays.
pub(super) fn without_long_members(body: &Object, max: usize) -> Option<Object> {
    let is_other = |name: &str| !CONTENT.contains(&name);
    if size(body, is_other) <= max {
        return None;
    }
    let mut short = Object::new();
    for (name, value) in body.iter().filter(|(name, _)| !is_other(name)) {
        short.set(&name, value.clone());
    }
    let meta = body.get("_meta").and_then(|meta| meta.to_object().ok());
    if let Some(handle) = meta.as_ref().and_then(|meta| meta.get(SESSION_META)) {
        short.set("_meta", Object::new().with(SESSION_META, handle.clone()).to_json());
    }
    Some(short)
}

/// Returns a task with a shortened error, and without other members than those of the protocol, if these have more than
/// `max` bytes together.
pub(super) fn task_without_long_members(body: &Object, max: usize) -> Option<Object> {
    let is_other = |name: &str| name != "result" && name != "resultType";
    if size(body, is_other) <= max {
        return None;
    }
    let mut short = Object::new();
    for (name, value) in body.iter() {
        match &*name {
            "error" => {
                short.set(&name, peer_error::shortened(value, max / 4).unwrap_or_else(|| value.clone()))
            }
            name if !is_other(name) || TASK.contains(&name) => short.set(name, value.clone()),
            _ => {}
        }
    }
    Some(short)
}

fn size(body: &Object, is_counted: impl Fn(&str) -> bool) -> usize {
    let counted = body.iter().filter(|(name, _)| is_counted(name));
    counted.map(|(name, value): (_, &Json)| name.len() + value.as_bytes().len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object {
        Object::parse(text.to_owned()).expect("an object")
    }

    #[test]
    fn long_members_are_left_out() {
        let check = |text: &str, expected: Option<&str>| {
            let short = without_long_members(&object(text), 30);
            assert_eq!(
                short.map(|short| short.to_json().as_text().to_owned()).as_deref(),
                expected,
                "{text}"
            );
        };
        check(r#"{"content":[],"_meta":{"a":"short"}}"#, None);
        check(
            r#"{"content":["longer than thirty characters"],"structuredContent":"also longer than thirty"}"#,
            None,
        );
        check(r#"{"content":[],"_meta":{"a":"longer than thirty characters"}}"#, Some(r#"{"content":[]}"#));
        check(r#"{"content":[],"one":"fifteen letters","two":"fifteen letters"}"#, Some(r#"{"content":[]}"#));
        check(
            r#"{"isError":true,"_meta":{"a":"longer than thirty characters","toolyard/session":"h"}}"#,
            Some(r#"{"isError":true,"_meta":{"toolyard/session":"h"}}"#),
        );
    }

    #[test]
    fn long_members_of_a_task_are_left_out() {
        let check = |text: &str, expected: Option<&str>| {
            let short = task_without_long_members(&object(text), 80);
            assert_eq!(
                short.map(|short| short.to_json().as_text().to_owned()).as_deref(),
                expected,
                "{text}"
            );
        };
        check(r#"{"taskId":"7","status":"working","statusMessage":"short"}"#, None);
        let long = "x".repeat(90);
        check(
            &format!(r#"{{"taskId":"7","status":"working","statusMessage":"{long}"}}"#),
            Some(r#"{"taskId":"7","status":"working"}"#),
        );
        check(
            &format!(r#"{{"taskId":"7","error":{{"code":1,"message":"{long}"}}}}"#),
            Some(
                r#"{"taskId":"7","error":{"code":1,"message":"xxxxxxxxxxxxxxxxxxxx\n[error message truncated — 70 chars omitted]"}}"#,
            ),
        );
    }
}
