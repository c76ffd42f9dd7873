//! Texts that repeat the structured content of a result, for clients that read text only.

use std::cell::OnceCell;

use serde_json::Value;

use super::RESULT;
use crate::json;

/// Structured content with which texts are compared. Each text is parsed once at most.
pub struct RepeatedContent(Value);

/// A text of a result, which is parsed when it is first compared with JSON.
pub struct ComparedText<'a> {
    text: &'a str,
    value: OnceCell<Option<Value>>,
}

impl<'a> ComparedText<'a> {
    /// Returns a text to compare.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { text, value: OnceCell::new() }
    }

    /// Returns `true` if the text is this string.
    fn is_string(&self, value: &Value) -> bool {
        value.as_str() == Some(self.text)
    }

    /// Returns `true` if the text is this string, or the JSON of this value.
    fn is(&self, value: &Value) -> bool {
        self.is_string(value) || self.value.get_or_init(|| json::value_of(self.text)).as_ref() == Some(value)
    }
}

impl RepeatedContent {
    /// Returns structured content to compare with.
    #[must_use]
    pub const fn new(structured: Value) -> Self {
        Self(structured)
    }

    /// Returns `true` if a text is the string that is the structured content or its only member `result`.
    #[must_use]
    pub fn is_string(&self, text: &ComparedText<'_>) -> bool {
        self.forms().any(|form| text.is_string(form))
    }

    /// Returns `true` if a text is the structured content or its only member `result`, as a string or as JSON.
    #[must_use]
    pub fn is_text(&self, text: &ComparedText<'_>) -> bool {
        self.forms().any(|form| text.is(form))
    }

    /// Returns `true` if texts are the items of the list in the only member `result`, which Python servers write.
    #[must_use]
    pub fn is_list_of(&self, texts: &[ComparedText<'_>]) -> bool {
        let items = self.result().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        items.len() == texts.len() && texts.iter().zip(items).all(|(text, item)| text.is(item))
    }

    fn forms(&self) -> impl Iterator<Item = &Value> {
        [Some(&self.0), self.result()].into_iter().flatten()
    }

    fn result(&self) -> Option<&Value> {
        self.0.as_object().filter(|object| object.len() == 1)?.get(RESULT)
    }
}
