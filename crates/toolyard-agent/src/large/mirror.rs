//! Texts that repeat the structured content of a result.

use toolyard_core::Json;
use toolyard_core::output_schema::{ComparedText, RepeatedContent};

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
    pub(super) fn of<'a>(structured: &Json, texts: impl Iterator<Item = &'a str>) -> Self {
        let repeated = RepeatedContent::new(structured.to_value());
        let texts: Vec<_> = texts.map(ComparedText::new).collect();
        match &*texts {
            [only] if repeated.is_string(only) => Self::Text,
            [only] if repeated.is_text(only) => Self::Json,
            [_, ..] if repeated.is_list_of(&texts) => Self::Json,
            [_, _, ..] if texts.iter().any(|text| repeated.is_text(text)) => Self::Among,
            _ => Self::Otherwise,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
