//! Texts that repeat the structured content of a result.

use serde_json::Value;
use toolyard_core::Json;

/// Form in which the texts of a result repeat its structured content for clients that read text only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StructuredMirror {
    /// The texts are the JSON of the structured content, or of the items of the list in its only member `result`, which
    /// Python servers write.
    Json,
    /// The text is the string that is the structured content or its only member `result`.
    Text,
    /// One of several texts repeats it.
    Among,
    /// The texts do not repeat it.
    Otherwise,
}

impl StructuredMirror {
    pub(super) fn of<'a>(structured: &Json, mut texts: impl Iterator<Item = &'a str> + Clone) -> Self {
        let value = structured.to_value();
        let result =
            value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("result"));
        let is_whole =
            |text: &str| [Some(&value), result].into_iter().flatten().any(|one| is_same(text, one));
        let items = result.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let all = texts.clone();
        match (texts.next(), texts.next()) {
            (Some(only), None) if [Some(&value), result].contains(&Some(&Value::from(only))) => Self::Text,
            (Some(only), None) if is_whole(only) => Self::Json,
            (Some(_), _) if are_items(all.clone(), items) => Self::Json,
            (Some(_), Some(_)) if all.clone().any(is_whole) => Self::Among,
            _ => Self::Otherwise,
        }
    }
}

fn are_items<'a>(texts: impl Iterator<Item = &'a str> + Clone, items: &[Value]) -> bool {
    texts.clone().count() == items.len() && texts.zip(items).all(|(text, item)| is_same(text, item))
}

/// Returns `true` if a text is this value: the string itself, or its JSON.
fn is_same(text: &str, value: &Value) -> bool {
    value.as_str() == Some(text) || Json::parse(text.to_owned()).is_ok_and(|text| text.to_value() == *value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repeated_content_is_recognized() {
        let check = |structured: Value, texts: &[&str], expected| {
            let mirror = StructuredMirror::of(&Json::from_value(&structured), texts.iter().copied());
            assert_eq!(mirror, expected, "{structured} {texts:?}");
        };
        use StructuredMirror::{Among, Json as AsJson, Otherwise, Text};
        check(json!({"a": 1}), &["{\n  \"a\": 1\n}"], AsJson);
        check(json!({"a": 1}), &["One of it", "{\"a\":1}"], Among);
        check(json!({"result": "a log"}), &["a log"], Text);
        check(json!("a log"), &["a log"], Text);
        check(json!({"result": [1, 2]}), &["[1, 2]"], AsJson);
        check(json!({"result": [1, "a"]}), &["1", "a"], AsJson);
        check(json!({"result": "7"}), &["7"], Text);
        check(json!({"result": ["a"]}), &["a"], AsJson);
        check(json!({"result": "a log", "lines": 1}), &["a log"], Otherwise);
        check(json!({"result": []}), &[], Otherwise);
        check(json!({"a": 1}), &["One of it"], Otherwise);
    }
}
