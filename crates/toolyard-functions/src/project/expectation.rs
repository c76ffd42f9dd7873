//! The comparison of a reply with the value that a test case expects.

use serde_json::Value;

/// Maximum number of characters of a value in a message.
const MAX_CHARS: usize = 80;

/// Returns the first place where a reply lacks what is expected: it has to have all expected members of an object, and
/// equal elements of an array. Numbers are compared by value.
pub(super) fn difference(reply: &Value, expected: &Value) -> Option<String> {
    below(reply, expected, "")
}

fn below(reply: &Value, expected: &Value, path: &str) -> Option<String> {
    let place = if path.is_empty() { "the reply" } else { path };
    match (reply, expected) {
        (Value::Object(reply), Value::Object(expected)) => expected.iter().find_map(|(name, expected)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match reply.get(name) {
                Some(reply) => below(reply, expected, &path),
                None => Some(format!("{path}: expected {}, it is missing", shown(expected))),
            }
        }),
        (Value::Array(reply), Value::Array(expected)) if reply.len() == expected.len() => {
            let pairs = reply.iter().zip(expected).enumerate();
            pairs
                .into_iter()
                .find_map(|(at, (reply, expected))| below(reply, expected, &format!("{path}[{at}]")))
        }
        (Value::Array(reply), Value::Array(expected)) => Some(format!(
            "{place}: expected an array of length {}, found length {}",
            expected.len(),
            reply.len()
        )),
        (Value::Number(reply), Value::Number(expected)) if reply.as_f64() == expected.as_f64() => None,
        (reply, expected) if reply == expected => None,
        (reply, expected) => Some(format!("{place}: expected {}, found {}", shown(expected), shown(reply))),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn first_difference_is_named() {
        let check = |reply: Value, expected: Value, difference: Option<&str>| {
            assert_eq!(super::difference(&reply, &expected).as_deref(), difference);
        };
        let list = |names: &[&str]| {
            let tools: Vec<_> = names.iter().map(|name| json!({"name": name, "title": "T"})).collect();
            json!({"id": 2, "result": {"tools": tools}})
        };
        let first = json!({"result": {"tools": [{"name": "a"}]}});
        check(list(&["a"]), first.clone(), None);
        check(
            list(&["a", "b"]),
            first.clone(),
            Some("result.tools: expected an array of length 1, found length 2"),
        );
        check(list(&["b"]), first.clone(), Some(r#"result.tools[0].name: expected "a", found "b""#));
        check(json!({"id": 2}), first, Some(r#"result: expected {"tools":[{"name":"a"}]}, it is missing"#));
        check(json!(1), json!("1"), Some(r#"the reply: expected "1", found 1"#));
        check(json!(1.0), json!(1), None);
        let long = json!("x".repeat(100));
        let expected = format!("the reply: expected null, found \"{}\u{2026}", "x".repeat(79));
        check(long, json!(null), Some(&expected));
    }
}
