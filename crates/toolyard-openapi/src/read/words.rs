//! The descriptions of tools and arguments.

use std::borrow::Cow;

use http::Method;
use serde_json::{Map, Value};
use toolyard_core::text::truncate_at_sentence;

use crate::document::SpecNode;
use crate::schema::fit;

/// Maximum number of examples that parameters and bodies add to an argument.
const MAX_EXAMPLES: usize = 3;

/// Returns the whole description of an operation's tool: summary and description, or method and path without them.
pub(super) fn whole_description(operation: &SpecNode<'_>, method: &Method, path: &str) -> String {
    let word = |name| operation.text(name).map(str::trim).filter(|text| !text.is_empty());
    match (word("summary"), word("description")) {
        (Some(summary), Some(description)) if !description.starts_with(summary) => {
            let stop = if summary.ends_with(['.', '!', '?', ':']) { "" } else { "." };
            format!("{summary}{stop}\n\n{description}")
        }
        (_, Some(text)) | (Some(text), None) => text.to_owned(),
        (None, None) => format!("{method} {path}"),
    }
}

/// Texts in parts, each within its bound, and their whole if one of them exceeds it.
pub(super) struct BoundedTexts {
    pub(super) short: String,
    whole: String,
    is_cut: bool,
}

impl BoundedTexts {
    pub(super) fn new(text: &str, max_chars: usize) -> Self {
        let mut texts = Self { short: String::new(), whole: String::new(), is_cut: false };
        texts.push("", text, max_chars);
        texts
    }

    /// Adds a part after a heading.
    pub(super) fn push(&mut self, heading: &str, text: &str, max_chars: usize) {
        let short = truncate_at_sentence(text, max_chars);
        self.is_cut |= matches!(short, Cow::Owned(_));
        self.short.extend([heading, &short]);
        self.whole.extend([heading, text]);
    }

    /// Adds a text to the whole only.
    pub(super) fn push_whole(&mut self, heading: &str, text: &str) {
        self.is_cut = true;
        self.whole.extend([heading, text]);
    }

    /// True if a text is part of it, regardless of case and full stop.
    pub(super) fn contains(&self, text: &str) -> bool {
        self.whole.to_lowercase().contains(text.trim_end_matches('.').to_lowercase().trim())
    }

    /// Returns the whole, in at most `max_bytes`, if a part of it is cut.
    pub(super) fn whole(self, max_bytes: usize) -> Option<String> {
        let end = (0..=max_bytes.min(self.whole.len())).rev().find(|end| self.whole.is_char_boundary(*end));
        self.is_cut.then(|| self.whole[..end.unwrap_or_default()].to_owned())
    }
}

/// Adds examples to an argument, before its own ones: those that have its type and at most `max_bytes` as JSON.
pub(super) fn add_examples(schema: &mut Value, examples: Vec<Value>, max_bytes: usize) {
    let Value::Object(keywords) = schema else { return };
    let mut typed: Map<String, Value> = Map::new();
    let words = ["type", "items"].into_iter();
    typed.extend(words.filter_map(|word| Some((word.to_owned(), keywords.get(word)?.clone()))));
    typed.insert("examples".to_owned(), examples.into());
    fit(&mut typed);
    let Some(Value::Array(examples)) = typed.remove("examples") else { return };
    let own = keywords.remove("examples").unwrap_or_default();
    let own = own.as_array().cloned().unwrap_or_default();
    let mut all: Vec<Value> = Vec::new();
    for example in examples {
        if all.len() < MAX_EXAMPLES && !all.contains(&example) && example.to_string().len() <= max_bytes {
            all.push(example);
        }
    }
    let own: Vec<Value> = own.into_iter().filter(|example| !all.contains(example)).collect();
    all.extend(own);
    if !all.is_empty() {
        keywords.insert("examples".to_owned(), all.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_joins_summary_and_description() {
        let check = |operation: &str, expected: &str| {
            let node = SpecNode::parse(operation).unwrap();
            assert_eq!(whole_description(&node, &Method::GET, "/pets"), expected, "{operation}");
        };
        check("{}", "GET /pets");
        check("summary: List pets", "List pets");
        check("summary: List pets\ndescription: All of them.", "List pets.\n\nAll of them.");
        check("summary: List pets\ndescription: List pets, all of them.", "List pets, all of them.");
        check("summary: ' '\ndescription: x", "x");
    }
}
