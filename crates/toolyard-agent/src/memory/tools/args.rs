//! What the tools are called with.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::memory::limits::MemoryError;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SaveArgs {
    /// What to call it, such as "customer-list"; it is kept in your own namespace
    pub(super) key: String,
    /// The text to keep; anything else than a text is kept as JSON
    pub(super) data: Data,
    /// How long to keep it, in minutes; 5 if left out
    #[serde(default)]
    pub(super) ttl_minutes: Option<f64>,
    /// What kind of thing it is, such as "notes" or "research/prices"
    #[serde(default)]
    pub(super) category: Option<String>,
    /// Tags to find it by, separated by commas, or as a list
    #[serde(default)]
    pub(super) tags: Tags,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GetArgs {
    /// The key that it was saved under, or a whole path such as "session/abc123/tool-search-a1b2c3-chunk0"
    pub(super) key: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DeleteArgs {
    /// The key that it was saved under, or its whole path
    pub(super) key: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SearchArgs {
    /// Words to look for; the newest entries if left out
    #[serde(default)]
    pub(super) query: Option<String>,
    /// Only of this category, or one below it
    #[serde(default)]
    pub(super) category: Option<String>,
    /// Only with all of these tags, separated by commas, or as a list
    #[serde(default)]
    pub(super) tags: Tags,
    /// Where to look, such as "session/abc123"; your own namespace if left out
    #[serde(default)]
    pub(super) namespace: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListArgs {
    /// Where to look, such as "session/abc123"; your own namespace if left out
    #[serde(default)]
    pub(super) namespace: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct QueryArgs {
    /// The key of an entry with JSON in it, or of the index or any chunk of a large result
    pub(super) key: String,
    /// A JMESPath expression, such as "data[?price < `2`].{id: id, price: price}"
    pub(super) expression: String,
}

/// What is to be kept. Models say what has a structure in its structure, which is kept as it came: numbers have more digits than
/// could be read.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Data(Box<RawValue>);

impl Data {
    pub(super) fn into_text(self) -> String {
        let raw = self.0.get();
        serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned())
    }
}

impl JsonSchema for Data {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Data".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}

/// Tags in one text, or each in its own.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
pub(crate) enum Tags {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl JsonSchema for Tags {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Tags".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
    }
}

/// The tags themselves, each once.
pub(crate) fn tags(tags: Tags) -> Vec<String> {
    let texts = match tags {
        Tags::None => Vec::new(),
        Tags::One(text) => vec![text],
        Tags::Many(texts) => texts,
    };
    let mut tags = Vec::new();
    for tag in texts.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|tag| !tag.is_empty()) {
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    tags
}

/// A time to live; `None` where the call does not say.
pub(super) fn ttl(minutes: Option<f64>) -> Result<Option<Duration>, MemoryError> {
    /// A year: more than any memory keeps.
    const MOST: f64 = 525_600.0;
    match minutes {
        None => Ok(None),
        Some(minutes) if minutes > 0.0 => Ok(Some(Duration::from_secs_f64(minutes.min(MOST) * 60.0))),
        Some(_) => Err(MemoryError::BadKey("ttl_minutes: is not more than 0")),
    }
}

/// A text that says something.
pub(crate) fn said(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}
