//! Texts that repeat the structured content of a result.

use serde_json::Value;
use toolyard_core::Json;

/// Form in which the texts of a result repeat its structured content for clients that read text only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StructuredMirror {
    /// One text is the whole structured content, or the only member `result` of it.
    Whole,
    /// The structured content is a list in the member `result`, and each text is one item: Python servers write this.
    ByItems,
    /// The texts do not repeat it.
    Otherwise,
}

impl StructuredMirror {
    pub(super) fn of<'a>(structured: &Json, texts: impl Iterator<Item = &'a str> + Clone) -> Self {
        let value = structured.to_value();
        let result =
            value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("result"));
        let is_whole =
            |text: &str| [Some(&value), result].into_iter().flatten().any(|one| is_same(text, one));
        if texts.clone().any(is_whole) {
            return Self::Whole;
        }
        let items = result.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_mirror = !items.is_empty()
            && texts.clone().count() == items.len()
            && texts.zip(items).all(|(text, item)| is_same(text, item));
        if is_mirror { Self::ByItems } else { Self::Otherwise }
    }
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
        use StructuredMirror::{ByItems, Otherwise, Whole};
        check(json!({"a": 1}), &["{\n  \"a\": 1\n}"], Whole);
        check(json!({"a": 1}), &["One of it", "{\"a\":1}"], Whole);
        check(json!({"result": "a log"}), &["a log"], Whole);
        check(json!("a log"), &["a log"], Whole);
        check(json!({"result": [1, 2]}), &["[1, 2]"], Whole);
        check(json!({"result": [1, "a"]}), &["1", "a"], ByItems);
        check(json!({"result": "a log", "lines": 1}), &["a log"], Otherwise);
        check(json!({"result": []}), &[], Otherwise);
        check(json!({"a": 1}), &["One of it"], Otherwise);
    }
}
